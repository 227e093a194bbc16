// Messages that expect no reply over HTTP: notifications, and answers to requests of the server. A server must not make
// them hold connections, fill the memory or involve the user.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Client, type ClientAuth, connect, type ConnectOptions } from "../../src/client/client.ts";
import { bridgeLines } from "../../src/client/bridge_lines.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { withTimersOn } from "../support/timers.ts";
import { agreed, type Message, ok, url } from "./fakes.ts";

/** The maximum number of open HTTP requests for messages that expect no reply. */
const MAX_OPEN = 16;
const encoder = new TextEncoder();
const toEvent = (message: object) => encoder.encode(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);

interface HostileOptions {
  /** The transport: Streamable HTTP, or HTTP+SSE of 2024-11-05. */
  readonly way?: "http" | "sse";
  /** Requests that the server sends during each call. */
  readonly requests?: readonly object[];
  /** Responds to a message that expects no reply, except to `notifications/initialized`. Never, by default. */
  readonly respond?: (message: Message) => Response | undefined;
}

/** A server that does what it wants with messages that expect no reply. */
class Hostile {
  readonly heard: Message[] = [];
  readonly gets: Headers[] = [];
  /** Requests with a message that expects no reply, and without a response. */
  readonly open = new Set<Request>();
  most = 0;
  /** Number of calls whose stream the client has cancelled. */
  ended = 0;
  readonly #options: HostileOptions;
  #events: ReadableStreamDefaultController<Uint8Array> | undefined;
  #finish: (() => void)[] = [];

  constructor(options: HostileOptions) {
    this.#options = options;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const text = await request.text();
    if (request.method === "GET") return this.#get(request);
    if (request.method !== "POST") return new Response(null, { status: 204 });
    const isOld = this.#options.way === "sse";
    if (isOld && !request.url.endsWith("/messages")) return new Response(null, { status: 405 });
    const message: Message = JSON.parse(text);
    this.heard.push(message);
    if (message.method === "server/discover") return Response.json({ id: message.id }, { status: 404 });
    if (message.method === "notifications/initialized") return new Response(null, { status: 202 });
    if (message.method === undefined || message.id === undefined) return await this.#receive(message, request);
    if (isOld) {
      this.#reply(message, (bytes) => this.#events?.enqueue(bytes));
      return new Response(null, { status: 202 });
    }
    if (message.method === "initialize") return ok(message, agreed);
    const body = new ReadableStream({
      start: (controller) => this.#reply(message, (bytes) => controller.enqueue(bytes)),
      cancel: () => void this.ended++,
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };

  /** Sends the results of the calls. */
  finish(): void {
    for (const finish of this.#finish.splice(0)) finish();
  }

  #get(request: Request): Response {
    this.gets.push(request.headers);
    if (this.#options.way !== "sse") return new Response(null, { status: 405 });
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#events = controller;
        controller.enqueue(encoder.encode("event: endpoint\ndata: /messages\n\n"));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  #reply({ id, method }: Message, write: (bytes: Uint8Array) => void): void {
    if (method === "initialize") return write(toEvent({ id, result: { ...agreed, protocolVersion: "2024-11-05" } }));
    for (const each of this.#options.requests ?? []) write(toEvent(each));
    this.#finish.push(() => write(toEvent({ id, result: { content: [] } })));
  }

  async #receive(message: Message, request: Request): Promise<Response> {
    const response = this.#options.respond?.(message);
    if (response) return response;
    // The client may have given up while this server read the body.
    request.signal.throwIfAborted();
    this.open.add(request);
    this.most = Math.max(this.most, this.open.size);
    return await new Promise((_, reject) =>
      request.signal.addEventListener("abort", () => {
        this.open.delete(request);
        reject(request.signal.reason);
      })
    );
  }
}

const pings = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `p${i}`, method: "ping" }));
const quiet: ConnectOptions = { onWarning() {}, era: "legacy" };
const open = (server: Hostile, options: ConnectOptions = {}): Promise<Client> =>
  connect(url.replace("/mcp", "/sse"), { ...quiet, fetch: server.fetch, ...options });
const answersOf = (server: Hostile) => server.heard.filter(({ method }) => method === undefined);

for (const way of ["http", "sse"] as const) {
  Deno.test(`a server that never accepts answers holds few connections, and none after the client was closed (${way})`, async () => {
    const refused = Array.from({ length: 90 }, (_, i) => ({ id: i, method: "roots/list" }));
    for (const requests of [pings(90), refused]) {
      const server = new Hostile({ way, requests });
      const client = await open(server);
      const calling = client.callTool("t");
      await until(() => server.open.size === MAX_OPEN, "the open requests");
      await turn(20);
      server.finish();
      await calling;
      await client.close();
      await until(() => server.open.size === 0, "the end of the open requests");
      await turn(20);
      assertEquals([server.most, server.open.size], [MAX_OPEN, 0]);
    }
  });

  Deno.test(`a server that never accepts notifications holds few connections (${way})`, async () => {
    const server = new Hostile({ way });
    const client = await open(server);
    const notifying = Array.from({ length: 50 }, () => client.notify("notifications/x").catch((error) => error));
    await until(() => server.open.size === MAX_OPEN, "the open requests");
    await turn(20);
    assertEquals(server.most, MAX_OPEN);
    await client.close();
    const [first] = await Promise.all(notifying);
    assertEquals([first.name, server.open.size], ["AbortError", 0]);
  });

  Deno.test(`a message fails if the server does not accept it in time, and later messages are sent (${way})`, async () => {
    const server = new Hostile({ way });
    await using client = await open(server);
    const clock = fakeClock();
    await withTimersOn(clock, 10_000, async () => {
      const notifying = Array.from({ length: MAX_OPEN }, () => client.notify("notifications/x"));
      const failing = Promise.all(notifying.map((each) => assertRejects(() => each, DOMException)));
      const errors = await advanceUntil(clock, 10_000, failing);
      assertEquals(new Set(errors.map(({ name }) => name)), new Set(["TimeoutError"]));
      assertEquals(errors[0].message, sentence(10_000));
    });
    const late = client.notify("notifications/y").catch(() => {});
    await until(() => server.heard.at(-1)?.method === "notifications/y", "the later message");
    await client.close();
    await late;
  });
}

Deno.test("a cancelled call ends although the server does not accept the cancellation", async () => {
  const server = new Hostile({});
  await using client = await open(server);
  const stop = new AbortController();
  const calling = client.callTool("t", {}, { signal: stop.signal });
  await until(() => server.heard.at(-1)?.method === "tools/call", "the call");
  stop.abort(new Error("enough"));
  await assertRejects(() => calling, Error, "enough");
  await until(() => server.open.size === 1, "the cancellation");
  await until(() => server.ended === 1, "the end of the call");
  assertEquals(server.open.size, 1);
});

Deno.test("an event stream in response to an answer is neither read nor resumed", async () => {
  let cancelled = 0;
  const server = new Hostile({
    requests: pings(5),
    respond: () => {
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(encoder.encode("id: 1\nretry: 0\n\n")),
        cancel: () => void cancelled++,
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const client = await open(server);
  const calling = client.callTool("t");
  await until(() => cancelled === 5, "the streams are cancelled");
  const before = server.gets.length;
  server.finish();
  await calling;
  await client.close();
  assertEquals(server.gets.length, before);
});

for (const status of [200, 500]) {
  Deno.test(`the client reads little of an endless body in response to a notification (${status})`, async () => {
    let sent = 0;
    let isCancelled = false;
    const server = new Hostile({
      respond: () => {
        const body = new ReadableStream({
          pull(controller) {
            sent += 16 * 1024;
            controller.enqueue(new Uint8Array(16 * 1024).fill(120));
          },
          cancel: () => void (isCancelled = true),
        }, { highWaterMark: 0 });
        return new Response(body, { status, headers: { "content-type": "text/plain" } });
      },
    });
    await using client = await open(server);
    const notifying = client.notify("notifications/x");
    if (status === 200) await notifying;
    else await assertRejects(() => notifying, Error, sentence(500, "text/plain"));
    await until(() => isCancelled, "the body is cancelled");
    assert(sent <= 256 * 1024, `${sent} bytes`);
  });

  Deno.test(`the client does not wait for a body that never ends in response to a notification (${status})`, async () => {
    let isCancelled = false;
    const server = new Hostile({
      respond: () => {
        const body = new ReadableStream({
          start: (controller) => controller.enqueue(encoder.encode("busy")),
          cancel: () => void (isCancelled = true),
        });
        return new Response(body, { status, headers: { "content-type": "text/plain" } });
      },
    });
    await using client = await open(server);
    const notifying = client.notify("notifications/x");
    if (status === 200) await notifying;
    else await assertRejects(() => notifying, Error, sentence(500, "busy"));
    await until(() => isCancelled, "the body is cancelled");
  });
}

Deno.test("a connection attempt can be aborted while the server does not accept notifications/initialized", async () => {
  const stop = new AbortController();
  const heard: string[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    const message: Message = JSON.parse(await request.text());
    heard.push(message.method ?? "");
    if (message.method === "initialize") return ok(message, agreed);
    return await new Promise((_, reject) =>
      request.signal.addEventListener("abort", () => reject(request.signal.reason))
    );
  };
  const connecting = connect(url, { ...quiet, fetch, signal: stop.signal });
  await until(() => heard.includes("notifications/initialized"), "the notification");
  stop.abort(new Error("enough"));
  await assertRejects(() => connecting, Error, "enough");
});

/** Creates a server with sessions that rejects answers, notifications and DELETE requests with 401. */
function toRejecting(options: HostileOptions) {
  const server = new Hostile({
    ...options,
    respond: () => new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } }),
  });
  const fetch = async (request: Request) => {
    const response = await server.fetch(request);
    if (request.method === "DELETE") return new Response(null, { status: 401 });
    if (response.headers.get("content-type")?.startsWith("application/json")) {
      response.headers.set("mcp-session-id", "s");
    }
    return response;
  };
  return { server, fetch };
}

Deno.test("a rejected answer, notification or DELETE request does not involve the user", async () => {
  const { server, fetch } = toRejecting({ requests: pings(3) });
  const asked: boolean[] = [];
  const auth: ClientAuth = { token: () => "t", refresh: (_, { interactive }) => !asked.push(interactive) };
  const client = await open(server, { fetch, auth });
  const calling = client.callTool("t");
  await until(() => answersOf(server).length >= 3, "the answers");
  await assertRejects(() => client.notify("notifications/x"), Error, sentence(401));
  server.finish();
  await calling;
  assert(asked.length >= 2);
  const before = asked.length;
  await client.close();
  assertEquals([asked.length - before, asked.includes(true)], [1, false]);
});

Deno.test("an answer is sent again with a token that was renewed without the user", async () => {
  let token = "old";
  const tokens: (string | null)[] = [];
  const server = new Hostile({ requests: pings(1), respond: () => new Response(null, { status: 202 }) });
  const fetch = async (request: Request) => {
    const isAnswer = request.method === "POST" && (await request.clone().text()).includes('"result"');
    if (!isAnswer) return await server.fetch(request);
    tokens.push(request.headers.get("authorization"));
    if (token === "old") return new Response(null, { status: 401 });
    return await server.fetch(request);
  };
  const auth: ClientAuth = { token: () => token, refresh: () => Boolean(token = "new") };
  await using client = await open(server, { fetch, auth });
  const calling = client.callTool("t");
  await until(() => answersOf(server).length === 1, "the answer");
  server.finish();
  await calling;
  assertEquals(tokens, ["Bearer old", "Bearer new"]);
});

Deno.test("a rejected request of the program involves the user although an answer is rejected at the same time", async () => {
  const { server, fetch } = toRejecting({ requests: pings(1) });
  let token = "old";
  const asked: boolean[] = [];
  const silent = Promise.withResolvers<boolean>();
  const auth: ClientAuth = {
    token: () => token,
    refresh: (_, { interactive }) => {
      asked.push(interactive);
      return interactive ? Boolean(token = "new") : silent.promise;
    },
  };
  await using client = await open(server, {
    auth,
    fetch: async (request) => {
      const isList = request.method === "POST" && (await request.clone().text()).includes("tools/list");
      if (!isList) return await fetch(request);
      if (token === "old") return new Response(null, { status: 401 });
      return ok(JSON.parse(await request.text()), { tools: [] });
    },
  });
  const calling = client.callTool("t");
  await until(() => asked.length === 1, "the rejected answer");
  const listing = client.listTools();
  await turn(20);
  silent.resolve(false);
  assertEquals(await listing, []);
  assertEquals(asked, [false, true]);
  server.finish();
  await calling;
});

Deno.test("a closed client asks for no token", async () => {
  const { server, fetch } = toRejecting({ requests: pings(20) });
  let asked = 0;
  const auth: ClientAuth = { token: () => (asked++, "t"), refresh: () => true };
  const client = await open(server, { fetch, auth });
  const calling = client.callTool("t");
  await until(() => answersOf(server).length > 5, "the answers");
  server.finish();
  await calling;
  await client.close();
  const before = asked;
  await turn(50);
  assertEquals(asked, before);
});

Deno.test("bridge: a server that never accepts answers holds few connections, and none after the end", async () => {
  const server = new Hostile({});
  const input = new TransformStream<Uint8Array, Uint8Array>();
  const writer = input.writable.getWriter();
  const stop = new AbortController();
  const running = bridgeLines({ input: input.readable, output: async () => {}, signal: stop.signal }, {
    url,
    fetch: server.fetch,
    onWarning() {},
  });
  // The bridge waits up to a second for each message. The messages of one connection therefore end before the maximum.
  const write = (id: number) => writer.write(encoder.encode(`{"jsonrpc":"2.0","id":${id},"result":{}}\n`));
  for (let id = 0; id < 3; id++) void write(id).catch(() => {});
  await until(() => server.open.size === 3, "the open requests");
  stop.abort();
  await running;
  assertEquals(server.open.size, 0);
});
