// `forward` in the second argument of `fetch`: one server checks the requests, and another server serves them.
import { assertEquals } from "@std/assert";
import { createServer, mount, service, tool } from "../../mod.ts";
import type { ConnectionInfo, Principal, ServerOptions } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { connect } from "../../src/client/client.ts";
import { serve } from "../peers/runtime.ts";
import { raise } from "../support/behaviour.ts";
import { readAnswer, toRequest, toStatus } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";

const KEYS = { ada: "ada-2f6c1e0b9d4a7853", bob: "bob-8d3f5a7c6e1b9042" };
const auth = () => apiKey({ keys: KEYS });
const ofAda = { authorization: `Bearer ${KEYS.ada}` };

interface Caller {
  readonly principal?: Principal;
}

const whoami = tool({
  name: "whoami",
  run: async (_input, ctx) => {
    await ctx.progress(1);
    return `${ctx.principal?.id}`;
  },
});
const base = { name: "forwarded", version: "1.0.0", handlers: [whoami], observer: { fault() {} } };

/** Creates a server that records the requests that it would forward. */
function createFront(options: Partial<ServerOptions> = {}) {
  const seen: (string | undefined)[] = [];
  const front = createServer({ ...base, auth: auth(), ...options });
  const forward = (request: Request, { principal }: Caller) => {
    seen.push(principal?.id);
    return new Response(request.method, { status: 418 });
  };
  return { front, seen, send: (request: Request) => front.fetch(request, { forward }) };
}

for (const revision of ["2026-07-28", "2025-11-25"] as const) {
  Deno.test(`a client in ${revision} uses a server of its user behind a server that forwards`, async () => {
    const makes: string[] = [];
    const db = service("db", () => makes.push("made"));
    const use = tool({ name: "use", services: { db }, run: () => "used" });
    const create = () => createServer({ ...base, auth: auth(), handlers: [whoami, use] });
    const servers = new Map<string, ReturnType<typeof create>>();
    const front = create();
    const forward = (request: Request, { principal }: Caller, info?: ConnectionInfo) => {
      const name = `${principal?.id}`;
      const server = servers.get(name) ?? create();
      servers.set(name, server);
      return server.fetch(request, info);
    };
    await using port = serve({
      fetch: (request, info) => front.fetch(request, { info, forward: (...given) => forward(...given, info) }),
    });
    for (const [user, key] of Object.entries(KEYS)) {
      const headers = { authorization: `Bearer ${key}` };
      await using client = await connect(`http://${port.host}/mcp`, { headers, revisions: [revision] });
      const { content: [first] } = await client.callTool("whoami");
      assertEquals(first, { type: "text", text: `apikey:${user}` });
      await client.callTool("use");
    }
    assertEquals([...servers.keys()], ["apikey:ada", "apikey:bob"]);
    // The front makes no services, because it runs no handlers.
    assertEquals(makes, ["made", "made"]);
    await Promise.all([front, ...servers.values()].map((server) => server.close()));
  });
}

Deno.test("a server forwards only requests that pass its checks, and responds to all other requests", async () => {
  const { front, seen, send } = createFront({
    hosts: ["mcp.example.com"],
    cors: { origins: ["https://app.example.com"] },
  });
  const url = "http://localhost/mcp";
  const post = (headers: Record<string, string>, at = url) => new Request(at, toRequest("tools/list", {}, headers));
  const preflight = { origin: "https://app.example.com", "access-control-request-method": "POST" };
  const refused: readonly (readonly [number, Request])[] = [
    [401, post({})],
    [401, post({ authorization: "Bearer wrong-wrong-wrong-wrong" })],
    [403, post({ ...ofAda, host: "evil.example.com" }, "http://evil.example.com/mcp")],
    [403, post({ ...ofAda, origin: "https://evil.example.com" })],
    [404, post(ofAda, "http://localhost/other")],
    [405, new Request(url, { method: "PUT", headers: ofAda })],
    [405, new Request(url, { method: "OPTIONS" })],
    [406, new Request(url, { headers: ofAda })],
    [415, post({ ...ofAda, "content-type": "text/plain" })],
    [204, new Request(url, { method: "OPTIONS", headers: preflight })],
  ];
  for (const [status, request] of refused) {
    assertEquals(await toStatus(send(request)), status, `${request.method} ${request.url}`);
  }
  assertEquals(seen, []);
  const stream = { ...ofAda, accept: "text/event-stream" };
  const requests = [
    post(ofAda),
    new Request(url, { headers: stream }),
    new Request(url, { method: "DELETE", headers: ofAda }),
  ];
  for (const request of requests) assertEquals(await (await send(request)).text(), request.method);
  assertEquals(seen, ["apikey:ada", "apikey:ada", "apikey:ada"]);
  await front.close();
  assertEquals((await send(post(ofAda))).status, 503);
});

Deno.test("a server without auth forwards requests without a principal", async () => {
  const { front, seen, send } = createFront({ auth: undefined });
  assertEquals((await send(toRequest("tools/list", {}, ofAda))).status, 418);
  assertEquals(seen, [undefined]);
  await front.close();
});

Deno.test("a mount and a server with path parameters forward requests too", async () => {
  const path = "/tenants/:tenant/mcp";
  const { seen, front } = createFront();
  const tenants = createServer({
    ...base,
    name: "tenants",
    path,
    auth: auth(),
    handlers: ({ tenant }) => tenant === "none" ? undefined : [whoami],
  });
  await using server = mount([front, tenants]);
  const forward = (request: Request, { principal }: Caller) => {
    seen.push(principal?.id);
    return new Response(new URL(request.url).pathname);
  };
  const send = async (pathname: string, headers = ofAda) => {
    const request = new Request(`http://localhost${pathname}`, toRequest("tools/list", {}, headers));
    const response = await server.fetch(request, { forward });
    return [response.status, await response.text()];
  };
  for (const pathname of ["/mcp", "/tenants/acme/mcp"]) assertEquals(await send(pathname), [200, pathname]);
  assertEquals((await send("/tenants/none/mcp"))[0], 404);
  assertEquals((await send("/tenants/acme/mcp", { authorization: "Bearer wrong-wrong-wrong-wrong" }))[0], 401);
  assertEquals(seen, ["apikey:ada", "apikey:ada"]);
});

Deno.test("if forward() fails or returns no response, the client gets HTTP 500 without details", async () => {
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  await using server = createServer({ ...base, observer });
  const fails: readonly (() => unknown)[] = [
    () => raise(new Error("secret detail")),
    () => Promise.reject(new Error("secret detail")),
    () => undefined,
    () => "text",
  ];
  for (const fail of fails) {
    const answer = await readAnswer(await server.fetch(toRequest("tools/list"), { forward: fail as () => Response }));
    assertEquals([answer.status, answer.error?.message], [500, sentence("Internal error")]);
  }
  assertEquals(faults.length, 4);
});

Deno.test("a page of another origin gets the response of forward(), whose headers may be immutable", async () => {
  await using front = createServer({ ...base, cors: { origins: ["https://app.example.com"] } });
  const responses: readonly (() => Response | Promise<Response>)[] = [
    () => fetch("data:application/json,{}"),
    () => Response.redirect("http://localhost/other"),
    () => new Response(null, { status: 202 }),
    () => new Response("{}", { headers: { "x-other": "kept" } }),
  ];
  const seen = [];
  for (const forward of responses) {
    const request = toRequest("tools/list", {}, { origin: "https://app.example.com" });
    const { status, headers } = await front.fetch(request, { forward });
    seen.push([status, headers.get("access-control-allow-origin"), headers.get("x-other")]);
  }
  const origin = "https://app.example.com";
  assertEquals(seen, [[200, origin, null], [302, origin, null], [202, origin, null], [200, origin, "kept"]]);
});

Deno.test("forward() gets the checked host in the URL, and the body, also with the server object of Bun", async () => {
  await using front = createServer({ ...base, hosts: ["mcp.example.com"] });
  const seen: unknown[] = [];
  const forward = async (request: Request) => {
    const { method } = await request.json();
    seen.push([request.url, method]);
    return new Response();
  };
  const bun = { requestIP: () => ({ address: "203.0.113.7" }) };
  for (const info of [undefined, bun]) {
    // A framework can build the URL from the address on which it listens.
    const request = new Request("http://10.0.0.1:8080/mcp", toRequest("tools/list", {}, { host: "mcp.example.com" }));
    assertEquals((await front.fetch(request, { info, forward })).status, 200);
  }
  assertEquals(seen, Array(2).fill(["http://mcp.example.com/mcp", "tools/list"]));
});
