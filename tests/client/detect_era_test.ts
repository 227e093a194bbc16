// How the client detects the server's era and revision.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { connect, McpError } from "../../src/client/client.ts";
import { startHttpServer, toCommand } from "../../src/testing/http_server.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { advanceUntil, gate, started, textOf, until } from "../support/behaviour.ts";
import { withEnvironment } from "../support/environment.ts";
import { sentence } from "../support/messages.ts";
import {
  agreed,
  discovered,
  fakeHttp,
  fakePipe,
  fault,
  type Heard,
  type Message,
  methodsOf,
  ok,
  stream,
  url,
} from "./fakes.ts";
import { createLibrary } from "./server.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { withoutSignals } from "../support/signals.ts";
import { withTimersOn } from "../support/timers.ts";

/** Creates a server that requires a handshake, and responds to `server/discover` with the result of `answer`. */
function old(answer: (heard: Heard) => Response) {
  return fakeHttp((heard) => {
    if (heard.method === "server/discover") return answer(heard);
    if (heard.method === "initialize") return ok(heard, agreed);
    if (heard.method === "tools/list") return ok(heard, { tools: [] });
  });
}

const refusals: Readonly<Record<string, (heard: Heard) => Response>> = {
  "400 without a body": () => new Response(null, { status: 400 }),
  "400 with an error of its own": (heard) => fault(heard, -32000, 400),
  "400 with JSON that is not a message": () => Response.json({ error: "bad session" }, { status: 400 }),
  "404 with a page": () => new Response("<html>", { status: 404, headers: { "content-type": "text/html" } }),
  "405": () => new Response(null, { status: 405 }),
  "500": () => new Response("oh", { status: 500 }),
  "an unknown method": (heard) => fault(heard, -32601, 200),
  "an empty result": (heard) => ok(heard),
  "202": () => new Response(null, { status: 202 }),
};

for (const [name, answer] of Object.entries(refusals)) {
  Deno.test(`the client sends a handshake if the response to the probe is ${name}`, async () => {
    const server = old(answer);
    await using client = await connect(url, { fetch: server.fetch });
    assertEquals([client.server.era, client.server.version, client.server.info?.name], [
      "legacy",
      "2025-11-25",
      "fake",
    ]);
    assertEquals(await client.listTools(), []);
    assertEquals(methodsOf(server), ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    // The handshake must not contain the `_meta` fields and headers of the probe.
    assertEquals(server.heard[1].headers.get("mcp-protocol-version"), null);
    assertEquals(server.heard[1].params._meta, undefined);
    assertEquals(server.heard[3].headers.get("mcp-protocol-version"), "2025-11-25");
  });
}

Deno.test("a server that supports both eras is used in the modern era", async () => {
  await using server = createLibrary();
  await using client = await connect("http://localhost/mcp", { fetch: (request) => server.fetch(request) });
  assertEquals(client.server.era, "modern");
  await using piped = await connect(server);
  assertEquals(piped.server.era, "modern");
});

Deno.test("if the server refuses a revision, the client uses a revision that the server lists", async () => {
  const server = fakeHttp((heard) =>
    heard.headers.get("mcp-protocol-version") === "2026-07-28"
      ? discovered(heard)
      : fault(heard, -32022, 400, { supported: ["2026-07-28"], requested: "2099-01-01" })
  );
  await using client = await connect(url, { fetch: server.fetch, revisions: ["2099-01-01", "2026-07-28"] });
  assertEquals(client.server.version, "2026-07-28");
  assertEquals(server.heard.map(({ params }) => params._meta["io.modelcontextprotocol/protocolVersion"]), [
    "2099-01-01",
    "2026-07-28",
  ]);
});

Deno.test("if the server refuses the revision of an open connection, the client uses a revision that the server lists", async () => {
  let isNew = true;
  const server = fakeHttp((heard) => {
    const supported = isNew ? ["2099-01-01"] : ["2026-07-28"];
    if (!supported.includes(heard.headers.get("mcp-protocol-version") ?? "")) {
      return fault(heard, -32022, 400, { supported });
    }
    return ok(heard, heard.method === "tools/list" ? { tools: [] } : { supportedVersions: supported });
  });
  await using client = await connect(url, { fetch: server.fetch, revisions: ["2099-01-01", "2026-07-28"] });
  assertEquals(client.server.version, "2099-01-01");
  isNew = false;
  assertEquals(await client.listTools(), []);
  assertEquals(client.server.version, "2026-07-28");
});

Deno.test("the client sends a handshake if the server refuses the revision and lists only legacy revisions", async () => {
  const server = old((heard) => fault(heard, -32022, 400, { supported: ["2025-06-18"] }));
  await using client = await connect(url, { fetch: server.fetch });
  assertEquals(client.server.era, "legacy");
});

Deno.test("connecting fails if client and server have no revision in common, and the error lists the revisions of both", async () => {
  const server = old((heard) => fault(heard, -32022, 400, { supported: ["2030-01-01"] }));
  await assertRejects(() => connect(url, { fetch: server.fetch }), Error, sentence("2030-01-01", "2026-07-28"));
  const discovering = fakeHttp((heard) => ok(heard, { supportedVersions: ["2030-01-01"] }));
  await assertRejects(() => connect(url, { fetch: discovering.fetch }), Error, sentence("2030-01-01", "2026-07-28"));
  const shaking = fakeHttp((heard) =>
    heard.method === "initialize" ? ok(heard, { ...agreed, protocolVersion: "2024-10-07" }) : fault(heard, -32601, 200)
  );
  await assertRejects(() => connect(url, { fetch: shaking.fetch }), Error, sentence("2024-10-07", "2025-11-25"));
  // The client stops after a few requests if a server refuses even the revisions in its own list.
  const turning = fakeHttp((heard) => fault(heard, -32022, 400, { supported: ["2026-07-28"] }));
  assertEquals((await assertRejects(() => connect(url, { fetch: turning.fetch }), McpError)).code, -32022);
  assert(turning.heard.length < 10);
});

for (const [code, status] of [[-32020, 400], [-32021, 400], [0, 401], [0, 403]]) {
  Deno.test(`a server that refuses the probe with code ${code} and status ${status} does not count as legacy`, async () => {
    const server = fakeHttp((heard) => code ? fault(heard, code, status) : new Response("who?", { status }));
    const error = await assertRejects(() => connect(url, { fetch: server.fetch }), McpError);
    assertEquals([error.code, error.status], [code, status]);
    assertEquals(methodsOf(server), ["server/discover"]);
  });
}

Deno.test("the era and revisions options restrict which revisions the client uses", async () => {
  await using both = createLibrary();
  const fetch = (request: Request) => both.fetch(request);
  await using client = await connect("http://localhost/mcp", { fetch, era: "legacy" });
  assertEquals(client.server.era, "legacy");
  await using older = await connect(both, { revisions: ["2025-03-26"] });
  assertEquals(older.server.version, "2025-03-26");
  const server = old((heard) => fault(heard, -32601, 200));
  await assertRejects(
    () => connect(url, { fetch: server.fetch, era: "modern" }),
    Error,
    sentence("2026-07-28", "server/discover", -32601),
  );
  assertEquals(methodsOf(server), ["server/discover"]);
  await assertRejects(
    () => connect(both, { era: "modern", revisions: ["2025-11-25"] }),
    TypeError,
    sentence("revisions", "modern"),
  );
});

const page = (text: string, status: number, type = "text/html; charset=utf-8") =>
  new Response(text, { status, headers: { "content-type": type } });

for (
  const [received, respond] of [
    ["502 text/html: Bad Gateway", () => page("<html><title>Bad Gateway</title><h1>x", 502)],
    ["200 text/html: My \\u{1b}[2J page", () => page("<!doctype html>\n<TITLE> My \x1b[2J page\n</TITLE>", 200)],
    ["404 text/html", () => page("<!doctype html>" + "x".repeat(100_000), 404)],
    ["503 text/plain: upstream down", () => page("\n upstream down\nat x", 503, "text/plain")],
    ["500 application/json: {", () => Response.json({ busy: "x".repeat(5000) }, { status: 500 })],
    ["204", () => new Response(null, { status: 204 })],
  ] as const
) {
  const fetch = () => Promise.resolve(respond());
  Deno.test(`the error for a web server without MCP describes the response: ${received}`, async () => {
    for (const options of [{ era: "modern" }, { revisions: ["2026-07-28"] }, { era: "legacy" }, {}] as const) {
      const { message, status } = await assertRejects(() => connect(url, { fetch, ...options }), McpError);
      assertEquals(message, sentence(...received.split(": ")));
      assertEquals([status, message.length < 500, message.includes("<")], [respond().status, true, false], message);
    }
  });
}

Deno.test("a subscription over a pipe ends when the server cancels it, with or without a result", async () => {
  for (const last of [undefined, { resultType: "complete", said: "bye" }]) {
    const server = fakePipe(({ id, method }, say) => {
      if (method === "server/discover") say({ id, result: { supportedVersions: ["2026-07-28"], capabilities: {} } });
      if (method !== "subscriptions/listen") return;
      const _meta = { "io.modelcontextprotocol/subscriptionId": id };
      say({ method: "notifications/subscriptions/acknowledged", params: { _meta, notifications: {} } });
      // Messages for other requests, which the subscription ignores.
      say({ method: "notifications/message", params: { level: "info", data: 1 } });
      say({ method: "notifications/cancelled", params: { requestId: "other" } });
      say({ method: "notifications/tools/list_changed", params: { _meta } });
      say({ method: "notifications/cancelled", params: { requestId: id } });
      if (last) say({ id, result: last });
    });
    await using client = await connect(server);
    const subscription = await client.subscribe({});
    assertEquals(await subscription.ended, last);
    const heard = await Array.fromAsync(subscription);
    assertEquals(heard.map(({ method }) => method), ["notifications/tools/list_changed"]);
  }
});

Deno.test("if a server cannot be reached, the error contains its URL", async () => {
  const fetch = () => Promise.reject(new TypeError("connection refused"));
  await assertRejects(() => connect(url, { fetch }), Error, sentence(url, "connection refused"));
});

Deno.test("a signal aborts connecting", async () => {
  const stop = new AbortController();
  const connecting = connect(url, { signal: stop.signal, fetch: () => new Promise<Response>(() => {}) });
  stop.abort(new Error("too slow"));
  await assertRejects(() => connecting, Error, "too slow");
  await assertRejects(() => connect(url, { signal: stop.signal }), Error, "too slow");
});

Deno.test("connect throws for an invalid target", async () => {
  for (const target of ["ftp://a.test/", "file:///a.ts", "node server.js", "", new URL("data:,x")]) {
    await assertRejects(() => connect(target), TypeError, sentence(String(target)));
  }
  for (const target of [{}, undefined, null, 8000]) {
    await assertRejects(() => Reflect.apply(connect, undefined, [target]), TypeError, sentence("createServer"));
  }
});

// Servers with the HTTP+SSE transport.

Deno.test("a server with only the HTTP+SSE transport is used over HTTP+SSE", async () => {
  const server = createLibrary();
  const host = startHttpServer(httpSse(server).fetch);
  const client = await connect(`${host.origin}/sse`, { onElicitUrl: () => ({ action: "accept" }) });
  assertEquals([client.server.era, client.server.version], ["legacy", "2025-11-25"]);
  assertEquals(textOf(await client.callTool("echo", { text: "hello" })), "hello");
  assertEquals(textOf(await client.callTool("pay")), "accept");
  const subscription = await client.subscribe({ resourceSubscriptions: ["book://1"] });
  await client.callTool("lend");
  assertEquals((await subscription[Symbol.asyncIterator]().next()).value.params.uri, "book://1");
  const waiting = client.callTool("wait");
  waiting.catch(() => {});
  await server.close();
  await assertRejects(() => waiting, Error);
  await client.close();
  await host.stop();
});

/** Creates a server that has only the HTTP+SSE transport and whose stream contains the given events. */
function old2024(events: readonly unknown[], post = () => new Response(null, { status: 202 })) {
  return fakeHttp(({ http, method }) => {
    if (http === "GET") return stream(events, "open");
    return method === "server/discover" || method === "initialize" ? new Response(null, { status: 405 }) : post();
  });
}

Deno.test("the client sends no POST to an HTTP+SSE endpoint at another host", async () => {
  const server = old2024(["event: endpoint\ndata: http://evil.test/messages\n\n"]);
  const connecting = connect(url, { fetch: server.fetch, headers: { authorization: "Bearer 1" } });
  await assertRejects(() => connecting, Error, sentence("http://evil.test"));
  assertEquals(methodsOf(server), ["server/discover", "initialize", "GET"]);
});

Deno.test("the client sends a POST only to an HTTP+SSE endpoint in the server's folder or next to the server", async () => {
  for (
    const [path, endpoint, isAccepted] of [
      ["/sse", "/messages?id=1", true],
      ["/sse/", "/messages/?id=1", true],
      ["/team-a/sse", "/team-a/messages", true],
      ["/team-a/sse", "post", true],
      ["/sse", "/messages/?id=1", true],
      ["/sse/", "/messages?id=1", true],
      ["/sse", "/sse?id=1", true],
      ["/sse/", "/sse?id=1", true],
      ["/sse", "/sse/messages/1", true],
      ["/sse/", "messages/1", true],
      ["/", "/team-a/messages", true],
      ["/team-a/sse", "/team-a/messages/1", true],
      ["/team-a/sse/", "/team-a/messages/", true],
      ["/team-a/sse/", "/team-a/sse/messages/1", true],
      ["/team%2da/sse/", "/team-a/messages/", true],
      ["/team-a/sse?key=1", "?id=1", true],
      ["/team-a/sse", "/team-b/messages", false],
      ["/team-a/sse/", "/team-b/messages", false],
      ["/team-a/sse/", "/team-a/messages/1", false],
      ["/team-a/", "/team-b/mcp", false],
      ["/team-a", "/team-b/mcp", false],
      ["/teams/team-a/", "/teams/team-b/mcp", false],
      ["/sse", "/messages/1", false],
      ["/sse", "/messages//", false],
      ["/sse", "/?id=1", false],
      ["/sse/", "/?id=1", false],
      ["/team-a/sse/", "/team-a", false],
      ["//", "/team-b/mcp", false],
      ["/team-a//", "/team-b/mcp", false],
      ["/sse", "/team-b%2fmcp", false],
      ["/sse", "/team-b%5cmcp", false],
      ["/sse", "/sse/..%2fteam-b", false],
      ["/sse/", "/team-b%252fmcp", false],
      ["/sse", "/..;", false],
      ["/team-a%2fsse", "/messages", false],
      ["/team-a/sse", "/sse", false],
      ["/team-a/sse", "../team-b/messages", false],
      ["/team-a/sse", "/messages", false],
      ["/team-a/sse", "/team-ab/messages", false],
      ["/team-a/sse", "/team-a/..%2fteam-b/messages", false],
    ] as const
  ) {
    const server = `http://gateway.test${path}`;
    const posted: string[] = [];
    const fetch = async ({ url, method }: Request) => {
      if (method === "GET") return await Promise.resolve(stream([`event: endpoint\ndata: ${endpoint}\n\n`], "open"));
      if (url !== server) posted.push(url);
      return new Response(null, { status: url === server ? 405 : 503 });
    };
    const error = await assertRejects(() => connect(server, { fetch, headers: { authorization: "Bearer 1" } }), Error);
    assertEquals(posted.length > 0, isAccepted, `${path} ${endpoint}`);
    if (!isAccepted) assertEquals(error.message, sentence(new URL(endpoint, server).pathname, new URL(server).origin));
  }
});

Deno.test("the client closes an HTTP+SSE stream that names no endpoint", async () => {
  const silent = old2024(["event: other\ndata: /messages\n\n"]);
  await assertRejects(
    () => connect(url, { fetch: silent.fetch, timeoutMs: 50 }),
    DOMException,
    sentence("timeoutMs"),
  );
  const ending = fakeHttp(({ http }) => http === "GET" ? stream([]) : new Response(null, { status: 405 }));
  await assertRejects(() => connect(url, { fetch: ending.fetch }), Error, sentence());
  const none = fakeHttp(() => new Response("nobody", { status: 404, headers: { "content-type": "text/plain" } }));
  const error = await assertRejects(
    () => connect(url, { fetch: none.fetch }),
    McpError,
    sentence(404, "text/plain", "nobody"),
  );
  assertEquals(error.status, 404);
});

Deno.test("the client closes an HTTP+SSE stream whose endpoint it does not use", async () => {
  for (const endpoint of ["http://[", "http://evil.test/messages"]) {
    let isOpen = false;
    const body = () =>
      new ReadableStream({
        start(controller) {
          isOpen = true;
          controller.enqueue(new TextEncoder().encode(`event: endpoint\ndata: ${endpoint}\n\n`));
        },
        cancel() {
          isOpen = false;
        },
      });
    const { fetch } = fakeHttp(({ http }) =>
      http === "GET"
        ? new Response(body(), { headers: { "content-type": "text/event-stream" } })
        : new Response(null, { status: 405 })
    );
    await assertRejects(() => connect(url, { fetch }), Error, sentence(endpoint));
    await until(() => !isOpen, "the stream is closed");
  }
});

Deno.test("over HTTP+SSE, a request fails if the server refuses its message", async () => {
  const posted: Message[] = [];
  const encoder = new TextEncoder();
  let say = (_text: string) => {};
  const fetch = async (request: Request) => {
    if (request.method === "GET") {
      const body = new ReadableStream({
        start(controller) {
          say = (text) => controller.enqueue(encoder.encode(text));
          say("event: endpoint\ndata: ?id=1\n\n");
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (!request.url.endsWith("?id=1")) return new Response(null, { status: 404 });
    const message: Message = await request.json();
    posted.push(message);
    if (message.method === "initialize") {
      say(`data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: agreed })}\n\n`);
    }
    return new Response("full", { status: message.method === "tools/call" ? 503 : 202 });
  };
  await using client = await connect(url, { fetch });
  const error = await assertRejects(() => client.callTool("t"), McpError, "full");
  assertEquals([error.status, posted.length], [503, 3]);
});

// Servers over pipes, and server processes.

Deno.test("over a pipe, the client sends a handshake if the server does not respond to the probe", async () => {
  const server = fakePipe(({ id, method }, say) => {
    if (method === "initialize") say({ id, result: agreed });
  });
  await using client = await connect(server, { probeMs: 10 });
  assertEquals(client.server.era, "legacy");
  assertEquals(server.heard.map(({ method }) => method), [
    "server/discover",
    "initialize",
    "notifications/initialized",
  ]);
  // Without the `info` option, the client sends the library's name and version.
  assertEquals(server.heard[1].params.clientInfo, { name: config.name, version: config.version });
});

Deno.test("over a pipe, the client sends a handshake if the server refuses the probe", async () => {
  for (const code of [-32601, -32602, -32600, -32000, 1]) {
    const server = fakePipe(({ id, method }, say) => {
      if (method === "initialize") say({ id, result: agreed });
      else if (id !== undefined) say({ id, error: { code, message: "not initialized" } });
    });
    await using client = await connect(server);
    assertEquals(client.server.era, "legacy");
  }
});

Deno.test("the client reports an error in the response to a notification, and continues", async () => {
  const rejections: readonly (readonly [id: Message["id"] | null, code: number, status: number])[] = [
    [0, -32601, 200],
    [null, -32600, 200],
    [undefined, -32603, 202],
  ];
  for (const [id, code, status] of rejections) {
    const texts: string[] = [];
    const server = fakeHttp((heard) => {
      if (heard.method?.startsWith("notifications/")) {
        return Response.json({ jsonrpc: "2.0", id, error: { code, message: "no" } }, { status });
      }
      if (heard.method === "initialize") return ok(heard, agreed);
      return heard.method === "tools/list" ? ok(heard, { tools: [] }) : fault(heard, -32601, 404);
    });
    await using client = await connect(url, { fetch: server.fetch, onWarning: (text) => void texts.push(text) });
    assertEquals(await client.listTools(), []);
    await client.notify("notifications/roots/list_changed");
    assertEquals(texts, [sentence("initialized", code), sentence("roots/list_changed", code)]);
  }
  // A body without an error has no meaning.
  for (const answer of [ok({}), Response.json({ error: "no" }), Response.json([1]), new Response("fine"), stream([])]) {
    const texts: string[] = [];
    const server = fakeHttp((heard) => {
      if (heard.method?.startsWith("notifications/")) return answer;
      return heard.method === "initialize" ? ok(heard, agreed) : fault(heard, -32601, 404);
    });
    await using client = await connect(url, { fetch: server.fetch, onWarning: (text) => void texts.push(text) });
    assertEquals([client.server.era, texts], ["legacy", []]);
  }
});

Deno.test("over a pipe, the client reports an error response without an id, and continues", async () => {
  for (const id of [null, undefined]) {
    const texts: string[] = [];
    const server = fakePipe(({ id: own, method }, say) => {
      if (method === "initialize") say({ id: own, result: agreed });
      else if (method === "tools/list") say({ id: own, result: { tools: [] } });
      else say({ id: own ?? id, error: { code: -32601, message: "no such method" } });
    });
    await using client = await connect(server, { onWarning: (text) => void texts.push(text) });
    assertEquals(await client.listTools(), []);
    assertEquals(texts, [sentence(-32601)]);
  }
});

Deno.test("the probe timeout does not apply over HTTP, because a slow server will still respond", async () => {
  const server = fakeHttp(async (heard) => {
    // Fixed wait: processes that respond after the timeout of a probe.
    await new Promise((resolve) => setTimeout(resolve, 30));
    return discovered(heard);
  });
  await using client = await connect(url, { fetch: server.fetch, probeMs: 1 });
  assertEquals(client.server.era, "modern");
});

Deno.test("a modern server that starts slowly is still used in the modern era", async () => {
  let first: number | string | undefined;
  const server = fakePipe(({ id, method }, say) => {
    if (method === "server/discover") first = id;
    if (method !== "initialize") return;
    say({ id: first, result: { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: {} } });
    say({ id, error: { code: -32601, message: "no initialize here" } });
  });
  await using client = await connect(server, { probeMs: 10 });
  assertEquals([client.server.era, client.server.version], ["modern", "2026-07-28"]);
});

/** Returns the command that starts `process.ts` with the given behaviour. */
function toProcess(habit: string) {
  const [command, ...args] = toCommand(new URL("./process.ts", import.meta.url));
  return { command, args: [...args, habit] };
}

Deno.test("the client restarts a process that exits when it receives the probe", async () => {
  await using client = await connect(toProcess("strict"), { probeMs: 30_000 });
  assertEquals([client.server.era, client.server.info?.name], ["legacy", "strict"]);
  const [{ name }] = await client.listTools();
  assertEquals(name, "cwd");
});

Deno.test("the client does not restart a process that never responds", async () => {
  let errors = "";
  const onStderr = (text: string) => void (errors += text);
  const options = { probeMs: 10, timeoutMs: 1000, onStderr };
  const clock = fakeClock();
  await withTimersOn(clock, 1000, async () => {
    const connecting = assertRejects(() => connect(toProcess("mute"), options), DOMException);
    await until(() => errors.includes("started"), "the start of the process");
    assertEquals((await advanceUntil(clock, 1000, connecting)).name, "TimeoutError");
  });
  assertEquals(errors.match(/started/g)?.length, 1);
});

Deno.test("lines from a process that are not messages are ignored and reported as warnings", async () => {
  const warnings: string[] = [];
  await using client = await connect(toProcess("noisy"), {
    probeMs: 30_000,
    onWarning: (text) => void warnings.push(text),
  });
  assertEquals((await client.listTools()).length, 1);
  assertEquals(warnings, ["Starting…", "{}", "[1]"].map((text) => sentence(`"${text}"`)));
});

Deno.test("the client skips a byte order mark before the first message of a process", async () => {
  await using client = await connect(toProcess("marked"), {
    probeMs: 30_000,
    onWarning: (text) => assertEquals(text, ""),
  });
  assertEquals((await client.listTools()).map(({ name }) => name), ["cwd"]);
});

Deno.test("the callback onStderr receives the standard error of the process", async () => {
  let errors = "";
  const onStderr = (text: string) => void (errors += text);
  const client = await connect(toProcess("wordy"), { probeMs: 30_000, onStderr });
  await client.close();
  assertStringIncludes(errors, "ready: héllo");
});

Deno.test("calls fail if the process exits, and the error contains the exit code", async () => {
  await using client = await connect(toProcess("plain"), { probeMs: 30_000 });
  const subscription = await client.subscribe({ toolsListChanged: true });
  const error = await assertRejects(() => client.callTool("exit"), DOMException, sentence(3));
  assertEquals(error.name, "NetworkError");
  await subscription.ended;
  await assertRejects(() => client.listTools(), DOMException, sentence(3));
});

Deno.test("closing the client kills a process that does not exit by itself", async () => {
  await Promise.all(["stubborn", "deaf"].map(async (habit) => {
    let alive = 0;
    const options = { probeMs: 30_000, onStderr: () => void alive++ };
    const client = await connect({ ...toProcess(habit), exitMs: 3000 }, options);
    await client.close();
    const last = alive;
    assert(last > 0, "it exited with its input");
    // Fixed wait: processes that respond after the timeout of a probe.
    await new Promise((resolve) => setTimeout(resolve, 100));
    assertEquals(alive, last);
  }));
});

Deno.test("closing the client kills a process that has stopped reading, although messages are still being written", async () => {
  let alive = 0;
  const options = { probeMs: 30_000, onStderr: () => void alive++ };
  const client = await connect({ ...toProcess("unread"), exitMs: 300 }, options);
  const stop = new AbortController();
  const calls = [1, 2].map(() => client.callTool("t", { text: "x".repeat(2_000_000) }, { signal: stop.signal }));
  await until(() => alive > 0, "the process has stopped reading");
  const notifying = client.notify("notifications/x");
  stop.abort(new Error("enough"));
  for (const calling of calls) await assertRejects(() => calling, Error, "enough");
  await client.close();
  await notifying.catch(() => {});
  const last = alive;
  // Fixed wait: a process that is still running writes after this time.
  await new Promise((resolve) => setTimeout(resolve, 100));
  assertEquals(alive, last);
});

Deno.test({
  name:
    "closing the client succeeds if the process has exited when the client sends a signal, but has not been reported",
  ignore: typeof Deno === "undefined", // Only Deno refuses to send a signal to an exited process.
  async fn() {
    const { Command } = Deno;
    const signals: unknown[] = [];
    const { pass, open } = gate();
    Deno.Command = class extends Command {
      override spawn(): Deno.ChildProcess {
        const child = super.spawn();
        const { status } = child;
        const kill = child.kill.bind(child);
        return Object.defineProperties(child, {
          status: { value: pass.then(() => status) },
          kill: {
            value(signal: Deno.Signal) {
              signals.push(signal);
              kill(signal);
            },
          },
        });
      }
    };
    try {
      const client = await connect({ ...toProcess("plain"), exitMs: 500 }, { probeMs: 30_000 });
      const closing = started(client.close());
      await until(() => signals.length === 2, "the client sends both signals");
      assertEquals(signals, ["SIGTERM", "SIGKILL"]);
      open();
      await closing;
    } finally {
      Deno.Command = Command;
    }
  },
});

Deno.test("closing the client succeeds although the process cannot be killed, and connecting fails", async () => {
  await withoutSignals(async () => {
    const client = await connect({ ...toProcess("stubborn"), exitMs: 100 }, { probeMs: 30_000, onStderr: () => {} });
    await client.close();
    const mute = { command: "sh", args: ["-c", "exec >&-; exec sleep 30"], exitMs: 100 };
    await assertRejects(() => connect(mute, { probeMs: 30_000 }), Error, sentence("kill"));
  });
});

Deno.test("connecting fails if the command cannot be started, with its name in the error, or if the process ends silently", async () => {
  const { message, cause } = await assertRejects(() => connect({ command: "no-such-command" }), Error);
  assertEquals(message, `${sentence("no-such-command")}: ${Object(cause).message}`);
  const [command] = toCommand("");
  const silent = { command, args: ["--version"] };
  await assertRejects(() => connect(silent, { onWarning() {} }), DOMException, sentence(0));
});

Deno.test("a process inherits only the environment variables that programs need to run", async () => {
  // Variables of this test process that the server process must not inherit: a secret, and an exported shell function.
  const secret = { MCP_TEST_SECRET: "s3cret", TERM: "() { echo; }" };
  let errors = "";
  const onStderr = (text: string) => void (errors += text);
  const options = { onStderr, era: "legacy" } as const;
  const target = { command: "sh", args: ["-c", "env >&2"], env: { NAMED: "yes" } };
  await withEnvironment(secret, () => assertRejects(() => connect(target, options), DOMException));
  const names = errors.trim().split("\n").map((line) => line.split("=")[0]);
  const known = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "NAMED", "PWD", "OLDPWD", "SHLVL", "_"];
  assertEquals(names.filter((name) => !known.includes(name)), []);
  assert(names.includes("PATH") && names.includes("NAMED"), errors);
});

Deno.test("a process gets the environment variables and the working directory in the options", async () => {
  let errors = "";
  const [command] = toCommand("");
  const script = "console.error(JSON.stringify([Deno.env.get('TEA'), !!Deno.env.get('PATH'), Deno.cwd()]))";
  const bunScript = "console.error(JSON.stringify([Bun.env.TEA, !!Bun.env.PATH, process.cwd()]))";
  const isDeno = typeof Deno !== "undefined";
  const args = isDeno ? ["eval", script] : ["-e", bunScript];
  const onStderr = (text: string) => void (errors += text);
  const options = { onStderr, era: "legacy" } as const;
  await assertRejects(() => connect({ command, args, env: { TEA: "green" }, cwd: "/" }, options), DOMException);
  assertEquals(JSON.parse(errors), ["green", true, "/"]);
});
