// Health checks, and other routes of servers.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, mount, type Server, type ServerOptions, service, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { health, type HealthDetails } from "../../src/observe/observe.ts";
import { customStore } from "../../src/stores/stores.ts";
import { proxy } from "../../src/proxy/proxy.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { gate, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { testServer } from "../support/test_server.ts";

const KEY = "k".repeat(32);
const auth = apiKey({ keys: { probe: KEY } });
const about = { name: "checked", version: "1.0.0" };
const SIGNED = { authorization: `Bearer ${KEY}` };

function make(options: Partial<ServerOptions> = {}): Server {
  return createServer({ ...about, routes: [health()], ...options });
}

async function ask(
  server: Pick<Server, "fetch">,
  path: string,
  { method = "GET", ...headers }: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: string; readonly response: Response }> {
  const request = new Request(`http://127.0.0.1${path}`, { method, headers: { host: "127.0.0.1", ...headers } });
  const response = await server.fetch(request);
  return { status: response.status, body: await response.text(), response };
}

async function readDetails(server: Pick<Server, "fetch">): Promise<readonly HealthDetails[]> {
  const { body } = await ask(server, "/ready", SIGNED);
  return JSON.parse(body).servers;
}

/** Creates a store whose `get` can be replaced, and counts the calls of `get`. */
function storeOf(get: () => undefined | Promise<undefined>) {
  let count = 0;
  const unused = (): never => {
    throw new Error("not used");
  };
  const engine = {
    get() {
      count++;
      return get();
    },
    ...{ set: unused, delete: unused, list: unused, append: unused, read: unused, trim: unused },
  };
  const store = customStore(() => engine, { timeoutMs: 200 });
  return { store, count: () => count };
}

Deno.test("an unauthenticated request gets the status and an empty object", async () => {
  await using server = make({ auth });
  for (const path of ["/health", "/ready"]) {
    const given: readonly Readonly<Record<string, string>>[] = [
      {},
      { authorization: "Bearer wrong" },
      { origin: "https://evil.example" },
    ];
    for (const headers of given) {
      const { status, body, response } = await ask(server, path, headers);
      assertEquals([path, status, body], [path, 200, "{}"]);
      assertEquals(response.headers.get("cache-control"), "no-store");
      assertEquals(response.headers.get("access-control-allow-origin"), null);
    }
    const head = await ask(server, path, { method: "HEAD" });
    assertEquals([head.status, head.body], [200, ""]);
    for (const method of ["POST", "DELETE", "OPTIONS"]) {
      const { status, response } = await ask(server, path, { method });
      assertEquals([status, response.headers.get("allow")], [405, "GET, HEAD"]);
    }
  }
});

Deno.test("a probe can use any Host header, because an orchestrator knows only the address", async () => {
  await using server = make({ auth, hosts: ["mcp.example.com"] });
  const host = "10.1.2.3:8000";
  const ask = async (headers: Readonly<Record<string, string>>) => {
    const response = await server.fetch(new Request(`http://${host}/ready`, { headers: { host, ...headers } }));
    return [response.status, await response.text()];
  };
  assertEquals(await ask({}), [200, "{}"]);
  // Only callers that could call the server get the details.
  assertEquals(await ask(SIGNED), [200, "{}"]);
});

Deno.test("a request whose credentials `auth` accepts gets the details, and a request without credentials is not authenticated", async () => {
  const states: string[] = [];
  await using server = make({ auth, observer: { auth: ({ state }) => void states.push(state) } });
  await ask(server, "/ready");
  await ask(server, "/health", SIGNED);
  assertEquals(states, []);
  const [details] = await readDetails(server);
  assertEquals(details, {
    name: "checked",
    ready: true,
    services: "ok",
    store: "none",
    upstreams: {},
    stats: server.stats(),
  });
  await ask(server, "/ready", { authorization: "Bearer wrong" });
  assertEquals(states, ["accepted", "refused"]);
  const head = await ask(server, "/ready", { ...SIGNED, method: "HEAD" });
  assertEquals(head.body, "");
});

Deno.test("the details name the servers behind proxies, and everybody may get them", async () => {
  await using other = createServer({ ...about, handlers: [tool({ name: "hi", run: () => "Hi!" })] });
  const up = proxy("http://localhost/mcp", { name: "up", prefix: "up_", fetch: (request) => other.fetch(request) });
  const fetch = () => Promise.reject(new TypeError("down"));
  const down = proxy("http://localhost/mcp", { name: "down", prefix: "down_", fetch });
  const routes = health({ details: "all" });
  await using server = make({ routes, handlers: [up, down], observer: { fault() {} } });
  const read = async (headers = {}) => JSON.parse((await ask(server, "/ready", headers)).body).servers?.[0];
  assertEquals((await read()).upstreams, { up: "none", down: "none" });
  await using client = await connectTest(server);
  assertEquals((await client.listTools()).map(({ name }) => name), ["up_hi"]);
  const { ready, upstreams } = await read();
  assertEquals([ready, upstreams], [true, { up: "ok", down: "failed" }]);
  assertEquals(await read({ origin: "https://evil.example" }), undefined);
});

Deno.test("an outage of a server behind a proxy is reported once, whatever is listed", async () => {
  const faults: unknown[] = [];
  const down = proxy("http://localhost/mcp", { prefix: "down_", fetch: () => Promise.reject(new TypeError("down")) });
  const own = tool({ name: "own", run: () => "" });
  await using server = make({ handlers: [own, down], observer: { fault: (fault) => void faults.push(fault) } });
  await using client = await connectTest(server);
  assertEquals((await client.listTools()).length, 1);
  for (const list of ["prompts", "resources", "resources/templates"]) {
    await client.request(`${list}/list`, {}).catch(() => {});
  }
  assertEquals(faults.length, 1);
});

Deno.test("the authentication of a probe sees the checked host in the URL", async () => {
  const hosts: string[] = [];
  const authenticate = ({ url }: Request) => (hosts.push(new URL(url).host), { id: "probe" });
  await using server = make({ auth: { authenticate }, hosts: ["mcp.example.com"] });
  for (const method of ["GET", "HEAD"]) {
    for (const [host, known] of [["mcp.example.com", true], ["evil.example", false]] as const) {
      const headers = { host, ...SIGNED };
      const response = await server.fetch(new Request("http://localhost:41020/ready", { method, headers }));
      await response.body?.cancel();
      assertEquals([response.status, hosts.splice(0)], [200, known ? [host] : []]);
    }
  }
});

Deno.test("a server without auth shows no details", async () => {
  await using server = make();
  assertEquals((await ask(server, "/ready", SIGNED)).body, "{}");
});

Deno.test("a request with credentials in a header that `auth` declares gets the details", async () => {
  const authenticate = (request: Request) => request.headers.get("x-key") === KEY ? { id: "a", scopes: [] } : undefined;
  await using server = make({ auth: { authenticate, credentials: { headers: ["X-Key"] } } });
  assertEquals((await ask(server, "/ready")).body, "{}");
  assertStringIncludes((await ask(server, "/ready", { "x-key": KEY })).body, "checked");
  assertEquals((await ask(server, "/ready", { "x-key": "wrong" })).body, "{}");
});

Deno.test("if an authentication throws, no details are shown and the status is unchanged", async () => {
  const faults: unknown[] = [];
  const authenticate = throwing(new Error("no database"));
  await using server = make({ auth: authenticate, observer: { fault: ({ error }) => void faults.push(error) } });
  const { status, body } = await ask(server, "/ready", SIGNED);
  assertEquals([status, body, faults.length], [200, "{}", 1]);
});

Deno.test("a service that fails makes the server not ready until the service is created successfully", async () => {
  const clock = fakeClock();
  let isBroken = true;
  const db = service("db", () => {
    if (isBroken) throw new Error("password is hunter2");
    return {};
  });
  const read = tool({ name: "read", services: { db }, run: () => "" });
  await using server = make({ auth, handlers: [read], clock, observer: { fault() {} } });
  const failed = await ask(server, "/ready", SIGNED);
  assertEquals([failed.status, JSON.parse(failed.body).servers[0].services], [503, "failed"]);
  assert(!failed.body.includes("hunter2"));
  assertEquals((await ask(server, "/health")).status, 200);
  isBroken = false;
  assertEquals((await ask(server, "/ready")).status, 503, "remembered");
  await clock.advance(1000);
  assertEquals((await ask(server, "/ready")).status, 200);
});

Deno.test("a service that takes too long makes the server not ready, and all probes share one wait for the service", async () => {
  const clock = fakeClock();
  const { pass, open } = gate();
  let made = 0;
  const slow = service("slow", async () => {
    made++;
    await pass;
    return {};
  });
  const read = tool({ name: "read", services: { slow }, run: () => "" });
  await using server = make({ auth, handlers: [read], clock, routes: [health({ timeoutMs: 50 })] });
  const probes = Array.from({ length: 20 }, () => ask(server, "/ready", SIGNED));
  await until(() => made > 0, "the service is being created");
  await clock.advance(50);
  for (const { status, body } of await Promise.all(probes)) {
    assertEquals([status, JSON.parse(body).servers[0].services], [503, "pending"]);
  }
  assertEquals(made, 1);
  open();
  await clock.advance(1000);
  assertEquals((await ask(server, "/ready")).status, 200);
});

Deno.test("the store is read at most once per second, however many probes arrive", async () => {
  const clock = fakeClock();
  let isLost = false;
  const { store, count } = storeOf(() => {
    if (isLost) throw new RangeError("lost");
    return undefined;
  });
  const observer = { store() {}, fault() {} };
  await using server = make({ auth, store, secret: "s".repeat(32), clock, observer });
  await server.ready();
  assertEquals(count(), 1, "the server has connected to the store");
  for (let i = 0; i < 50; i++) assertEquals((await ask(server, "/ready")).status, 200);
  assertEquals(count(), 2);
  isLost = true;
  await clock.advance(1000);
  const failed = await Promise.all(Array.from({ length: 50 }, () => ask(server, "/ready", SIGNED)));
  assertEquals(new Set(failed.map(({ status }) => status)), new Set([503]));
  assertEquals(count(), 3);
  assertEquals(JSON.parse(failed[0].body).servers[0].store, "failed");
  isLost = false;
  await clock.advance(1000);
  assertEquals((await ask(server, "/ready")).status, 200);
});

Deno.test("an optional store appears in the details, but does not change the status", async () => {
  const { store } = storeOf(throwing(new RangeError("lost")));
  const observer = { store() {}, fault() {} };
  const routes = [health({ store: "optional" })];
  await using server = make({ auth, store, secret: "s".repeat(32), routes, observer });
  const { status, body } = await ask(server, "/ready", SIGNED);
  assertEquals([status, JSON.parse(body).servers[0].store], [200, "failed"]);
});

Deno.test("a server that is closing is alive but not ready, also for probes that are waiting", async () => {
  const never = service("never", () => new Promise<object>(() => {}));
  const read = tool({ name: "read", services: { never }, run: () => "" });
  const server = make({ handlers: [read], limits: { calls: { closeMs: 10 } } });
  const waiting = ask(server, "/ready");
  const closed = server.close();
  assertEquals((await ask(server, "/ready")).status, 503);
  assertEquals((await ask(server, "/health")).status, 200);
  await closed;
  assertEquals((await waiting).status, 503);
  assertEquals([(await ask(server, "/ready")).status, (await ask(server, "/health")).status], [503, 200]);
});

Deno.test("a mount is ready if all its servers are ready, and each server shows its details to its own callers", async () => {
  const other = apiKey({ keys: { probe: "o".repeat(32) } });
  const one = testServer({ name: "one", path: "/one", auth });
  const two = testServer({ name: "two", path: "/two", auth: other });
  await using both = mount([one, two], { routes: [health({ alivePath: "/livez", readyPath: "/readyz" })] });
  assertEquals((await ask(both, "/readyz")).status, 200);
  assertEquals((await ask(both, "/livez")).status, 200);
  const { body } = await ask(both, "/readyz", SIGNED);
  assertEquals(JSON.parse(body).servers.map(({ name }: HealthDetails) => name), ["one"]);
  await two.close();
  assertEquals((await ask(both, "/readyz")).status, 503);
});

Deno.test("a server in a mount keeps its own routes", async () => {
  await using both = mount([make({ path: "/one" }), createServer({ ...about, name: "two", path: "/two" })]);
  assertEquals((await ask(both, "/ready")).status, 200);
});

Deno.test("a server whose path has parameters has health checks too", async () => {
  await using server = make({ path: "/tenants/:tenant/mcp", auth });
  assertEquals((await ask(server, "/ready")).status, 200);
  const [details] = await readDetails(server);
  assertEquals(details.ready, true);
});

Deno.test("a route can be any function, and the responses to its errors contain no details", async () => {
  const faults: unknown[] = [];
  const broken = throwing(new Error("secret"));
  // Without types, as from JavaScript, where a function may return any value.
  // deno-lint-ignore no-explicit-any
  const nothing = (() => undefined) as any;
  await using server = make({
    routes: [
      { path: "/version", fetch: (_request, { server }) => Response.json(server.stats().isClosing) },
      [{ path: "/broken", fetch: broken }, { path: "/nothing", fetch: nothing }],
    ],
    observer: { fault: ({ error }) => void faults.push(error) },
  });
  assertEquals((await ask(server, "/version?a=b")).body, "false");
  assertEquals([(await ask(server, "/broken")).status, (await ask(server, "/broken")).body], [500, ""]);
  assertEquals((await ask(server, "/nothing")).status, 500);
  assertEquals(faults.length, 3);
  assertEquals((await ask(server, "/versions")).status, 404);
});

Deno.test("creating a server throws for routes that cannot be served", async () => {
  for (
    const [routes, name] of [
      [[health(), health()], "/health"],
      [[{ path: "/mcp", fetch: () => new Response() }], "/mcp"],
      [[{ path: "version", fetch: () => new Response() }], "0"],
      [[{ path: "/a/:b", fetch: () => new Response() }], "0"],
      [[{ path: "/a" }], "0"],
    ] as const
  ) {
    // Without types, as from JavaScript.
    // deno-lint-ignore no-explicit-any
    await using server = make({ routes: routes as any, observer: { fault() {} } });
    await assertRejects(() => server.ready(), TypeError, sentence(name));
    assertEquals((await ask(server, "/mcp")).status, 500);
  }
});

Deno.test("invalid options for health checks throw", () => {
  assertThrows(() => health({ readyPath: "ready" }), TypeError, sentence("readyPath", '"ready"'));
  assertThrows(() => health({ timeoutMs: 0 }), TypeError, sentence("timeoutMs", 60000));
});
