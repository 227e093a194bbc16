// A server with every kind of handler, for client tests. Tests import this file, or start it as a stdio process.
import { createServer, prompt, resource, type Server, tool } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { testLimits } from "../support/limits.ts";

/** Creates the server. Each page of its lists has two items. */
export function createLibrary(): Server {
  let lent = 0;
  let stopped = 0;

  const echo = tool({
    name: "echo",
    description: "Says it again",
    input: {
      type: "object",
      properties: {
        text: { type: "string", "x-mcp-header": "Text" },
        times: { type: "integer", "x-mcp-header": "Times" },
      },
      required: ["text"],
    },
    run: (input) => String(Object(input).text).repeat(Object(input).times ?? 1),
  });

  const count = tool({
    name: "count",
    async run(_input, ctx) {
      for (let i = 1; i <= 3; i++) await ctx.progress(i, { total: 3, message: `${i} of 3` });
      await ctx.log.warning({ counted: 3 }, { logger: "counter" });
      return "3";
    },
  });

  const wait = tool({
    name: "wait",
    async run(_input, ctx) {
      await ctx.progress(1);
      if (!ctx.signal.aborted) await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      stopped++;
      return "never";
    },
  });

  const ended = tool({ name: "ended", run: () => String(stopped) });

  const member = {
    type: "object",
    properties: {
      name: { type: "string", default: "Ada" },
      age: { type: "integer", default: 36 },
      likes: { type: "array", items: { type: "string", enum: ["poems", "maps"] }, default: ["maps"] },
    },
    required: ["name"],
  };

  const join = tool({
    name: "join",
    async run(_input, ctx) {
      const answer = await ctx.elicit("who", { message: "Who are you?", schema: member });
      const [root] = await ctx.roots();
      const { content } = await ctx.sample("greeting", {
        messages: [{ role: "user", content: { type: "text", text: "Greet them" } }],
        maxTokens: 10,
      });
      return JSON.stringify([answer, root?.uri, content]);
    },
  });

  const pay = tool({
    name: "pay",
    run: async (_input, ctx) => (await ctx.elicitUrl("pay", { message: "Pay", url: "https://pay.test/1" })).action,
  });

  const lend = tool({
    name: "lend",
    input: { type: "object", properties: { member: { type: "string", "x-mcp-header": "Member" } } },
    run() {
      lent++;
      server.resourceUpdated("book://1");
      if (lent === 2) server.handlers.add(tool({ name: "renew", run: () => "" }));
      return String(lent);
    },
  });

  const books = [1, 2, 3].map((n) =>
    resource({ uri: `book://${n}`, name: `book ${n}`, mimeType: "text/plain", read: () => `Text of book ${n}` })
  );
  const shelf = resource({
    uri: "shelf://{letter}",
    name: "shelf",
    complete: { letter: () => ["a", "b"] },
    read: ({ letter }) => `Shelf ${letter}`,
  });
  const review = prompt({
    name: "review",
    input: { type: "object", properties: { book: { type: "string" } }, required: ["book"] },
    complete: { book: (value) => ["Emma", "Ezra"].filter((name) => name.startsWith(value)) },
    run: (input) => `Review ${Object(input).book}`,
  });

  const server = createServer({
    name: "library",
    version: "1.0.0",
    instructions: "Be quiet.",
    limits: testLimits({ calls: { pageItems: 2 } }),
    handlers: [echo, count, wait, ended, join, pay, lend, ...books, shelf, review],
  });
  return server;
}

if (import.meta.main) await serveStdio(createLibrary());
