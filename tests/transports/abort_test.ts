// Aborting the signal of a request that a program passes to `server.fetch` cancels the call, in every revision. The
// signal of a request from a listener is never read, because reading it costs time and prints a warning on Deno.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { closeAtEnd } from "../support/running.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { readTo } from "../support/read_to.ts";
import { toRequest } from "../support/requests.ts";
import { openSession, toHello, toSession, toSessionRequest } from "../support/sessions.ts";

/** What a handler has seen. */
interface Seen {
  readonly started: Promise<void>;
  readonly reasons: unknown[];
}

/** A server with a tool that runs until its call is cancelled. */
function createSlow(options: Partial<ServerOptions> = {}): Seen & { readonly server: Server } {
  const { pass: started, open } = gate();
  const reasons: unknown[] = [];
  const slow = tool({
    name: "slow",
    run: (_input, { signal, progress }) =>
      new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => resolve(`${reasons.push(signal.reason.why)}`));
        progress(1);
        open();
      }),
  });
  const server = closeAtEnd(createServer({
    name: "slow",
    version: "1.0.0",
    handlers: [slow, tool({ name: "long", run: () => "x".repeat(1_000_000) })],
    ...options,
  }));
  return { started, reasons, server };
}

type Send = (body: unknown, signal?: AbortSignal, changes?: RequestInit) => Promise<Response>;

interface Era {
  readonly call: (name: string, meta?: object) => unknown;
  readonly send: Send;
}

const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function openLegacy(server: Server): Promise<Era> {
  const send = async (body: unknown, own: Record<string, string>, signal?: AbortSignal, changes?: RequestInit) => {
    const init = { method: "POST", headers: { ...headers, ...own }, body: JSON.stringify(body), signal, ...changes };
    return await server.fetch(new Request("http://localhost/mcp", init));
  };
  const own = { "mcp-session-id": await openSession(server), "mcp-protocol-version": "2025-11-25" };
  return {
    call: (name, _meta) => ({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name, arguments: {}, _meta } }),
    send: (body, signal, changes) => send(body, own, signal, changes),
  };
}

function openModern(server: Server): Promise<Era> {
  return Promise.resolve({
    call: (name, _meta) => toRequest("tools/call", { name, arguments: {}, _meta }),
    send: (request, signal, changes) => server.fetch(new Request(request as Request, { signal, ...changes })), // The cast is safe, because `call` returns a request.
  });
}

const eras = { modern: openModern, legacy: openLegacy };

for (const [era, open] of Object.entries(eras)) {
  Deno.test(`abort: a running call is cancelled (${era})`, async () => {
    const { server, started, reasons } = createSlow();
    const { call, send } = await open(server);
    const caller = new AbortController();
    const response = send(call("slow"), caller.signal);
    await started;
    caller.abort();
    await until(() => reasons.length, "the cancellation");
    assertEquals(reasons, ["disconnected"]);
    await (await response).text();
  });

  Deno.test(`abort: an open stream ends, and its call is cancelled (${era})`, async () => {
    const { server, started, reasons } = createSlow();
    const { call, send } = await open(server);
    const caller = new AbortController();
    const response = await send(call("slow", { progressToken: 1 }), caller.signal);
    await started;
    const reader = response.body?.getReader();
    await reader?.read();
    caller.abort(new Error("enough"));
    await until(() => reasons.length, "the cancellation");
    let isDone = false;
    while (!isDone) isDone = (await reader?.read())?.done ?? true;
    assertEquals(server.stats().streams, 0);
  });

  Deno.test(`abort: a call that is aborted before it starts does not run (${era})`, async () => {
    const { server, reasons } = createSlow();
    const { call, send } = await open(server);
    const response = await send(call("slow"), AbortSignal.abort());
    await response.text();
    await turn(3);
    assertEquals([server.stats().running, reasons], [0, []]);
  });

  Deno.test(`abort: a call that waits for allow does not run (${era})`, async () => {
    const allowed = gate();
    let [asked, ran] = [0, 0];
    const guarded = tool({
      name: "guarded",
      allow: async () => {
        asked++;
        await allowed.pass;
        return true;
      },
      run: () => `${++ran}`,
    });
    const { server } = createSlow({ handlers: [guarded] });
    const { call, send } = await open(server);
    const caller = new AbortController();
    const response = send(call("guarded"), caller.signal);
    await until(() => asked, "allow");
    caller.abort();
    await (await response).text();
    allowed.open();
    await turn(3);
    assertEquals(ran, 0);
  });

  Deno.test(`abort: a call that waits in the queue leaves it (${era})`, async () => {
    const { server, started, reasons } = createSlow({ limits: { calls: { running: 1, runningPerClient: 1 } } });
    const { call, send } = await open(server);
    const [first, second] = [new AbortController(), new AbortController()];
    const responses = [send(call("slow"), first.signal)];
    await started;
    responses.push(send(call("slow"), second.signal));
    await until(() => server.stats().waiting, "the queue");
    second.abort();
    await until(() => !server.stats().waiting, "the end of the wait");
    assertEquals(reasons, []);
    first.abort();
    await until(() => reasons.length, "the cancellation");
    for (const response of await Promise.all(responses)) await response.text();
  });

  Deno.test(`abort: a body that does not arrive is not read to its end (${era})`, async () => {
    const { server, reasons } = createSlow();
    const { send, call } = await open(server);
    for (const length of [undefined, "1000"]) {
      let isCancelled = false;
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
        cancel: () => {
          isCancelled = true;
        },
      });
      const caller = new AbortController();
      const own = { ...headers, ...length && { "content-length": length } };
      const streamed = { method: "POST", body, headers: own, duplex: "half" };
      const target = call("slow");
      const response = target instanceof Request
        ? send(target, caller.signal, { ...streamed, headers: { ...Object.fromEntries(target.headers), ...own } })
        : send(target, caller.signal, { ...streamed });
      await turn(3);
      caller.abort();
      const { status } = await response;
      assert(status >= 400, `${status}`);
      await until(() => isCancelled, "the end of the body");
    }
    assertEquals(reasons, []);
  });

  Deno.test(`abort: a long result that nobody reads takes no memory (${era})`, async () => {
    const { server } = createSlow();
    const { send, call } = await open(server);
    const caller = new AbortController();
    const response = await send(call("long"), caller.signal);
    assertEquals(response.status, 200);
    assert(server.stats().bytes > 100_000);
    caller.abort();
    assert(server.stats().bytes < 100_000, "the result is still in memory");
    await response.text();
  });

  Deno.test(`abort: a signal that aborts after the response changes nothing, and has no listeners (${era})`, async () => {
    const { server } = createSlow({
      handlers: [tool({ name: "quick", run: async () => await Promise.resolve("done") })],
    });
    const { send, call } = await open(server);
    const listeners = new Set<unknown>();
    const { addEventListener: add, removeEventListener: remove } = AbortSignal.prototype;
    AbortSignal.prototype.addEventListener = function (name: string, listener: unknown, ...rest: unknown[]) {
      listeners.add(listener);
      Reflect.apply(add, this, [name, listener, ...rest]);
    };
    AbortSignal.prototype.removeEventListener = function (name: string, listener: unknown, ...rest: unknown[]) {
      listeners.delete(listener);
      Reflect.apply(remove, this, [name, listener, ...rest]);
    };
    try {
      const caller = new AbortController();
      const text = await (await send(call("quick"), caller.signal)).text();
      caller.abort();
      assert(text.includes("done"));
      assertEquals(listeners.size, 0);
    } finally {
      AbortSignal.prototype.addEventListener = add;
      AbortSignal.prototype.removeEventListener = remove;
    }
  });
}

Deno.test("abort: a subscription and the stream of a session end", async () => {
  const { server } = createSlow();
  const { send } = await openLegacy(server);
  const caller = new AbortController();
  const listen = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const responses = [
    await server.fetch(new Request(listen, { signal: caller.signal })),
    await send(undefined, caller.signal, { method: "GET", body: undefined }),
  ];
  await until(() => server.stats().streams === 2, "the streams");
  caller.abort();
  await until(() => server.stats().streams === 0, "the end of the streams");
  for (const { body } of responses) await readTo(body, "\0").catch(() => {});
});

Deno.test("a call in a session continues after its client has disconnected, with the work that it defers", async () => {
  const { pass: left, open: leave } = gate();
  const seen: unknown[] = [];
  const stay = tool({
    name: "stay",
    async run(_input, ctx) {
      ctx.defer((end) => seen.push(end));
      await ctx.progress(1);
      await left;
      seen.push((await ctx.once("text", () => "x".repeat(100_000), { maxBytes: 200_000 })).length);
      return "stayed";
    },
  });
  const server = closeAtEnd(createServer({ name: "stay", version: "1.0.0", handlers: [stay] }));
  let hasAddress = () => true;
  const http = startHttpServer((request, info) => {
    hasAddress = () => {
      try {
        const { requestIP } = Object(info);
        return !!(requestIP ? requestIP.call(info, request) : Object(info).remoteAddr);
      } catch {
        return false;
      }
    };
    return server.fetch(request, info as object); // The cast is safe, because runtimes pass objects.
  });
  const url = `${http.origin}/mcp`;
  const session = await toSession(await fetch(toSessionRequest(toHello(), {}, { url })));
  const call = {
    jsonrpc: "2.0",
    id: 2,
    method: "tools/call",
    params: { name: "stay", arguments: {}, _meta: { progressToken: 1 } },
  };
  const client = new AbortController();
  const request = toSessionRequest(call, { "mcp-session-id": session }, { url });
  const { body } = await fetch(request, { signal: client.signal });
  await readTo(body, "progress");
  client.abort();
  await until(() => !hasAddress(), "the server no longer knows the address");
  leave();
  await until(() => seen.length === 2, "the deferred function");
  assertEquals(seen, [100_000, "result"]);
  await http.stop();
});

Deno.test("abort: the stream of HTTP+SSE ends", async () => {
  const { server } = createSlow();
  const sse = httpSse(server);
  const caller = new AbortController();
  const response = await sse.fetch(
    new Request("http://localhost/sse", { signal: caller.signal, headers: { accept: "text/event-stream" } }),
  );
  assertEquals(response.status, 200);
  await readTo(response.body, "endpoint");
  caller.abort();
  await until(() => server.stats().streams === 0, "the end of the stream");
});

for (const hasInfo of [true, false]) {
  const name = hasInfo ? "with the client's address" : "without the client's address";
  Deno.test(`abort: the signal of a request from a listener is not read (${name})`, async () => {
    const { server } = createSlow({
      handlers: [tool({ name: "quick", run: async () => await Promise.resolve("done") })],
    });
    let read = 0;
    const http = startHttpServer((request, info) => {
      const { signal } = Object.getOwnPropertyDescriptors(Request.prototype);
      Object.defineProperty(request, "signal", { get: () => (read++, signal.get?.call(request)) });
      return server.fetch(request, hasInfo ? info as object : undefined); // The cast is safe, because runtimes pass objects.
    });
    const sent = toRequest("tools/call", { name: "quick", arguments: {} });
    const text = await (await fetch(new Request(`${http.origin}/mcp`, sent))).text();
    assert(text.includes("done"));
    assertEquals(read, 0);
    await http.stop();
  });
}
