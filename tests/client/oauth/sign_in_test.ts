// What the client checks before and after a sign-in. The list names the tests for the requirements on clients (MUST) in
// the 2026-07-28 specification, by page of basic/authorization:
//
// index
// - use the server's resource metadata, and both kinds of authorization server metadata: "the client requests metadata
//   URLs in the order of the specification", "without a metadata URL in the challenge, the client tries the path and then
//   the root"
// - get a client id before the sign-in: "a registration contains the application type, the grants and the redirect URI",
//   "the client id is the client metadata URL if …"
// - use the scopes in the challenge unchanged: "the client requests the scopes in the challenge, …"
// - record the issuer, compare `iss` as text, and show no error with another issuer: "refused: no iss", "refused: the iss
//   …", "refused: an iss that the metadata does not announce", "refused: an error …, whose text is not shown"
// - send `resource` with the authorization request and the token request: "the authorization request contains resource,
//   …"
// - send the token in the header of each request, and in no URL: "every request to the server contains the token, …"
// - send no token from another authorization server: "tokens for one server, issuer or client are never used for
//   another …"
// - do not rely on refresh tokens: "without a refresh token, an expired token leads to a new sign-in"
// - keep refresh tokens confidential: `checkSecrets`, and "an error contains no secret, even if the authorization
//   server's response does"
//
// authorization-server-discovery
// - parse challenges, and prefer the metadata URL in a challenge to well-known URLs: see index
// - refuse metadata of another issuer: "refused: metadata of another issuer", "refused: the issuer … in another
//   spelling"
// - keep the state of each authorization server separate: "tokens for one server, issuer or client …"
//
// client-registration
// - use an https URL with a path as client id: "the client id is the client metadata URL if …"
// - register with `application_type`: "a registration contains the application type, …"
// - handle refused registrations: "refused: a registration that is refused"
// - bind a client to its authorization server: "refused: a client of another authorization server" (if `client.issuer`
//   is set)
//
// security-considerations
// - use https, also for redirect URIs: "refused: an authorization server over http", "refused: a server over http",
//   "refused: the redirect URI …"
// - use PKCE with S256, and stop if the metadata does not list S256: "refused: no PKCE", "refused: PKCE without S256"
// - use each `state` once: "refused: no state", "refused: a replayed state", "refused: a second state"
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import {
  memoryTokens,
  type SignInOptions,
  type SignInStart,
  type TokenStore,
} from "../../../src/client/oauth/oauth.ts";
import { textOf, until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { Bed, type Wrong } from "./bed.ts";

/** Connects a client, calls the tool, and closes the client. Returns the text of the result. */
async function use(bed: Bed, options?: Partial<SignInOptions>): Promise<string> {
  await using client = await bed.connect(bed.signIn(options));
  return textOf(await client.callTool("hello"));
}

/** Signs in, and makes the stored access token for the server expire. */
async function useAndExpire(bed: Bed, store: TokenStore, options?: Partial<SignInOptions>): Promise<void> {
  await use(bed, { store, ...options });
  await expire(bed, store);
}

/** Makes the stored access token for the server expire. */
async function expire(bed: Bed, store: TokenStore): Promise<void> {
  const expired = { expiresAt: 1, issuedAt: 0 };
  await store.update(
    `server ${bed.server}`,
    (text) => Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), ...expired })),
  );
}

/** Asserts that no URL contains a secret, and that the client sent secrets only to the server to which they belong. */
function checkSecrets(bed: Bed): void {
  const { origin } = new URL(bed.issuer);
  for (const { url, authorization, body } of bed.seen) {
    for (const secret of bed.secrets) {
      assert(!url.includes(secret), `a secret is in ${url}`);
      if (!url.startsWith(`${origin}/`)) assert(!body.includes(secret), `a secret is in the body for ${url}`);
      if (url !== bed.server) assert(!authorization?.includes(secret), `a token was sent to ${url}`);
    }
  }
}

/**
 * Registers a test that the sign-in fails with an error that contains all `names` and no secret. `visits` and `forms`
 * are the expected numbers of authorization requests and token requests.
 */
function refuses(
  name: string,
  wrong: Wrong,
  names: readonly (string | number)[] = [],
  { visits = 0, forms = 0, ...options }: { visits?: number; forms?: number } & Partial<SignInOptions> = {},
): void {
  Deno.test(`refused: ${name}`, async () => {
    await using bed = new Bed(wrong);
    const error = await assertRejects(() => use(bed, options), Error);
    assertEquals(error.message, sentence(...names));
    assertEquals([bed.visits.length, bed.forms.length], [visits, forms]);
    const shown = `${error.stack}${JSON.stringify(error)}${String(error.cause)}`;
    assertEquals([...bed.secrets].filter((secret) => shown.includes(secret)), []);
    assert(bed.ends.length >= visits && bed.ends.length <= 1);
    for (const end of bed.ends) assert(end instanceof Error);
    checkSecrets(bed);
    assertEquals(await bed.signIn(options).info(bed.server), undefined);
  });
}

Deno.test("the authorization request contains resource, PKCE and state, and the token is sent only to the server", async () => {
  await using bed = new Bed();
  assertEquals(await use(bed), "Hello!");
  const [params] = bed.visits;
  assertEquals(params.get("resource"), bed.server);
  assertEquals([params.get("code_challenge_method"), params.get("scope")], ["S256", "read"]);
  assert((params.get("state") ?? "").length >= 32);
  const [form] = bed.forms;
  assertEquals([form.resource, form.grant_type], [bed.server, "authorization_code"]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(form.code_verifier));
  const challenge = btoa(String.fromCharCode(...new Uint8Array(digest))).replaceAll("+", "-").replaceAll("/", "_");
  assertEquals(params.get("code_challenge"), challenge.replaceAll("=", ""));
  assertEquals(bed.ends, [undefined]);
  checkSecrets(bed);
});

Deno.test("a registration contains the application type, the grants and the redirect URI", async () => {
  let sent: Record<string, unknown> = {};
  await using bed = new Bed({ registration: (right) => sent = right });
  await use(bed, { clientName: "Reader" });
  const { client_id: _, ...rest } = sent;
  assertEquals(rest, {
    client_name: "Reader",
    redirect_uris: [`http://127.0.0.1:7777${bed.starts[0].path}`],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: "native",
    scope: "read",
  });
});

Deno.test("a client registers the scopes that the sign-in asks for, and registers again only for other scopes", async () => {
  const registered = new Map<unknown, unknown>();
  let needed: readonly string[] = [];
  await using bed = new Bed({
    scopes: () => needed,
    registration: (right) => {
      registered.set(right.client_id, right.scope);
      return right;
    },
    // Like an authorization server that grants only registered scopes.
    back: (url) => {
      const visit = bed.visits.at(-1);
      const granted = String(registered.get(visit?.get("client_id"))).split(" ");
      if (visit?.get("scope")?.split(" ").every((scope) => granted.includes(scope))) return url.href;
      url.searchParams.delete("code");
      url.searchParams.set("error", "invalid_scope");
      return url.href;
    },
  });
  const store = memoryTokens();
  await using client = await bed.connect(bed.signIn({ store, scopes: ["profile"] }));
  needed = ["write"];
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals([...registered.values()], ["read profile", "read profile write"]);
  await bed.signIn({ store }).signOut(bed.server);
  needed = [];
  await use(bed, { store, scopes: ["write"] });
  assertEquals(registered.size, 2);
});

for (const status of [400, 403]) {
  Deno.test(`a client registers without scopes if the authorization server refuses them with status ${status}`, async () => {
    const sent: unknown[] = [];
    await using bed = new Bed({
      registration: (right) => {
        sent.push(right.scope);
        return right.scope === undefined ? right : Response.json({ error: "invalid_client_metadata" }, { status });
      },
    });
    const store = memoryTokens();
    assertEquals(await use(bed, { store }), "Hello!");
    bed.revoke();
    await bed.signIn({ store }).signOut(bed.server);
    assertEquals(await use(bed, { store }), "Hello!");
    assertEquals([sent, bed.visits.map((visit) => visit.get("scope"))], [["read", undefined], ["read", "read"]]);
  });
}

Deno.test("a scope that the authorization server refuses does not keep other scopes out of the registration", async () => {
  const sent: unknown[] = [];
  await using bed = new Bed({
    registration: (right) => {
      sent.push(right.scope);
      const isKnown = !`${right.scope}`.includes("unknown");
      return isKnown ? right : Response.json({ error: "invalid_client_metadata" }, { status: 400 });
    },
  });
  const store = memoryTokens();
  await use(bed, { store, scopes: ["unknown"] });
  await bed.signIn({ store }).signOut(bed.server);
  await use(bed, { store, scopes: ["write"] });
  assertEquals(sent, ["read unknown", undefined, "read unknown write", "read write"]);
});

Deno.test("the client requests metadata URLs in the order of the specification", async () => {
  for (
    const [issuer, expected] of [
      ["https://login.example.com", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]],
      ["https://login.example.com/tenant/a", [
        "/.well-known/oauth-authorization-server/tenant/a",
        "/.well-known/openid-configuration/tenant/a",
        "/tenant/a/.well-known/openid-configuration",
      ]],
    ] as const
  ) {
    await using bed = new Bed({ issuer, metadata: () => undefined });
    await assertRejects(() => use(bed), Error, sentence(issuer));
    const paths = bed.seen.map(({ url }) => new URL(url)).filter(({ origin }) =>
      origin === "https://login.example.com"
    );
    assertEquals(paths.map(({ pathname }) => pathname), [...expected]);
  }
});

Deno.test("hostile: an issuer whose path begins with a host sends the client to no other host", async () => {
  await using bed = new Bed({ issuer: "https://login.example.com//10.0.0.1", metadata: () => undefined });
  await assertRejects(() => use(bed), Error);
  assertEquals(bed.seen.filter(({ url }) => new URL(url).hostname === "10.0.0.1"), []);
});

Deno.test("without a metadata URL in the challenge, the client tries the path and then the root", async () => {
  await using bed = new Bed({
    challenge: () => "Bearer",
    resourceMetadata: (right, { pathname }) =>
      pathname.endsWith("/mcp") ? undefined : { ...right, resource: "https://mcp.example.com" },
  });
  assertEquals(await use(bed, { resource: "https://mcp.example.com/" }), "Hello!");
  const asked = bed.seen.filter(({ url }) => url.includes("oauth-protected")).map(({ url }) => new URL(url).pathname);
  assertEquals(asked, ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]);
  assertEquals(bed.visits[0].get("resource"), "https://mcp.example.com");
});

Deno.test("the client requests the scopes in the challenge, or else in the metadata, and a step-up adds scopes to the earlier scopes", async () => {
  const supported = (right: Record<string, unknown>) => ({ ...right, scopes_supported: ["a", "b"] });
  const ask = async (wrong: Wrong) => {
    await using bed = new Bed(wrong);
    await use(bed);
    return bed.visits.map((params) => params.get("scope"));
  };
  const bare = (right: string) => right.replace(/, scope="read"/, "");
  assertEquals(await ask({ resourceMetadata: supported }), ["read"]);
  assertEquals(await ask({ resourceMetadata: supported, challenge: bare }), ["a b"]);
  assertEquals(await ask({ challenge: bare }), [null]);
  const metadata = (right: Record<string, unknown>) => ({ ...right, scopes_supported: ["offline_access", "x"] });
  assertEquals(await ask({ metadata }), ["read offline_access"]);
  let needed: readonly string[] = [];
  await using bed = new Bed({ scopes: () => needed });
  await using client = await bed.connect(bed.signIn());
  needed = ["write", "share"];
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals(bed.visits.map((params) => params.get("scope")), ["read", "read write share"]);
});

Deno.test("a request fails after a few sign-ins if the server never accepts the scopes", async () => {
  await using bed = new Bed({ token: (right) => ({ ...right, scope: "read" }), scopes: () => ["never"] });
  await using other = new Bed({ scopes: () => ["never"], challenge: (right) => right.replace("never", "other") });
  for (const each of [bed, other]) {
    const error = await assertRejects(() => use(each), Error);
    assert(each.visits.length <= 3, `${each.visits.length} visits: ${error.message}`);
  }
});

// Discovery of metadata.
const evil = { resource: "https://evil.example.com/mcp" };
refuses("resource metadata of another server", { resourceMetadata: (right) => ({ ...right, ...evil }) }, [
  evil.resource,
]);
for (
  const resource of [
    "https://mcp.example.com/mcp/deeper",
    "https://mcp.example.com/mc",
    "https://mcp.example.com/",
    "https://mcp.example.com",
    "https://mcp.example.com/mcp?tenant=a",
    "https://mcp.example.com/%2e%2e/",
    "https://mcp.example.com//mcp",
    "https://mcp.example.com/..%2fmcp",
    "https://mcp.example.com:444/mcp",
    "http://mcp.example.com/mcp",
    "https://mcp.example.com/mcp#a",
    5,
  ]
) {
  refuses(`the resource ${resource}`, { resourceMetadata: (right) => ({ ...right, resource }) }, [String(resource)]);
}
for (
  const resource of [
    "https://mcp.example.com/mcp#",
    "https://mcp.example.com:443/mcp",
    "https://mcp.example.com/./mcp",
    "https://mcp.example.com/a/../mcp",
    "https://mcp.example.com/a/%2e%2e/mcp",
    "https://honest.example.com@mcp.example.com/mcp",
    "https://honest.example.com:443@mcp.example.com/mcp",
    "https://@mcp.example.com/mcp",
    "https:///mcp.example.com/mcp",
    "https:mcp.example.com/mcp",
    "https:\\\\mcp.example.com\\mcp",
    " https://mcp.example.com/mcp",
    "https://mcp.example.com/mcp\n",
    "https://mcp.example.com/m\tcp",
    "https://mcp.example\u3002com/mcp",
  ]
) {
  refuses(`the resource ${JSON.stringify(resource)}, which another program may read as another URL`, {
    resourceMetadata: (right) => ({ ...right, resource }),
  }, ["mcp.example", "resource"]);
}

Deno.test("a resource that the user has named once is not named again to renew, replace or revoke the tokens", async () => {
  const resource = "https://mcp.example.com";
  await using bed = new Bed({ resourceMetadata: (right) => ({ ...right, resource }) });
  const store = memoryTokens();
  await use(bed, { store, resource });
  const expire = (text: string | undefined) =>
    Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), expiresAt: 1 }));
  await store.update(`server ${bed.server}`, expire);
  await use(bed, { store });
  assertEquals(bed.forms.map(({ grant_type }) => grant_type), ["authorization_code", "refresh_token"]);
  await store.update(
    `server ${bed.server}`,
    (text) => Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), refreshToken: undefined, issuedAt: 0 })),
  );
  bed.revoke();
  await use(bed, { store });
  assertEquals(bed.visits.length, 2);
  assertEquals(await bed.signIn({ store }).signOut(bed.server), true);
  assertEquals(bed.seen.filter(({ url }) => url.endsWith("/revoke")).length, 2);
  await assertRejects(() => use(bed, { store }), Error, sentence(resource));
});

for (
  const [resource, named] of [
    ["https://mcp.example.com/", "https://mcp.example.com/mcp"],
    ["https://mcp.example.com/", "https://other.example.com/"],
    ["https://mcp.example.com/a/", "https://mcp.example.com/"],
    ["https://other.example.com/", "https://other.example.com/"],
    ["https://mcp.example.com/mcp/deeper", "https://mcp.example.com/mcp/deeper"],
  ]
) {
  refuses(
    `the resource ${resource} if the user has named ${named}`,
    { resourceMetadata: (right) => ({ ...right, resource }) },
    [resource],
    { resource: named },
  );
}

for (
  const [server, resource, named] of [
    ["https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp"],
    ["https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp?tenant=b"],
    ["https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp?"],
    ["https://mcp.example.com/?tenant=a", "https://mcp.example.com"],
    ["https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp", "https://mcp.example.com/mcp?tenant=a"],
  ]
) {
  refuses(
    `the resource ${resource} of the server ${server}${named ? ` if the user has named ${named}` : ""}`,
    { server, resourceMetadata: (right) => ({ ...right, resource }) },
    [resource],
    { resource: named },
  );
}

Deno.test("the resource may be the server's URL in another spelling, or a resource that the user has named", async () => {
  for (
    const [resource, server, named] of [
      ["https://mcp.example.com/mcp/", undefined],
      ["HTTPS://MCP.Example.com/mcp", undefined],
      ["https://mcp.example.com/%6dcp", undefined],
      ["https://mcp.example.com", "https://mcp.example.com/"],
      ["https://mcp.example.com", undefined, "https://mcp.example.com"],
      ["https://mcp.example.com/a/", "https://mcp.example.com/a/b/mcp", "https://mcp.example.com/a/"],
      ["https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp?tenant=a"],
      ["https://mcp.example.com/mcp/?tenant=a", "https://mcp.example.com/mcp?tenant=a"],
      ["https://mcp.example.com/mcp", "https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp"],
    ] as const
  ) {
    await using bed = new Bed({
      server,
      challenge: () => "Bearer",
      resourceMetadata: (right) => ({ ...right, resource }),
    });
    assertEquals(await use(bed, { resource: named }), "Hello!");
    assertEquals([bed.visits[0].get("resource"), bed.forms[0].resource], [resource, resource]);
  }
  const bed = new Bed();
  for (const resource of ["mcp.example.com", "", 5]) {
    assertThrows(() => bed.signIn({ resource } as never), TypeError, sentence("resource"));
  }
  await bed[Symbol.asyncDispose]();
});

refuses("the resource null", { resourceMetadata: (right) => ({ ...right, resource: null }) }, [
  "contains no resource;",
]);
refuses("no resource", { resourceMetadata: ({ resource: _, ...right }) => right }, ["contains no resource;"]);
for (const list of [[], "https://login.example.com", undefined, [5]]) {
  const name = `the authorization servers ${JSON.stringify(list)}`;
  refuses(name, { resourceMetadata: (right) => ({ ...right, authorization_servers: list }) });
}
refuses("metadata of another issuer", { metadata: (right) => ({ ...right, issuer: "https://evil.example.com" }) }, [
  "https://evil.example.com",
  "https://login.example.com",
]);
for (const issuer of ["https://login.example.com/", "https://LOGIN.example.com", "https://login.example.com:443"]) {
  refuses(`the issuer ${issuer} in another spelling`, { metadata: (right) => ({ ...right, issuer }) }, [
    issuer,
    "https://login.example.com",
  ]);
}
refuses("metadata that is named but does not exist", { resourceMetadata: () => undefined });
refuses("metadata that responds with an error", { metadata: () => new Response("", { status: 503 }) }, [503]);
refuses("an authorization server over http", { issuer: "http://login.example.com" }, ["http://login.example.com"]);
refuses("a server over http", { server: "http://mcp.example.com/mcp" }, ["http://mcp.example.com/mcp"]);
for (
  const host of [
    "localhost",
    "127.0.0.1:8080",
    "10.0.0.1",
    "[::1]",
    "169.254.169.254",
    "192.168.1.1",
    "[fd00::1]",
    "[::ffff:10.0.0.1]",
    "db.internal",
    "intranet",
    "0x7f.1",
    "[2002:7f00:1::]",
  ]
) {
  refuses(`an authorization server in a private network (${host})`, { issuer: `https://${host}` }, [`https://${host}`]);
}
refuses("metadata in a private network", { challenge: () => 'Bearer resource_metadata="https://10.0.0.1/x"' }, [
  "https://10.0.0.1",
]);
refuses(
  "a token endpoint in a private network",
  { metadata: (right) => ({ ...right, token_endpoint: "https://10.0.0.1/token" }) },
  ["https://10.0.0.1"],
  { visits: 1 },
);
refuses("an authorization page whose URL is a script", {
  metadata: (right) => ({ ...right, authorization_endpoint: "javascript:alert(1)" }),
}, ["javascript:alert(1)"]);
refuses("no PKCE", { metadata: ({ code_challenge_methods_supported: _, ...right }) => right }, ["PKCE", "S256"]);
refuses("PKCE without S256", { metadata: (right) => ({ ...right, code_challenge_methods_supported: ["plain"] }) }, [
  "PKCE",
  "S256",
]);
refuses("endless redirects", {
  metadata: (_, { href }) => new Response(null, { status: 302, headers: { location: href } }),
}, [5]);
refuses("a redirect to another origin", {
  metadata: () => new Response(null, { status: 302, headers: { location: "https://evil.example.com/x" } }),
}, ["https://evil.example.com"]);
refuses("huge metadata", { metadata: (right) => ({ ...right, filler: "x".repeat(2_000_000) }) }, [
  "https://login.example.com/.well-known/oauth-authorization-server",
  1048576,
]);
refuses("an authorization server without client registration", {
  metadata: ({ registration_endpoint: _, ...right }) => right,
}, ["https://login.example.com"]);
for (const registration of [{}, { client_id: 5 }, { client_id: "" }]) {
  refuses(`the registration ${JSON.stringify(registration)}`, { registration: () => registration }, ["client_id"]);
}
refuses("a registration that is refused", {
  registration: () =>
    Response.json({ error: "invalid_redirect_uri", error_description: "not\u001b[31m here" }, { status: 400 }),
}, ["invalid_redirect_uri", "not\\u{1b}[31m here"]);
refuses("a client of another authorization server", {}, ["https://other.example.com", "https://login.example.com"], {
  client: { id: "a", issuer: "https://other.example.com" },
});

// The redirect after a sign-in.
const back = (change: (url: URL) => void) => (url: URL) => {
  change(url);
  return url.href;
};
refuses("no state", { back: back((url) => url.searchParams.delete("state")) }, ["state"], { visits: 1 });
refuses("a replayed state", { back: back((url) => url.searchParams.set("state", "old")) }, ["state"], { visits: 1 });
refuses("a second state", { back: back((url) => url.searchParams.append("state", "old")) }, ["state"], { visits: 1 });
refuses("no iss", { back: back((url) => url.searchParams.delete("iss")) }, ["iss"], { visits: 1 });
for (const wrong of ["https://evil.example.com", "https://login.example.com/", "HTTPS://login.example.com", ""]) {
  refuses(`the iss ${wrong}`, { back: back((url) => url.searchParams.set("iss", wrong)) }, ["iss"], { visits: 1 });
}
refuses(
  "an iss that the metadata does not announce",
  {
    metadata: ({ authorization_response_iss_parameter_supported: _, ...right }) => right,
    back: back((url) => url.searchParams.set("iss", "https://evil.example.com")),
  },
  ["iss"],
  { visits: 1 },
);
refuses("another address", { back: (url) => url.href.replace("/callback", "/other") }, [], { visits: 1 });
refuses("no address", { back: () => "nonsense" }, [], { visits: 1 });
refuses("a user who cancels", { back: () => Promise.reject(new Error("closed the window")) }, ["closed the window"], {
  visits: 1,
});
refuses("a user who takes too long", { back: () => new Promise(() => {}) }, ["20 ms"], { visits: 1, signInMs: 20 });
refuses(
  "an error of the authorization server",
  {
    back: back((url) => {
      url.searchParams.set("error", "access_denied");
      url.searchParams.set("error_description", "No\u202e.");
    }),
  },
  ["access_denied", "No\\u{202e}."],
  { visits: 1 },
);

Deno.test("refused: an error from another authorization server, whose text is not shown", async () => {
  await using bed = new Bed({
    back: back((url) => {
      for (const [name, value] of [["iss", "https://evil.example.com"], ["error", "evil_text"]]) {
        url.searchParams.set(name, value);
      }
    }),
  });
  const error = await assertRejects(() => use(bed), Error);
  assertEquals(error.message.includes("evil_text"), false);
});

// The token response.
type TokenResponse = (right: Record<string, unknown>) => Record<string, unknown> | Response;
const tokens: readonly (readonly [string, TokenResponse, ...names: (string | number)[]])[] = [
  ["no token", ({ access_token: _, ...right }) => right, "access_token"],
  ["an empty token", (right) => ({ ...right, access_token: "" }), "access_token"],
  ["a token that is not a text", (right) => ({ ...right, access_token: 5 }), "access_token"],
  ["an unknown token type", (right) => ({ ...right, token_type: "mac" }), "token_type"],
  ["no token type", ({ token_type: _, ...right }) => right, "token_type"],
  ["a scope that is not a text", (right) => ({ ...right, scope: ["a"] }), "scope"],
  ["a negative expiry", (right) => ({ ...right, expires_in: -5 }), "expires_in"],
  [
    "a refused code",
    () => Response.json({ error: "invalid_grant", error_description: "expired" }, { status: 400 }),
    "invalid_grant",
    "expired",
  ],
  [
    "a redirect",
    () => new Response(null, { status: 307, headers: { location: "https://evil.example.com/token" } }),
    307,
  ],
  ["a page", () => new Response("<html>", { headers: { "content-type": "text/html" } }), 200],
  ["a failure", () => new Response("", { status: 500 }), 500],
  ["a huge response", (right) => ({ ...right, filler: "x".repeat(2_000_000) }), "https://login.example.com/", 1048576],
];
for (const [name, token, ...names] of tokens) {
  refuses(`the token endpoint gives ${name}`, { token }, names, { visits: 1, forms: 1 });
}
refuses("a bearer token in response to a request for a bound token", {}, [], { visits: 1, forms: 1, dpop: true });

Deno.test("refused: a token that a header cannot contain, and the error does not contain the token", async () => {
  for (const odd of ["a\r\nb: c", "a b", "\u00e9"]) {
    await using bed = new Bed({ token: (right) => ({ ...right, access_token: odd }) });
    const error = await assertRejects(() => use(bed), Error);
    assertEquals(error.message.includes(odd), false);
  }
});

Deno.test("aborting a request ends the sign-in, even while the token endpoint does not respond", async () => {
  const asked = Promise.withResolvers<void>();
  await using bed = new Bed({ token: () => (asked.resolve(), new Promise(() => {})) });
  const stop = new AbortController();
  const connecting = assertRejects(() => bed.connect(bed.signIn(), { signal: stop.signal }), Error, "enough");
  await asked.promise;
  stop.abort(new Error("enough"));
  await connecting;
});

// After the sign-in: renewal, revocation and stored tokens.
Deno.test("a sign-in that starts only after its request was aborted ends at once", async () => {
  await using bed = new Bed();
  const stop = new AbortController();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const userAgent = async (start: SignInStart) => {
    asked.resolve();
    await gate;
    return await bed.userAgent(start);
  };
  const connecting = bed.connect(bed.signIn({ userAgent }), { signal: stop.signal });
  await asked.promise;
  const reason = new Error("enough");
  stop.abort(reason);
  await assertRejects(() => connecting, Error, "enough");
  assertEquals(bed.ends, []);
  open();
  await until(() => bed.ends.length === 1, "the late sign-in has ended");
  assertEquals([bed.visits.length, bed.forms.length], [0, 0]);
});

Deno.test("all connections share one renewal request, and the renewal can return the same refresh token", async () => {
  for (const rotates of [true, false]) {
    await using bed = new Bed({
      token: ({ refresh_token, ...right }, form) =>
        rotates || form.grant_type !== "refresh_token" ? { ...right, refresh_token } : right,
    });
    const store = memoryTokens();
    assertEquals(await use(bed, { store }), "Hello!");
    for (let round = 1; round <= 2; round++) {
      await store.update(
        `server ${bed.server}`,
        (text) => Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), expiresAt: Date.now() + 5000 })),
      );
      const auth = bed.signIn({ store });
      assertEquals(
        await Promise.all([
          use(bed, { store }),
          use(bed, { store }),
          bed.connect(auth).then((client) => client.close()),
        ]),
        ["Hello!", "Hello!", undefined],
      );
      assertEquals(bed.forms.filter(({ grant_type }) => grant_type === "refresh_token").length, round);
    }
    const { resource, scope } = bed.forms.at(-1) ?? {};
    assertEquals([bed.visits.length, resource, scope], [1, bed.server, undefined]);
    checkSecrets(bed);
  }
});

Deno.test("an invalid refresh token leads to a new sign-in, but a failing authorization server does not", async () => {
  let answer: (() => Response) | undefined;
  await using bed = new Bed({
    token: (right, form) => form.grant_type === "refresh_token" && answer ? answer() : right,
  });
  const store = memoryTokens();
  await useAndExpire(bed, store);
  answer = () => new Response("", { status: 503 });
  await assertRejects(() => use(bed, { store }), Error, sentence(bed.issuer, 503));
  assert(await bed.signIn({ store }).info(bed.server), "the user was signed out");
  assertEquals(bed.visits.length, 1);
  answer = () => Response.json({ error: "invalid_grant" }, { status: 400 });
  assertEquals([await use(bed, { store }), bed.visits.length], ["Hello!", 2]);
});

Deno.test("a client that the authorization server no longer knows registers again", async () => {
  let error = "invalid_grant";
  await using bed = new Bed({
    token: (right, form) => form.grant_type === "refresh_token" ? Response.json({ error }, { status: 400 }) : right,
  });
  const store = memoryTokens();
  const listClients = () => bed.visits.map((visit) => visit.get("client_id"));
  await useAndExpire(bed, store);
  await useAndExpire(bed, store);
  const [first] = listClients();
  error = "invalid_client";
  assertEquals(await use(bed, { store }), "Hello!");
  const last = listClients().at(-1);
  assertNotEquals(last, first);
  assertEquals(listClients(), [first, first, last]);
});

const basic = { "www-authenticate": 'Basic realm="login"' };
for (
  const [name, answer] of [
    ["status 200 and a code of its own", () => Response.json({ error: "bad_refresh_token" })],
    ["status 201 and an empty token", () => Response.json({ error: "expired", access_token: "" }, { status: 201 })],
    ["a code of its own", () => Response.json({ error: "token_is_old" }, { status: 400 })],
    ["an error that is an object", () => Response.json({ error: { message: "session expired" } }, { status: 400 })],
    ["a page", () => new Response("<html>", { status: 400, headers: { "content-type": "text/html" } })],
    ["no body", () => new Response(null, { status: 400 })],
    ["a code in a text", () => new Response('{"error":"invalid_grant"}', { status: 403 })],
    ["a code beside a challenge", () => Response.json({ error: "invalid_client" }, { status: 403, headers: basic })],
    ["a challenge", () => new Response(null, { status: 401, headers: basic })],
  ] as const
) {
  Deno.test(`a renewal that the authorization server refuses with ${name} leads to a new sign-in`, async () => {
    await using bed = new Bed({ token: (right, form) => form.grant_type === "refresh_token" ? answer() : right });
    const store = memoryTokens();
    await useAndExpire(bed, store);
    assertEquals([await use(bed, { store }), bed.visits.length], ["Hello!", 2]);
  });
}

for (
  const [name, answer] of [
    ["temporarily_unavailable", () => Response.json({ error: "temporarily_unavailable" })],
    ["slow_down", () => Response.json({ error: "slow_down" }, { status: 429 })],
    ["429", () => new Response(null, { status: 429 })],
    ["502", () => Response.json({ error: "no_upstream" }, { status: 502 })],
  ] as const
) {
  Deno.test(`a renewal that fails with ${name} does not end the grant`, async () => {
    await using bed = new Bed({ token: (right, form) => form.grant_type === "refresh_token" ? answer() : right });
    const store = memoryTokens();
    await useAndExpire(bed, store);
    await assertRejects(() => use(bed, { store }), Error, sentence(bed.issuer, name));
    assertEquals([(await bed.signIn({ store }).info(bed.server))?.issuer, bed.visits.length], [bed.issuer, 1]);
  });
}

refuses(
  "a code that the token endpoint refuses with status 200",
  { token: () => Response.json({ error: "bad_verification_code", error_description: "The code is incorrect." }) },
  ["bad_verification_code", "The code is incorrect."],
  { visits: 1, forms: 1 },
);
refuses(
  "a refusal with status 200 that repeats the secrets of the request",
  { token: (_, form) => Response.json({ error: "bad_code", error_description: `${form.code} ${form.code_verifier}` }) },
  ["bad_code"],
  { visits: 1, forms: 1 },
);
refuses("a registration that is refused with status 200", {
  registration: () => Response.json({ error: "invalid_client_metadata" }),
}, ["invalid_client_metadata"]);

Deno.test("a request fails without a second sign-in if the server refuses a token that was just issued", async () => {
  await using bed = new Bed({ token: (right) => ({ ...right, access_token: "not-accepted" }) });
  await assertRejects(() => use(bed), Error, sentence(bed.server, bed.issuer));
  assertEquals(bed.visits.length, 1);
});

Deno.test("a token whose issue time is in the future because of a wrong clock is renewed when the server refuses the token", async () => {
  await using bed = new Bed();
  const store = memoryTokens();
  await use(bed, { store });
  await store.update(`server ${bed.server}`, (text) => {
    const issuedAt = Date.now() + 3_600_000;
    return Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), issuedAt, expiresAt: issuedAt + 3_600_000 }));
  });
  bed.revoke();
  assertEquals(await use(bed, { store }), "Hello!");
  assertEquals([bed.visits.length, bed.forms.at(-1)?.grant_type], [1, "refresh_token"]);
});

Deno.test("tokens are renewed and revoked even if only the challenge contains the URL of the resource metadata", async () => {
  const place = "https://mcp.example.com/.well-known/oauth-protected-resource/elsewhere";
  await using bed = new Bed({
    challenge: (right) => right.replace(/resource_metadata="[^"]*"/, `resource_metadata="${place}"`),
    resourceMetadata: (right, url) => url.href === place ? right : undefined,
  });
  const store = memoryTokens();
  await use(bed, { store });
  for (let round = 1; round <= 2; round++) {
    await expire(bed, store);
    assertEquals(await use(bed, { store }), "Hello!");
    assertEquals([bed.visits.length, bed.forms.length, bed.forms.at(-1)?.grant_type], [1, round + 1, "refresh_token"]);
  }
  await bed.signIn({ store }).signOut(bed.server);
  assertEquals(bed.seen.filter(({ url }) => url === `${bed.issuer}/revoke`).length, 2);
  checkSecrets(bed);
});

Deno.test("tokens for one server, issuer or client are never used for another server, issuer or client", async () => {
  const store = memoryTokens();
  await using first = new Bed();
  await use(first, { store });
  await using elsewhere = new Bed({ server: "https://other.example.com/mcp" });
  await use(elsewhere, { store });
  await using moved = new Bed({ issuer: "https://new.example.com" });
  await use(moved, { store });
  await using client = new Bed();
  await use(client, { store, client: { id: "by-hand" } });
  for (const bed of [first, elsewhere, moved, client]) {
    assertEquals(bed.visits.length, 1);
    checkSecrets(bed);
  }
  const foreign = [...first.secrets, ...elsewhere.secrets];
  // Exclude requests to the server, which received the old token once: the client cannot know that the authorization
  // server has changed.
  const atIssuer = moved.seen.filter(({ url }) => url !== moved.server);
  assertEquals(atIssuer.filter(({ body }) => foreign.some((secret) => body.includes(secret))), []);
  assertEquals(new Set(moved.visits.map((params) => params.get("client_id"))).size, 1);
});

Deno.test("a manually registered client belongs to the authorization server of its first sign-in", async () => {
  const store = memoryTokens();
  const client = { id: "by-hand" };
  await using bed = new Bed();
  await useAndExpire(bed, store, { client });
  await using moved = new Bed({ issuer: "https://new.example.com" });
  await assertRejects(() => use(moved, { store, client }), Error, sentence(bed.issuer, moved.issuer));
  assertEquals([moved.visits, moved.forms], [[], []]);
  await moved.signIn({ store, client }).signOut(moved.server);
  await use(moved, { store, client });
  assertEquals(moved.visits.length, 1);
});

Deno.test("signing out deletes the tokens, and revokes the tokens only at the authorization server that issued them", async () => {
  await using bed = new Bed();
  const auth = bed.signIn();
  await (await bed.connect(auth)).close();
  assertEquals([await auth.signOut(bed.server), await auth.signOut(bed.server)], [true, false]);
  const revoked = bed.seen.filter(({ url }) => url === `${bed.issuer}/revoke`);
  assertEquals(revoked.map(({ body }) => new URLSearchParams(body).get("token")?.split("-")[0]), ["refresh", "token"]);
  checkSecrets(bed);
});

Deno.test("a private server can use a private authorization server; plain http is allowed only on loopback", async () => {
  await using bed = new Bed({ server: "http://localhost:9/mcp", issuer: "http://127.0.0.1:9" });
  assertEquals(await use(bed), "Hello!");
  await using intranet = new Bed({ server: "https://mcp.internal/mcp", issuer: "https://10.0.0.1" });
  assertEquals(await use(intranet), "Hello!");
});

Deno.test("HTML pages at well-known URLs count as missing metadata", async () => {
  const html = () => new Response("<html>", { headers: { "content-type": "text/html" } });
  await using bed = new Bed({
    challenge: () => "Bearer",
    resourceMetadata: (right, { pathname }) => pathname.endsWith("/mcp") ? html() : right,
    metadata: (right, { pathname }) => pathname.includes("openid") ? right : html(),
  });
  assertEquals(await use(bed), "Hello!");
});

// Responses that contain a secret.
Deno.test("an error contains no secret, even if the authorization server's response does", async () => {
  const store = memoryTokens();
  let isRepeating = false;
  const sent: string[] = [];
  await using bed = new Bed({
    token: (right, form) => {
      sent.push(...[form.code, form.code_verifier, form.refresh_token, form.client_secret].filter(Boolean));
      const description = `no ${sent.join(" ")}`;
      return isRepeating
        ? Response.json({ error: "server_error", error_description: description }, { status: 400 })
        : right;
    },
  });
  const options = { store, client: { id: "a", secret: "client-secret", issuer: bed.issuer } };
  await useAndExpire(bed, store, options);
  isRepeating = true;
  for (const each of [options, { client: options.client }]) {
    sent.length = 0;
    const error = await assertRejects(() => use(bed, each), Error, "server_error");
    assert(sent.length > 0);
    assertEquals(sent.filter((secret) => error.message.includes(secret)), []);
  }
});

Deno.test("an error contains no token, even if the server's challenge does", async () => {
  await using bed = new Bed({
    token: (right) => ({ ...right, access_token: "secret-token" }),
    challenge: (right) => `${right}, error="invalid_token", error_description="secret-token \\\\u is bad"`,
  });
  const error = await assertRejects(() => use(bed), Error, sentence(bed.server, bed.issuer));
  assertEquals(error.message.includes("secret-token"), false);
});

Deno.test("the user signs in again if the server refuses a renewed token", async () => {
  await using bed = new Bed({
    token: (right, form) => form.grant_type === "refresh_token" ? { ...right, access_token: "not-accepted" } : right,
  });
  const store = memoryTokens();
  await useAndExpire(bed, store);
  assertEquals(await use(bed, { store }), "Hello!");
  assertEquals(bed.forms.map(({ grant_type }) => grant_type), [
    "authorization_code",
    "refresh_token",
    "authorization_code",
  ]);
});

Deno.test("the client ignores other redirect URIs in the registration response", async () => {
  await using bed = new Bed({ registration: (right) => ({ ...right, redirect_uris: ["https://evil.example.com/x"] }) });
  assertEquals(await use(bed), "Hello!");
  const redirectUri = `http://127.0.0.1:7777${bed.starts[0].path}`;
  assertEquals([bed.visits[0].get("redirect_uri"), bed.forms[0].redirect_uri], [redirectUri, redirectUri]);
});

Deno.test("mix-up: a client that registers itself has a redirect path for each issuer, and other clients have one path", async () => {
  const paths = new Map<string, string>();
  for (const issuer of ["https://login.example.com", "https://other.example.com", "https://evil.example.com"]) {
    for (let time = 0; time < 2; time++) {
      await using bed = new Bed({ issuer });
      await use(bed);
      const [{ issuer: named, path }] = bed.starts;
      assertEquals([named, paths.get(issuer) ?? path], [issuer, path], "the same path in each sign-in");
      assert(/^\/callback\/[\w-]{22}$/.test(path), path);
      paths.set(issuer, path);
    }
  }
  assertEquals(new Set(paths.values()).size, 3);
  const clientMetadataUrl = "https://client.example.com/metadata.json";
  const metadata = (right: Record<string, unknown>) => ({ ...right, client_id_metadata_document_supported: true });
  for (
    const [wrong, options] of [
      [{}, { client: { id: "known" } }],
      [{ metadata }, { clientMetadataUrl }],
    ] as const
  ) {
    await using bed = new Bed(wrong);
    await use(bed, options);
    assertEquals(bed.starts[0].path, "/callback");
  }
  await using other = new Bed();
  await use(other, { clientMetadataUrl });
  assertEquals(other.starts[0].path, paths.get("https://login.example.com"));
});

Deno.test("mix-up: a redirect to the path of another issuer is refused", async () => {
  await using honest = new Bed();
  await use(honest);
  const [{ path }] = honest.starts;
  const evil = "https://evil.example.com";
  for (const place of [path, "/callback", `${path}/`]) {
    const moved = (url: URL) => Object.assign(new URL(url), { pathname: place }).href;
    await using bed = new Bed({
      issuer: evil,
      metadata: ({ authorization_response_iss_parameter_supported: _, ...right }) => ({
        ...right,
        authorization_endpoint: "https://login.example.com/authorize",
      }),
      back: (url) => {
        url.searchParams.delete("iss");
        return moved(url);
      },
    });
    assertEquals((await assertRejects(() => use(bed), Error)).message, sentence(bed.starts[0].path));
    assertEquals(bed.forms, [], place);
  }
});

Deno.test("mix-up: the user agent gets the host of the sign-in page if it is not the issuer's host", async () => {
  for (
    const [endpoint, pageHost] of [
      ["https://login.example.com/authorize", undefined],
      ["https://LOGIN.example.com:443/oauth/authorize", undefined],
      ["https://login.example.com:8443/authorize", "login.example.com:8443"],
      ["https://honest.example.com/authorize", "honest.example.com"],
      ["https://login.example.com.evil.example/", "login.example.com.evil.example"],
    ] as const
  ) {
    await using bed = new Bed({ metadata: (right) => ({ ...right, authorization_endpoint: endpoint }) });
    await use(bed);
    const [page] = bed.pages;
    assertEquals([page.issuer, page.pageHost], ["https://login.example.com", pageHost]);
  }
});

Deno.test("mix-up: a code from another authorization server is not sent to the authorization server of the sign-in", async () => {
  await using bed = new Bed({
    metadata: ({ authorization_response_iss_parameter_supported: _, ...right }) => ({
      ...right,
      authorization_endpoint: "https://honest.example.com/authorize",
    }),
    back: back((url) => url.searchParams.set("iss", "https://honest.example.com")),
  });
  await assertRejects(() => use(bed), Error, "iss");
  assertEquals(bed.forms, []);
});

// A malicious issuer can redirect the browser from its own sign-in page to the page of another authorization server. The
// code in the redirect is then from that authorization server, which may send no `iss`.
type Announces = boolean | "true";
const document = "https://client.example.com/metadata.json";
const mixUps: readonly (readonly [
  name: string,
  options: Partial<SignInOptions>,
  facts: { readonly announces: Announces; readonly iss: boolean; readonly registers?: boolean },
  outcome: "accepted" | "refused before the sign-in" | "refused after the sign-in",
  clientId?: string,
])[] = [
  ["a document", { clientMetadataUrl: document }, { announces: true, iss: true }, "accepted", document],
  ["a document", { clientMetadataUrl: document }, { announces: true, iss: false }, "refused after the sign-in"],
  ["a document", { clientMetadataUrl: document }, { announces: false, iss: true }, "refused before the sign-in"],
  ["a document", { clientMetadataUrl: document }, { announces: "true", iss: true }, "refused before the sign-in"],
  [
    "a document, and the authorization server registers clients",
    { clientMetadataUrl: document },
    { announces: false, iss: false, registers: true },
    "accepted",
    "client-1",
  ],
  ["an id", { client: { id: "known" } }, { announces: true, iss: true }, "accepted", "known"],
  ["an id", { client: { id: "known" } }, { announces: true, iss: false }, "refused after the sign-in"],
  ["an id", { client: { id: "known" } }, { announces: false, iss: true }, "refused before the sign-in"],
  [
    "an id, and the authorization server registers clients",
    { client: { id: "known" } },
    { announces: false, iss: false, registers: true },
    "refused before the sign-in",
  ],
  [
    "an id and an issuer",
    { client: { id: "known", issuer: "https://login.example.com" } },
    { announces: false, iss: false },
    "accepted",
    "known",
  ],
  [
    "the URL of a document and an issuer",
    { client: { id: document, issuer: "https://login.example.com" } },
    { announces: false, iss: false },
    "accepted",
    document,
  ],
  ["neither an id nor a document", {}, { announces: false, iss: false, registers: true }, "accepted", "client-1"],
];
for (const [name, options, { announces, iss, registers = false }, outcome, clientId] of mixUps) {
  const facts = [`the metadata announces iss: ${announces}`, `the redirect contains iss: ${iss}`].join(", ");
  Deno.test(`mix-up: a client with ${name} is ${outcome} (${facts})`, async () => {
    await using bed = new Bed({
      metadata: ({ registration_endpoint: endpoint, ...right }) => ({
        ...right,
        ...registers ? { registration_endpoint: endpoint } : {},
        client_id_metadata_document_supported: true,
        authorization_response_iss_parameter_supported: announces,
      }),
      back: back((url) => iss || url.searchParams.delete("iss")),
    });
    if (outcome === "accepted") {
      assertEquals(await use(bed, options), "Hello!");
      assertEquals(bed.forms[0].client_id, clientId);
      return;
    }
    const isBefore = outcome === "refused before the sign-in";
    const { message } = await assertRejects(() => use(bed, options), Error);
    assertEquals(message, isBefore ? sentence(bed.server, `"${bed.issuer}"`, "--issuer") : sentence(bed.server, "iss"));
    assertEquals([bed.starts.length, bed.visits.length, bed.forms.length], isBefore ? [0, 0, 0] : [1, 1, 0]);
  });
}

for (
  const id of [
    document,
    document.replace("https", "HTTPS"),
    document.replace("client", "CLIENT"),
    document.replace(".com", ".com:443"),
    document.replace("//", "//user@"),
    document.replace("m/", "m/a/../"),
    document.replace("/m", "/%6d"),
    `${document}#`,
    `${document}#a`,
    `${document}?`,
    ` ${document}`,
    `${document}\n`,
  ]
) {
  refuses(
    `a registration whose id is the metadata document that the client must not use here: ${JSON.stringify(id)}`,
    {
      metadata: (right) => ({
        ...right,
        client_id_metadata_document_supported: true,
        authorization_response_iss_parameter_supported: false,
      }),
      registration: (right) => ({ ...right, client_id: id }),
    },
    ["https://login.example.com", "client_id"],
    { clientMetadataUrl: document },
  );
}

for (const missing of ["iss", "state"]) {
  Deno.test(`refused: an error without ${missing}, whose text is not shown`, async () => {
    await using bed = new Bed({
      back: back((url) => {
        url.searchParams.delete(missing);
        url.searchParams.delete("code");
        for (const name of ["error", "error_description", "error_uri"]) url.searchParams.set(name, "evil_text");
      }),
    });
    const error = await assertRejects(() => use(bed), Error);
    assertEquals([error.message.includes("evil_text"), bed.forms.length], [false, 0]);
  });
}

Deno.test("every request to the server contains the token, and no URL contains the token", async () => {
  await using bed = new Bed();
  await use(bed);
  const atServer = bed.seen.filter(({ url }) => url === bed.server);
  const [token] = [...bed.secrets].filter((secret) => secret.startsWith("token-"));
  assertEquals(atServer[0].authorization, null);
  assert(atServer.length > 2);
  for (const { authorization } of atServer.slice(1)) assertEquals(authorization, `Bearer ${token}`);
  checkSecrets(bed);
});

Deno.test("without a refresh token, an expired token leads to a new sign-in", async () => {
  await using bed = new Bed({ token: ({ refresh_token: _, ...right }) => right });
  const store = memoryTokens();
  await use(bed, { store });
  assertEquals((await bed.signIn({ store }).info(bed.server))?.canRefresh, false);
  bed.revoke();
  await expire(bed, store);
  assertEquals([await use(bed, { store }), bed.visits.length], ["Hello!", 2]);
});

Deno.test("without the user, a token is renewed with its refresh token, but nobody signs in", async () => {
  for (const hasRefreshToken of [true, false]) {
    await using bed = new Bed({
      token: ({ refresh_token, ...right }) => hasRefreshToken ? { ...right, refresh_token } : right,
    });
    const store = memoryTokens();
    const auth = bed.signIn({ store });
    const refresh = (interactive: boolean) => {
      const challenge = { url: bed.server, status: 401, header: "Bearer", params: {} };
      return auth.refresh?.(challenge, { signal: new AbortController().signal, interactive });
    };
    assertEquals([await refresh(false), bed.visits.length], [false, 0]);
    await useAndExpire(bed, store);
    assertEquals([await refresh(false), bed.visits.length], [hasRefreshToken, 1]);
  }
});

// A program with one redirect URI has the same redirect URI at every authorization server. A malicious issuer can then
// answer the registration with the program's client id at an honest authorization server, and get a code of that server.
const redirects: readonly (readonly [name: string, toUri: (path: string) => string, isOwn: boolean])[] = [
  ["the path", (path) => `https://app.example.com${path}`, true],
  ["the last segment of the path", (path) => `https://app.example.com/oauth${path.slice(9)}`, true],
  ["a scheme of its own", (path) => `com.example.app:${path}`, true],
  ["one path", () => "https://app.example.com/oauth/callback", false],
  ["a scheme of its own and one path", () => "com.example.app:/callback", false],
  ["the path as a query", (path) => `https://app.example.com/oauth?to=${path}`, false],
  ["the path as a fragment", (path) => `https://app.example.com/oauth#${path}`, false],
  ["a shorter path", (path) => `https://app.example.com${path.slice(0, -1)}`, false],
  ["a longer path", (path) => `https://app.example.com${path}/back`, false],
  ["the end of the path in a longer segment", (path) => `https://app.example.com/x${path.slice(10)}`, false],
];
for (const [name, toUri, isOwn] of redirects) {
  for (const announces of [true, false]) {
    const isAccepted = isOwn || announces;
    const facts = `if the metadata ${announces ? "announces" : "does not announce"} iss`;
    Deno.test(`${isAccepted ? "accepted" : "refused"}: a redirect URI with ${name}, ${facts}`, async () => {
      await using bed = new Bed({
        metadata: (right, url) =>
          url.pathname.includes("oauth-authorization")
            ? { ...right, authorization_response_iss_parameter_supported: announces }
            : undefined,
        back: back((url) => announces || url.searchParams.delete("iss")),
      });
      const userAgent: SignInOptions["userAgent"] = async (start) => ({
        ...await bed.userAgent(start),
        redirectUri: toUri(start.path),
      });
      if (isAccepted) return assertEquals(await use(bed, { userAgent }), "Hello!");
      await assertRejects(() => use(bed, { userAgent }), Error, sentence("path", "{ id, issuer", bed.issuer));
      const registrations = bed.seen.filter(({ url }) => url.endsWith("/register"));
      assertEquals([bed.visits, registrations, bed.ends.length], [[], [], 1]);
    });
  }
}

for (const redirectUri of ["http://app.example.com/back", "http://127.0.0.1.example.com/back", "nonsense"]) {
  Deno.test(`refused: the redirect URI ${redirectUri}`, async () => {
    await using bed = new Bed();
    const userAgent: SignInOptions["userAgent"] = async (start) => ({
      ...await bed.userAgent(start),
      redirectUri,
    });
    await assertRejects(() => use(bed, { userAgent }), Error, sentence(redirectUri));
    assertEquals([bed.visits.length, bed.seen.filter(({ url }) => url.endsWith("/register")).length], [0, 0]);
  });
}

Deno.test("the client id is the client metadata URL if the authorization server supports such ids; otherwise, the client registers itself", async () => {
  const clientMetadataUrl = "https://app.example.com/client.json";
  for (const isSupported of [true, false]) {
    await using bed = new Bed({
      metadata: (right) => ({ ...right, client_id_metadata_document_supported: isSupported }),
    });
    assertEquals(await use(bed, { clientMetadataUrl }), "Hello!");
    assertEquals(bed.visits[0].get("client_id") === clientMetadataUrl, isSupported);
    assertEquals(bed.forms[0].client_id, bed.visits[0].get("client_id"));
    assertEquals(bed.seen.filter(({ url }) => url.endsWith("/register")).length, isSupported ? 0 : 1);
  }
  await using bed = new Bed();
  for (
    const odd of ["http://app.example.com/client.json", "https://app.example.com", "https://app.example.com/a#b", "a"]
  ) {
    assertThrows(() => bed.signIn({ clientMetadataUrl: odd }), TypeError, sentence("signIn()", "clientMetadataUrl"));
  }
});
