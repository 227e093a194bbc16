// Sessions on the server: when they end, in which processes they are valid, and how they are isolated. Each test runs
// in the memory of one process, and with a store.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import type { Store } from "../../src/stores/stores.ts";
import { closeAtEnd } from "../support/running.ts";
import { until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { toSession, toSessionRequest } from "../support/sessions.ts";

type Json = { readonly [key: string]: unknown };
type Headers = Readonly<Record<string, string>>;

const SECRET = "a secret of at least thirty-two characters";

type Held = ReturnType<typeof startServer>;

function startServer(options: Partial<ServerOptions> = {}) {
  /** The calls of the tools, in order. */
  const log: string[] = [];
  const hold = tool({
    name: "hold",
    run: (_input, { signal }) =>
      new Promise<string>((resolve) => {
        log.push("hold");
        signal.addEventListener("abort", () => {
          log.push(`aborted: ${signal.reason.why}`);
          resolve("");
        });
      }),
  });
  const who = tool({
    name: "who",
    run: (_input, { client }) => ({ ...client.info, sampling: client.capabilities.sampling }),
  });
  return {
    log,
    server: closeAtEnd(
      createServer({ name: "kept", version: "1.0.0", secret: SECRET, handlers: [hold, who], ...options }),
    ),
  };
}

function send(
  { server }: Held,
  id: string | undefined,
  message: Json | undefined,
  more: Headers = {},
  principal?: unknown,
) {
  const { method = message ? "POST" : "GET", ...rest } = more;
  const headers = { ...rest, ...id === undefined ? {} : { "mcp-session-id": id } };
  const request = toSessionRequest(message && { jsonrpc: "2.0", ...message }, headers, { method });
  return server.fetch(request, principal === undefined ? undefined : { principal });
}

async function shake(held: Held, params: Json = {}, principal?: unknown): Promise<string> {
  const all = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" }, ...params };
  return await toSession(await send(held, undefined, { id: 0, method: "initialize", params: all }, {}, principal));
}

const ping = { id: 1, method: "ping" };
const call = (name: string, id: unknown = 1) => ({ id, method: "tools/call", params: { name } });

async function isGood(held: Held, id: string, principal?: unknown): Promise<boolean> {
  const { status, body } = await send(held, id, ping, {}, principal);
  await body?.cancel();
  assert(status === 200 || status === 404, `status ${status}`);
  return status === 200;
}

async function end(held: Held, id: string): Promise<number> {
  const response = await send(held, id, undefined, { method: "DELETE" });
  assert(response.status !== 503, await response.text());
  return response.status;
}

/** Runs a function while each unseal operation takes `ms` milliseconds of the clock. */
async function withSlowSeals(clock: FakeClock, ms: number, run: () => Promise<void>): Promise<void> {
  const { decrypt } = crypto.subtle;
  const value = async (...args: Parameters<typeof decrypt>) => {
    await clock.advance(ms);
    return await decrypt.apply(crypto.subtle, args);
  };
  Object.defineProperty(crypto.subtle, "decrypt", { configurable: true, value });
  try {
    await run();
  } finally {
    Reflect.deleteProperty(crypto.subtle, "decrypt");
  }
}

/** Calls `run` with a function `hold`. After `hold()`, all unseal operations wait until `release()` is called. */
async function withHeldSeals(run: (hold: () => { readonly waiting: () => number; release(): void }) => Promise<void>) {
  const { decrypt } = crypto.subtle;
  let held: { readonly promise: Promise<void>; count: number } | undefined;
  const value = async (...args: Parameters<typeof decrypt>) => {
    if (held) {
      held.count++;
      await held.promise;
    }
    return await decrypt.apply(crypto.subtle, args);
  };
  Object.defineProperty(crypto.subtle, "decrypt", { configurable: true, value });
  try {
    await run(() => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const own = held = { promise, count: 0 };
      return { waiting: () => own.count, release: resolve };
    });
  } finally {
    Reflect.deleteProperty(crypto.subtle, "decrypt");
  }
}

/** Registers the tests. With `makeStore`, each server has a store. */
export function testSessions(title: string, makeStore?: () => Store): void {
  // Give each server a name of its own, because tests with different clocks must not share ended sessions.
  const start = (options: Partial<ServerOptions> = {}) =>
    startServer({ name: `kept with ${title}`, store: makeStore?.(), ...options });
  const test = (name: string, run: () => Promise<void>) => Deno.test(`${name} (${title})`, run);

  test("a request with an unknown session gets 404, however long the check takes", async () => {
    const clock = fakeClock();
    await withSlowSeals(clock, 60, async () => {
      const held = start({ clock, limits: testLimits({ streams: { openAfterMs: 1 } }) });
      const id = await shake(held);
      const unknown = await send(held, id.toUpperCase(), ping);
      assertEquals([unknown.status, (await readReply(unknown)).error.code], [404, -32600]);
      // With a valid session, the response becomes a stream before the check has finished, so that the server can
      // detect a disconnect.
      const pending = send(held, id, call("hold"));
      await until(() => held.log.length === 1, "the call runs");
      await clock.advance(60);
      const running = await pending;
      assertEquals(running.headers.get("content-type"), "text/event-stream");
      await end(held, id);
      await running.text();
    });
  });

  test("a session that ends while another request is opening it stays ended", () =>
    withHeldSeals(async (hold) => {
      const before = start();
      const id = await shake(before);
      // This instance has not used the session. Its first session loads the code that opens sessions.
      const held = start();
      assertEquals(await isGood(held, await shake(held)), true);
      const { waiting, release } = hold();
      const opening = send(held, id, ping);
      await until(() => waiting() === 1, "the request is opening the session");
      const ending = hold();
      const ended = end(held, id);
      await until(() => ending.waiting() > 0, "the other request is also opening the session");
      ending.release();
      assertEquals(await ended, 204);
      release();
      assertEquals(await toStatus(opening), 404);
      assertEquals(await isGood(held, id), false);
    }));

  test("what a session has negotiated is valid in another process only with the same secret and server name", async () => {
    const before = start();
    const id = await shake(before, {
      capabilities: { sampling: { tools: {} } },
      clientInfo: { name: "ada", version: "7" },
    });
    await before.server.close();
    const after = start();
    const answer = await readReply(await send(after, id, call("who")));
    assertEquals(answer.result.structuredContent, { name: "ada", version: "7", sampling: { tools: {} } });
    const others = [
      start({ secret: "another secret of at least thirty-two characters" }),
      start({ secret: undefined, store: undefined }),
      start({ name: "other" }),
    ];
    for (const other of others) assertEquals(await isGood(other, id), false);
    const rotated = start({ secret: ["another secret of at least thirty-two characters", SECRET] });
    assertEquals(await isGood(rotated, id), true);
  });

  if (!makeStore) {
    test("a session of another process or another server is reported once", async () => {
      const { warn } = console;
      const warnings: string[] = [];
      console.warn = (...parts: readonly unknown[]) => void warnings.push(parts.join(" "));
      try {
        for (const secret of [undefined, SECRET]) {
          warnings.length = 0;
          const [one, other] = [startServer({ secret }), startServer({ secret, ...secret && { name: "elsewhere" } })];
          const id = await shake(one);
          for (let i = 0; i < 3; i++) assertEquals(await isGood(other, id), false);
          // An ended session, and a text that is not a session id, are not reported as sessions of another process.
          await end(one, id);
          assertEquals([await isGood(one, id), await isGood(one, "short")], [false, false]);
          assertEquals(warnings.length, 1, warnings.join("\n"));
          assertStringIncludes(warnings[0], secret ? "elsewhere" : "kept");
        }
      } finally {
        console.warn = warn;
      }
    });
  }

  test("a client that sends no clientInfo gets a session too", async () => {
    const held = start();
    for (const clientInfo of [undefined, {}, { name: "x" }, { name: "x", version: 5 }]) {
      const id = await shake(held, { clientInfo });
      assertEquals(await isGood(held, id), true);
      const { result } = await readReply(await send(held, id, call("who")));
      assertEquals(result.structuredContent.name, undefined);
    }
  });

  test("a session is valid only for its own principal", async () => {
    const held = start();
    const [ada, bob] = [{ id: "ada" }, { id: "bob" }];
    for (const isUsed of [false, true]) {
      const own = await shake(held, {}, ada);
      const open = await shake(held);
      if (isUsed) assertEquals([await isGood(held, own, ada), await isGood(held, open)], [true, true]);
      assertEquals(await isGood(held, own, bob), false);
      assertEquals(await isGood(held, own), false);
      assertEquals(await isGood(held, open, ada), false);
      assertEquals([await isGood(held, own, ada), await isGood(held, open)], [true, true]);
    }
  });

  test("a session id is valid for sessions.lifeMs, and the id of an ended session is refused for as long", async () => {
    const clock = fakeClock();
    const held = start({ clock, limits: testLimits({ sessions: { lifeMs: 1000 } }) });
    const [unused, ended] = [await shake(held), await shake(held)];
    assertEquals(await end(held, ended), 204);
    await clock.advance(1000);
    assertEquals(await isGood(held, ended), false);
    assertEquals(await isGood(held, unused), true);
    const late = await shake(held);
    await clock.advance(1001);
    assertEquals(await isGood(held, late), false);
  });

  test("the ids of ended sessions are remembered for sessions.lifeMs, which is longer than the idle timeout", async () => {
    const clock = fakeClock();
    const held = start({
      clock,
      limits: testLimits({ sessions: { lifeMs: 200_000 }, connections: { sessionIdleMs: 10_000 } }),
    });
    const id = await shake(held);
    assertEquals(await end(held, id), 204);
    // The sweep runs once a minute. It must not forget the session's end before the id itself expires.
    for (let i = 0; i < 3; i++) {
      await clock.advance(60_000);
      assertEquals(await isGood(held, id), false);
    }
  });

  test("in the last millisecond of its lifetime, a session id is valid, and the id of an ended session is refused", async () => {
    const clock = fakeClock();
    const held = start({ clock, limits: testLimits({ sessions: { lifeMs: 60_000 } }) });
    const [used, ended] = [await shake(held), await shake(held)];
    assertEquals([await isGood(held, used), await isGood(held, ended), await end(held, ended)], [true, true, 204]);
    await clock.advance(60_000); // The sweep runs now.
    assertEquals([await isGood(held, used), await isGood(held, ended)], [true, false]);
    await clock.advance(60_000);
    assertEquals([await isGood(held, used), await isGood(held, ended)], [false, false]);
  });

  test("an idle session ends after connections.sessionIdleMs, and not before", async () => {
    const clock = fakeClock();
    const held = start({ clock, limits: { connections: { sessionIdleMs: 60_000 } } });
    const id = await shake(held);
    assertEquals(await isGood(held, id), true);
    await clock.advance(60_000); // A sweep runs exactly at the timeout.
    assertEquals(await isGood(held, id), true);
    await clock.advance(60_001 + 60_000);
    assertEquals(await isGood(held, id), false);
    // The session has ended and is not merely forgotten. A forgotten session's id would still be valid.
    assertEquals(await isGood(held, id), false);
  });

  test("running calls and open streams prevent a session from ending", async () => {
    const clock = fakeClock();
    const calls = { timeoutMs: Infinity };
    const held = start({
      clock,
      limits: testLimits({ calls, connections: { sessionIdleMs: 50_000 }, streams: { openAfterMs: 1_000_000 } }),
    });
    const [running, listening] = [await shake(held), await shake(held)];
    const answer = send(held, running, call("hold", "held"), { accept: "application/json" });
    await until(() => held.log.includes("hold"), "the tool runs");
    const stream = await send(held, listening, undefined);
    assertEquals(stream.status, 200);
    const reading = stream.body?.getReader();
    const read = (async () => {
      while (!(await reading?.read())?.done);
    })();
    await clock.advance(300_000);
    assertEquals([await isGood(held, running), await isGood(held, listening)], [true, true]);
    assertEquals(held.log, ["hold"]);
    await reading?.cancel();
    await read;
    await (await send(held, running, { method: "notifications/cancelled", params: { requestId: "held" } })).body
      ?.cancel();
    await (await answer).body?.cancel();
    await clock.advance(300_000);
    assertEquals([await isGood(held, running), await isGood(held, listening)], [false, false]);
  });

  test("ending a session ends all its calls and streams, and no other calls", async () => {
    const held = start();
    const [id, other] = [await shake(held), await shake(held)];
    const stream = await send(held, id, undefined);
    const answers = [send(held, id, call("hold")), send(held, id, call("hold")), send(held, other, call("hold"))];
    await until(() => held.log.length === 3, "the tools run");
    assertEquals(await end(held, id), 204);
    await stream.text();
    const text = await (await answers[0]).text() + await (await answers[1]).text();
    assert(!text.includes('"result"'), text);
    await until(() => held.log.length === 5, "the server has aborted the tools");
    assertEquals(held.log.slice(3), ["aborted: session", "aborted: session"]);
    assertEquals([await isGood(held, id), await isGood(held, other)], [false, true]);
    assertEquals(await end(held, other), 204);
    await (await answers[2]).body?.cancel();
  });

  test("the number of sessions with state is limited, and the id of a session whose state was evicted stays valid", async () => {
    const held = start({ limits: { connections: { sessions: 2 } } });
    const [a, b, c] = [await shake(held), await shake(held), await shake(held)];
    const level = { id: 1, method: "logging/setLevel", params: { level: "error" } };
    const stream = await send(held, a, undefined);
    assertEquals([await isGood(held, b), await isGood(held, c)], [true, true]);
    // The busy session keeps its state, although it was used first. The idle session's state was evicted.
    held.server.handlers.add(tool({ name: "added", run: () => "" }));
    const reader = stream.body?.getReader();
    let text = "";
    while (!text.includes("list_changed")) text += new TextDecoder().decode((await reader?.read())?.value);
    assertEquals(await isGood(held, b), true);
    // No state can be evicted while both sessions are in use.
    const busy = send(held, b, call("hold"));
    await until(() => held.log.includes("hold"), "the tool runs");
    const full = await send(held, c, level);
    assertEquals(full.ok, false);
    assertEquals(Object(await readReply(full)).error.code === undefined, false);
    await end(held, b);
    await (await busy).body?.cancel();
    assertEquals(await isGood(held, c), true);
    await reader?.cancel();
  });

  test("the id of an ended session is refused until it expires, however many sessions start and end", async () => {
    const held = start({ limits: { connections: { sessions: 1 } } });
    const [first, used] = [await shake(held), await shake(held)];
    assertEquals([await end(held, first), await isGood(held, used)], [204, true]);
    // There are more sessions than one client is allowed to end.
    const ended: string[] = [];
    for (let i = 0; i < 300; i++) {
      const id = await shake(held);
      ended.push(id);
      assertEquals(await end(held, id), 204);
    }
    for (const id of [first, ...ended]) assertEquals(await isGood(held, id), false);
    assertEquals(await isGood(held, used), true);
    assertEquals(await end(held, used), 204);
    assertEquals(await isGood(held, used), false);
    assertEquals(await isGood(held, await shake(held)), true);
  });

  test("a session id that is too long is not decoded, and the server issues no such id", async () => {
    const held = start();
    const capabilities = (size: number) => ({ experimental: { x: "y".repeat(size) } });
    let id = "";
    let size = 4000;
    // Make the capabilities as long as the server allows.
    for (let step = 64; step >= 1; step /= 2) {
      while (true) {
        const next = await shake(held, { capabilities: capabilities(size + step) });
        if (!next) break;
        id = next;
        size += step;
      }
    }
    assertEquals(JSON.stringify(capabilities(size)).length, 4096);
    assertEquals(await isGood(held, id), true);
  });
}
