// WebSockets as both runtimes open them. Tests with a WebSocket use a server on a port, because only a runtime can
// upgrade a request.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { webSocket, type WebSocketOptions } from "../../src/server/transports/websocket.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { connectRaw } from "../hostile/raw.ts";
import { turn, until } from "../support/behaviour.ts";
import { serve } from "../peers/runtime.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { readReply } from "../support/requests.ts";
import { stackAtEnd } from "../support/running.ts";
import { toHello } from "../support/sessions.ts";

const initialize = toHello();

function toCall(id: number, name: string): object {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name } };
}

/** Creates a handler that runs until the test releases it or its call is cancelled. */
function createGate() {
  const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
  const { promise: opened, resolve: open } = Promise.withResolvers<string>();
  const handler = tool({
    name: "gate",
    run: (_, ctx) => {
      begin(ctx.signal);
      ctx.signal.addEventListener("abort", () => open("aborted"));
      return opened;
    },
  });
  return { handler, begun, open: () => open("opened") };
}

/**
 * Copies connection info into a plain object, because spreading Bun's own object, which is a class instance, would lose
 * its members.
 */
function toMembers(info: object = {}): object {
  const names = ["remoteAddr", "requestIP", "upgrade"];
  const members = names.map((name) => [name, Reflect.get(info, name)]);
  return Object.fromEntries(members.map(([name, it]) => [name, typeof it === "function" ? it.bind(info) : it]));
}

class Client {
  readonly socket: WebSocket;
  readonly opened: Promise<boolean>;
  readonly closed: Promise<{ readonly code: number }>;
  readonly #texts: string[] = [];
  #heard = () => {};

  constructor(url: string, options?: { headers?: Record<string, string>; protocols?: string[] }) {
    // The cast is safe. The types allow only a list of protocols, but both runtimes also accept headers.
    this.socket = new WebSocket(url, options as unknown as string[]);
    const { promise: opened, resolve: setOpened } = Promise.withResolvers<boolean>();
    const { promise: closed, resolve: setClosed } = Promise.withResolvers<{ readonly code: number }>();
    this.opened = opened;
    this.closed = closed;
    this.socket.addEventListener("open", () => setOpened(true));
    this.socket.addEventListener("error", (event) => {
      event.preventDefault();
      setOpened(false);
    });
    this.socket.addEventListener("close", ({ code }) => {
      setOpened(false);
      setClosed({ code });
    });
    this.socket.addEventListener("message", ({ data }) => {
      this.#texts.push(String(data));
      this.#heard();
    });
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message));
  }

  async next(): Promise<string> {
    while (!this.#texts.length) {
      const heard = new Promise<void>((resolve) => this.#heard = resolve);
      const end = await Promise.race([heard, this.closed]);
      if (end && !this.#texts.length) throw new Error(`The WebSocket was closed with code ${end.code}`);
    }
    return this.#texts.shift() ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}

function setUp(options: Partial<ServerOptions> = {}, paths?: WebSocketOptions) {
  const stack = stackAtEnd();
  const server = createServer({ name: "sockets", version: "1.0.0", ...options });
  const service = webSocket(server, paths);
  const { host } = stack.use(serve(service));
  stack.defer(() => server.close());
  const join = (options?: ConstructorParameters<typeof Client>[1], path = "/ws") =>
    stack.use(new Client(`ws://${host}${path}`, options));
  return { server, service, host, join };
}

Deno.test("clients of every revision can use a WebSocket", async () => {
  const { join } = setUp({ handlers: [tool({ name: "hello", run: () => "hello" })] });
  const old = join();
  assert(await old.opened);
  old.send(initialize);
  assertMatch(await old.next(), /"protocolVersion":"2025-11-25"/);
  old.send(toCall(2, "hello"));
  assertEquals(JSON.parse(await old.next()), {
    jsonrpc: "2.0",
    id: 2,
    result: { content: [{ type: "text", text: "hello" }] },
  });
  const recent = join();
  assert(await recent.opened);
  const prefix = "io.modelcontextprotocol/";
  const _meta = { [`${prefix}protocolVersion`]: "2026-07-28", [`${prefix}clientCapabilities`]: {} };
  recent.send({ jsonrpc: "2.0", id: "a", method: "tools/call", params: { name: "hello", _meta } });
  assertMatch(await recent.next(), /"resultType":"complete"/);
});

Deno.test("the subprotocol is returned to clients that request it", async () => {
  const { join } = setUp();
  for (const [protocols, protocol] of [[[], ""], [["mcp"], "mcp"], [["other", "mcp"], "mcp"]] as const) {
    const client = join({ protocols: [...protocols] });
    assert(await client.opened);
    assertEquals(client.socket.protocol, protocol);
  }
});

Deno.test("WebSockets are opened only at their path, and requests to other paths go to the server", async () => {
  const { join, host } = setUp({}, { path: "/socket" });
  assertEquals(await join().opened, false);
  assertEquals(await join({}, "/socket").opened, true);
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const body = JSON.stringify(initialize);
  const response = await fetch(`http://${host}/mcp`, { method: "POST", headers, body });
  assertEquals([response.status, (await readReply(response)).result.serverInfo.name], [200, "sockets"]);
});

Deno.test("a page of another origin cannot open a WebSocket", async () => {
  const { join, host } = setUp();
  assertEquals(await join({ headers: { origin: "https://evil.example" } }).opened, false);
  assertEquals(await join({ headers: { origin: `http://${host}` } }).opened, true);
});

Deno.test("a page that is allowed to call without credentials cannot open a WebSocket, because a browser sends cookies with every WebSocket request", async () => {
  const page = "https://app.example.com";
  const rows: readonly (readonly [options: Partial<ServerOptions>, opens: boolean])[] = [
    [{ cors: { origins: "*" } }, false],
    [{ cors: { origins: [page] } }, false],
    [{ cors: () => true }, false],
    [{ cors: () => ({ credentials: false }) }, false],
    [{ cors: { origins: [page], credentials: true } }, true],
    [{ cors: () => ({ credentials: true }) }, true],
    [{ origins: [page] }, true],
    [{ cors: { origins: "*" }, origins: [page] }, true],
  ];
  for (const [options, opens] of rows) {
    const { join, host } = setUp(options);
    assertEquals(await join({ headers: { origin: page } }).opened, opens, JSON.stringify(options));
    assertEquals(await join({ headers: { origin: `http://${host}` } }).opened, true);
  }
});

Deno.test("handlers get the principal that opened the WebSocket", async () => {
  const whoami = tool({ name: "whoami", run: (_, ctx) => ctx.principal?.id ?? "nobody" });
  const server = createServer({ name: "sockets", version: "1.0.0", handlers: [whoami] });
  const service = webSocket(server);
  // The application authenticates the caller, as it does for requests.
  const front: typeof service = {
    ...service,
    fetch: (request, info) => service.fetch(request, { ...toMembers(info), principal: { id: "ada" } }),
  };
  await using stack = new AsyncDisposableStack();
  const { host } = stack.use(serve(front));
  stack.defer(() => server.close());
  const client = stack.use(new Client(`ws://${host}/ws`));
  assert(await client.opened);
  client.send(initialize);
  await client.next();
  client.send(toCall(2, "whoami"));
  assertMatch(await client.next(), /"text":"ada"/);
});

Deno.test("a WebSocket that another function has upgraded is closed, whatever its data is", async () => {
  let runs = 0;
  const faults: string[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(`${error}`) };
  const secret = tool({ name: "secret", run: () => void runs++ });
  const options = { name: "s", version: "1.0.0", handlers: [secret], auth: () => undefined, observer };
  const server = createServer(options);
  const { websocket } = webSocket(server);
  const principal = { id: "eve", scopes: ["all scopes"] };
  const odd: readonly unknown[] = [undefined, null, "ada", {}, { principal }, { endpoint: createServer(options) }];
  for (const data of odd) {
    const sent: string[] = [];
    const codes: unknown[] = [];
    // The value that Bun passes to the callbacks in `websocket`.
    const socket = {
      data,
      bufferedAmount: 0,
      send: (text: string) => void sent.push(text),
      close: (code?: number) => void codes.push(code),
    };
    websocket.open(socket);
    for (const message of [initialize, toCall(2, "secret")]) websocket.message(socket, JSON.stringify(message));
    await turn(5);
    websocket.drain(socket);
    websocket.close(socket);
    assertEquals([codes, sent], [[1008], []]);
  }
  await server.close();
  assertEquals([runs, faults.length], [0, odd.length]);
  assertEquals(faults[0], sentence("fetch()", "webSocket()"));
});

Deno.test("a frame that is not text, or that is too long, closes the WebSocket", async () => {
  const { join } = setUp({ limits: { request: { lineBytes: 1000 } } });
  const client = join();
  assert(await client.opened);
  client.socket.send("x".repeat(1001));
  assertMatch(await client.next(), /"code":-32600,"message":"[^"]*lineBytes/);
  client.socket.send("no JSON");
  assertMatch(await client.next(), /"code":-32700/);
  client.send(initialize);
  assertMatch(await client.next(), /"protocolVersion"/);
  client.socket.send(Uint8Array.of(1, 2, 3));
  assertEquals((await client.closed).code, 1003);
});

Deno.test("when a client disconnects, its calls are cancelled", async () => {
  const gate = createGate();
  const { join } = setUp({ handlers: [gate.handler] });
  const client = join();
  assert(await client.opened);
  client.send(initialize);
  client.send(toCall(2, "gate"));
  const signal = await gate.begun;
  assert(!signal.aborted);
  client.socket.close();
  await until(() => signal.aborted, "the call is cancelled");
});

Deno.test("messages that arrive too fast are queued in order, up to a limit", async () => {
  const gate = createGate();
  const now = tool({ name: "now", run: () => "now" });
  // The queue has room for two messages. If the server read messages before there is room, it would refuse most of
  // them.
  const { join } = setUp({
    handlers: [gate.handler, now],
    limits: testLimits({ calls: { runningPerClient: 1, waiting: 2 } }),
  });
  const patient = join();
  assert(await patient.opened);
  patient.send(initialize);
  await patient.next();
  patient.send(toCall(0, "gate"));
  await gate.begun;
  for (let id = 1; id <= 20; id++) patient.send(toCall(id, "now"));
  gate.open();
  const answers = [];
  while (answers.length <= 20) answers.push(JSON.parse(await patient.next()));
  assertEquals(answers.map(({ id }) => id), Array.from({ length: 21 }, (_, id) => id));
  assertEquals(answers.filter(({ error }) => error), []);
});

Deno.test("a client that keeps sending while the server is busy is disconnected", async () => {
  const gate = createGate();
  const { join } = setUp({ handlers: [gate.handler], limits: { calls: { runningPerClient: 1 } } });
  const client = join();
  assert(await client.opened);
  client.send(initialize);
  await client.next();
  for (let id = 0; id < 1100; id++) client.send(toCall(id, "gate"));
  // The close code depends on what the client is writing when the WebSocket closes.
  await client.closed;
  const signal = await gate.begun;
  await until(() => signal.aborted, "the call is cancelled");
});

Deno.test("a client that sends a large amount while the server is busy is disconnected before it reaches the limit on messages", async () => {
  const gate = createGate();
  const limits = { calls: { runningPerClient: 1 }, request: { lineBytes: 100_000 } };
  const { join } = setUp({ handlers: [gate.handler], limits });
  const client = join();
  assert(await client.opened);
  client.send(initialize);
  await client.next();
  for (let id = 0; id < 3; id++) client.send({ ...toCall(id, "gate"), pad: "x".repeat(90_000) });
  await gate.begun;
  assertEquals(client.socket.readyState, WebSocket.OPEN, "the client was disconnected too early");
  client.send({ ...toCall(3, "gate"), pad: "x".repeat(90_000) });
  await client.closed;
  const signal = await gate.begun;
  await until(() => signal.aborted, "the call is cancelled");
});

Deno.test("when the server closes, its WebSockets close after their running calls, and no further WebSockets are opened", async () => {
  const gate = createGate();
  const { server, join } = setUp({ handlers: [gate.handler] });
  const client = join();
  assert(await client.opened);
  client.send(initialize);
  await client.next();
  client.send(toCall(2, "gate"));
  await gate.begun;
  const closing = server.close();
  assertEquals(await join().opened, false);
  gate.open();
  assertMatch(await client.next(), /"text":"opened"/);
  await closing;
  assertEquals((await client.closed).code, 1001);
});

Deno.test("the number of WebSockets is limited", async () => {
  const { join } = setUp({ limits: { connections: { streams: 2 } } });
  const [first, second] = [join(), join()];
  assertEquals(await Promise.all([first.opened, second.opened]), [true, true]);
  assertEquals(await join().opened, false);
  first.socket.close();
  await first.closed;
  await until(() => join().opened, "there is room again");
});

for (const wait of ["admit", "auth"] as const) {
  Deno.test(`clients that disconnect during an asynchronous \`${wait}\` do not count as open WebSockets`, async () => {
    await using stack = new AsyncDisposableStack();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let waiting = 0;
    const block = async () => {
      waiting++;
      await released;
    };
    const clock = fakeClock();
    const server = createServer({
      name: "sockets",
      version: "1.0.0",
      clock,
      limits: { connections: { streams: 2 } },
      ...wait === "admit" ? { admit: () => block().then(() => true) } : {},
      ...wait === "auth" ? { auth: () => block().then(() => ({ id: "ada" })) } : {},
    });
    const service = webSocket(server);
    let left = 0;
    const fetch: typeof service.fetch = (request, info) => {
      request.signal.addEventListener("abort", () => left++);
      return service.fetch(request, info);
    };
    const { host } = stack.use(serve({ ...service, fetch }));
    stack.defer(() => server.close());
    const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const head = `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`;
    for (let i = 0; i < 2; i++) {
      const connection = await connectRaw(Number(host.split(":")[1]));
      await connection.write(head);
      await until(() => waiting > i, "the server checks the request");
      connection.close();
      await until(() => left > i, "the server knows that the client has left");
    }
    release();
    const join = () => stack.use(new Client(`ws://${host}/ws`));
    let client = join();
    await until(async () => {
      if (await client.opened) return true;
      await clock.advance(5000);
      client = join();
    }, "a WebSocket opens");
    await clock.advance(60_000);
    client.send(initialize);
    assertMatch(await client.next(), /"protocolVersion":"2025-11-25"/);
  });
}

Deno.test("the buffers of a client's WebSockets are charged to the client until the connections have ended", async () => {
  const handlers = [tool({ name: "hello", run: () => "hello" })];
  const { join } = setUp({ handlers, limits: { memory: { bytesPerClient: 2_000_000 } } });
  const message = { ...toCall(2, "hello"), pad: "x".repeat(300_000) };
  const clients = [join(), join(), join(), join()];
  for (const client of clients) {
    assert(await client.opened);
    client.send(initialize);
    await client.next();
  }
  for (const client of clients.slice(0, 2)) {
    // A second message of the same size needs no larger buffer.
    for (let i = 0; i < 2; i++) {
      client.send(message);
      assertMatch(await client.next(), /"text":"hello"/);
    }
  }
  clients[2].send(message);
  assertMatch(await clients[2].next(), /memory.bytesPerClient/);
  clients[3].send(message);
  assertEquals((await clients[3].closed).code, 1013);
});
