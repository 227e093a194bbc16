// The clients of an authorization server: redirect URIs, metadata documents, registrations and assertions.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { type Client, Clients, type ClientsOptions, OAuthError } from "../../src/auth/oauth/proxy/clients.ts";
import { ASSERTION_TYPE } from "../../src/auth/oauth/proxy/client_assertions.ts";
import { MetadataDocuments } from "../../src/auth/oauth/proxy/metadata_documents.ts";
import {
  findRedirectProblem,
  isLoopbackRedirect,
  knownRedirects,
  RedirectRules,
} from "../../src/auth/oauth/proxy/redirect_uris.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { random } from "../support/random.ts";

const OWN = new URL("https://mcp.example.com/mcp");
const ID = "https://app.example.com/client.json";
const CALLBACK = "https://app.example.com/callback";
const PEER = "198.51.100.7";

// Redirect URIs

const CUSTOM = "cursor://anysphere.cursor-mcp/oauth/callback";
const LISTED = ["https://hosted.example.com/cb?x=1", "https://hosted.example.com/oauth/callback", CUSTOM];

function toClient(redirectUris: readonly string[], parts: Partial<Client> = {}): Client {
  return { id: "c", name: "App", redirectUris, isDocument: false, authMethod: "none", ...parts };
}

Deno.test("the list of known redirect URIs is valid, and accepted by default", () => {
  const rules = new RedirectRules();
  for (const uri of knownRedirects) assertEquals(rules.findProblem(uri, toClient([uri])), undefined, uri);
  assertEquals(new Set(knownRedirects).size, knownRedirects.length);
});

Deno.test("MUST refuse a list with a redirect URI that is dangerous or not absolute", () => {
  for (
    const uri of [
      ...["/callback", "callback", "", "//example.com/cb", "https://", "http://example.com/cb", "https://a.b/c#d", "#"],
      ...[
        "https://u:p@a.b/c",
        "https://u@a.b/c",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "java\nscript:alert(1)",
      ],
      ...["data:text/html,x", "file:///etc/passwd", "blob:https://a.b/c", "about:blank", "vbscript:x", "ws://a.b/c"],
      ...[" https://a.b/c", "https://a.b/c ", "https://A.b/c", "https://a.b:443/c", "https://a.b/../c", "https:a.b/c"],
      ...["https:\\\\a.b\\c", "https://a.b/\u200bc", "https://a.b/ü", "https://0x7f.1/c", "view-source:https://a.b/c"],
      `https://a.b/${"c".repeat(2000)}`,
    ]
  ) {
    assertThrows(() => new RedirectRules([uri]), TypeError, JSON.stringify(uri).slice(0, 10), uri);
  }
  const valid = ["https://a.b/c", "https://a.b", "com.example.app:/cb", "cursor://a.b/c", "http://localhost:1/c"];
  for (const uri of valid) assertEquals(new RedirectRules([uri]).findProblem(uri, toClient([uri])), undefined);
});

const ACCEPTED: readonly (readonly [uri: string, own: string])[] = [
  ...LISTED.map((uri) => [uri, uri] as const),
  ["http://127.0.0.1:33418", "http://127.0.0.1:33418"],
  ["http://127.0.0.1:50123/cb", "http://127.0.0.1/cb"],
  ["http://127.0.0.1/cb", "http://127.0.0.1:1/cb"],
  ["http://localhost:65535/cb?a=b", "http://localhost:8787/cb?a=b"],
  ["http://localhost:80/cb", "http://localhost/cb"],
  ["http://[::1]:1/", "http://[::1]:2/"],
];

const REFUSED: readonly (readonly [name: string, uri: string, own?: string])[] = [
  ["a prefix", "https://hosted.example.com/oauth"],
  ["an appended path", "https://hosted.example.com/oauth/callback/x"],
  ["an appended slash", "https://hosted.example.com/oauth/callback/"],
  ["an appended query", "https://hosted.example.com/oauth/callback?next=https://evil.example"],
  ["an empty query", "https://hosted.example.com/oauth/callback?"],
  ["another query", "https://hosted.example.com/cb?x=2"],
  ["a fragment", "https://hosted.example.com/oauth/callback#a"],
  ["an empty fragment", "https://hosted.example.com/oauth/callback#"],
  ["another port", "https://hosted.example.com:8443/oauth/callback"],
  ["the default port", "https://hosted.example.com:443/oauth/callback"],
  ["upper case in the host", "https://Hosted.example.com/oauth/callback"],
  ["upper case in the scheme", "HTTPS://hosted.example.com/oauth/callback"],
  ["upper case in the path", "https://hosted.example.com/oauth/Callback"],
  ["a percent-encoded character", "https://hosted.example.com/oauth/%63allback"],
  ["dot segments", "https://hosted.example.com/x/../oauth/callback"],
  ["encoded dot segments", "https://hosted.example.com/x/%2e%2e/oauth/callback"],
  ["a subdomain", "https://hosted.example.com.evil.example/oauth/callback"],
  ["a user name", "https://hosted.example.com@evil.example/oauth/callback"],
  ["a user name on the listed host", "https://evil@hosted.example.com/oauth/callback"],
  ["a backslash", "https://hosted.example.com\\@evil.example/oauth/callback"],
  ["a trailing dot", "https://hosted.example.com./oauth/callback"],
  ["a fullwidth dot", "https://hosted.example\uff0ecom/oauth/callback"],
  ["a soft hyphen", "https://hosted.exam\u00adple.com/oauth/callback"],
  ["a look-alike letter", "https://h\u043ested.example.com/oauth/callback"],
  ["a tab", "https://hosted.example.com/oauth\t/callback"],
  ["a line feed", "https://hosted.example.com/oauth/callback\n"],
  ["a space", " https://hosted.example.com/oauth/callback"],
  ["http instead of https", "http://hosted.example.com/oauth/callback"],
  ["a scheme that is not listed", "evil://anysphere.cursor-mcp/oauth/callback"],
  ["another path of a listed scheme", "cursor://anysphere.cursor-mcp/other"],
  ["a scheme in upper case", "CURSOR://anysphere.cursor-mcp/oauth/callback"],
  ["javascript", "javascript:alert(1)"],
  ["javascript with a comment", "javascript://localhost/%0aalert(1)"],
  ["data", "data:text/html,x"],
  ["another path on loopback", "http://127.0.0.1:1/other", "http://127.0.0.1/cb"],
  ["another query on loopback", "http://127.0.0.1:1/cb?a", "http://127.0.0.1/cb"],
  ["another loopback name", "http://localhost/cb", "http://127.0.0.1/cb"],
  ["another loopback address", "http://127.0.0.2/cb", "http://127.0.0.2/cb"],
  ["a fragment after a query on loopback", "http://127.0.0.1/cb?a#b"],
  ["https on loopback", "https://localhost/cb", "https://localhost/cb"],
  ["localhost as a subdomain", "http://localhost.evil.com/cb"],
  ["an address as a subdomain", "http://127.0.0.1.evil.com/cb"],
  ["an address as a user name", "http://127.0.0.1@evil.example/cb"],
  ["an address and a port as credentials", "http://127.0.0.1:80@evil.example/cb"],
  ["a decimal address", "http://2130706433/cb"],
  ["a short address", "http://127.1/cb"],
  ["a mapped address", "http://[::ffff:127.0.0.1]/cb"],
  ["a port that is too high", "http://127.0.0.1:65536/cb", "http://127.0.0.1/cb"],
  ["port 0", "http://127.0.0.1:0/cb", "http://127.0.0.1/cb"],
  ["an empty port", "http://127.0.0.1:/cb", "http://127.0.0.1/cb"],
  ["dot segments on loopback", "http://127.0.0.1:1/x/../cb", "http://127.0.0.1/x/../cb"],
  ["a text that is too long", `http://127.0.0.1/${"x".repeat(2000)}`],
];

Deno.test("accepts listed redirect URIs, and loopback redirect URIs with any port", () => {
  const rules = new RedirectRules(LISTED);
  for (const [uri, own] of ACCEPTED) assertEquals(rules.findProblem(uri, toClient(["https://x.y/z", own])), undefined);
});

for (const [name, uri, own = uri] of REFUSED) {
  Deno.test(`MUST refuse a redirect URI with ${name}`, () => {
    const rules = new RedirectRules(LISTED);
    const onHost = { isDocument: true, origin: "app.example.com" };
    assert(rules.findProblem(uri, toClient([own])), "the client has registered it");
    assert(rules.findProblem(uri, toClient(LISTED)), "the client has registered the listed redirect URIs");
    assert(rules.findProblem(uri, toClient([own], onHost)), "the client has a document");
  });
}

Deno.test("MUST refuse a listed redirect URI that only another client has registered", () => {
  const rules = new RedirectRules(LISTED);
  assert(rules.findProblem(LISTED[0], toClient([LISTED[1]])));
  assert(rules.findProblem(LISTED[0], toClient([])));
  assert(rules.findProblem(undefined, toClient([LISTED[1]])));
});

Deno.test("a client with a document can use its own host over https", () => {
  const rules = new RedirectRules(LISTED);
  const own = [CALLBACK, "https://app.example.com:8443/cb", "https://evil.example/cb", "https://a.app.example.com/cb"];
  const client = toClient([...own, "app.example.com:/cb"], { isDocument: true, origin: "app.example.com" });
  assertEquals(own.map((uri) => rules.findProblem(uri, client) === undefined), [true, false, false, false]);
  assert(rules.findProblem("app.example.com:/cb", client));
  assert(rules.findProblem(CALLBACK, toClient([CALLBACK], { origin: "app.example.com" })), "it has no document");
});

Deno.test("no random redirect URI is accepted unless it is loopback, or equals a listed text", () => {
  const { pick, text, below } = random(7);
  const rules = new RedirectRules(LISTED);
  const parts = [
    ...["https://", "http://", "cursor://", "javascript:", "hosted.example.com", "/oauth/callback", "127.0.0.1", "@"],
    ...["localhost", "[::1]", ":1", ":", "/", "\\", "?", "#", "%2e", "..", ".", "\u200b", "evil.example", " ", "\t"],
  ];
  for (let round = 0; round < 5000; round++) {
    let uri = below(2) ? pick(LISTED) : pick(["http://127.0.0.1/cb", "http://localhost:8/cb", ""]);
    for (let edits = below(4); edits > 0; edits--) {
      const at = below(uri.length + 1);
      uri = uri.slice(0, at) + (below(4) ? pick(parts) : text("abc:/.@", 3)) + uri.slice(at + below(3));
    }
    if (rules.findProblem(uri, toClient([uri])) !== undefined || LISTED.includes(uri)) continue;
    const { protocol, hostname, username, hash } = new URL(uri);
    assertEquals([protocol, username, hash], ["http:", "", ""], uri);
    assert(["127.0.0.1", "localhost", "[::1]"].includes(hostname) && isLoopbackRedirect(uri), uri);
    assert(/^[!-~]+$/.test(uri) && !uri.includes("\\"), uri);
    // A client that has registered another redirect URI can change only the port.
    const other = toClient(["http://127.0.0.1/cb"]);
    assertEquals(rules.findProblem(uri, other) === undefined, /^http:\/\/127\.0\.0\.1(:\d+)?\/cb$/.test(uri), uri);
  }
});

Deno.test("random texts never make the check of a redirect URI throw", () => {
  const { text, below } = random(8);
  const alphabet = Array.from({ length: 300 }, (_, code) => String.fromCharCode(code)).concat("\ud800", "\u202e");
  for (let round = 0; round < 3000; round++) {
    const uri = `${["", "http://", "https://", "a:"][below(4)]}${text(alphabet, 30)}`;
    const problem = findRedirectProblem(uri);
    assert(problem === undefined || /^[ !#-[\]-~]+$/.test(problem), uri);
  }
});

// Metadata documents

const DOCUMENT = { client_id: ID, client_name: "App", redirect_uris: [CALLBACK] };

interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Defaults to the document. */
  readonly body?: BodyInit;
}

/** Creates documents whose responses come from `answer`. `urls` lists the requests. */
function makeDocuments(
  answer: (url: string) => Reply | Promise<Reply> = () => ({}),
  lookUp: (hostname: string) => Promise<readonly string[] | undefined> = () => Promise.resolve(undefined),
) {
  const clock = fakeClock();
  const urls: string[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    urls.push(request.url);
    assertEquals([request.redirect, request.method], ["manual", "GET"]);
    const { status = 200, headers = {}, body } = await answer(request.url);
    const json = JSON.stringify({ ...DOCUMENT, client_id: request.url });
    return new Response(body ?? json, { status, headers: { "content-type": "application/json", ...headers } });
  };
  const documents = new MetadataDocuments({ fetch, clock, lookUp });
  const load = (id: string = ID, peer: string | undefined = PEER) => documents.load(id, peer, OWN);
  return { documents, clock, urls, load };
}

async function toCode(loading: Promise<unknown>): Promise<string> {
  const error = await assertRejects(() => loading, OAuthError);
  assert(/^[ !#-[\]-~]+$/.test(error.description), error.description);
  return `${error.status} ${error.code}`;
}

const INVALID = "401 invalid_client";
const BUSY = "503 temporarily_unavailable";

Deno.test("loads the document of a client", async () => {
  const { load } = makeDocuments();
  assertEquals(await load(), {
    ...{ id: ID, name: "App", redirectUris: [CALLBACK], isDocument: true, origin: "app.example.com" },
    ...{ authMethod: "none", scope: undefined },
  });
  const { origin } = await load("https://app.example.com:8443/client.json?v=1");
  assertEquals(origin, "app.example.com:8443");
});

for (
  const id of [
    ...["http://app.example.com/c", "ftp://app.example.com/c", "file:///etc/passwd", "data:application/json,{}"],
    ...[
      "https://app.example.com",
      "https://app.example.com/",
      "https://app.example.com/?a",
      "https://app.example.com?a",
    ],
    ...["https://app.example.com/c#f", "https://app.example.com/c#", "https://u@app.example.com/c", "https://:p@a.b/c"],
    ...["https://app.example.com@127.0.0.1/c", "https://a.b\\@127.0.0.1/c", "https://app.example.com:443/c"],
    ...["https://app.example.com/a/../c", "https://app.example.com/./c", "https://app.example.com/a/%2e%2e/c"],
    ...["https://app.example.com/a/..%2fc", "https://app.example.com/%2E/c", "https://app.example.com/a/..;/c"],
    ...[
      "https://App.example.com/c",
      "HTTPS://app.example.com/c",
      "https:app.example.com/c",
      "https:///app.example.com/c",
    ],
    ...["https://app.example.com./c", "https://app.exämple.com/c", "https://app.example.com/\u200bc", " https://a.b/c"],
    ...["https://a.b/c\n", "https://a\t.b/c", "https://a.b/c d", "https://a.b/%zz", `https://a.b/${"c".repeat(2000)}`],
    ...[
      "https://127.0.0.1/c",
      "https://2130706433/c",
      "https://0x7f000001/c",
      "https://0177.0.0.1/c",
      "https://127.1/c",
    ],
    ...[
      "https://0.0.0.0/c",
      "https://10.0.0.1/c",
      "https://192.168.1.1/c",
      "https://172.16.0.1/c",
      "https://100.64.0.1/c",
    ],
    ...[
      "https://169.254.169.254/latest/meta-data",
      "https://[::1]/c",
      "https://[::]/c",
      "https://[::ffff:127.0.0.1]/c",
    ],
    ...["https://[::ffff:7f00:1]/c", "https://[fe80::1]/c", "https://[fd00::1]/c", "https://[64:ff9b::7f00:1]/c"],
    ...["https://[2002:7f00:1::]/c", "https://localhost/c", "https://localhost:8443/c", "https://localhost./c"],
    ...["https://a.localhost/c", "https://db.internal/c", "https://printer.local/c", "https://intranet/c"],
    ...["https://metadata.google.internal/c", "https://\uff11\uff12\uff17.0.0.1/c", "https://①②⑦.0.0.1/c"],
    ...["https://mcp.example.com/c", "https://mcp.example.com:8443/c", "https://mcp.example.com./c", "https://", ""],
  ]
) {
  Deno.test(`MUST refuse the client id ${JSON.stringify(id.slice(0, 60))} without a request`, async () => {
    const { load, urls } = makeDocuments();
    assertEquals([await toCode(load(id)), urls], [INVALID, []]);
  });
}

Deno.test("MUST refuse a name with an address that is not public, without a request", async () => {
  const bad = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::"];
  for (const address of [...bad, "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::"]) {
    const { load, urls } = makeDocuments(undefined, () => Promise.resolve(["93.184.215.14", address]));
    assertEquals([await toCode(load()), urls], [INVALID, []], address);
  }
  for (const address of ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]) {
    const { load } = makeDocuments(undefined, () => Promise.resolve([address]));
    assertEquals((await load()).id, ID, address);
  }
});

Deno.test("MUST NOT state why a host cannot be reached", async () => {
  const { load } = makeDocuments(undefined, () => Promise.resolve(["10.0.0.1"]));
  const down = makeDocuments(() => Promise.reject(new TypeError("connection refused")));
  const errors = await Promise.all([load, down.load].map((load) => assertRejects(() => load(), OAuthError)));
  assertEquals(errors[0].description, errors[1].description);
  assert(errors[1].cause instanceof TypeError);
});

const json = (parts: object) => ({ body: JSON.stringify({ ...DOCUMENT, ...parts }) });
const key = { kty: "EC", crv: "P-256", x: "x", y: "y" };
const REFUSED_REPLIES: { readonly [name: string]: Reply } = {
  "a redirect": { status: 302, headers: { location: "https://app.example.com/other" }, body: "" },
  "a permanent redirect": { status: 308, headers: { location: "https://127.0.0.1/" }, body: "" },
  "an error": { status: 404 },
  "no content": { status: 201 },
  "a wrong type": { headers: { "content-type": "text/html" } },
  "a type that begins like JSON": { headers: { "content-type": "application/jsonp" } },
  "no JSON": { body: "<html>" },
  "a list": { body: "[]" },
  "null": { body: "null" },
  "too many bytes": json({ x: "x".repeat(5 * 1024) }),
  "too many bytes in few characters": json({ x: "ü".repeat(2600) }),
  "another client_id": json({ client_id: `${ID}?` }),
  "a client_id in upper case": json({ client_id: ID.toUpperCase() }),
  "no client_id": json({ client_id: undefined }),
  "no client_name": json({ client_name: undefined }),
  "an empty client_name": json({ client_name: "  " }),
  "a long client_name": json({ client_name: "n".repeat(101) }),
  "a client_name that reorders text": json({ client_name: "App\u202egpj" }),
  "a client_name with a line feed": json({ client_name: "App\nTrusted" }),
  "a client_name with an invisible character": json({ client_name: "App\u200b" }),
  "no redirect_uris": json({ redirect_uris: undefined }),
  "empty redirect_uris": json({ redirect_uris: [] }),
  "too many redirect_uris": json({ redirect_uris: Array(21).fill(CALLBACK) }),
  "redirect_uris that are not texts": json({ redirect_uris: [1] }),
  "redirect_uris that are a text": json({ redirect_uris: CALLBACK }),
  "a client_secret": json({ client_secret: "x" }),
  "client_secret_basic": json({ token_endpoint_auth_method: "client_secret_basic" }),
  "client_secret_post": json({ token_endpoint_auth_method: "client_secret_post" }),
  "client_secret_jwt": json({ token_endpoint_auth_method: "client_secret_jwt", jwks: { keys: [key] } }),
  "no keys": json({ token_endpoint_auth_method: "private_key_jwt" }),
  "two sets of keys": json({ token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [key] }, jwks_uri: ID }),
  "a private key": json({ token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [{ ...key, d: "d" }] } }),
  "a shared key": json({ token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [{ kty: "oct", k: "k" }] } }),
  "an empty key set": json({ token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [] } }),
  "a jwks_uri that is not a text": json({ token_endpoint_auth_method: "private_key_jwt", jwks_uri: 1 }),
};

for (const [name, reply] of Object.entries(REFUSED_REPLIES)) {
  Deno.test(`MUST refuse a document with ${name}, and load it again after a minute`, async () => {
    const { load, urls, clock } = makeDocuments(() => reply);
    assertEquals([await toCode(load()), await toCode(load()), urls], [INVALID, INVALID, [ID]]);
    await clock.advance(60_000);
    assertEquals([await toCode(load()), urls.length], [INVALID, 2]);
  });
}

Deno.test("MUST stop loading a document after 3 seconds, also during its body and a lookup", async () => {
  const never = new Promise<never>(() => {});
  const slowBody = () => ({ body: new ReadableStream<Uint8Array>({ pull: () => never }) });
  for (
    const { load, clock, urls } of [
      makeDocuments(() => never),
      makeDocuments(slowBody),
      makeDocuments(undefined, () => never),
    ]
  ) {
    const code = toCode(load());
    await clock.advance(2999);
    assertEquals(clock.waiting, 1);
    await clock.advance(1);
    assertEquals([await code, await toCode(load())], [INVALID, INVALID]);
    assert(urls.length <= 1);
    assertEquals(clock.waiting, 0);
  }
});

for (
  const [name, headers, seconds] of [
    ["max-age", { "cache-control": "public, max-age=600" }, 600],
    ["a short max-age", { "cache-control": "max-age=1" }, 1],
    ["max-age and age", { "cache-control": "max-age=600", age: "500" }, 100],
    ["a long max-age", { "cache-control": "max-age=99999999999" }, 86_400],
    ["no-store", { "cache-control": "max-age=600, no-store" }, 0],
    ["no-cache", { "cache-control": "No-Cache" }, 0],
    ["max-age=0", { "cache-control": "max-age=0", expires: "Thu, 01 Jan 2026 01:00:00 GMT" }, 0],
    ["expires", { expires: "Thu, 01 Jan 2026 00:01:00 GMT" }, 60],
    ["expires and date", { expires: "Thu, 01 Jan 2026 00:01:00 GMT", date: "Thu, 01 Jan 2026 00:00:30 GMT" }, 30],
    ["a past expires", { expires: "Thu, 01 Jan 2015 00:00:00 GMT" }, 0],
    ["expires=0", { expires: "0" }, 0],
    ["nothing", {}, 300],
  ] as readonly (readonly [string, Record<string, string>, number])[]
) {
  Deno.test(`remembers a document for ${seconds} s if its response has ${name}`, async () => {
    const { load, urls, clock } = makeDocuments(() => ({ headers }));
    await load();
    if (seconds) {
      await clock.advance(seconds * 1000 - 1);
      await load();
      assertEquals(urls.length, 1);
      await clock.advance(1);
    }
    await load();
    assertEquals(urls.length, 2);
  });
}

Deno.test("MUST load at most two documents at a time for a caller, and eight in all", async () => {
  const gate = Promise.withResolvers<Reply>();
  const { load, urls } = makeDocuments(() => gate.promise);
  const toId = (name: string) => `https://app.example.com/${name}.json`;
  const loading: Promise<unknown>[] = [];
  for (const peer of ["a", "b", "c", "d"]) {
    loading.push(load(toId(`${peer}1`), peer), load(toId(`${peer}2`), peer));
    assertEquals(await toCode(load(toId(`${peer}3`), peer)), BUSY);
  }
  const error = await assertRejects(() => load(toId("e1"), "e"), OAuthError);
  assertEquals([error.status, error.retryAfter], [503, 2]);
  assertEquals(await toCode(load(toId("f1"), undefined)), BUSY);
  // A request for a document that is being loaded needs no place.
  loading.push(load(toId("a1"), "e"));
  await until(() => urls.length === 8, "eight requests");
  gate.resolve({});
  await Promise.all(loading);
  assertEquals(urls.length, 8);
  // A refusal because of a limit is not remembered.
  assertEquals((await load(toId("e1"), "e")).id, toId("e1"));
  assertEquals((await load(toId("a3"), "a")).id, toId("a3"));
});

Deno.test("failures drop no document, and a document in use stays while others fill the cache", async () => {
  const { load, urls } = makeDocuments((url) => url.includes("bad") ? { status: 500 } : {});
  await load();
  for (let at = 0; at < 300; at++) await toCode(load(`https://bad.example.com/${at}`));
  await load();
  assertEquals(urls.filter((url) => url === ID).length, 1);
  for (let at = 0; at < 300; at++) {
    await load(`https://good.example.com/${at}`);
    await load();
  }
  assertEquals(urls.filter((url) => url === ID).length, 1);
  await load("https://good.example.com/0");
  assertEquals(urls.filter((url) => url === "https://good.example.com/0").length, 2, "the cache has a limit");
});

Deno.test("no random client id leads to a request for a private host", async () => {
  const { pick, below } = random(9);
  const { load, urls } = makeDocuments();
  const parts = [
    ...["https://", "http://", "@", "/", "\\", "#", "?", ":", ".", "..", "%2e", "localhost", "127.0.0.1", "0x7f.1"],
    ...["[::1]", "app.example.com", "mcp.example.com", "c.json", "\t", "\u3002", "a", "2130706433"],
  ];
  for (let round = 0; round < 3000; round++) {
    const made = (below(4) ? "https://" : "") + Array.from({ length: 1 + below(5) }, () => pick(parts)).join("");
    const at = below(ID.length);
    const id = below(2) ? made : ID.slice(0, at) + pick(parts) + ID.slice(at + below(3));
    const client = await load(id).catch((error) => {
      assert(error instanceof OAuthError, id);
    });
    if (client) assertEquals([client.id, new URL(id).href], [id, id]);
  }
  assert(urls.length > 5, "the texts are too random");
  for (const url of urls) {
    const { hostname, pathname, protocol } = new URL(url);
    assert(!/(^|\.)localhost$|^[\d.]+$|^\[|^mcp\.example\.com$|\.$|^[^.]+$/.test(hostname), url);
    assert(protocol === "https:" && pathname !== "/" && !/(^|\/)\.{1,2}(\/|$)/.test(pathname), url);
  }
});

// Registrations

function makeClients(options: Partial<ClientsOptions> = {}): Clients {
  const sealed = new Map<string, string>();
  const sealer = {
    seal(value: unknown) {
      // As long as an encrypted value.
      const text = `s${sealed.size}.${btoa(encodeURIComponent(JSON.stringify(value)))}`;
      sealed.set(text, JSON.stringify(value));
      return Promise.resolve(text);
    },
    open: (text: string) => {
      const value = sealed.get(text);
      return value === undefined ? Promise.reject(new Error("forged")) : Promise.resolve(JSON.parse(value));
    },
  };
  const rules = new RedirectRules(LISTED);
  return new Clients({ rules, sealer, own: OWN, date: () => Date.UTC(2026, 0), ...options });
}

const LOCAL = "http://127.0.0.1:33418/cb";

Deno.test("a registered client is found by its id, without storage", async () => {
  const clients = makeClients();
  const body = {
    ...{ client_name: "Editor ✏️", redirect_uris: [LOCAL, CUSTOM], scope: "notes:read notes:write" },
    ...{ token_endpoint_auth_method: "client_secret_basic", grant_types: ["implicit"], response_types: ["token"] },
    ...{ application_type: "native", unknown: 1, client_id: "mine", client_secret: "mine" },
  };
  const { status, json } = await clients.register(body);
  const { client_id: id, ...rest } = json;
  assertEquals([status, rest], [201, {
    client_id_issued_at: Date.UTC(2026, 0) / 1000,
    client_name: "Editor ✏️",
    redirect_uris: [LOCAL, CUSTOM],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: "notes:read notes:write",
  }]);
  const expected = toClient([LOCAL, CUSTOM], { id: String(id), name: "Editor ✏️", scope: "notes:read notes:write" });
  assertEquals(await clients.find(String(id), PEER), expected);
  const text = await clients.register(JSON.stringify({ redirect_uris: [LOCAL] }));
  assertEquals((await clients.find(String(text.json.client_id), undefined)).redirectUris, [LOCAL]);
});

for (
  const [name, body, error = "invalid_client_metadata"] of [
    ["no JSON", "{"],
    ["a list", []],
    ["nothing", undefined],
    ["too many bytes", { redirect_uris: [LOCAL], x: "ü".repeat(4100) }],
    ["too many bytes as text", `{"x":"${"x".repeat(8200)}"}`],
    ["a long id", { redirect_uris: Array.from({ length: 10 }, (_, at) => `http://localhost/${"x".repeat(700)}${at}`) }],
    ["an empty name", { redirect_uris: [LOCAL], client_name: "" }],
    ["a name that is not a text", { redirect_uris: [LOCAL], client_name: {} }],
    ["a name that reorders text", { redirect_uris: [LOCAL], client_name: "a\u202eb" }],
    ["a long name", { redirect_uris: [LOCAL], client_name: "n".repeat(101) }],
    ["keys", { redirect_uris: [LOCAL], token_endpoint_auth_method: "private_key_jwt" }],
    ["no redirect_uris", {}, "invalid_redirect_uri"],
    ["empty redirect_uris", { redirect_uris: [] }, "invalid_redirect_uri"],
    ["too many redirect_uris", { redirect_uris: Array(11).fill(LOCAL) }, "invalid_redirect_uri"],
    ["a redirect URI that is not a text", { redirect_uris: [[LOCAL]] }, "invalid_redirect_uri"],
    ["another server", { redirect_uris: [LOCAL, "https://evil.example/cb"] }, "invalid_redirect_uri"],
    ["javascript", { redirect_uris: ["javascript:alert(1)"] }, "invalid_redirect_uri"],
    ["another scheme", { redirect_uris: ["evil://cb"] }, "invalid_redirect_uri"],
  ] as readonly (readonly [string, unknown, string?])[]
) {
  Deno.test(`MUST refuse a registration with ${name}`, async () => {
    const { status, json } = await makeClients().register(body);
    assertEquals([status, json.error], [400, error]);
    assert(/^[ !#-[\]-~]+$/.test(String(json.error_description)));
  });
}

Deno.test("MUST NOT find a client for an id that the server has not sealed for a client", async () => {
  let opened = 0;
  const values: readonly unknown[] = [undefined, null, "x", {}, { t: "token", n: "a", r: [LOCAL] }, {
    t: "oauth-client",
  }];
  for (const value of values) {
    const sealer = { seal: () => Promise.resolve("x"), open: () => Promise.resolve((opened++, value)) };
    assertEquals(await toCode(makeClients({ sealer }).find("abc", PEER)), INVALID);
  }
  assertEquals(opened, values.length);
  const clients = makeClients();
  for (const id of ["", "abc", "x".repeat(5000), ID, "javascript:x", "__proto__"]) {
    assertEquals(await toCode(clients.find(id, PEER)), INVALID, id);
  }
});

Deno.test("random ids and bodies never find a client, and never throw another error", async () => {
  const { text, pick, below } = random(10);
  const clients = makeClients({ documents: makeDocuments().documents });
  const values: readonly unknown[] = [null, 1, "x", [], {}, [LOCAL], [null], "\ud800", true, "javascript:x", -0];
  const names = ["redirect_uris", "client_name", "token_endpoint_auth_method", "scope", "__proto__", "toString"];
  for (let round = 0; round < 1000; round++) {
    assertEquals(await toCode(clients.find(text("abs0.:/%\u200b", 20), PEER)), INVALID);
    const body = Object.fromEntries(Array.from({ length: below(5) }, () => [pick(names), pick(values)]));
    const { status, json } = await clients.register(body);
    assert(status === 201 ? body.redirect_uris === values[5] : status === 400 && typeof json.error === "string");
  }
});

Deno.test("finds clients with documents, and clients that the author lists", async () => {
  const listed = { id: "my-app", name: "My app", redirects: ["https://my.example.com/cb"] };
  const clients = makeClients({ documents: makeDocuments().documents, clients: [listed] });
  assertEquals((await clients.find(ID, PEER)).isDocument, true);
  assertEquals(await toCode(clients.find("http://app.example.com/client.json", PEER)), INVALID);
  const client = await clients.find("my-app", PEER);
  const expected = { id: "my-app", name: "My app", isTrusted: true };
  assertEquals(client, toClient(listed.redirects, expected));
  // Redirect URIs of a listed client need not be listed again.
  assertEquals(new RedirectRules([]).findProblem("https://my.example.com/cb", client), undefined);
  assert(new RedirectRules([]).findProblem("https://my.example.com/cb2", client));
});

Deno.test("MUST refuse a listed client that is not valid", () => {
  const valid = { id: "a", name: "A", redirects: [LOCAL] };
  for (
    const parts of [
      ...[{ id: "" }, { id: "https://a.b/c" }, { id: "a b" }, { name: "" }, { name: "a\u200b" }, { redirects: [] }],
      ...[{ redirects: ["http://a.b/c"] }, { redirects: undefined }, { secret: "x" }, { id: undefined }],
    ]
  ) {
    const client = { ...valid, ...parts } as typeof valid; // The cast lets tests pass values that the types forbid.
    assertThrows(() => makeClients({ clients: [client] }), TypeError, "Cannot list");
  }
  assertThrows(() => makeClients({ clients: [valid, valid] }), TypeError, "Cannot list");
});

// Authentication at the token endpoint

const ISSUER = "https://mcp.example.com";
const TOKENS = "https://mcp.example.com/token";
const NOW = Date.UTC(2026, 0) + 500;
const SECONDS = Math.floor(NOW / 1000);
const KEYS_URL = "https://keys.example.net/jwks.json";

async function makeSigner(alg = "ES256", kid = "1") {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...await exportJWK(publicKey), kid, alg };
  const sign = (claims: JWTPayload = {}, header: Record<string, unknown> = {}) => {
    const all = { iss: ID, sub: ID, aud: ISSUER, exp: SECONDS + 60, jti: crypto.randomUUID(), ...claims };
    const defined: JWTPayload = JSON.parse(JSON.stringify(all));
    return new SignJWT(defined).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
  };
  return { jwk, sign };
}

function makeFacts(used = new Set<string>(), seen: unknown[] = []) {
  const markUsed = (use: { readonly id: string; readonly at: number; readonly ttlMs: number }) => {
    seen.push([use.at, use.ttlMs]);
    return Promise.resolve(!used.has(use.id) && Boolean(used.add(use.id)));
  };
  return { tokenEndpoint: TOKENS, issuer: ISSUER, now: NOW, markUsed, peer: PEER };
}

const withAssertion = (assertion: string, parts: Record<string, string> = {}) =>
  new URLSearchParams({ client_assertion: assertion, client_assertion_type: ASSERTION_TYPE, ...parts });

const signer = await makeSigner();
const keyed = toClient([CALLBACK], {
  id: ID,
  isDocument: true,
  authMethod: "private_key_jwt",
  jwks: { keys: [signer.jwk] },
});

Deno.test("accepts an assertion of the client, once", async () => {
  const clients = makeClients({ documents: makeDocuments().documents });
  const seen: unknown[] = [];
  const facts = makeFacts(new Set(), seen);
  const accepted: JWTPayload[] = [
    ...[{}, { aud: TOKENS }, { aud: [ISSUER] }, { exp: SECONDS + 300 }, { exp: SECONDS - 30 }, { iat: SECONDS - 9 }],
    ...[{ iat: SECONDS - 86_400 }, { nbf: SECONDS + 30 }],
  ];
  for (const claims of accepted) {
    const params = withAssertion(await signer.sign(claims));
    await clients.authenticate(keyed, params, facts);
    assertEquals(await toCode(clients.authenticate(keyed, params, facts)), INVALID, "it is used again");
  }
  assertEquals(seen.at(-1), [(SECONDS + 60 - 300) * 1000, 360_000]);
  assertEquals(seen[10], [(SECONDS - 9) * 1000, 129_000]);
  const typed = await signer.sign({}, { typ: "client-authentication+jwt" });
  await clients.authenticate(keyed, withAssertion(typed), facts);
});

const REFUSED_CLAIMS: readonly (readonly [string, JWTPayload, Record<string, unknown>?])[] = [
  ["another issuer", { iss: "https://evil.example/c" }],
  ["another subject", { sub: "admin" }],
  ["no issuer", { iss: undefined }],
  ["no subject", { sub: undefined }],
  ["another audience", { aud: "https://other.example" }],
  ["no audience", { aud: undefined }],
  ["two audiences", { aud: [ISSUER, "https://other.example"] }],
  ["a longer audience", { aud: `${ISSUER}/` }],
  ["no expiry", { exp: undefined }],
  ["a past expiry", { exp: SECONDS - 60 }],
  ["a distant expiry", { exp: SECONDS + 361 }],
  ["a future start", { nbf: SECONDS + 62 }],
  ["a future creation", { iat: SECONDS + 62 }],
  ["no id", { jti: undefined }],
  ["an empty id", { jti: "" }],
  ["a long id", { jti: "x".repeat(257) }],
  ["too many characters", { x: "x".repeat(5000) }],
  ["the type of an access token", {}, { typ: "at+jwt" }],
  ["the type of a proof", {}, { typ: "dpop+jwt" }],
];

for (const [name, claims, header] of REFUSED_CLAIMS) {
  Deno.test(`MUST refuse an assertion with ${name}`, async () => {
    const used = new Set<string>();
    const clients = makeClients({ documents: makeDocuments().documents });
    const assertion = await signer.sign(claims, header);
    assertEquals(await toCode(clients.authenticate(keyed, withAssertion(assertion), makeFacts(used))), INVALID);
    assertEquals(used.size, 0);
  });
}

Deno.test("MUST refuse an assertion without a signature of the client's key", async () => {
  const clients = makeClients({ documents: makeDocuments().documents });
  const used = new Set<string>();
  const good = await signer.sign();
  const [header, claims, signature] = good.split(".");
  const encode = (value: object) => btoa(JSON.stringify(value)).replace(/=/g, "").replace(/\+/g, "-");
  const shared = new TextEncoder().encode(JSON.stringify(signer.jwk));
  const claimed = { iss: ID, sub: ID, aud: ISSUER, exp: SECONDS + 60, jti: "1" };
  for (
    const assertion of [
      await (await makeSigner()).sign(),
      await (await makeSigner("ES256", "2")).sign(),
      await (await makeSigner("RS256")).sign(),
      await new SignJWT(claimed).setProtectedHeader({ alg: "HS256" }).sign(shared),
      `${encode({ alg: "none" })}.${claims}.`,
      `${header}.${claims}.`,
      `${header}.${claims}`,
      `${header}.${encode(claimed)}.${signature}`,
      ...["", "a.b.c", "..", "{}"],
    ]
  ) {
    assertEquals(await toCode(clients.authenticate(keyed, withAssertion(assertion), makeFacts(used))), INVALID);
  }
  assertEquals(used.size, 0);
  const facts = makeFacts();
  const badTypes = ["", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer", `${ASSERTION_TYPE} `];
  for (const client_assertion_type of badTypes) {
    const params = withAssertion(good, { client_assertion_type });
    assertEquals(await toCode(clients.authenticate(keyed, params, facts)), INVALID);
  }
  for (const params of [withAssertion(good, { client_secret: "x" }), new URLSearchParams()]) {
    assertEquals(await toCode(clients.authenticate(keyed, params, facts)), INVALID);
  }
  const twice = withAssertion(good);
  twice.append("client_assertion", good);
  assertEquals(await toCode(clients.authenticate(keyed, twice, facts)), "400 invalid_request");
  assertEquals(await toCode(makeClients().authenticate(keyed, withAssertion(good), facts)), INVALID);
});

Deno.test("tries all keys of a client that match an assertion", async () => {
  const other = await makeSigner();
  const jwks = { keys: [other.jwk, signer.jwk].map(({ kid: _kid, ...jwk }) => jwk) };
  const clients = makeClients({ documents: makeDocuments().documents });
  const assertion = await signer.sign({}, { kid: undefined });
  await clients.authenticate({ ...keyed, jwks }, withAssertion(assertion), makeFacts());
  const foreign = await (await makeSigner()).sign({}, { kid: undefined });
  const code = await toCode(clients.authenticate({ ...keyed, jwks }, withAssertion(foreign), makeFacts()));
  assertEquals(code, INVALID);
});

Deno.test("loads the keys of a client, and loads rotated keys at most once a minute", async () => {
  let current = signer.jwk;
  const newer = await makeSigner("ES256", "2");
  const { documents, urls, clock } = makeDocuments(() => ({
    body: JSON.stringify({ keys: [current] }),
    headers: { "content-type": "application/jwk-set+json", "cache-control": "max-age=86400" },
  }));
  const clients = makeClients({ documents });
  const client: Client = { ...keyed, jwks: undefined, jwksUri: KEYS_URL };
  const authenticate = async (assertion: Promise<string>) =>
    await clients.authenticate(client, withAssertion(await assertion), makeFacts());
  await authenticate(signer.sign());
  await authenticate(signer.sign());
  assertEquals(urls, [KEYS_URL]);
  current = newer.jwk;
  assertEquals([await toCode(authenticate(newer.sign())), urls.length], [INVALID, 1]);
  await clock.advance(60_000);
  await authenticate(newer.sign());
  assertEquals([await toCode(authenticate(signer.sign())), urls.length], [INVALID, 2]);
});

Deno.test("MUST load keys only from public hosts, and only public keys", async () => {
  const assertion = await signer.sign();
  for (
    const jwksUri of [
      ...["http://app.example.com/jwks", "https://127.0.0.1/jwks", "https://localhost/jwks", "https://[::1]/jwks"],
      ...["https://mcp.example.com/jwks", "https://u@app.example.com/jwks", "https://app.example.com/", "x", ""],
    ]
  ) {
    const { documents, urls } = makeDocuments();
    const client: Client = { ...keyed, jwks: undefined, jwksUri };
    const clients = makeClients({ documents });
    assertEquals(await toCode(clients.authenticate(client, withAssertion(assertion), makeFacts())), INVALID);
    assertEquals(urls, []);
  }
  for (
    const body of [
      ...["{}", "[]", JSON.stringify({ keys: [{ kty: "oct", k: "AAAA" }] }), JSON.stringify({ keys: [1] })],
      JSON.stringify({ keys: Array(11).fill(signer.jwk) }),
      JSON.stringify({ keys: [{ ...signer.jwk, x5c: ["x".repeat(21_000)] }] }),
    ]
  ) {
    const { documents } = makeDocuments(() => ({ body }));
    const client: Client = { ...keyed, jwks: undefined, jwksUri: KEYS_URL };
    const clients = makeClients({ documents });
    assertEquals(await toCode(clients.authenticate(client, withAssertion(assertion), makeFacts())), INVALID);
  }
});

Deno.test("a public client sends no secret and no assertion", async () => {
  const clients = makeClients();
  const client = toClient([LOCAL]);
  const facts = makeFacts();
  await clients.authenticate(client, new URLSearchParams({ client_id: "c" }), facts);
  await clients.authenticate(client, new URLSearchParams({ client_secret: "" }), facts);
  for (const name of ["client_secret", "client_assertion", "client_assertion_type"]) {
    assertEquals(await toCode(clients.authenticate(client, new URLSearchParams({ [name]: "x" }), facts)), INVALID);
  }
});

Deno.test("an OAuthError has a message, and the response for a client", () => {
  const error = new OAuthError("invalid_client", "gone", 401, { cause: 1, retryAfter: 2 });
  assertStringIncludes(error.message, "invalid_client");
  assertEquals([error.code, error.description, error.status, error.retryAfter, error.cause], [
    ...["invalid_client", "gone"],
    ...[401, 2, 1],
  ]);
  assertEquals(new OAuthError("invalid_request", "x").status, 400);
});
