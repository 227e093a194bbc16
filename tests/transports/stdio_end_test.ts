// A process that serves stdio exits when its input ends. A leaked timer would keep the process alive; Deno's test
// runner fails a test that leaks a timer.
import { assertEquals } from "@std/assert";
import { createServer, type Handler, tool } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { toHello } from "../support/sessions.ts";

/** Serves the line `first`, and then each line that `answer` returns for the output, until `answer` returns "end". */
async function serveLines(
  handlers: readonly Handler[],
  first: readonly unknown[],
  answer: (message: { id?: unknown; method?: string; result?: unknown }) => unknown,
): Promise<void> {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const write = (message: unknown) => writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
  const output = async (bytes: Uint8Array) => {
    for (const line of new TextDecoder().decode(bytes).trim().split("\n")) {
      const message = answer(JSON.parse(line));
      await (message === undefined ? undefined : message === "end" ? writer.close() : write(message));
    }
  };
  // Without a timeout, no sweep runs in the background.
  const limits = { calls: { timeoutMs: Infinity } };
  const server = createServer({ name: "short", version: "1.0.0", handlers, limits });
  const serving = serveStdio(server, { input: readable, output });
  for (const message of first) await write(message);
  await serving;
  // The server's timer stops shortly after it is no longer used.
  // Fixed wait: the test runner checks for timers after the last timer should have stopped.
  await new Promise((resolve) => setTimeout(resolve, 300));
}

const strict = { sanitizeOps: true, sanitizeResources: true };
const initialize = toHello({ id: "init", capabilities: { elicitation: {} } });

Deno.test({ name: "no timer is left when the input ends", ...strict }, async () => {
  await serveLines([], [initialize], () => "end");
});

Deno.test({ name: "no timer is left by a question that was answered", ...strict }, async () => {
  const ask = tool({
    name: "ask",
    run: async (_, ctx) =>
      (await ctx.elicit("q", { message: "Why?", schema: { type: "object", properties: {} } })).action,
  });
  const call = { jsonrpc: "2.0", id: "call", method: "tools/call", params: { name: "ask" } };
  const results: unknown[] = [];
  await serveLines([ask], [initialize, call], ({ id, method, result }) => {
    if (method === "elicitation/create") return { jsonrpc: "2.0", id, result: { action: "decline" } };
    if (id !== "call") return;
    results.push(result);
    return "end";
  });
  assertEquals(results, [{ content: [{ type: "text", text: "decline" }] }]);
});
