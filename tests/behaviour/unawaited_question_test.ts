// An open question decides the outcome of its call, whatever the handler does with the promise. The test has its own
// file, because the code for questions is loaded by the first question in a process.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, ToolError } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { plainTool, textOf } from "../support/behaviour.ts";

const schema = z.object({ ok: z.boolean() });
const ask = (ctx: Context) => ctx.elicit("sure", { message: "Sure?", schema });

const handlers = [
  plainTool("returns", (ctx) => {
    void ask(ctx).then(() => {}, () => {});
    return "done";
  }),
  plainTool("throws", (ctx) => {
    void ask(ctx).then(() => {}, () => {});
    throw new ToolError("failed");
  }),
  plainTool("returns_later", async (ctx) => {
    await undefined;
    void ask(ctx).then(() => {}, () => {});
    return "done";
  }),
];

Deno.test("a question that is not awaited is still sent, even if it is the first question in the process", async () => {
  for (const _again of [1, 2]) {
    for (const { name } of handlers) {
      await using server = createServer({ name: "asks", version: "1.0.0", handlers });
      let asked = 0;
      await using client = await connectTest(server, {
        era: "modern",
        onElicit: () => {
          asked++;
          return { action: "accept", content: { ok: true } };
        },
      });
      const result = await client.callTool(name);
      assertEquals([textOf(result), asked], [name === "throws" ? "failed" : "done", 1], name);
    }
  }
});
