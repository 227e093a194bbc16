// Queues of calls, and clients that try to make other clients wait.
import { assert, assertEquals } from "@std/assert";
import { type Observer, type PathServerOptions, type Server, type ServerOptions, tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { any, as, soon, start, toCall, toGet, toInitialize, toLegacy, toListen } from "./attack.ts";
import { advanceUntil, gate, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { serve } from "../peers/runtime.ts";
import { connectRaw } from "./raw.ts";
import { BUSY } from "../../src/core/protocol/errors.ts";

import { quota, quota as handlerLimits } from "../../src/layers/layers.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { openServer } from "../support/servers.ts";
import { sentence } from "../support/messages.ts";
import { ask, readReply } from "../support/requests.ts";
import { z } from "zod";
import { serveOld } from "./sse.ts";

Deno.test("the server also starts the calls that are queued behind a call that ends immediately", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  let isRunning = false;
  const handlers = [
    tool({ name: "slow", run: () => (isRunning = true, promise) }),
    tool({ name: "quick", run: () => "" }),
  ];
  const server = start({ handlers, limits: { calls: { runningPerClient: 1, closeMs: 10 } } });
  const calls = ["slow", "quick", "quick", "quick"].map(async (name) =>
    await (await server.fetch(toCall(name), as("eve"))).text()
  );
  await until(() => isRunning, "the first call runs");
  await turn(10);
  resolve("");
  const texts = await soon(Promise.all(calls));
  assertEquals(texts?.length, 4, "a queued call never ran");
});

Deno.test("the length of a progress token is limited like the length of an id, in legacy revisions too", async () => {
  const steps = tool({
    name: "steps",
    async run(_input, { progress }) {
      for (let i = 1; i <= 10; i++) await progress(i);
      return "";
    },
  });
  const server = start({ handlers: [steps] });
  const params = { name: "steps", _meta: { progressToken: "x".repeat(100_000) } };
  const response = await server.fetch(toLegacy({ jsonrpc: "2.0", id: 1, method: "tools/call", params }));
  const { length } = await response.text();
  assert(length < 100_000, `100,000 characters in, ${length} out`);
});

Deno.test("one client cannot fill the queue for calls of all clients", async () => {
  const slow = tool({ name: "slow", run: () => new Promise<string>(() => {}) });
  const server = start({
    handlers: [slow],
    limits: testLimits({ calls: { running: 4, runningPerClient: 2, waiting: 8, closeMs: 10 } }),
  });
  const responses: Response[] = [];
  const call = async (who: string) => void responses.push(await server.fetch(toCall("slow"), as(who)));
  for (const who of ["eve", "bob"]) await Promise.all(Array.from({ length: who === "eve" ? 10 : 3 }, () => call(who)));
  const statuses = responses.slice(-3).map(({ status }) => status);
  const texts = responses.map((response) => response.text());
  await server.close();
  await Promise.all(texts);
  assertEquals(statuses, [200, 200, 200], "bob's third call was not even queued");
});

Deno.test("a subscription over a channel is refused once the server has closed", async () => {
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })] });
  const texts: string[] = [];
  const pipe = openPipe(server, { write: (text) => void texts.push(text) });
  await server.close();
  pipe.receive(await toListen().text());
  await until(() => texts.length > 0, "the refusal");
  const { unanswered } = pipe;
  pipe.close();
  assertEquals(unanswered, 0, texts.join());
});

// WebSocket upgrades that fail, and messages that are refused.

Deno.test("failed upgrades do not count towards the limit on sockets", async () => {
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })], limits: { connections: { streams: 4 } } });
  const service = webSocket(server);
  // A runtime can throw if it cannot upgrade a request. The test treats such an error like an error response.
  const fetch: typeof service.fetch = async (request, info) => {
    try {
      return await service.fetch(request, info);
    } catch {
      return new Response(null, { status: 400 });
    }
  };
  await using port = serve({ ...service, fetch });
  const ask = async (more: string) => {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    await connection.write(`GET /ws HTTP/1.1\r\nHost: ${port.host}\r\nUpgrade: websocket\r\n${more}\r\n`);
    const line = await connection.readUntil(/\r\n/);
    connection.close();
    return Number(line.slice(9, 12));
  };
  for (let i = 0; i < 4; i++) await ask("Connection: close\r\n");
  const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const status = await ask(`Connection: Upgrade\r\n${key}`);
  assertEquals(status, 101);
});

Deno.test("a client whose sockets use more memory than its limit cannot open more sockets", async () => {
  const limits = { memory: { bytesPerClient: 100_000 } };
  const server = start({ handlers: [tool({ name: "quick", run: () => "" })], limits });
  await using port = serve(webSocket(server));
  const open = (data: string | Uint8Array<ArrayBuffer>) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(`ws://${port.host}/ws`);
      socket.onopen = () => socket.send(data);
      socket.onerror = () => resolve(0);
      socket.onclose = ({ code }) => resolve(code);
    });
  const codes = [await open(new Uint8Array(10)), await open(new Uint8Array(200_000)), await open(new Uint8Array(10))];
  assertEquals([codes[0], codes[1], codes[2] === 1003], [1003, 1003, false]);
});

// Streams of sessions, and the memory for sessions and streams.

const EVENTS = { accept: "text/event-stream" };

Deno.test("a session is idle after its call has ended, even if the client accepts only event streams", async () => {
  const later = tool({ name: "later", run: () => Promise.resolve("") });
  const server = start({ handlers: [later], limits: testLimits({ sessions: { openPerClient: 1 } }) });
  const begin = async () => {
    const response = await server.fetch(toLegacy(toInitialize()), as("eve"));
    await response.text();
    return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "later" } };
  await (await server.fetch(toLegacy(call, { ...EVENTS, ...await begin() }), as("eve"))).text();
  // The limit is one session, so this request succeeds only if the first session can be evicted.
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
  const { status } = await server.fetch(toLegacy(ping, await begin()), as("eve"));
  assertEquals(status, 200);
});

Deno.test("the server closes a connection that reads replayed events too slowly, after the events have expired", async () => {
  const say = tool({
    name: "say",
    input: any,
    async run({ n }: { readonly n?: unknown }, { log: { info } }) {
      for (let i = 0; i < Number(n); i++) await info("x".repeat(200));
      return "";
    },
  });
  const server = start({
    handlers: [say],
    limits: testLimits({ replay: { events: 50 }, streams: { waitingCharacters: 500 } }),
  });
  const begun = await server.fetch(toLegacy(toInitialize()), as("eve"));
  await begun.text();
  const id = begun.headers.get("mcp-session-id") ?? "";
  const call = async (n: number) => {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: { n } } };
    return await (await server.fetch(toLegacy(message, { "mcp-session-id": id }), as("eve"))).text();
  };
  const [, first] = /id: (\S+_1)\n/.exec(await call(30)) ?? [];
  const { body } = await server.fetch(toGet(id, first), as("eve"));
  await turn(10);
  await call(60);
  const reader = body?.getReader();
  const end = async () => {
    while (!(await reader?.read())?.done);
    return true;
  };
  const isEnded = await soon(end());
  await reader?.cancel();
  await server.close();
  assert(isEnded, "the connection stays open, and counts towards no limit");
});

// Middleware that returns or throws before the subscription that it wraps has ended.

type Middleware = NonNullable<ServerOptions["use"]>[number];

/**
 * Creates a server with one middleware. `whenOpened` waits until the next subscription has opened. Each client can have
 * two subscriptions.
 */
function startAround(toMiddleware: (whenOpened: () => Promise<Record<string, never>>) => Middleware): Server {
  let opened = 0;
  const observer: Observer = { fault() {}, subscription: ({ state }) => void (opened += Number(state === "opened")) };
  const whenOpened = async () => {
    const before = opened;
    await until(() => opened > before, "the subscription to open");
    return {};
  };
  return start({
    handlers: [tool({ name: "quick", run: () => "" })],
    limits: { connections: { streamsPerClient: 2 } },
    observer,
    use: [toMiddleware(whenOpened)],
  });
}

Deno.test("a subscription no longer counts after its end, even if the middleware returned before", async () => {
  const server = startAround((whenOpened) => (call, next) =>
    call.method === "subscriptions/listen" ? Promise.race([whenOpened(), next()]) : next()
  );
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    statuses.push(response.status);
    await soon(response.text());
    await turn(10);
  }
  await (await server.fetch(toCall("quick"), as("eve"))).text();
  await server.close();
  assertEquals(statuses, [200, 200, 200, 200], "subscriptions that had ended were still counted");
});

Deno.test("a subscription is closed and no longer counts if the middleware throws after the subscription has opened", async () => {
  const server = startAround((whenOpened) => async (call, next) => {
    if (call.method !== "subscriptions/listen") return await next();
    const opened = whenOpened();
    next().catch(() => {});
    await opened;
    throw new Error("no more");
  });
  const texts: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await server.fetch(toListen(), as("eve"));
    texts.push(await soon(response.text()));
    await turn(10);
  }
  assertEquals(texts.map((text) => text?.includes(`"code":${BUSY}`)), [false, false, false, false]);
});

// Clients can send any JSON as the reason for a cancellation.

Deno.test("a cancellation does not free the slot of a handler that keeps running, whatever the reason", async () => {
  let running = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = tool({
    name: "slow",
    use: [quota({ concurrency: { calls: 1, waiting: 4 }, timeoutMs: 60_000 })],
    async run() {
      running++;
      await promise;
      return "done";
    },
  });
  const reached: string[] = [];
  await using server = start({ handlers: [slow], observer: { limit: ({ limit }) => void reached.push(limit) } });
  await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
  client.callTool("slow").catch(() => {});
  await until(() => running === 1, "the first call");
  for (let requestId = 0; requestId < 10; requestId++) {
    await client.notify("notifications/cancelled", { requestId, reason: { name: "TimeoutError" } });
  }
  client.callTool("slow").catch(() => {});
  await until(() => reached.length === 1 || running > 1, "the second call waits");
  assertEquals(running, 1);
  resolve();
  await until(() => running === 2, "the second call");
});

for (const reason of ["", 0, null, { toString: null, valueOf: null }]) {
  Deno.test(`a handler's signal aborts for the cancellation reason ${JSON.stringify(reason)}`, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    let isRunning = false;
    const slow = tool({
      name: "slow",
      async run(_input, ctx) {
        isRunning = true;
        await promise;
        // The server creates the signal when the handler first reads `ctx.signal`.
        seen.push(ctx.signal.aborted, `${ctx.signal.reason}` !== "");
      },
    });
    const server = start({ handlers: [slow] });
    await using client = await connectTest(server, { era: "legacy", transport: "pipe" });
    void client.callTool("slow").catch(() => {});
    await until(() => isRunning, "the call");
    for (let requestId = 0; requestId < 10; requestId++) {
      await client.notify("notifications/cancelled", { requestId, reason });
    }
    await client.request("ping");
    resolve();
    await until(() => seen.length > 0, "the end of the handler");
    await server.close();
    assertEquals(seen, [true, true]);
  });
}

// Deferred work of a handler counts towards the limits of the client that called the handler.

Deno.test("calls of a client with too much deferred work wait until some of the work is done, and other clients do not wait", async () => {
  const { pass, open } = gate();
  let deferred = 0;
  const later = tool({
    name: "later",
    input: any,
    run: (_, { defer }) => {
      defer(async () => {
        deferred++;
        await pass;
      });
      return "said";
    },
  });
  const quick = tool({ name: "quick", input: any, run: () => "quick" });
  const server = openServer({ handlers: [later, quick], limits: { calls: { running: 16, runningPerClient: 2 } } });
  const call = async (name: string, hostname: string): Promise<string> => {
    const response = await server.fetch(toCall(name, { text: "x".repeat(10_000) }), { remoteAddr: { hostname } });
    return await response.text();
  };
  const { engine: { accounts: { memory }, scheduler } } = server[INTERNALS];
  for (let i = 0; i < 2; i++) await call("later", "198.51.100.1");
  await until(() => deferred === 2, "deferred work");
  assertEquals(memory.used > 20_000, true, "the parameters that the deferred work holds count");
  let isOver = false;
  const third = call("quick", "198.51.100.1").finally(() => isOver = true);
  await until(() => scheduler.waiting === 1, "a waiting call");
  assertEquals((await call("quick", "192.0.2.1")).includes('"quick"'), true);
  assertEquals(isOver, false);
  open();
  assertEquals((await third).includes('"quick"'), true);
  await server.close();
  assertEquals([memory.used, scheduler.waiting], [0, 0]);
});

Deno.test("deferred work that fails releases its memory", async () => {
  const failing = tool({
    name: "failing",
    input: any,
    run: (_, { defer }) => {
      defer(() => Promise.reject(new Error("it fails")));
      return "said";
    },
  });
  const faults: unknown[] = [];
  const server = openServer({
    handlers: [failing],
    limits: { calls: { running: 4, runningPerClient: 1 } },
    observer: { fault: ({ error }) => void faults.push(error) },
  });
  for (let i = 0; i < 20; i++) {
    const response = await server.fetch(toCall("failing"), { remoteAddr: { hostname: "198.51.100.1" } });
    assertEquals(response.status, 200);
    await response.text();
  }
  await server.close();
  const { accounts } = server[INTERNALS].engine;
  assertEquals([faults.length, accounts.memory.used, accounts.running.used, accounts.known.size], [20, 0, 0, 0]);
});

// The server looks up the handler of a queued call again before the call starts. An `allow` that never settles in this
// second lookup must not occupy a slot forever.

for (const place of ["server", "handler"] as const) {
  Deno.test(`the slot of a ${place} is released if the second lookup never settles`, async () => {
    let hangs = false;
    const { promise: never } = Promise.withResolvers<boolean>();
    const { pass, open } = gate();
    let running = 0;
    let looked = 0;
    const held = tool({
      name: "held",
      allow: () => (looked++, hangs ? never : true),
      use: place === "handler" ? [handlerLimits({ concurrency: { calls: 1 } })] : [],
      run: async () => {
        running++;
        await pass;
        return "";
      },
    });
    const limits = { calls: { timeoutMs: 200, running: place === "server" ? 1 : 100 } };
    const clock = fakeClock();
    const server = openServer({ handlers: [held], limits, clock });
    const call = () => ask(server, "tools/call", { name: "held" });
    const first = call();
    await until(() => running === 1, "the first call runs");
    const queued = call();
    // Wait until the first lookup of the queued call has ended.
    await until(() => looked === 2, "the queued call is looked up");
    await turn();
    hangs = true;
    open();
    assertEquals((await first).error, undefined);
    assertEquals((await advanceUntil(clock, 200, queued)).error?.message, sentence(200, "calls.timeoutMs"));
    hangs = false;
    assertEquals((await call()).error, undefined);
  });
}

// A closing server responds to every accepted request, whatever the request is waiting for.

const never = new Promise<never>(() => {});
const quick = tool({ name: "quick", input: { type: "object" }, run: () => "" });

function startTenants(options: Partial<PathServerOptions>): Server {
  return openServer({ path: "/:tenant/mcp", observer: { fault() {} }, ...options });
}

function atTenant(): Request {
  return new Request("http://localhost/acme/mcp", toCall("quick"));
}

/** Creates a call whose body stops after the given number of bytes. */
function toHalf(headers: Record<string, string> = {}, bytes = 1): Request {
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(bytes).fill(32)) });
  const { url, headers: own } = toCall("quick");
  const init = { method: "POST", headers: { ...Object.fromEntries(own), ...headers }, body, duplex: "half" };
  return new Request(url, init);
}

async function closeWhile(server: Server, ...waiting: readonly Promise<Response>[]): Promise<void> {
  await turn(10);
  assert(await soon(server.close().then(() => true)), "the server does not close");
  for (const answer of waiting) {
    const response = await soon(answer);
    assert(response, "a request waits forever");
    assertEquals([response.status, response.headers.get("retry-after")], [503, "1"]);
    assertEquals((await readReply(response)).error.message, sentence());
  }
}

Deno.test("a request gets a response if the server closes while its caller is being authenticated", async () => {
  const signals: AbortSignal[] = [];
  const server = start({
    auth: {
      authenticate(_, { signal }) {
        signals.push(signal);
        return never;
      },
    },
  });
  const { fetch } = serveOld(server);
  await closeWhile(server, server.fetch(toCall("quick")), fetch(new Request("http://localhost/sse")));
  assertEquals(signals.map(({ aborted }) => aborted), [true, true]);
});

Deno.test("a request gets a response if the server closes while its body arrives", async () => {
  const server = start({ handlers: [quick] });
  const bodies = [
    toHalf(),
    toHalf({}, 100_000),
    toHalf({ "content-length": "100" }),
    toHalf({ "content-length": "60000" }),
    toHalf({ "content-length": "100000" }, 80_000),
  ];
  await closeWhile(server, ...bodies.map((body) => server.fetch(body)));
  assertEquals(server[INTERNALS].engine.accounts.memory.used, 0);
});

Deno.test("a request gets a response if the server closes after the first bytes of its body", async () => {
  const server = start({ handlers: [quick] });
  await (await server.fetch(toCall("quick"))).text();
  const answers = [toHalf(), toHalf({ "content-length": "100" })].map((body) => server.fetch(body));
  await server.close();
  for (const answer of answers) assertEquals((await soon(answer))?.status, 503);
});

Deno.test("requests whose bodies wait in a queue get a response, and their handlers do not run", async () => {
  let ran = 0;
  const block = tool({
    name: "block",
    input: { type: "object" },
    run() {
      ran++;
      for (const end = performance.now() + 30; performance.now() < end;);
    },
  });
  const server = start({ handlers: [block] });
  for (const size of [60_000, 200_000]) {
    await (await server.fetch(toCall("block", { text: "x".repeat(size) }))).text();
  }
  ran = 0;
  const answers = Array.from(
    { length: 20 },
    (_, i) => server.fetch(toCall("block", { text: "x".repeat(i % 2 ? 60_000 : 200_000) })),
  );
  await until(() => ran > 0, "the first body has its turn");
  const closing = server.close();
  const statuses = [];
  for (const answer of answers) statuses.push((await soon(answer))?.status);
  await closing;
  const served = statuses.filter((status) => status === 200).length;
  assertEquals([served, statuses.filter((status) => status === 503).length], [ran, 20 - ran]);
  assert(ran < 20, `all of ${ran} ran after the server began to close`);
  assertEquals(server[INTERNALS].engine.accounts.memory.used, 0);
});

Deno.test("a request gets a response if the server closes while it validates the path or creates the handlers", async () => {
  const pathSchema = z.object({ tenant: z.string().refine(() => never) });
  const checking = openServer({ path: "/:tenant/mcp", pathSchema });
  await closeWhile(checking, checking.fetch(atTenant()));
  const making = startTenants({ handlers: () => never });
  await closeWhile(making, making.fetch(atTenant()), making.fetch(atTenant()));
});

Deno.test("the server opens no stream and no socket after it has closed", async () => {
  const known = Promise.withResolvers<{ readonly id: string }>();
  const admitted = Promise.withResolvers<true>();
  const handlers = Promise.withResolvers<[]>();
  const late: Promise<Response>[] = [];
  const servers = [
    { server: start({ auth: { authenticate: () => known.promise } }), prefix: "" },
    { server: start({ admit: () => admitted.promise }), prefix: "" },
    { server: startTenants({ handlers: () => handlers.promise }), prefix: "/:tenant" },
  ];
  for (const { server, prefix } of servers) {
    const { fetch } = serveOld(server, { path: `${prefix}/sse`, messages: `${prefix}/messages` });
    const sockets = webSocket(server, { path: `${prefix}/ws` });
    const at = (path: string, headers = {}) => new Request(`http://localhost${prefix}${path}`, { headers });
    late.push(fetch(at("/sse")), sockets.fetch(at("/ws", { upgrade: "websocket" })));
  }
  await turn(10);
  await Promise.all(servers.map(({ server }) => server.close()));
  known.resolve({ id: "ada" });
  admitted.resolve(true);
  handlers.resolve([]);
  for (const answer of late) assertEquals((await soon(answer))?.status, 503);
});

Deno.test("after the body timeout, a body is no longer charged to its client, even if the connection stays open", async () => {
  const limits = { request: { bodyMs: 200 }, memory: { bytesPerClient: 400_000 } };
  await using server = start({ handlers: [quick], limits });
  await using port = serve(server);
  const { accounts } = server[INTERNALS].engine;
  const connections = [];
  const head = `POST /mcp HTTP/1.1\r\nHost: ${port.host}\r\nContent-Type: application/json\r\n`;
  for (const length of [1000, 60_000]) {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    await connection.write(`${head}Content-Length: ${length}\r\n\r\n{`);
    connections.push(connection);
  }
  await until(() => accounts.memory.used > 0, "slow bodies are charged");
  for (const connection of connections) assertEquals((await connection.read())?.status, 408);
  assertEquals(accounts.memory.used, 0);
  for (const connection of connections) connection.close();
});
