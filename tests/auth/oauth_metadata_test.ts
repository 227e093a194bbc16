// The protected resource metadata, and the challenges that contain the URL of the metadata.
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Server } from "../../mod.ts";
import { oauth, type OAuthOptions } from "../../src/auth/oauth/oauth.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { canUpgrade, openPort } from "../peers/runtime.ts";
import { RESOURCE, TestIssuer } from "../support/issuer.ts";
import { callWith, METADATA, protect, toInvalid } from "../support/protected.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const issuers = ["https://login.example.com", "https://login.example.com/tenants/b"];

function start(options: Partial<OAuthOptions> = {}): Server {
  const auth = oauth({ resource: RESOURCE, issuers, scopes: ["notes:read", "notes:list"], ...options });
  return openServer({ auth });
}

Deno.test("MUST serve metadata with the issuers at the well-known URI of the path", async () => {
  await using server = start({ metadata: { resource_name: "Notes", resource: "https://evil.example.com" } });
  for (const { fetch } of [server, httpSse(server), ...canUpgrade ? [webSocket(server)] : []]) {
    const response = await fetch(new Request(METADATA));
    assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"]);
    assertEquals(response.headers.get("access-control-allow-origin"), "*");
    assertEquals(await response.json(), {
      resource_name: "Notes",
      resource: RESOURCE,
      authorization_servers: issuers,
      scopes_supported: ["notes:read", "notes:list"],
      bearer_methods_supported: ["header"],
      dpop_signing_alg_values_supported: ["ES256", "ES384", "ES512", "Ed25519", "EdDSA"],
    });
  }
  assertEquals((await server.fetch(new Request(`http://localhost${WELL_KNOWN}`))).status, 404);
});

Deno.test("metadata is served at the well-known path before the server's path, and with rootMetadata also at the root", async () => {
  const cases: readonly (readonly [resource: string, name: string, paths: readonly string[], root?: boolean])[] = [
    ["https://h.example.com/public/mcp", "https://h.example.com/public/mcp", [`${WELL_KNOWN}/public/mcp`]],
    ["https://h.example.com", "https://h.example.com", [WELL_KNOWN]],
    ["https://h.example.com/", "https://h.example.com/", [WELL_KNOWN], true],
    ["HTTPS://H.example.com:443/mcp", "https://h.example.com/mcp", [`${WELL_KNOWN}/mcp`, WELL_KNOWN], true],
    ["https://h.example.com/mcp/", "https://h.example.com/mcp/", [`${WELL_KNOWN}/mcp/`]],
    ["http://localhost:3000/mcp", "http://localhost:3000/mcp", [`${WELL_KNOWN}/mcp`]],
  ];
  for (const [resource, name, paths, rootMetadata] of cases) {
    const { routes = [], challenge } = oauth({ resource, issuers, rootMetadata });
    assertEquals(routes.map(({ path }) => path), paths);
    assertEquals(challenge?.params?.resource_metadata, new URL(name).origin + paths[0]);
    for (const { path, fetch } of routes) {
      assertEquals((await (await fetch(new Request(`http://localhost${path}`))).json()).resource, name);
    }
  }
});

Deno.test("web pages of every origin can read the metadata, and methods other than GET, HEAD and OPTIONS get 405", async () => {
  await using server = start();
  const ask = (method: string) =>
    server.fetch(
      new Request(METADATA, { method, headers: { origin: "https://page.example", host: "mcp.example.com" } }),
    );
  const preflight = await ask("OPTIONS");
  assertEquals([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, "*"]);
  assertEquals(preflight.headers.get("access-control-allow-headers"), "*");
  const head = await ask("HEAD");
  assertEquals([head.status, await head.text()], [200, ""]);
  for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
    const response = await ask(method);
    assertEquals([response.status, response.headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);
    assertEquals(response.headers.get("access-control-allow-origin"), "*");
  }
});

Deno.test("metadata and challenges contain the public URL, whatever host a proxy's request names", async () => {
  await using server = start();
  await using port = await openPort(server);
  const headers = {
    "x-forwarded-host": "evil.example.com",
    "x-forwarded-proto": "http",
    forwarded: "host=evil.example.com",
  };
  const response = await fetch(`http://${port.host}${WELL_KNOWN}/mcp`, { headers });
  assertEquals((await response.json()).resource, RESOURCE);
  const refused = await fetch(`http://${port.host}/mcp`, { method: "POST", body: "{}", headers });
  await refused.body?.cancel();
  assertMatch(refused.headers.get("www-authenticate") ?? "", new RegExp(`resource_metadata="${METADATA}"`));
});

Deno.test("a router can serve the routes of oauth()", async () => {
  const auth = oauth({ resource: RESOURCE, issuers });
  const server = openServer({ auth });
  const app = (request: Request) => {
    const { pathname } = new URL(request.url);
    const route = auth.routes?.find(({ path }) => path === pathname);
    if (route) return route.fetch(request);
    return pathname === "/mcp" ? server.fetch(request) : new Response("the app", { status: 404 });
  };
  assertEquals((await (await app(new Request(`http://localhost${WELL_KNOWN}/mcp`))).json()).resource, RESOURCE);
  assertEquals((await app(toRequest("tools/list"))).status, 401);
  assertEquals(await (await app(new Request("http://localhost/"))).text(), "the app");
});

Deno.test("MUST respond to a request without a token with 401, the metadata URL and the scopes option", async () => {
  await using server = start();
  const wanted = `Bearer resource_metadata="${METADATA}", scope="notes:read notes:list"`;
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const requests = [
    toRequest("server/discover"),
    toRequest("tools/list"),
    toRequest("subscriptions/listen", { notifications: {} }),
    new Request("http://localhost/mcp", { method: "POST", headers, body: "not JSON" }),
    new Request("http://localhost/mcp", { headers: { accept: "text/event-stream" } }),
    new Request("http://localhost/mcp", { method: "DELETE", headers: { "mcp-session-id": "x" } }),
  ];
  for (const request of requests) {
    const response = await server.fetch(request);
    assertEquals([response.status, response.headers.get("www-authenticate")], [401, wanted]);
    const { error, id } = await readReply(response);
    assertEquals([error.code, id], [-31401, undefined]);
  }
});

Deno.test("web pages of allowed origins can read the challenge", async () => {
  const auth = oauth({ resource: RESOURCE, issuers });
  const server = openServer({ auth, cors: { origins: ["https://app.example"] } });
  const response = await server.fetch(toRequest("tools/list", {}, { origin: "https://app.example" }));
  assertEquals(response.status, 401);
  assertMatch(response.headers.get("access-control-expose-headers") ?? "", /www-authenticate/i);
});

Deno.test("MUST NOT accept a token in the query: the response is 400 invalid_request", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const token = await issuer.sign();
  const wanted = `Bearer error="invalid_request", error_description="${sentence("Authorization")}", ` +
    `resource_metadata="${METADATA}"`;
  for (const name of ["access_token", "access%5Ftoken"]) {
    for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
      const request = toRequest("tools/call", { name: "whoami" }, headers as Record<string, string>);
      const response = await server.fetch(new Request(`${request.url}?x=1&${name}=${token}`, request));
      assertEquals([response.status, response.headers.get("www-authenticate")], [400, wanted]);
      assert(!(await response.text()).includes(token));
    }
  }
  const fine = toRequest("tools/call", { name: "whoami" }, { authorization: `Bearer ${token}` });
  assertEquals((await server.fetch(new Request(`${fine.url}?x=access_token`, fine))).status, 200);
  assertEquals(issuer.keyFetches, 1);
});

Deno.test("MUST refuse a request with two tokens: the response is 400 invalid_request", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const token = await issuer.sign();
  const request = toRequest("tools/call", { name: "whoami" });
  request.headers.append("authorization", `Bearer ${token}`);
  request.headers.append("authorization", `Bearer ${token}`);
  const response = await server.fetch(request);
  const wanted = `Bearer error="invalid_request", error_description="${sentence()}", ` +
    `resource_metadata="${METADATA}"`;
  assertEquals([response.status, response.headers.get("www-authenticate")], [400, wanted]);
  await response.body?.cancel();
  assertEquals((await callWith(server, `${token}, Bearer x`)).status, 400);
  assertEquals((await callWith(server, `${token} Bearer x`)).status, 401);
});

Deno.test("hostile: no character in a token or in an option can end a quoted value of the challenge", async () => {
  await using issuer = await TestIssuer.start();
  const resource = 'https://mcp.example.com/m"cp\\%0d%0ax';
  await using server = protect([issuer], { oauth: { resource, audience: RESOURCE } });
  const evil = 'x", realm="evil';
  for (
    const token of [
      evil,
      "a\\b",
      await issuer.sign({ claims: { iss: evil } }),
      await issuer.sign({ claims: { aud: evil } }),
      await issuer.sign({ header: { typ: evil } }),
      await issuer.sign({ header: { kid: evil } }),
    ]
  ) {
    const { challenge, status } = await callWith(server, token);
    assert(status === 401 || status === 400, String(status));
    assert(!challenge?.includes("evil"), challenge ?? "");
    assertMatch(
      challenge ?? "",
      /^Bearer error="[a-z_]+", error_description="[\w ;]+", resource_metadata="https:\/\/[^"\\ ]+\/m%22cp\/%0d%0ax"$/,
    );
  }
});

Deno.test("the challenge for an invalid token has the documented parameters", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { oauth: { scopes: ["a", "b"] } });
  const { challenge } = await callWith(server, await issuer.sign({ claims: { exp: 1 } }));
  assertEquals(challenge, `${toInvalid(sentence())}, scope="a b"`);
});
