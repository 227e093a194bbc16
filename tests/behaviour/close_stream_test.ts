// `ctx.closeStream()` closes the connection of a call only if the client will resume the stream.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { behaviour, LEGACY_VERSIONS, textOf, turn } from "../support/behaviour.ts";

for (const says of ["nothing", "progress", "a log message"]) {
  behaviour(
    `a call that sends ${says} and then closes its stream still returns its result in every revision`,
    async (connect, { version, transport }) => {
      const leave = tool({
        name: "leave",
        async run(_input, ctx) {
          if (says === "progress") await ctx.progress(1);
          if (says === "a log message") await ctx.log.info("before");
          ctx.closeStream(5);
          await turn(5);
          ctx.closeStream(5);
          return "back";
        },
      });
      const { client } = await connect({ handlers: [leave] }, { logLevel: "debug" });
      const result = await client.callTool("leave", {}, { meta: { progressToken: 1 } });
      assertEquals(textOf(result), "back");
      const resumes = client.transcript.some((line) => line.startsWith("→ GET") && line.includes("last-event-id"));
      assertEquals(resumes, version === "2025-11-25" && transport !== "pipe");
    },
    { versions: LEGACY_VERSIONS },
  );
}
