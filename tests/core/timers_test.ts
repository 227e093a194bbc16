// Timers: when streams open and send keep-alives, when writes time out, and when sessions and events expire.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type ServerOptions, tool } from "../../mod.ts";
import { type Connection, connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { started, textOf, until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { testServer } from "../support/test_server.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Creates a server with a fake clock, and with tools that wait. */
function createStill(options: Partial<ServerOptions> = {}) {
  const clock = fakeClock();
  const log: string[] = [];
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    async run(_input, { signal }) {
      log.push("wait began");
      await Promise.race([opened, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      log.push(signal.aborted ? "wait was cancelled" : "wait is done");
      return "waited";
    },
  });
  const flood = tool({
    name: "flood",
    async run(_input, ctx) {
      for (let i = 1; i <= 2000 && !ctx.signal.aborted; i++) {
        await ctx.progress(i, { message: "x".repeat(100) });
        log.push(`${i}`);
      }
      return "flooded";
    },
  });
  const logs = tool({
    name: "logs",
    async run(_input, ctx) {
      for (const level of ["info", "error"] as const) await ctx.log[level](level);
      return "";
    },
  });
  const handlers = [wait, flood, logs];
  const server = testServer({ handlers, clock, ...options });
  return { clock, log, open, server };
}

/** Advances the clock until a chunk arrives, and returns the chunk's text. Returns `undefined` if no chunk arrives. */
async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  ms: number,
  advance: (ms: number) => Promise<void>,
): Promise<{ readonly text: string; readonly after: number } | undefined> {
  let chunk: ReadableStreamReadResult<Uint8Array> | undefined;
  const reading = reader.read().then((read) => chunk = read);
  for (let after = 0; after < ms; after += 100) {
    await advance(100);
    if (chunk) return { text: new TextDecoder().decode(chunk.value), after: after + 100 };
  }
  reading.catch(() => {});
}

Deno.test("the response to a silent call becomes a stream with keep-alives", async () => {
  const { clock, log, open, server } = createStill();
  let response: Response | undefined;
  const coming = server.fetch(toRequest("tools/call", { name: "wait" })).then((given) => response = given);
  await until(() => log.length > 0, "the call");
  await clock.advance(39);
  assertEquals([response, log], [undefined, ["wait began"]]);
  // Calls are checked at intervals of streams.openAfterMs, so a stream opens after at most twice this time.
  await clock.advance(41);
  await coming;
  assertEquals(response?.headers.get("content-type"), "text/event-stream");
  const reader = response?.body?.getReader();
  assert(reader);
  for (let i = 0; i < 5; i++) {
    const alive = await readWithin(reader, 8000, clock.advance);
    assertEquals(alive?.text, ":\n\n", `no keep-alive within 8 s (${i})`);
  }
  open();
  const { value } = await reader.read();
  assertStringIncludes(new TextDecoder().decode(value), '"waited"');
  assertEquals((await reader.read()).done, true);
});

Deno.test("the response to a call that ends within streams.openAfterMs does not become a stream", async () => {
  const { clock, log, open, server } = createStill();
  const coming = server.fetch(toRequest("tools/call", { name: "wait" }));
  await until(() => log.length > 0, "the call");
  await clock.advance(30);
  open();
  const response = await coming;
  assertEquals(response.headers.get("content-type"), "application/json");
  await response.text();
  await clock.advance(1000);
});

Deno.test("a client that does not read pauses the handler, and after a timeout its stream is closed", async () => {
  const { clock, log, server } = createStill();
  const response = await server.fetch(toRequest("tools/call", { name: "flood", _meta: { progressToken: 1 } }));
  await clock.advance(10_000);
  const before = log.length;
  assert(before < 1000, `${before} unread messages were accepted`);
  await clock.advance(10_000);
  assertEquals(log.length, before);
  await clock.advance(15_000);
  assert(!/"result"|"error"/.test(await response.text()), "the stream ended with a response");
  await until(() => log.length === before + 1, "the handler continues, and its signal is aborted");
});

async function isOver(client: Connection): Promise<boolean> {
  try {
    await client.request("ping");
    return false;
  } catch (error) {
    assert(error instanceof McpError);
    assertEquals([error.status, error.code], [404, -32600]);
    return true;
  }
}

Deno.test("a session ends after its idle timeout", async () => {
  const { clock, server } = createStill({ limits: { connections: { sessionIdleMs: 30 * MINUTE } } });
  await using busy = await connectTest(server, { era: "legacy" });
  await using idle = await connectTest(server, { era: "legacy" });
  for (let i = 0; i < 4; i++) {
    await clock.advance(20 * MINUTE);
    assertEquals(await isOver(busy), false, `after ${i + 1} times 20 minutes`);
  }
  assertEquals(await isOver(idle), true);
});

Deno.test("a session with an open stream or a running call is not idle", async () => {
  const { clock, log, open, server } = createStill({
    limits: { connections: { sessionIdleMs: 2 * MINUTE }, calls: { timeoutMs: Infinity } },
  });
  await using listening = await connectTest(server, { era: "legacy" });
  await using running = await connectTest(server, { era: "legacy" });
  await listening.subscribe({ toolsListChanged: true });
  const call = started(running.callTool("wait"));
  await until(() => log.length === 1, "the call runs");
  await clock.advance(5 * MINUTE);
  open();
  assertEquals(textOf(await call), "waited");
  assertEquals([await isOver(listening), await isOver(running)], [false, false]);
});

Deno.test("a session ends after its maximum lifetime, however busy it is", async () => {
  const { clock, server } = createStill({ limits: testLimits({ sessions: { lifeMs: 2 * HOUR } }) });
  await using client = await connectTest(server, { era: "legacy" });
  for (let i = 0; i < 11; i++) {
    await clock.advance(10 * MINUTE);
    assertEquals(await isOver(client), false);
  }
  await clock.advance(11 * MINUTE);
  assertEquals(await isOver(client), true);
});

Deno.test("with too many sessions, the session that was idle longest loses its state, but stays valid", async () => {
  const { clock, server } = createStill({ limits: { connections: { sessions: 2 } } });
  const [first, second, third] = await Promise.all(
    Array.from({ length: 3 }, () => connectTest(server, { era: "legacy", logLevel: "error" })),
  );
  const readLevels = async (client: Connection) => {
    const before = client.received.length;
    await client.callTool("logs");
    return client.received.slice(before).map(({ params }) => params.level);
  };
  // One of the three sessions has lost its log level, because there is room for two sessions. The next requests make
  // the order of use known.
  for (const client of [first, second]) {
    await clock.advance(1000);
    await client.request("logging/setLevel", { level: "error" });
  }
  await clock.advance(1000);
  await first.request("ping");
  await third.request("logging/setLevel", { level: "error" });
  assertEquals(await readLevels(first), ["error"], "the most recently used session lost its state");
  assertEquals(await readLevels(third), ["error"]);
  assertEquals(await readLevels(second), ["info", "error"], "the session did not continue with the default state");
  for (const client of [first, second, third]) await client.close();
});

Deno.test("a session continues on another instance with the same secret, and is unknown on an instance with another secret", async () => {
  const secret = "s".repeat(32);
  const [here, there, stranger] = [{ secret }, { secret }, {}].map((options) => createStill(options).server);
  await using client = await connectTest(here, { era: "legacy", principal: { id: "ada" } });
  const ask = (server: typeof here, id: string | undefined) =>
    server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "mcp-session-id": client.sessionId ?? "",
          "mcp-protocol-version": "2025-11-25",
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      }),
      { principal: id && { id } },
    ).then(async (response) => {
      await response.text();
      return response.status;
    });
  assertEquals(await Promise.all([ask(here, "ada"), ask(there, "ada"), ask(stranger, "ada")]), [200, 200, 404]);
  // Using a stolen id does not change the session's owner.
  assertEquals(await Promise.all([ask(here, "bob"), ask(there, "bob"), ask(here, undefined)]), [404, 404, 404]);
  for (const server of [here, there, stranger]) await server.close();
});
