// Values that the server does not send, but replaces with an error. Their open streams are closed, and the replacement
// is sent completely.
import { z } from "zod";
import { tool } from "../../mod.ts";
import type { Schema } from "../../src/core/schema/schema.ts";
import { assertEquals } from "../support/std.ts";
import { toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

/** Returns a value from a tool. Returns the response, and the names of the streams that were cancelled. */
async function send(make: (open: (name: string) => ReadableStream) => unknown, output?: Schema) {
  const cancelled: string[] = [];
  const open = (name: string) =>
    new ReadableStream({ pull: () => new Promise(() => {}), cancel: () => void cancelled.push(name) });
  const x = tool({ name: "x", output, run: () => make(open) as Record<string, unknown> });
  const server = testServer({ handlers: [x], observer: { fault() {} } });
  const text = await (await server.fetch(toRequest("tools/call", { name: "x", arguments: {} }))).text();
  await server.close();
  return { cancelled, text };
}

Deno.test("a stream that the output schema refuses is cancelled", async () => {
  const output = z.object({ a: z.string() });
  assertEquals((await send((open) => open("whole"), output)).cancelled, ["whole"]);
  assertEquals((await send((open) => ({ a: open("part") }), output)).cancelled, ["part"]);
});

Deno.test("streams deep in a value that cannot be sent are cancelled", async () => {
  const { cancelled } = await send((
    open,
  ) => [() => {}, { a: { b: [new Map([["c", { d: { e: [open("deep")] } }]])] } }]);
  assertEquals(cancelled, ["deep"]);
});

Deno.test("the search for streams ends for a circular value that cannot be sent", async () => {
  const { cancelled } = await send((open) => {
    const value: unknown[] = [() => {}, open("one")];
    value.push(value, Array.from({ length: 50_000 }, () => ({})));
    return value;
  });
  assertEquals(cancelled, ["one"]);
});

Deno.test("the structured content of an error is sent completely, also with an output schema", async () => {
  const full = () => ({ content: [], isError: true, structuredContent: new Map([["a", 1]]) });
  for (const output of [undefined, z.object({ b: z.string() })]) {
    const { text } = await send(full, output);
    assertEquals(text.includes('"structuredContent":{"a":1}'), true, text);
  }
});
