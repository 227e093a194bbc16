// Custom authentication on paths with parameters, and the limits on work before the caller is authenticated.
import { assertEquals, assertMatch, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, createServer, McpError, mount, type PathServerOptions, tool } from "../../mod.ts";
import { customAuth, refuseRequest } from "../../src/auth/auth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { z } from "zod";
import { raise, until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const pathSchema = z.object({ tenant: z.string().regex(/^[a-z]+$/), floor: z.coerce.number().int() });
const path = "/tenants/:tenant/:floor/mcp";
type Options = Partial<PathServerOptions<typeof pathSchema>>;

const whoami = tool({ name: "whoami", run: (_, ctx) => `${ctx.principal?.id}` });

function start(options: Options = {}) {
  const observer = { fault() {} };
  return createServer({ name: "t", version: "1.0.0", path, pathSchema, handlers: [whoami], observer, ...options });
}

function at(pathname: string, headers: Record<string, string> = {}, name = "whoami"): Request {
  return new Request(`http://localhost${pathname}`, toRequest("tools/call", { name }, headers));
}

/** A caller's key consists of the tenant's name and the next floor. */
const own: Authentication = {
  authenticate({ headers }, { pathParams }) {
    const { tenant, floor } = pathParams(pathSchema);
    return headers.get("x-key") === `${tenant} ${floor + 1}` ? { id: `${tenant}:ada`, scopes: [] } : undefined;
  },
  credentials: { headers: ["x-key"] },
  challenge: ({ pathParams }) => ({ scheme: "Key", params: { realm: pathParams(pathSchema).tenant } }),
  routes: [
    { path: "/facts/:floor/:tenant", fetch: (_request, { pathParams }) => Response.json(pathParams(pathSchema)) },
    { path: "/facts", fetch: () => new Response("all") },
  ],
};

Deno.test("an authentication gets the converted path parameters, for its callers, challenges and routes", async () => {
  const read = tool({ name: "read", scopes: ["read"], run: () => "" });
  const server = start({ auth: own, handlers: [whoami, read] });
  await using app = mount([server]);
  for (const { fetch } of [server, app]) {
    const known = await fetch(at("/tenants/acme/1/mcp", { "x-key": "acme 2" }));
    assertMatch(await known.text(), /acme:ada/);
    const refused = await fetch(at("/tenants/bee/1/mcp", { "x-key": "acme 2" }));
    assertEquals([refused.status, refused.headers.get("www-authenticate")], [401, 'Key realm="bee"']);
    const few = await fetch(at("/tenants/acme/1/mcp", { "x-key": "acme 2" }, "read"));
    const wanted = 'Key error="insufficient_scope", scope="read", realm="acme"';
    assertEquals([few.status, few.headers.get("www-authenticate")], [403, wanted]);
    const facts = await fetch(new Request("http://localhost/facts/7/acme"));
    assertEquals([facts.status, await facts.json()], [200, { tenant: "acme", floor: 7 }]);
    assertEquals(await (await fetch(new Request("http://localhost/facts"))).text(), "all");
    for (const wrong of ["/facts/x/acme", "/facts/07/acme", "/facts/1/ACME", "/facts/1/a%2fb", "/facts/1"]) {
      assertEquals((await fetch(new Request(`http://localhost${wrong}`))).status, 404, wrong);
    }
  }
});

Deno.test("WebSockets and streams are authenticated with the parameters of their path", async () => {
  const seen: string[] = [];
  const auth = customAuth((_request, { pathParams, transport }) => {
    seen.push(`${transport} ${JSON.stringify(pathParams(pathSchema))}`);
    return refuseRequest(403, { reason: "nobody may" });
  });
  await using server = start({ auth });
  const sockets = webSocket(server, { path: "/ws/:tenant/:floor" });
  const streams = httpSse(server, { path: "/sse/:tenant/:floor", messages: "/messages/:tenant/:floor" });
  const upgrade = { headers: { upgrade: "websocket" } };
  const requests: readonly (readonly [typeof server.fetch, Request, string])[] = [
    [sockets.fetch, new Request("http://localhost/ws/acme/1", upgrade), "websocket"],
    [streams.fetch, new Request("http://localhost/sse/acme/1"), "http-sse"],
    [streams.fetch, new Request("http://localhost/messages/acme/1", { method: "POST" }), "http-sse"],
  ];
  for (const [fetch, request, transport] of requests) {
    assertEquals((await fetch(request)).status, 403);
    assertEquals(seen.splice(0), [`${transport} {"tenant":"acme","floor":1}`]);
    const wrong = new Request(request.url.replace("acme", "ACME"), request);
    assertEquals([(await fetch(wrong)).status, seen.length], [404, 0]);
  }
});

Deno.test("a `routes` function gets the path of the server, with or without parameters", async () => {
  const auth: Authentication = {
    authenticate: () => undefined,
    routes: (path) => [{ path: `/about${path}`, fetch: () => new Response(path) }],
    challenge: () => ({ scheme: "Own" }),
  };
  const plain = createServer({ name: "t", version: "1.0.0", auth });
  assertEquals(await (await plain.fetch(new Request("http://localhost/about/mcp"))).text(), "/mcp");
  assertEquals((await plain.fetch(toRequest("tools/list"))).headers.get("www-authenticate"), "Own");
  const tenants = start({ auth });
  assertEquals(await (await tenants.fetch(new Request("http://localhost/about/tenants/acme/1/mcp"))).text(), path);
  await using app = mount([plain, tenants]);
  for (const [about, text] of [["/mcp", "/mcp"], ["/tenants/bee/1/mcp", path]]) {
    assertEquals(await (await app.fetch(new Request(`http://localhost/about${about}`))).text(), text);
  }
});

Deno.test("a fixed route takes precedence over a path with parameters that also matches", async () => {
  const auth: Authentication = {
    authenticate: () => undefined,
    routes: [{ path: "/.well-known/facts/mcp", fetch: () => new Response("facts") }],
  };
  await using server = createServer({ name: "t", version: "1.0.0", path: "/:a/:b/mcp", auth });
  const found = await server.fetch(new Request("http://localhost/.well-known/facts/mcp"));
  assertEquals([found.status, await found.text()], [200, "facts"]);
  assertEquals((await server.fetch(at("/well-known/facts/mcp"))).status, 401);
});

Deno.test("the WebSocket path must contain the server's path parameters", async () => {
  await using server = start();
  for (const path of [undefined, "/ws", "/ws/:tenant", "/:tenant/:floor/:more/ws", "/:tenant/:room/ws"]) {
    assertThrows(() => webSocket(server, { path }), TypeError, sentence("tenant, floor"));
  }
});

Deno.test("an authentication with a mistake refuses every request and states why", async () => {
  const fetch = () => new Response("");
  const authenticate = () => undefined;
  const wrong: readonly (readonly [Authentication, string])[] = [
    [{ authenticate, routes: [{ path: "/x/:tenant", fetch }] }, sentence('"/x/:tenant"', "floor, tenant")],
    [
      { authenticate, routes: [{ path: "/:tenant/:floor/:more", fetch }] },
      sentence('"/:tenant/:floor/:more"', "floor, tenant"),
    ],
    [{ authenticate, routes: () => "/x" as never }, sentence("routes")], // The mistake is on purpose.
  ];
  for (const [auth, message] of wrong) {
    await using server = start({ auth });
    await assertRejects(() => server.ready(), TypeError, message);
    assertEquals((await server.fetch(at("/tenants/acme/1/mcp"))).status, 500);
  }
  await using plain = createServer({
    name: "t",
    version: "1",
    auth: { authenticate, routes: [{ path: "/:x", fetch }] },
  });
  await assertRejects(() => plain.ready(), TypeError, sentence('"/:x"'));
});

Deno.test("an invalid challenge, and missing path parameters, are reported as faults", async () => {
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  const principal = { id: "ada", scopes: [] };
  const read = tool({ name: "read", scopes: ["read"], run: () => "" });
  const challenges: readonly Authentication["challenge"][] = [
    () => "Bearer" as never, // The mistake is on purpose.
    () => ({ scheme: "a\r\nb" }),
    () => raise(new Error("challenge is broken")),
  ];
  for (const challenge of challenges) {
    const auth: Authentication = {
      authenticate: ({ headers }) => headers.has("x-key") ? principal : undefined,
      challenge,
    };
    await using server = start({ auth, observer, handlers: [read] });
    assertEquals((await server.fetch(at("/tenants/acme/1/mcp"))).status, 500);
    assertEquals(String(faults.splice(0)), sentence("challenge"));
    // The challenge names the scopes in both cases.
    const few = await server.fetch(at("/tenants/acme/1/mcp", { "x-key": "" }, "read"));
    const wanted = 'Bearer error="insufficient_scope", scope="read"';
    assertEquals([few.status, few.headers.get("www-authenticate")], [403, wanted]);
    assertEquals(String(faults.splice(0)), sentence("challenge"));
  }
  const auth = customAuth((_request, { pathParams }) => ({ id: String(pathParams().tenant) }));
  await using plain = createServer({ name: "t", version: "1", auth, observer });
  assertEquals((await plain.fetch(toRequest("tools/list"))).status, 500);
  assertEquals(String(faults), sentence("TypeError"));
});

Deno.test("a principal that is passed to fetch needs no authentication on a tenant's path either", async () => {
  await using server = start({ auth: { ...own, authenticate: () => refuseRequest(403) } });
  const response = await server.fetch(at("/tenants/acme/1/mcp"), { principal: { id: "front" } });
  assertMatch(await response.text(), /front/);
});

Deno.test("concurrent asynchronous checks of parameters are limited per peer and in total, and each check has a timeout", async () => {
  const clock = fakeClock();
  const faults: unknown[] = [];
  let checks = 0;
  const { "~standard": standard } = pathSchema;
  const validate = () => (checks++, new Promise<never>(() => {}));
  const slow = { "~standard": { ...standard, validate } };
  let authentications = 0;
  const auth: Authentication = { ...own, authenticate: () => (authentications++, { id: "ada" }) };
  await using server = createServer({
    name: "t",
    version: "1.0.0",
    path,
    pathSchema: slow,
    auth,
    limits: testLimits({ auth: { running: 5, runningPerPeer: 2, timeoutMs: 1000 } }),
    observer: { fault: ({ error }) => void faults.push(error) },
    clock,
  });
  const sockets = webSocket(server, { path: "/ws/:tenant/:floor" });
  const streams = httpSse(server, { path: "/sse/:tenant/:floor", messages: "/messages/:tenant/:floor" });
  const from = (hostname: string) => ({ remoteAddr: { hostname } });
  const waiting = [
    server.fetch(at("/tenants/acme/1/mcp"), from("127.0.0.1")),
    server.fetch(new Request("http://localhost/facts/1/acme"), from("127.0.0.1")),
    sockets.fetch(
      new Request("http://localhost/ws/acme/1", { headers: { upgrade: "websocket" } }),
      from("127.0.0.2"),
    ),
    streams.fetch(new Request("http://localhost/sse/acme/1"), from("127.0.0.2")),
  ];
  await until(() => checks === 4, "four checks");
  for (const request of [at("/tenants/bee/1/mcp"), new Request("http://localhost/facts/1/bee")]) {
    const full = await server.fetch(request, from("127.0.0.1"));
    assertEquals([full.status, full.headers.get("retry-after")], [503, "1"]);
    assertStringIncludes(await full.text(), `"message":"${sentence("auth.running", "auth.runningPerPeer")}"`);
  }
  waiting.push(server.fetch(at("/tenants/cat/1/mcp"), from("127.0.0.3")));
  await until(() => checks === 5, "five checks");
  assertEquals((await server.fetch(at("/tenants/dog/1/mcp"), from("127.0.0.4"))).status, 503);
  assertEquals((await streams.fetch(new Request("http://localhost/sse/acme/1"), from("127.0.0.5"))).status, 503);
  assertEquals(checks, 5);
  await clock.advance(1001);
  for (const response of await Promise.all(waiting)) assertEquals(response.status, 503);
  assertEquals([authentications, faults.length], [0, 5]);
  assertEquals(String(faults[0]), sentence(1000, "auth.timeoutMs"));
  const later = server.fetch(at("/tenants/acme/1/mcp"), from("127.0.0.1"));
  await until(() => checks === 6, "a further check has started after the other checks");
  await clock.advance(1001);
  assertEquals((await later).status, 503);
});

Deno.test("concurrent checks with a synchronous schema are not limited in number", async () => {
  await using server = start({ limits: testLimits({ auth: { running: 1, runningPerPeer: 1 } }) });
  const info = { remoteAddr: { hostname: "127.0.0.1" } };
  const all = Array.from({ length: 50 }, (_, i) => server.fetch(at(`/tenants/acme/${i}/mcp`), info));
  for (const { status } of await Promise.all(all)) assertEquals(status, 200);
});

Deno.test("an error in the schema or in the handlers function is not reported as a busy server", async () => {
  for (const error of [new Error("broken"), McpError.internalError("broken")]) {
    const broken = pathSchema.refine((): boolean => raise(error));
    const server = start({ pathSchema: broken as never }); // The cast makes one type fit both schemas.
    const response = await server.fetch(at("/tenants/acme/1/mcp"));
    assertEquals([response.status, (await response.text()).includes("broken")], [500, false]);
    await server.close();
    await using second = start({ handlers: () => raise(error) });
    assertEquals((await second.fetch(at("/tenants/acme/1/mcp"))).status, 500);
  }
});
