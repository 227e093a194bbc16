// Messages that a client sends before it has received the response to `initialize`.
import { assertEquals } from "@std/assert";
import { createServer, type LimitOptions, tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { turn } from "../support/behaviour.ts";
import { toHello } from "../support/sessions.ts";

const INITIALIZE = toHello({ id: "hello" });

/** Sends messages without waiting for responses. Returns the ids and codes of all responses, in order. */
async function send(
  messages: readonly object[],
  { turns = 0, count = messages.length, limits = {} }: {
    readonly turns?: number;
    readonly count?: number;
    readonly limits?: LimitOptions;
  } = {},
): Promise<string[]> {
  const server = createServer({
    limits,
    name: "t",
    version: "1.0.0",
    handlers: [tool({ name: "add", run: () => "3" })],
    admit: () => turn(turns).then(() => true as const),
  });
  const got: string[] = [];
  const done = Promise.withResolvers<void>();
  const pipe = openPipe(server, {
    write(text) {
      const { id, error } = JSON.parse(text);
      got.push(error ? `${id} ${error.code}` : `${id}`);
      if (got.length === count) done.resolve();
      return undefined;
    },
  });
  for (const message of messages) pipe.receive(JSON.stringify(message));
  await done.promise;
  pipe.close();
  await server.close();
  return got;
}

function call(id: number) {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name: "add" } };
}

for (const turns of [0, 3]) {
  Deno.test(`if initialize takes ${turns} turns of the event loop, requests after initialize are served after its response`, async () => {
    const messages = [INITIALIZE, { jsonrpc: "2.0", method: "notifications/initialized" }, call(1), call(2)];
    assertEquals(await send(messages, { turns, count: 3 }), ["hello", "1", "2"]);
  });
}

Deno.test("the number of messages that wait for initialize is limited", async () => {
  const messages = [INITIALIZE, ...Array.from({ length: 20 }, (_, i) => call(i))];
  const got = await send(messages, { turns: 3 });
  const refused = got.filter((each) => each.endsWith("-32600"));
  assertEquals([got.length, refused.length], [21, 12]);
});

Deno.test("requests after a failed initialize are refused", async () => {
  const messages = [{ ...INITIALIZE, params: {} }, call(1)];
  assertEquals(await send(messages), ["hello -32602", "1 -32600"]);
});

Deno.test("messages that wait for initialize are charged to their client", async () => {
  const text = "x".repeat(100_000);
  const large = (id: number) => ({ ...call(id), params: { name: "add", arguments: { text } } });
  const note = { jsonrpc: "2.0", method: "notifications/initialized", params: { text } };
  const options = { turns: 3, limits: { memory: { bytesPerClient: 500_000 } } };
  // Memory is charged with two bytes per character, so only two of the messages fit.
  const got = await send([INITIALIZE, note, large(1), large(2), large(3)], { ...options, count: 4 });
  assertEquals(got.filter((each) => each.endsWith("-31503")).length, 2);
});
