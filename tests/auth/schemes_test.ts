// `apiKey`, `basicAuth` and `customAuth`: which requests each scheme accepts, and the challenge for other requests.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, createServer, extension, type Server, tool } from "../../mod.ts";
import {
  apiKey,
  basicAuth,
  customAuth,
  elicitationLinks,
  refuseRequest,
  requirePrincipal,
} from "../../src/auth/auth.ts";
import { clientCredentialsToken, oauth } from "../../src/auth/oauth/oauth.ts";
import { digest } from "../../src/auth/secrets.ts";
import { toReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";
import { customStore } from "../../src/stores/stores.ts";

const ADA = "ada-2f6c1e0b9d4a7853";
const BOB = "bob-8d3f5a7c6e1b9042";

/** Creates a server with a tool that returns the principal of its caller and the request in `ctx.http`. */
function start(auth: Authentication, faults: unknown[] = []): Server {
  const show = tool({
    name: "show",
    run: (_, ctx) => ({
      id: requirePrincipal(ctx).id,
      scopes: ctx.principal?.scopes,
      seen: [...ctx.http?.headers ?? []].join("\n") + ctx.http?.url,
    }),
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  return openServer({ auth, handlers: [show], observer });
}

interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly text: string;
  readonly id?: string;
  readonly seen?: string;
}

async function send(server: Server, headers: Record<string, string>, query = ""): Promise<Answer> {
  const request = toRequest("tools/call", { name: "show" }, headers);
  const response = await server.fetch(query ? new Request(request.url + query, request) : request);
  const text = await response.text();
  const { id, seen } = JSON.parse(toReply(text)).result?.structuredContent ?? {};
  return { status: response.status, challenge: response.headers.get("www-authenticate"), text, id, seen };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

Deno.test("an API key authenticates its caller, and handlers do not see the key", async () => {
  await using server = start(apiKey({ keys: { ada: ADA, bob: { key: [BOB, `${BOB}-new`], scopes: ["a"] } } }));
  for (const [key, id] of [[ADA, "apikey:ada"], [BOB, "apikey:bob"], [`${BOB}-new`, "apikey:bob"]]) {
    const answer = await send(server, { ...bearer(key), "x-other": "stays" });
    assertEquals([answer.status, answer.id], [200, id]);
    assert(!answer.text.includes(key));
    assertStringIncludes(String(answer.seen), "stays");
  }
  assertEquals((await send(server, { authorization: `bearer   ${ADA}` })).status, 200);
});

Deno.test("a request without a valid API key gets a challenge that does not contain the key", async () => {
  await using server = start(apiKey({ keys: { ada: ADA }, realm: 'no"tes\u{1f600}\n' }));
  const realm = 'realm="no\\"tes???"';
  assertEquals((await send(server, {})).challenge, `Bearer ${realm}`);
  const wrong = [
    ADA.slice(0, -1),
    `${ADA}x`,
    ADA.toUpperCase(),
    `x${ADA.slice(1)}`,
    "x".repeat(100),
    `${ADA} ${ADA}`,
    "",
    "x".repeat(5000),
    "\u00e4".repeat(20),
    "__proto__",
  ];
  for (const key of wrong) {
    const answer = await send(server, bearer(key));
    assertEquals([answer.status, answer.challenge], [401, `Bearer ${realm}, error="invalid_token"`], key);
    assert(key.length < 5 || !answer.text.includes(key.slice(0, 50)), answer.text);
  }
  assertEquals((await send(server, { authorization: `Basic ${ADA}` })).status, 401);
  assertEquals((await send(server, { authorization: ADA })).status, 401);
});

Deno.test("after a request with a valid key, a similar header is still refused", async () => {
  await using server = start(apiKey({ keys: { ada: ADA, bob: BOB, long: `long-${"k".repeat(300)}` } }));
  const header = `Bearer ${ADA}`;
  const near = Array.from(header, (_, at) => `${header.slice(0, at)}~${header.slice(at + 1)}`);
  const wrong = [
    ...near,
    header.slice(0, -1),
    `${header}x`,
    `${header}, ${header}`,
    `${header}${"x".repeat(300)}`,
    "x",
  ];
  for (const authorization of wrong) {
    assertEquals((await send(server, { authorization: header })).id, "apikey:ada");
    const { status, text } = await send(server, { authorization });
    assert(status === 401 || status === 400, `${authorization}: ${text}`);
  }
  for (
    const [key, id] of [[ADA, "ada"], [BOB, "bob"], [BOB, "bob"], [ADA, "ada"], [`long-${"k".repeat(300)}`, "long"]]
  ) {
    assertEquals((await send(server, bearer(key))).id, `apikey:${id}`);
  }
  assertEquals((await send(server, {})).status, 401);
});

Deno.test("a request with a second credential is refused, even if the first credential was accepted before", async () => {
  await using server = start(apiKey({ keys: { ada: ADA, bob: BOB }, cookie: "key" }));
  for (let i = 0; i < 3; i++) assertEquals((await send(server, bearer(ADA))).id, "apikey:ada");
  assertEquals((await send(server, { ...bearer(ADA), cookie: `key=${BOB}` })).status, 400);
});

Deno.test("digest returns the SHA-256 digest of a text", async () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 4096]) {
    const text = String.fromCharCode(...Array.from({ length }, (_, at) => (at * 37 + length) & 255));
    const bytes = Uint8Array.from(text, (each) => each.charCodeAt(0));
    const expected = new DataView(await crypto.subtle.digest("SHA-256", bytes));
    const words = new Int32Array(Uint16Array.from(digest(text), (each) => each.charCodeAt(0)).buffer);
    assertEquals([...words], Array.from({ length: 8 }, (_, at) => expected.getInt32(at * 4)), `${length} bytes`);
  }
});

Deno.test("an API key is accepted in a header, a cookie or the query, but not in two of these places", async () => {
  await using server = start(
    apiKey({ keys: { ada: ADA, bob: BOB }, header: "X-Api-Key", cookie: "key", query: "key" }),
  );
  const places: readonly (readonly [headers: Record<string, string>, query?: string])[] = [
    [{ "x-api-key": ADA, cookie: "theme=dark" }],
    [{ cookie: `theme=dark; key=${ADA}; lang=en` }],
    [{ cookie: `key="${ADA}"; theme=dark` }],
    [{ cookie: "theme=dark" }, `?key=${ADA}&theme=dark`],
  ];
  for (const [headers, query] of places) {
    const answer = await send(server, headers, query);
    assertEquals([answer.status, answer.id], [200, "apikey:ada"]);
    assert(!answer.text.includes(ADA), answer.text);
    assertStringIncludes(String(answer.seen), "theme=dark");
  }
  const two: typeof places = [
    [{ "x-api-key": `${ADA}, ${ADA}` }],
    [{ "x-api-key": ADA, cookie: `key=${ADA}` }],
    [{ "x-api-key": ADA }, `?key=${BOB}`],
    [{ cookie: `key=${ADA}; key=${BOB}` }],
    [{}, `?key=${ADA}&key=${ADA}`],
  ];
  for (const [headers, query] of two) {
    const answer = await send(server, headers, query);
    assertEquals([answer.status, answer.challenge], [400, `ApiKey error="invalid_request"`]);
    assert(!answer.text.includes(ADA), answer.text);
  }
  assertEquals((await send(server, {})).challenge, "ApiKey");
});

Deno.test("keys can be a function that finds the owner of an API key", async () => {
  const find = (key: string) =>
    key === "none" ? undefined : key === "banned" ? refuseRequest(403) : { id: key, scopes: ["a"] };
  // Some query builders of database libraries are thenables, but not promises.
  const builder = (key: string) => ({ then: (settle: (found: unknown) => void) => settle(find(key)) });
  for (const keys of [find, async (key: string) => await find(key), builder]) {
    await using server = start(apiKey({ keys: keys as never }));
    assertEquals((await send(server, bearer("ada"))).id, "apikey:ada");
    assertEquals((await send(server, bearer("none"))).status, 401);
    assertEquals((await send(server, bearer("banned"))).status, 403);
  }
});

Deno.test("a keys function that returns `true` instead of an owner authenticates no caller", async () => {
  for (const found of [true, 1, {}, { id: "" }]) {
    await using server = start(apiKey({ keys: () => found as never }));
    assertEquals((await send(server, bearer("ada"))).status, 500);
  }
  await using server = start(basicAuth({ users: () => true as never }));
  assertEquals((await send(server, { authorization: `Basic ${btoa("ada:x")}` })).status, 500);
});

Deno.test("a users function that returns a class instance, a list or a response authenticates no caller", async () => {
  class Rows {
    readonly rows = [];
    readonly rowCount = 0;
  }
  const odd = [
    ...[[], [{ name: "ada" }], new Rows(), new Map(), new Set(), new Date(), new Error("wrong password")],
    ...[Response.json({}, { status: 401 }), new Uint8Array(), new (class User {})(), Object.create({ scopes: ["a"] })],
  ];
  const headers = { authorization: `Basic ${btoa("ada:x")}` };
  for (const found of odd) {
    for (const users of [() => found, () => Promise.resolve(found)]) {
      const faults: unknown[] = [];
      await using server = start(basicAuth({ users: users as never }), faults);
      assertEquals((await send(server, headers)).status, 500);
      assertStringIncludes(`${faults[0]}`, sentence("users"));
    }
  }
  // An object without a prototype is accepted, because some database libraries return such rows.
  await using server = start(basicAuth({ users: () => Object.assign(Object.create(null), { scopes: ["a"] }) }));
  assertEquals((await send(server, headers)).status, 200);
});

Deno.test("invalid options throw errors that do not contain secrets", () => {
  for (const keys of [{ ada: "short" }, { ada: `${ADA},x` }, { ada: ` ${ADA}` }, { ada: 5 as never }]) {
    const { message } = assertThrows(() => apiKey({ keys }), TypeError, sentence('"ada"'));
    assert(!message.includes("short") && !message.includes(ADA));
  }
  const { message } = assertThrows(() => apiKey({ keys: { ada: ADA, bob: ADA } }), TypeError, sentence());
  assert(!message.includes(ADA));
  assertThrows(() => basicAuth({ users: { "a:b": "x" } }), TypeError, sentence('"a:b"'));
  assertThrows(() => basicAuth({ users: { ada: 5 as never } }), TypeError, sentence('"ada"'));
  const options = { name: "x", version: "1" };
  for (const auth of ["key", {}, null, 5]) {
    assertThrows(() => createServer({ ...options, auth: auth as never }), TypeError, sentence("auth"));
  }
});

Deno.test("authentication schemes throw for an unknown option", () => {
  const verify = () => undefined;
  const client = { clientId: "x", clientSecret: "y" };
  const place = { resource: "https://a.example/mcp", issuers: ["https://login.example"] };
  const mistakes: readonly (readonly [make: () => unknown, ...names: string[]])[] = [
    [() => apiKey({ keys: { ada: ADA }, headerName: "x-key" } as never), "apiKey()", "headerName", "header?"],
    [() => basicAuth({ users: { ada: "x" }, relam: "me" } as never), "basicAuth()", "relam", "realm"],
    [() => customAuth(verify, { cookie: ["sid"] } as never), "customAuth()", "cookie", "cookies"],
    [() => elicitationLinks({ ttl: 5 } as never), "elicitationLinks()", "ttl", "ttlMs"],
    [() => oauth({ ...place, requiredScopes: ["a"] } as never), "oauth()", "requiredScopes"],
    [() => oauth({ resource: place.resource, issuer: "x" } as never), "oauth()", "issuer", "issuers"],
    [
      () => oauth({ ...place, introspection: { ...client, url: "x" } } as never),
      "oauth()",
      "introspection.url",
      "introspection.endpoint",
    ],
    [
      () => clientCredentialsToken({ ...client, issuer: "https://login.example", scope: "a" } as never),
      "clientCredentialsToken()",
      "scope",
      "scopes",
    ],
  ];
  for (const [make, ...names] of mistakes) assertThrows(make, TypeError, sentence(...names));
  // An unknown option is ignored if its value is `undefined`.
  apiKey({ keys: { ada: ADA }, headerName: undefined } as never);
});

Deno.test("a valid user name and password authenticate the user", async () => {
  const users = { ada: "pässword:1", bob: { password: "hunter22", scopes: ["a"] } };
  const verify = (name: string, password: string) =>
    name === "ada" && password === users.ada || name === "bob" && password === "hunter22" ? {} : undefined;
  for (const each of [users, verify, async (...given: [string, string]) => await verify(...given)]) {
    await using server = start(basicAuth({ users: each, realm: "notes" }));
    const encode = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
    const login = (text: string) => send(server, { authorization: `Basic ${text}` });
    const right = await login(encode("ada:pässword:1"));
    assertEquals([right.status, right.id], [200, "basic:ada"]);
    assert(!right.text.includes(encode("ada:pässword:1")));
    assertEquals((await login(encode("bob:hunter22"))).id, "basic:bob");
    for (const wrong of ["ada:", "ada", ":x", "", "ada:hunter22", "bob:hunter2", "bob:hunter222", "\xff:\xff"]) {
      const { status, challenge } = await login(encode(wrong));
      assertEquals([status, challenge?.startsWith('Basic realm="notes", charset="UTF-8"')], [401, true], wrong);
    }
    for (const broken of ["%%%", "=", "a", btoa("\xff:\xff")]) assertEquals((await login(broken)).status, 401);
  }
});

Deno.test("a user whose name a database spells in several ways is one principal if users returns an id", async () => {
  const find = (name: string) => name.trim().toLowerCase() === "ada" ? { id: "7", scopes: ["a"] } : undefined;
  for (const users of [find, async (name: string) => await find(name), { ada: { password: "x", id: "7" } }]) {
    await using server = start(basicAuth({ users }));
    const names = typeof users === "object" ? ["ada"] : ["ada", "Ada", "ADA", " ada", "ada ", "ada\t"];
    for (const name of names) {
      assertEquals((await send(server, { authorization: `Basic ${btoa(`${name}:x`)}` })).id, "basic:7", name);
    }
  }
});

Deno.test("a user whose id is not a non-empty string is not authenticated", async () => {
  for (const id of [null, 7, "", {}, ["7"], Promise.resolve("7")]) {
    const faults: unknown[] = [];
    const server = start(basicAuth({ users: () => ({ id }) as never }), faults);
    assertEquals((await send(server, { authorization: `Basic ${btoa("ada:x")}` })).status, 500);
    assertStringIncludes(`${faults[0]}`, sentence("id"));
    assertThrows(() => basicAuth({ users: { ada: { password: "x", id } as never } }), TypeError, sentence("id"));
  }
});

Deno.test("a custom function declares which headers and cookies contain its credentials", async () => {
  await using server = start(customAuth(({ headers }) => {
    const sid = /sid=(\w+)/.exec(headers.get("cookie") ?? "")?.[1];
    return sid && headers.get("x-signature") === "ok" ? { id: `site:${sid}` } : undefined;
  }, { cookies: ["sid"], headers: ["X-Signature"], challenge: { scheme: "Site" } }));
  const headers = { cookie: "a=1; sid=ada77;b=2", "x-signature": "ok", authorization: "Bearer secret" };
  const { id, seen = "" } = await send(server, headers);
  assertEquals(id, "site:ada77");
  assertStringIncludes(seen, "a=1;b=2");
  assert(!/x-signature|authorization|secret|sid=/.test(seen), seen);
  assertEquals((await send(server, {})).challenge, "Site");
});

// Mistakes in authentication options: an invalid `Authentication` refuses every request with a reason, and `fetch`
// never throws.

/** Casts a value, so that a test can pass a value of the wrong type. */
function untyped(value: unknown): never {
  return value as never;
}

const authenticate = () => ({ id: "ada" });
const fetch = () => new Response("route");

/** Invalid authentications, each with the names in the error. */
const unusable: Readonly<Record<string, [Partial<Authentication>, ...names: string[]]>> = {
  "routes that are not a list": [{ routes: untyped({ path: "/x", fetch }) }, "routes"],
  "a route without a slash": [{ routes: [{ path: "x", fetch }] }, '"x"', '"/x"'],
  "a route with a query": [{ routes: [{ path: "/x?y", fetch }] }, '"/x?y"', '"/x"'],
  "a route with a space": [{ routes: [{ path: "/a b", fetch }] }, '"/a b"', '"/a%20b"'],
  "a route twice": [{ routes: [{ path: "/x", fetch }, { path: "/x", fetch }] }, '"/x"'],
  "a route without fetch": [{ routes: [untyped({ path: "/x" })] }, '"/x"', "fetch()"],
  "a challenge that is a string": [{ challenge: untyped("Bearer") }, "challenge"],
  "a challenge with a line break": [{ challenge: { scheme: "a\r\nb" } }, "challenge"],
  "a challenge with a number": [{ challenge: { scheme: "Bearer", params: { a: untyped(5) } } }, "challenge"],
  "an invalid header name": [{ credentials: { headers: ["x user"] } }, "credentials"],
  "an empty cookie": [{ credentials: { cookies: [""] } }, "credentials"],
};

for (const [name, [parts, ...names]] of Object.entries(unusable)) {
  Deno.test(`an authentication with ${name} serves no request`, async () => {
    const faults: unknown[] = [];
    const observer = { fault: ({ error }: { readonly error: unknown }) => faults.push(error) };
    const server = openServer({ auth: { authenticate, ...parts }, observer });
    const response = await server.fetch(toRequest("tools/list"));
    assertEquals(response.status, 500);
    const { message } = await assertRejects(() => server.ready(), TypeError, sentence(...names));
    assertStringIncludes(String(faults), message);
    const [, reason = message] = message.split(": ");
    assert(!(await response.text()).includes(reason));
  });
}

Deno.test("refuseRequest throws for a refusal that HTTP cannot express, and fetch does not throw", async () => {
  const params = { "a\nb": "x" };
  for (
    const make of [
      () => refuseRequest(untyped(200)),
      () => refuseRequest(untyped(undefined)),
      () => refuseRequest(401, { challenge: untyped("Bearer") }),
      () => refuseRequest(401, { challenge: { scheme: "Bea\r\nrer" } }),
      () => refuseRequest(401, { challenge: [{ scheme: "Bearer", params }] }),
    ]
  ) {
    assertThrows(make, TypeError, sentence());
    const observer = { fault() {} };
    const server = openServer({ auth: make, observer });
    assertEquals((await server.fetch(toRequest("tools/list"))).status, 500);
  }
});

Deno.test("apiKey() and basicAuth() throw if keys or users is empty, or is neither an object nor a function", () => {
  const key = "0123456789abcdef";
  assertThrows(() => apiKey({ keys: {} }), TypeError, sentence());
  assertThrows(() => apiKey({ keys: { ada: { key: [] } } }), TypeError, sentence());
  assertThrows(() => basicAuth({ users: {} }), TypeError, sentence());
  for (const keys of [undefined, null, [key], key]) {
    assertThrows(() => apiKey({ keys: untyped(keys) }), TypeError, sentence("keys"));
    assertThrows(() => basicAuth({ users: untyped(keys) }), TypeError, sentence("users"));
  }
  assertThrows(() => apiKey({ keys: { ada: untyped(null) } }), TypeError, sentence('"ada"'));
  const scopes = untyped("notes:read");
  assertThrows(() => apiKey({ keys: { ada: { key, scopes } } }), TypeError, sentence('"ada"', "scopes"));
});

Deno.test("the errors for other options name what is wrong with an untyped value", () => {
  assertThrows(() => customStore(untyped({})), TypeError, sentence("get()"));
  const server = { name: "x", version: "1.0.0" };
  assertThrows(() => createServer({ ...server, observer: untyped(() => {}) }), TypeError, sentence("observer"));
  const own = extension({ id: "com.example/x" });
  const use = untyped({ own: own.layer() });
  assertThrows(
    () => tool({ name: "t", use, run: () => "" }),
    TypeError,
    sentence("use", "functions"),
  );
  // `layer()` needs no arguments, because all its steps are optional.
  createServer({ ...server, handlers: [own, tool({ name: "t", use: [own.layer()], run: () => "" })] });
});
