// Authentication on every HTTP transport: the endpoint, WebSocket upgrades and the HTTP+SSE transport.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { type Authentication, createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { apiKey, customAuth, refuseRequest, requirePrincipal } from "../../src/auth/auth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { serve } from "../peers/runtime.ts";
import { advanceUntil, raise, turn, until } from "../support/behaviour.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { openStdio } from "../support/open_stdio.ts";
import { serveOld } from "../hostile/sse.ts";
import { openSession, toHello, toSession, toSessionRequest } from "../support/sessions.ts";

const ADA = "ada-2f6c1e0b9d4a7853";
const auth = apiKey({ keys: { ada: ADA } });
const signed = { authorization: `Bearer ${ADA}` };
const whoami = tool({ name: "whoami", run: (_, ctx) => `you are ${ctx.principal?.id}` });

function start(options: Partial<ServerOptions> = {}): Server {
  return createServer({ name: "me", version: "1.0.0", auth, handlers: [whoami], observer: { fault() {} }, ...options });
}

/** Returns a request of revision 2025-11-25. */
function toLegacy(method: string, message: object | undefined, headers: Record<string, string> = {}): Request {
  return toSessionRequest(message && { jsonrpc: "2.0", id: 1, ...message }, headers, { method });
}

const initialize = toHello();

Deno.test("every HTTP method of the endpoint requires credentials, which are checked before the body is read", async () => {
  await using server = start();
  const requests = [
    toRequest("tools/call", { name: "whoami" }),
    toRequest("server/discover"),
    toLegacy("POST", initialize),
    toLegacy("GET", undefined),
    toLegacy("DELETE", undefined, { "mcp-session-id": "x" }),
    new Request("http://localhost/mcp", { method: "PUT" }),
    new Request("http://localhost/mcp", {
      method: "POST",
      body: "not JSON",
      headers: { "content-type": "text/plain" },
    }),
  ];
  for (const request of requests) {
    const response = await server.fetch(request);
    assertEquals([response.status, response.headers.get("www-authenticate")], [401, "Bearer"], request.method);
    assertEquals((await readReply(response)).error.code, -31401);
    assertEquals(request.bodyUsed, false);
  }
  const options = await server.fetch(new Request("http://localhost/mcp", { method: "OPTIONS" }));
  assertEquals(options.status, 405);
  assertEquals((await server.fetch(new Request("http://localhost/other"))).status, 404);
});

Deno.test("a session belongs to the caller that opened it", async () => {
  await using server = start({ auth: apiKey({ keys: { ada: ADA, bob: "bob-8d3f5a7c6e1b9042" } }) });
  const session = { "mcp-session-id": await toSession(await server.fetch(toLegacy("POST", initialize, signed))) };
  const call = { method: "tools/call", params: { name: "whoami" } };
  const own = await server.fetch(toLegacy("POST", call, { ...session, ...signed }));
  assertMatch(await own.text(), /you are apikey:ada/);
  const other = { ...session, authorization: "Bearer bob-8d3f5a7c6e1b9042" };
  for (
    const request of [
      toLegacy("POST", call, other),
      toLegacy("GET", undefined, other),
      toLegacy("DELETE", undefined, other),
    ]
  ) {
    assertEquals((await server.fetch(request)).status, 404);
  }
  assertEquals((await server.fetch(toLegacy("DELETE", undefined, session))).status, 401);
  assertEquals((await server.fetch(toLegacy("DELETE", undefined, { ...session, ...signed }))).status, 204);
});

Deno.test("a caller is authenticated after the checks of Host and Origin, and before any other check", async () => {
  let asked = 0;
  await using server = start({ auth: () => void asked++ });
  const foreign = toRequest("ping", {}, { origin: "https://evil.example" });
  assertEquals((await server.fetch(foreign)).status, 403);
  const rebound = new Request("http://evil.example/mcp", { method: "POST", headers: { host: "evil.example" } });
  assertEquals((await server.fetch(rebound)).status, 403);
  assertEquals(asked, 0);
});

Deno.test("a principal that is passed to fetch takes precedence, and the credentials are ignored", async () => {
  const show = tool({
    name: "show",
    run: (_, { principal, http }) => `${principal?.id} ${http?.headers.get("authorization")}`,
  });
  await using server = start({ handlers: [show] });
  for (const headers of [{}, signed, { authorization: "Bearer wrong" }]) {
    const response = await server.fetch(toRequest("tools/call", { name: "show" }, headers), {
      principal: { id: "front" },
    });
    assertMatch(await response.text(), /"front null"/);
  }
});

Deno.test("a plain function can authenticate, synchronously or asynchronously", async () => {
  const check = ({ headers }: Request) => headers.get("authorization") === "Bearer right" ? { id: "ada" } : undefined;
  for (const auth of [check, async (request: Request) => await check(request)]) {
    await using server = start({ auth });
    const right = await server.fetch(toRequest("tools/call", { name: "whoami" }, { authorization: "Bearer right" }));
    assertMatch(await right.text(), /you are ada/);
    const wrong = await server.fetch(toRequest("tools/call", { name: "whoami" }));
    assertEquals([wrong.status, wrong.headers.get("www-authenticate")], [401, "Bearer"]);
  }
});

Deno.test("a refusal has its own status, challenges and reason", async () => {
  const cases: readonly [ReturnType<typeof refuseRequest>, number, string | null, string][] = [
    [refuseRequest(401), 401, "Bearer", sentence()],
    [refuseRequest(403), 403, null, sentence()],
    [refuseRequest(403, { reason: "it is night" }), 403, null, sentence("it is night")],
    [refuseRequest(400, { challenge: { scheme: "A", params: { b: 'c"d\\' } } }), 400, 'A b="c\\"d\\\\"', sentence()],
    [
      refuseRequest(401, { challenge: [{ scheme: "A" }, { scheme: "B", params: { c: "\r\nx: y" } }] }),
      401,
      'A, B c="??x: y"',
      sentence(),
    ],
  ];
  for (const [refusal, status, challenge, message] of cases) {
    await using server = start({ auth: () => refusal });
    const response = await server.fetch(toRequest("tools/list"));
    assertEquals([response.status, response.headers.get("www-authenticate")], [status, challenge]);
    const { error } = await readReply(response);
    assertEquals(error.message, message);
    assertEquals(error.code, -31000 - status);
  }
  await using busy = start({ auth: () => refuseRequest(503) });
  assertEquals((await busy.fetch(toRequest("tools/list"))).headers.get("retry-after"), "1");
});

Deno.test("an error that an authentication throws is reported, and the client gets only the error's id", async () => {
  const failures = [
    () => raise(new Error("secret detail")),
    () => Promise.reject(new Error("secret detail")),
    () => ({ name: "secret detail" }),
    () => "secret detail",
    () => ({ id: "ada", scopes: "secret detail" }),
    () => ({ id: "ada", expiresAt: new Date() }),
    () => ({ id: "" }),
  ];
  for (const fail of failures) {
    const faults: unknown[] = [];
    await using server = start({ auth: fail as never, observer: { fault: ({ error }) => void faults.push(error) } });
    const response = await server.fetch(toRequest("tools/list"));
    const text = await response.text();
    assertEquals([response.status, faults.length], [500, 1]);
    assert(!text.includes("secret"), text);
  }
});

Deno.test("concurrent asynchronous authentications are limited per peer and in total, and each authentication has a timeout", async () => {
  const clock = fakeClock();
  const signals: AbortSignal[] = [];
  const faults: unknown[] = [];
  await using server = start({
    auth: (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    },
    limits: testLimits({ auth: { running: 5, runningPerPeer: 2, timeoutMs: 1000 } }),
    observer: { fault: ({ error }) => void faults.push(error) },
    clock,
  });
  const from = (hostname: string) => server.fetch(toRequest("tools/list"), { remoteAddr: { hostname } });
  from("127.0.0.1");
  await until(() => signals.length === 1, "the first authentication");
  const waiting = [from("127.0.0.1"), from("127.0.0.2"), from("127.0.0.2")];
  const full = await from("127.0.0.1");
  assertEquals([full.status, full.headers.get("retry-after")], [503, "1"]);
  waiting.push(from("127.0.0.3"));
  assertEquals((await from("127.0.0.4")).status, 503);
  // Requests beyond the limit are authenticated too, because a synchronous authentication needs no place.
  assertEquals(signals.length, 7);
  await clock.advance(1001);
  for (const response of await Promise.all(waiting)) assertEquals(response.status, 503);
  assertEquals([signals.every(({ aborted }) => aborted), faults.length], [true, 5]);
  const later = from("127.0.0.1");
  await Promise.resolve();
  assertEquals(signals.length, 8);
  await clock.advance(1001);
  assertEquals((await later).status, 503);
});

Deno.test("credentials that have expired, by the server's clock, are refused", async () => {
  const clock = fakeClock(1000);
  await using server = start({ auth: (_, { now }) => ({ id: `at ${now}`, expiresAt: 2000 }), clock });
  assertMatch(await (await server.fetch(toRequest("tools/call", { name: "whoami" }))).text(), /you are at 1000/);
  await clock.advance(1000);
  const late = await server.fetch(toRequest("tools/list"));
  assertEquals([late.status, late.headers.get("www-authenticate")], [401, 'Bearer error="invalid_token"']);
});

Deno.test("subscriptions and streams end when their credentials expire", async () => {
  const clock = fakeClock();
  await using server = start({ auth: (_, { now }) => ({ id: "ada", expiresAt: now + 5000 }), clock });
  const listen = await server.fetch(toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }));
  const session = { "mcp-session-id": await openSession(server) };
  const stream = await server.fetch(toLegacy("GET", undefined, session));
  assertEquals([listen.status, stream.status], [200, 200]);
  const texts = Promise.all([listen.text(), stream.text()]);
  let ended = false;
  texts.then(() => ended = true);
  await clock.advance(4999);
  assertEquals(ended, false);
  await clock.advance(2);
  assert(!(await texts)[0].includes("resultType"), "the stream ended with a result, which would be final");
  // The client can connect again with new credentials.
  assertEquals((await server.fetch(toLegacy("POST", { method: "ping" }, session))).status, 200);
});

Deno.test("the HTTP+SSE transport authenticates its stream and its messages", async () => {
  const clock = fakeClock();
  const ways: string[] = [];
  const own: Authentication = {
    ...auth,
    authenticate: async (request, info, server) => {
      ways.push(`${request.method} ${info.transport}`);
      const found = await auth.authenticate(request, info, server);
      return found && "id" in found ? { ...found, expiresAt: info.now + 9000 } : found;
    },
  };
  await using server = start({ auth: own, clock });
  const { open, post } = serveOld(server);
  assertEquals((await open()).response.status, 401);
  const { address, next } = await open("/sse", { headers: signed });
  assertEquals((await post(address, initialize)).status, 401);
  assertEquals((await post(address, initialize, { headers: signed })).status, 202);
  assertMatch(await next() ?? "", /"serverInfo"/);
  assertEquals(ways, ["GET http-sse", "GET http-sse", "POST http-sse", "POST http-sse"]);
  await clock.advance(9001);
  assertEquals(await next(), undefined);
  assertEquals((await post(address, initialize, { headers: signed })).status, 404);
});

Deno.test("a WebSocket upgrade is authenticated, and the WebSocket closes when the credentials expire", async () => {
  for (const isAsync of [false, true]) {
    const expiring = customAuth((request, info) => {
      const found = new URL(request.url).searchParams.get("key") === ADA && info.transport === "websocket"
        ? { id: "ada", expiresAt: info.now + 400 }
        : undefined;
      return isAsync ? turn().then(() => found) : found;
    }, { query: ["key"] });
    const clock = fakeClock();
    await using server = start({ auth: expiring, clock });
    await using port = serve(webSocket(server));
    const open = (query: string) => {
      const socket = new WebSocket(`ws://${port.host}/ws${query}`);
      const events: string[] = [];
      const { promise, resolve } = Promise.withResolvers<number>();
      socket.addEventListener("open", () => {
        events.push("open");
        socket.send(JSON.stringify(initialize));
      });
      socket.addEventListener("error", (event) => event.preventDefault());
      socket.addEventListener(
        "message",
        () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "whoami" } })),
        { once: true },
      );
      socket.addEventListener("message", ({ data }) => events.push(/you are \w+/.exec(data)?.[0] ?? "message"));
      socket.addEventListener("close", ({ code }) => resolve(code));
      return { events, closed: promise };
    };
    const refused = open("?key=wrong");
    await refused.closed;
    assertEquals(refused.events, []);
    const admitted = open(`?key=${ADA}`);
    await until(() => admitted.events.length === 3, "the response to the call");
    assertEquals(await advanceUntil(clock, 400, admitted.closed), 1008);
    assertEquals(admitted.events, ["open", "message", "you are ada"]);
  }
});

Deno.test("the routes of an authentication require no credentials, and pages of every origin can read them", async () => {
  const metadata = "/.well-known/oauth-protected-resource/mcp";
  let closed = 0;
  const routed: Authentication = {
    ...auth,
    routes: [
      {
        path: metadata,
        fetch: ({ method }) => new Response(method, { headers: { "access-control-allow-origin": "*" } }),
      },
      { path: "/broken", fetch: () => Promise.reject(new Error("secret detail")) },
    ],
    start: () => () => void closed++,
  };
  for (const cors of [undefined, { origins: ["https://app.example"] }]) {
    await using server = start({ auth: routed, cors });
    for (const fetch of [server.fetch, httpSse(server).fetch, webSocket(server).fetch]) {
      for (const method of ["GET", "OPTIONS"]) {
        const headers = { origin: "https://page.example", host: "mcp.example.com" };
        const response = await fetch(new Request(`http://mcp.example.com${metadata}?x#y`, { method, headers }));
        assertEquals([response.status, await response.text()], [200, method]);
        assertEquals(response.headers.get("access-control-allow-origin"), "*");
      }
      const broken = await fetch(new Request("http://localhost/broken"));
      assertEquals([broken.status, (await broken.text()).includes("secret")], [500, false]);
      assertEquals((await fetch(new Request(`http://localhost${metadata}/x`))).status, 404);
    }
  }
  assertEquals(closed, 2);
});

Deno.test("pages of other origins can read the challenge", async () => {
  await using server = start({ cors: { origins: ["https://app.example"] } });
  const response = await server.fetch(toRequest("tools/list", {}, { origin: "https://app.example" }));
  assertEquals([response.status, response.headers.get("www-authenticate")], [401, "Bearer"]);
  assertMatch(response.headers.get("access-control-expose-headers") ?? "", /www-authenticate/);
});

Deno.test("on a server with authentication, lists are marked as private for caches", async () => {
  await using server = start();
  const response = await server.fetch(toRequest("tools/list", {}, signed));
  assertEquals((await readReply(response)).result.cacheScope, "private");
});

Deno.test("an observer gets the decisions about callers, but no credentials", async () => {
  const heard: unknown[] = [];
  const observer = { auth: (event: unknown) => void heard.push(event) };
  const server = start({ observer });
  for (const headers of [signed, { authorization: "Bearer wrong" }, {}]) {
    await server.fetch(toRequest("ping", {}, headers));
  }
  await server.close();
  const refused = { state: "refused", transport: "http", status: 401 };
  assertEquals(heard, [
    { state: "accepted", transport: "http", principal: "apikey:ada" },
    { ...refused, reason: sentence() },
    { ...refused, reason: sentence() },
  ]);
});

Deno.test("over stdio, calls have the principal that was passed to serveStdio, in both eras, until the principal expires", async () => {
  const clock = fakeClock();
  for (const isLegacy of [false, true]) {
    await using server = start({ clock });
    const local = openStdio(server, { principal: { id: "local", expiresAt: clock.date() + 1000 } });
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    if (isLegacy) await local.write(initialize);
    const params = { name: "whoami", ...isLegacy ? {} : { _meta } };
    await local.write({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    await until(() => local.text.includes("you are local"), "the result");
    await clock.advance(1001);
    await local.serving;
  }
});

Deno.test("a handler can require a principal", async () => {
  await using server = createServer({
    name: "me",
    version: "1.0.0",
    handlers: [tool({ name: "own", run: (_, ctx) => requirePrincipal(ctx).id })],
  });
  const anonymous = await readReply(await server.fetch(toRequest("tools/call", { name: "own" })));
  assertEquals([anonymous.error.code, anonymous.error.message], [
    -31401,
    sentence(),
  ]);
  const known = await server.fetch(toRequest("tools/call", { name: "own" }), { principal: { id: "ada" } });
  assertMatch(await known.text(), /"ada"/);
});

Deno.test("a preflight allows the headers in which the schemes read credentials, and those in cors.headers", async () => {
  const origin = "https://app.example";
  const ask = async (auth: ServerOptions["auth"], headers?: readonly string[]) => {
    const server = createServer({ name: "a", version: "1.0.0", auth, cors: { origins: [origin], headers } });
    const response = await server.fetch(
      new Request("http://localhost/mcp", {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      }),
    );
    await server.close();
    return (response.headers.get("access-control-allow-headers") ?? "").toLowerCase().split(", ");
  };
  const own = customAuth(() => undefined, { form: { header: "X-Signature" }, headers: ["X-Date"], prefix: "own" });
  const key = apiKey({ keys: { ada: "a-key-of-ada-1234567890" }, header: "X-Api-Key" });
  const plain = await ask(undefined);
  assertEquals(plain.includes("mcp-session-id"), true);
  assertEquals(plain.some((name) => name.startsWith("x-") || name === "traceparent"), false);
  const cases: readonly (readonly [auth: ServerOptions["auth"], headers: readonly string[] | undefined, string[]])[] = [
    [key, undefined, ["x-api-key"]],
    [own, undefined, ["x-signature", "x-date"]],
    [[key, own], ["traceparent", "Baggage"], ["x-api-key", "x-signature", "x-date", "traceparent", "baggage"]],
    [() => undefined, ["traceparent"], ["traceparent"]],
  ];
  for (const [auth, headers, wanted] of cases) {
    const allowed = await ask(auth, headers);
    for (const name of wanted) assertEquals(allowed.includes(name), true, `${name} is not in ${allowed}`);
  }
  for (const odd of ["a b", "", "x:y"]) {
    assertThrows(
      () => createServer({ name: "a", version: "1.0.0", cors: { origins: [origin], headers: [odd] } }),
      TypeError,
      sentence("cors.headers"),
    );
  }
});
