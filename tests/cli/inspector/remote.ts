// A server with the current revision, which the inspector page connects to over stdio.
import { createServer, tool } from "@x/mcp";

const server = createServer({
  name: "remote",
  version: "3.2.1",
  handlers: [
    tool({
      name: "ask",
      run: async (_, ctx) => {
        const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
        const answer = await ctx.elicit("who", { message: "Who is there?", schema });
        return JSON.stringify(answer);
      },
    }),
    tool({
      name: "steps",
      run: async (_, ctx) => {
        await ctx.progress(1, { total: 2, message: "half" });
        await ctx.log.info("on the way");
        return "All done.";
      },
    }),
    tool({
      name: "who",
      run: (_, ctx) => ({
        authorization: ctx.http?.headers.get("authorization") ?? null,
        extra: ctx.http?.headers.get("x-extra") ?? null,
      }),
    }),
    tool({
      name: "wait",
      run: async (_, ctx) => {
        await ctx.progress(1);
        await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        return "Stopped.";
      },
    }),
  ],
});

export default server;
