// A path with parameters: each concrete path is a separate protected resource.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, mount, type PathServerOptions, type Server, tool } from "../../mod.ts";
import { elicitationLinks, requirePrincipal } from "../../src/auth/auth.ts";
import {
  type AccessToken,
  exchangeToken,
  oauth,
  type OAuthOptions,
  toPrincipalId,
} from "../../src/auth/oauth/oauth.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { z } from "zod";
import { canUpgrade, openPort } from "../peers/runtime.ts";
import { TestIssuer } from "../support/issuer.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";
import { connect } from "../../src/client/client.ts";

const ORIGIN = "https://api.example.com";
const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const path = "/tenants/:tenant/mcp";
const upgrade = { headers: { upgrade: "websocket", connection: "upgrade" } };

const whoami = tool({
  name: "whoami",
  run: (_, { principal, pathParams }) => `${principal?.subject} of ${pathParams().tenant}`,
});
const wipe = tool({ name: "wipe", scopes: ["wipe"], run: () => "Wiped." });

function toResource(tenant: string): string {
  return `${ORIGIN}/tenants/${tenant}/mcp`;
}

function toMetadata(tenant: string): string {
  return `${ORIGIN}${WELL_KNOWN}/tenants/${tenant}/mcp`;
}

interface Options {
  readonly oauth?: Partial<OAuthOptions>;
  readonly server?: Partial<PathServerOptions>;
}

function start(issuers: readonly string[], options: Options = {}): Server {
  const resource = ({ tenant }: Readonly<Record<string, unknown>>) => toResource(String(tenant));
  const auth = oauth({ resource, issuers, ...options.oauth });
  const handlers = [whoami, wipe];
  return openServer({ path, auth, handlers, observer: { fault() {} }, ...options.server });
}

/** Calls a tool on the path of a tenant, with a session in the legacy era and without a session in the modern era. */
async function call(
  { fetch }: Pick<Server, "fetch">,
  tenant: string,
  { token, name = "whoami", era = "modern" }: {
    readonly token?: string;
    readonly name?: string;
    readonly era?: "modern" | "legacy";
  } = {},
) {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const modern = toRequest("tools/call", { name }, headers);
  const legacy = {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } }),
  };
  const url = `http://localhost/tenants/${tenant}/mcp`;
  const response = await fetch(new Request(url, era === "modern" ? modern : legacy));
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    text: await response.text(),
  };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a token for one tenant is refused at another tenant, whether or not the token is cached (${era})`, async () => {
    await using issuer = await TestIssuer.start();
    await using server = start([issuer.name]);
    const [acme, bee, both] = [
      await issuer.sign({ claims: { aud: toResource("acme") } }),
      await issuer.sign({ claims: { aud: toResource("bee") } }),
      await issuer.sign({ claims: { aud: [toResource("acme"), toResource("bee")] } }),
    ];
    const refused = `Bearer error="invalid_token", error_description="${sentence()}", `;
    for (let round = 0; round < 3; round++) {
      // Send the token for the tenant bee to another tenant first, so that the token is not cached yet.
      const wrong = await call(server, "acme", { token: bee, era });
      assertEquals(
        [wrong.status, wrong.challenge],
        [401, `${refused}resource_metadata="${toMetadata("acme")}"`],
      );
      for (const [tenant, token] of [["acme", acme], ["bee", bee], ["acme", both], ["bee", both]] as const) {
        const { status, text } = await call(server, tenant, { token, era });
        assertEquals(status, 200);
        assertMatch(text, new RegExp(`ada of ${tenant}`));
      }
      const other = await call(server, "bee", { token: acme, era });
      assertEquals([other.status, other.challenge], [401, `${refused}resource_metadata="${toMetadata("bee")}"`]);
      assertEquals((await call(server, "cat", { token: both, era })).status, 401);
    }
  });

  Deno.test(`every challenge contains the metadata URL of the tenant (${era})`, async () => {
    await using issuer = await TestIssuer.start();
    await using server = start([issuer.name], { oauth: { scopes: ["read"] } });
    const named = (tenant: string) => `resource_metadata="${toMetadata(tenant)}"`;
    for (const tenant of ["acme", "bee"]) {
      const none = await call(server, tenant, { era });
      assertEquals([none.status, none.challenge], [401, `Bearer ${named(tenant)}, scope="read"`]);
      const token = await issuer.sign({ claims: { aud: toResource(tenant) } });
      const few = await call(server, tenant, { token, name: "wipe", era });
      assertEquals([few.status, few.challenge], [
        403,
        `Bearer error="insufficient_scope", scope="wipe", ${named(tenant)}`,
      ]);
      const broken = await call(server, tenant, { token: "x", era });
      assertEquals(broken.status, 401);
      assert(broken.challenge?.includes(named(tenant)));
    }
  });
}

Deno.test("if concurrent requests send the same token to two tenants, the token is checked for each tenant", async () => {
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name]);
  const token = await issuer.sign({ claims: { aud: toResource("acme") } });
  const tenants = ["bee", "acme", "bee", "acme"];
  const responses = await Promise.all(tenants.map((tenant) => call(server, tenant, { token })));
  assertEquals(responses.map(({ status }) => status), [401, 200, 401, 200]);
});

Deno.test("challenges to GET requests and over other transports contain the metadata URL of the tenant", async () => {
  await using server = start(["https://login.example.com"]);
  const sockets = canUpgrade ? [webSocket(server, { path: "/tenants/:tenant/ws" })] : [];
  const streams = httpSse(server, { path: "/tenants/:tenant/sse", messages: "/tenants/:tenant/messages" });
  const url = (last: string) => `http://localhost/tenants/acme/${last}`;
  const requests = [
    [server, new Request(url("mcp"), { headers: { accept: "text/event-stream" } })],
    [server, new Request(url("mcp"), { method: "DELETE" })],
    [server, new Request(url("mcp"), { method: "PUT" })],
    ...sockets.map((each) => [each, new Request(url("ws"), upgrade)] as const),
    [streams, new Request(url("sse"))],
    [streams, new Request(url("messages?sessionId=x"), { method: "POST", body: "{}" })],
  ] as const;
  for (const [{ fetch }, request] of requests) {
    const response = await fetch(request);
    const wanted = `Bearer resource_metadata="${toMetadata("acme")}"`;
    assertEquals([response.status, response.headers.get("www-authenticate")], [401, wanted], request.url);
    await response.body?.cancel();
  }
  const query = await server.fetch(new Request(url("mcp?access_token=x"), toRequest("tools/list")));
  assertEquals(query.status, 400);
  assert(query.headers.get("www-authenticate")?.includes(toMetadata("acme")));
});

Deno.test("MUST serve the metadata of each tenant at the tenant's own well-known URI, without creating the tenant's handlers", async () => {
  let made = 0;
  const pathSchema = z.object({ tenant: z.string().regex(/^[a-z]+$/) });
  const issuers = ["https://login.example.com"];
  const resource = ({ tenant }: Readonly<Record<string, unknown>>) => toResource(String(tenant));
  const auth = oauth({ resource, issuers, scopes: ["read"], metadata: { resource_name: "Notes" } });
  const handlers = () => (made++, [whoami]);
  const server = openServer({ path, pathSchema, auth, handlers });
  const ask = (tenant: string, init?: RequestInit) =>
    server.fetch(new Request(`http://localhost${WELL_KNOWN}/tenants/${tenant}/mcp`, init));
  for (const [spelling, tenant] of [["acme", "acme"], ["bee", "bee"], ["%61cme", "acme"], ["acme", "acme"]]) {
    const response = await ask(spelling);
    assertEquals([response.status, response.headers.get("content-type")], [200, "application/json"]);
    assertEquals(await response.json(), {
      resource_name: "Notes",
      resource: toResource(tenant),
      authorization_servers: issuers,
      scopes_supported: ["read"],
      bearer_methods_supported: ["header"],
      dpop_signing_alg_values_supported: ["ES256", "ES384", "ES512", "Ed25519", "EdDSA"],
    });
  }
  const unknown = await server.fetch(new Request("http://localhost/unknown"));
  const expected = [404, await unknown.text()];
  for (const wrong of ["ACME", "a%2fb", "%2e%2e", "%00", "", "acme/x", "%ff", "a".repeat(3000)]) {
    const response = await ask(wrong);
    assertEquals([response.status, await response.text()], expected, wrong);
  }
  for (const wrong of ["", "/mcp", "/tenants/acme", "/tenants/:tenant/mcp"]) {
    assertEquals((await server.fetch(new Request(`http://localhost${WELL_KNOWN}${wrong}`))).status, 404, wrong);
  }
  assertEquals(made, 0);
});

Deno.test("web pages of every origin can read the metadata of a tenant", async () => {
  for (const cors of [undefined, { origins: ["https://app.example"] }]) {
    await using server = start(["https://login.example.com"], { server: { cors } });
    for (const host of ["api.example.com", "localhost"]) {
      const ask = (method: string, origin: string) => {
        const headers = { origin, host, "access-control-request-method": "GET" };
        return server.fetch(new Request(`http://${host}${WELL_KNOWN}/tenants/acme/mcp`, { method, headers }));
      };
      const preflight = await ask("OPTIONS", "https://page.example");
      assertEquals([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, "*"]);
      assertEquals(preflight.headers.get("access-control-allow-headers"), "*");
      const read = await ask("GET", "https://page.example");
      assertEquals([read.status, read.headers.get("access-control-allow-origin")], [200, "*"]);
      assertEquals((await read.json()).resource, toResource("acme"));
      const head = await ask("HEAD", "https://page.example");
      assertEquals([head.status, await head.text()], [200, ""]);
      const post = await ask("POST", "https://page.example");
      assertEquals([post.status, post.headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);
      const granted = (await ask("GET", "https://app.example")).headers.get("access-control-allow-origin");
      assertEquals(granted, cors ? "https://app.example" : "*");
    }
  }
});

Deno.test("a percent-encoded path belongs to the same resource as the decoded path", async () => {
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name]);
  const token = await issuer.sign({ claims: { aud: toResource("acme") } });
  for (const spelling of ["%61cme", "acme", "%61%63%6d%65"]) {
    assertMatch((await call(server, spelling, { token })).text, /ada of acme/);
    assertEquals((await call(server, spelling)).challenge, `Bearer resource_metadata="${toMetadata("acme")}"`);
  }
  // A path that is percent-encoded twice belongs to another tenant.
  assertEquals((await call(server, "%2561cme", { token })).status, 401);
});

Deno.test("the resource function receives converted parameters, and a path that the params schema refuses gets 404", async () => {
  await using issuer = await TestIssuer.start();
  const pathSchema = z.object({ tenant: z.coerce.number().int().transform((id) => id + 100) });
  const seen = new Set<unknown>();
  const resource = ({ tenant }: Readonly<Record<string, unknown>>) => (seen.add(tenant), toResource(String(tenant)));
  const auth = oauth({ resource, issuers: [issuer.name] });
  const server = openServer({ path, pathSchema, auth, handlers: [whoami] });
  const token = await issuer.sign({ claims: { aud: toResource("107") } });
  assertMatch((await call(server, "7", { token })).text, /ada of 107/);
  assertEquals((await call(server, "107", { token })).status, 401);
  for (const tenant of ["x", "1.5"]) {
    assertEquals((await call(server, tenant, { token })).status, 404);
    assertEquals((await call(server, tenant)).status, 404);
  }
  assertEquals([...seen], [107, 207]);
});

Deno.test("hostile: no path parameter can end a quoted value of a challenge, or reach the resource of another path", async () => {
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name]);
  const tokens = [
    await issuer.sign({ claims: { aud: toResource("acme") } }),
    await issuer.sign({ claims: { aud: `${ORIGIN}/mcp` } }),
    await issuer.sign({ claims: { aud: ORIGIN } }),
    await issuer.sign({ claims: { aud: `${ORIGIN}/tenants/acme` } }),
  ];
  const values = [
    'a"b',
    'a", realm="evil',
    "a%5Cb",
    "a\r\nset-cookie: x",
    "acme\n",
    "ac\tme",
    " acme",
    "acme ",
    "%2e%2e",
    "%2E",
    "..%2f..",
    "%2561cme",
    "acme?x",
    "acme#x",
    "acme;x",
    "@evil.example",
    "é\u202e",
    "\ud83d\ude00",
    "a".repeat(900),
  ];
  for (const value of values) {
    const spelling = encodeURIComponent(value);
    const { status, challenge } = await call(server, spelling);
    assertEquals([status, challenge], [401, `Bearer resource_metadata="${toMetadata(spelling)}"`]);
    for (const token of tokens) assertEquals((await call(server, spelling, { token })).status, 401, value);
    const own = await issuer.sign({ claims: { aud: toResource(spelling) } });
    assertEquals((await call(server, spelling, { token: own })).status, 200, value);
    const metadata = await server.fetch(new Request(`http://localhost${WELL_KNOWN}/tenants/${spelling}/mcp`));
    assertEquals((await metadata.json()).resource, toResource(spelling));
  }
  const long = await call(server, "a".repeat(1100));
  assertEquals([long.status, long.challenge], [404, null]);
});

Deno.test("hostile: every tenant refuses an audience whose path a URL parser would change", async () => {
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name]);
  const paths = ["bee/../acme", "bee/%2e%2E/acme", "./acme", "bee\\..\\acme", "ac\nme", "ac\tme", "acme\\..\\acme"];
  for (const path of [...paths, "%2561cme", "%61cme", "ACME"]) {
    const token = await issuer.sign({ claims: { aud: toResource(path) } });
    assertEquals((await call(server, "acme", { token })).status, 401, path);
  }
  const token = await issuer.sign({ claims: { aud: "HTTPS://API.example.com:443/tenants/acme/mcp" } });
  assertEquals((await call(server, "acme", { token })).status, 200);
});

Deno.test("hostile: challenges for unusual parameter values arrive complete over a port", async () => {
  await using server = start(["https://login.example.com"]);
  await using port = await openPort(server);
  for (const spelling of ["a%0D%0Aset-cookie%3A%20x", "a%22%2C%20b", "%C3%A9", "a%25252e", "a".repeat(900)]) {
    const response = await fetch(`http://${port.host}/tenants/${spelling}/mcp`, { method: "POST", body: "{}" });
    await response.body?.cancel();
    const wanted = `Bearer resource_metadata="${toMetadata(spelling)}"`;
    assertEquals([response.status, response.headers.get("www-authenticate")], [401, wanted]);
    assertEquals(response.headers.get("set-cookie"), null);
    const metadata = await fetch(`http://${port.host}${WELL_KNOWN}/tenants/${spelling}/mcp`);
    assertEquals((await metadata.json()).resource, toResource(spelling));
  }
});

Deno.test("hostile: a path parameter that would change the resource's host or path causes an error", async () => {
  await using issuer = await TestIssuer.start();
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  const resource = ({ tenant }: Readonly<Record<string, unknown>>) => `https://${tenant}.example.com/mcp`;
  await using server = start([issuer.name], { oauth: { resource }, server: { observer } });
  const token = await issuer.sign({ claims: { aud: "https://acme.example.com/mcp" } });
  assertEquals((await call(server, "acme", { token })).status, 200);
  for (const value of ["ACME", "a%20b", "evil.example%3F", "evil.example%23", "x%40evil", "a%3A1"]) {
    const { status, challenge } = await call(server, value, { token });
    assertEquals([status, challenge], [500, null], value);
    assertStringIncludes(String(faults.pop()), sentence("resource"));
    const metadata = await server.fetch(new Request(`http://localhost${WELL_KNOWN}/tenants/${value}/mcp`));
    assertEquals(metadata.status, 500);
    assertStringIncludes(String(faults.pop()), sentence("resource"));
  }
});

Deno.test("a token whose audience is a path is accepted only at this path", async () => {
  await using issuer = await TestIssuer.start();
  const audience = ({ tenant }: Readonly<Record<string, unknown>>) => [`api://${tenant}`, `urn:${tenant}`];
  await using server = start([issuer.name], { oauth: { audience } });
  const token = await issuer.sign({ claims: { aud: "api://acme" } });
  for (let round = 0; round < 2; round++) {
    assertEquals((await call(server, "acme", { token })).status, 200);
    assertEquals((await call(server, "bee", { token })).status, 401);
  }
});

Deno.test("an opaque token is introspected separately for each resource", async () => {
  await using issuer = await TestIssuer.start();
  let asked = 0;
  issuer.overrides.set("/introspect", () => {
    asked++;
    return Response.json({ active: true, aud: toResource("acme"), sub: "ada", client_id: "app" });
  });
  const introspection = { clientId: "t", clientSecret: "secret" };
  await using server = start([issuer.name], { oauth: { introspection } });
  for (let round = 0; round < 3; round++) {
    assertEquals((await call(server, "bee", { token: "opaque" })).status, 401);
    assertEquals((await call(server, "acme", { token: "opaque" })).status, 200);
  }
  assertEquals(asked, 2);
});

Deno.test("a session at one tenant cannot be used with a token for another tenant", async () => {
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name]);
  const begin = async (tenant: string) => {
    const token = await issuer.sign({ claims: { aud: toResource(tenant) } });
    const headers = { authorization: `Bearer ${token}` };
    const era = "legacy";
    return await connectTest(server, { path: `/tenants/${tenant}/mcp`, headers, era });
  };
  await using acme = await begin("acme");
  await using bee = await begin("bee");
  for (const [client, tenant] of [[acme, "acme"], [bee, "bee"]] as const) {
    assertEquals((await client.callTool("whoami")).content, [{ type: "text", text: `ada of ${tenant}` }]);
  }
});

Deno.test("at the path of a tenant, callers can exchange their tokens and receive elicitation links", async () => {
  await using issuer = await TestIssuer.start();
  const forms: string[] = [];
  issuer.overrides.set("/token", async (request) => {
    const form = new URLSearchParams(await request.text());
    forms.push(form.get("subject_token") ?? "");
    const issued_token_type = "urn:ietf:params:oauth:token-type:access_token";
    return Response.json({ access_token: "for mail", token_type: "Bearer", expires_in: 600, issued_token_type });
  });
  const got: AccessToken[] = [];
  const links = elicitationLinks();
  let opened: unknown;
  const exchange = tool({
    name: "exchange",
    run: async (_, ctx) => {
      got.push(await exchangeToken(ctx, { audience: "mail" }));
      return "done";
    },
  });
  const link = tool({
    name: "link",
    run: async (_, ctx) => {
      const url = "https://api.example.com/connect";
      return (await links.elicit(ctx, "mail", { message: "Connect", url, data: ctx.pathParams().tenant })).action;
    },
  });
  await using server = start([issuer.name], {
    oauth: { exchange: { clientId: "t", clientSecret: "secret" } },
    server: { handlers: [exchange, link] },
  });
  for (const tenant of ["acme", "bee"]) {
    const token = await issuer.sign({ claims: { aud: toResource(tenant) } });
    for (let round = 0; round < 2; round++) await call(server, tenant, { token, name: "exchange" });
    assertEquals([forms.length, forms.at(-1)], [tenant === "acme" ? 1 : 2, token]);
    await using client = await connectTest(server, {
      path: `/tenants/${tenant}/mcp`,
      headers: { authorization: `Bearer ${token}` },
      onElicitUrl: async ({ url }) => {
        opened = await links.open(url, toPrincipalId(issuer.name, "ada"));
        assertEquals(await links.open(url, toPrincipalId(issuer.name, "eve")), undefined);
        return { action: "accept" };
      },
    });
    await client.callTool("link");
    assertEquals(opened, { data: tenant });
  }
  assertEquals(got.map(({ accessToken }) => accessToken), ["for mail", "for mail", "for mail", "for mail"]);
});

Deno.test("the challenge for expired credentials contains the metadata URL of the tenant", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using server = start([issuer.name], { server: { clock } });
  const exp = Math.floor(clock.date() / 1000) + 60;
  const token = await issuer.sign({ claims: { aud: toResource("acme"), exp } });
  assertEquals((await call(server, "acme", { token })).status, 200);
  await clock.advance(120_000);
  const late = await call(server, "acme", { token });
  assertEquals(late.status, 401);
  assertStringIncludes(late.challenge ?? "", `error_description="${sentence()}"`);
  assert(late.challenge?.includes(toMetadata("acme")));
});

Deno.test("mounted servers with and without parameters are separate resources", async () => {
  await using issuer = await TestIssuer.start();
  const issuers = [issuer.name];
  const tenants = start(issuers);
  const shops = openServer({
    path: "/shops/:shop/mcp",
    auth: oauth({ resource: ({ shop }) => `${ORIGIN}/shops/${shop}/mcp`, issuers }),
    handlers: [whoami],
  });
  const admin = openServer({ path: "/admin/mcp", auth: oauth({ resource: `${ORIGIN}/admin/mcp`, issuers }) });
  await using app = mount([tenants, shops, admin]);
  for (const each of ["/tenants/acme/mcp", "/tenants/bee/mcp", "/shops/acme/mcp", "/admin/mcp"]) {
    const metadata = await app.fetch(new Request(`http://localhost${WELL_KNOWN}${each}`));
    assertEquals((await metadata.json()).resource, ORIGIN + each);
    const request = new Request(`http://localhost${each}`, toRequest("tools/list"));
    const refused = await app.fetch(request);
    const wanted = `Bearer resource_metadata="${ORIGIN}${WELL_KNOWN}${each}"`;
    assertEquals([refused.status, refused.headers.get("www-authenticate")], [401, wanted]);
  }
  assertEquals((await app.fetch(new Request(`http://localhost${WELL_KNOWN}/other/acme/mcp`))).status, 404);
  const token = await issuer.sign({ claims: { aud: toResource("acme") } });
  const statuses = ["/tenants/acme/mcp", "/shops/acme/mcp", "/tenants/bee/mcp"].map(async (each) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.fetch(new Request(`http://localhost${each}`, toRequest("tools/list", {}, headers)))).status;
  });
  assertEquals(await Promise.all(statuses), [200, 401, 401]);
});

Deno.test("oauth() throws if options contradict each other, and server.ready() rejects if they contradict the path", async () => {
  const issuers = ["https://login.example.com"];
  const resource = () => "https://api.example.com/mcp";
  const cases: readonly (readonly [OAuthOptions, other: string])[] = [
    [{ resource, issuers, rootMetadata: true }, "rootMetadata"],
    [{ resource, issuers, audience: "api://notes" }, "audience"],
    [{ resource, issuers, audience: ["api://notes"] }, "audience"],
    [{ resource: ORIGIN, issuers, audience: () => "x" }, "audience"],
  ];
  for (const [options, other] of cases) {
    assertThrows(() => oauth(options), TypeError, sentence("oauth()", "resource", other));
  }
  const server = openServer({ auth: oauth({ resource, issuers }), observer: { fault() {} } });
  await assertRejects(() => server.ready(), TypeError, sentence("resource", "/mcp"));
  assertEquals((await server.fetch(toRequest("tools/list"))).status, 500);
});

Deno.test("if the resource function returns an invalid resource, its error is reported, and every caller is refused", async () => {
  await using issuer = await TestIssuer.start();
  const resources: readonly unknown[] = [
    undefined,
    5,
    "no URL",
    "http://api.example.com/mcp",
    "https://api.example.com/mcp#x",
    "https://user@api.example.com/mcp",
    "HTTPS://api.example.com/mcp",
    "https://api.example.com:443/mcp",
    "https://api.example.com/a/../mcp",
    Promise.resolve("https://api.example.com/mcp"),
  ];
  const token = await issuer.sign({ claims: { aud: "https://api.example.com/mcp" } });
  for (const resource of resources) {
    const faults: unknown[] = [];
    const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
    const wrong = () => resource as string; // The cast passes an invalid resource on purpose.
    await using server = start([issuer.name], { oauth: { resource: wrong }, server: { observer } });
    assertEquals((await call(server, "acme", { token })).status, 500);
    assertEquals((await call(server, "acme")).status, 500);
    for (const fault of faults) assertStringIncludes(String(fault), sentence("resource"));
  }
  await using plain = start([issuer.name], { oauth: { resource: () => "https://api.example.com" } });
  const bare = await issuer.sign({ claims: { aud: "https://api.example.com" } });
  assertEquals((await call(plain, "acme", { token: bare })).status, 200);
});

Deno.test("createServer() throws if oauth() has a single resource and the path has parameters", () => {
  const options = { resource: "https://mcp.example.com/t/acme/mcp", issuers: ["https://login.example.com"] };
  const path = "/t/:tenant/mcp";
  for (const auth of [oauth(options), { ...oauth({ ...options, audience: "api://notes" }) }]) {
    assertThrows(
      () => createServer({ name: "x", version: "1.0.0", path, auth }),
      TypeError,
      sentence("oauth()", "resource", path),
    );
  }
  createServer({ name: "x", version: "1.0.0", path: "/t/acme/mcp", auth: oauth(options) });
  const resource = ({ tenant }: Readonly<Record<string, unknown>>) => `https://mcp.example.com/t/${tenant}/mcp`;
  createServer({ name: "x", version: "1.0.0", path, auth: oauth({ ...options, resource }) });
});

// A protected server that listens on a port: each user sees only their own notes, in both eras and over every
// transport.

const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;

function createNotes(resource: string, issuers: readonly TestIssuer[]): Server {
  const notes = new Map<string, string[]>();
  const auth = oauth({ resource, issuers: issuers.map(({ name }) => name), scopes: ["notes:read"] });
  const list = tool({
    name: "list",
    scopes: ["notes:read"],
    run: (_, ctx) => (notes.get(requirePrincipal(ctx).id) ?? []).join(),
  });
  const write = tool({
    name: "write",
    scopes: ["notes:read", "notes:write"],
    input: TEXT,
    run({ text }, ctx) {
      const { id } = requirePrincipal(ctx);
      notes.set(id, [...notes.get(id) ?? [], text]);
      return "Written.";
    },
  });
  return openServer({ auth, handlers: [list, write] });
}

Deno.test("users with tokens from different issuers see only their own notes, in both eras", async () => {
  await using one = await TestIssuer.start({ alg: "RS256" });
  await using two = await TestIssuer.start({
    path: "/realms/b",
    wellKnown: "/realms/b/.well-known/openid-configuration",
  });
  // The `resource` option needs the port, so the test listens first and creates the server afterwards.
  const served: Server[] = [];
  await using port = await openPort({ fetch: (request, info) => served[0].fetch(request, info) });
  const url = `http://${port.host}/mcp`;
  await using server = createNotes(url, [one, two]);
  served.push(server);
  for (const revisions of [["2026-07-28"], ["2025-11-25"]]) {
    const join = async (issuer: TestIssuer, sub: string, scope: string) => {
      const token = await issuer.sign({ claims: { aud: url, sub, scope } });
      return await connect(url, { revisions, headers: { authorization: `Bearer ${token}` } });
    };
    const all = "notes:read notes:write";
    const users = await Promise.all([join(one, "ada", all), join(one, "eve", all), join(two, "ada", all)]);
    for (const [index, user] of users.entries()) await user.callTool("write", { text: `${revisions} of ${index}` });
    for (const [index, user] of users.entries()) {
      const [content] = (await user.callTool("list")).content ?? [];
      const text = "text" in content ? String(content.text) : "";
      assert(text.endsWith(`${revisions} of ${index}`), text);
      assertEquals(text.includes(`of ${(index + 1) % 3}`), false);
    }
    const reader = await join(one, "ada", "notes:read");
    const error = await assertRejects(() => reader.callTool("write", { text: "x" }));
    assertEquals((error as { status?: number }).status, 403);
    for (const user of [...users, reader]) await user.close();
    await assertRejects(() => connect(url, { revisions }), Error);
  }
  assertEquals([one.keyFetches, two.keyFetches], [1, 1]);
  const metadata = await fetch(`http://${port.host}/.well-known/oauth-protected-resource/mcp`);
  assertEquals((await metadata.json()).resource, url);
});

Deno.test("WebSocket and HTTP+SSE accept tokens too, and refuse a token in the query", async () => {
  await using issuer = await TestIssuer.start();
  const resource = "https://mcp.example.com/mcp";
  const token = await issuer.sign();
  await using server = createNotes(resource, [issuer]);
  const stream = httpSse(server);
  const headers = { authorization: `Bearer ${token}` };
  assertEquals((await stream.fetch(new Request("http://localhost/sse"))).status, 401);
  assertEquals((await stream.fetch(new Request(`http://localhost/sse?access_token=${token}`))).status, 400);
  const opened = await stream.fetch(new Request("http://localhost/sse", { headers }));
  assertEquals(opened.status, 200);
  await opened.body?.cancel();
  const upgrade = {
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "x",
  };
  const query = new Request(`http://localhost/ws?access_token=${token}`, { headers: upgrade });
  for (const socket of canUpgrade ? [webSocket(server)] : []) {
    assertEquals((await socket.fetch(new Request("http://localhost/ws", { headers: upgrade }))).status, 401);
    assertEquals((await socket.fetch(query)).status, 400);
  }
});
