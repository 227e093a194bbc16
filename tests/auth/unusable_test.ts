// Mistakes in authentication options: an invalid `Authentication` refuses every request with a reason, and `fetch`
// never throws.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type Authentication, createServer, extension, tool } from "../../mod.ts";
import { apiKey, basicAuth, refuseRequest } from "../../src/auth/auth.ts";
import { customStore } from "../../src/stores/stores.ts";
import { toRequest } from "../support/requests.ts";

/** Casts a value, so that a test can pass a value of the wrong type. */
function untyped(value: unknown): never {
  return value as never;
}

const authenticate = () => ({ id: "ada" });
const fetch = () => new Response("route");

const unusable: Readonly<Record<string, [Partial<Authentication>, string]>> = {
  "routes that are not a list": [
    { routes: untyped({ path: "/x", fetch }) },
    "routes must be a list; write it in brackets",
  ],
  "a route without a slash": [{ routes: [{ path: "x", fetch }] }, 'route "x" is not a normalized path; write "/x"'],
  "a route with a query": [{ routes: [{ path: "/x?y", fetch }] }, 'route "/x?y" is not a normalized path; write "/x"'],
  "a route with a space": [
    { routes: [{ path: "/a b", fetch }] },
    'route "/a b" is not a normalized path; write "/a%20b"',
  ],
  "a route twice": [{ routes: [{ path: "/x", fetch }, { path: "/x", fetch }] }, 'route "/x" is listed twice'],
  "a route without fetch": [{ routes: [untyped({ path: "/x" })] }, 'route "/x" has no fetch()'],
  "a challenge that is a string": [{ challenge: untyped("Bearer") }, "challenge is invalid; use an object such as"],
  "a challenge with a line break": [{ challenge: { scheme: "a\r\nb" } }, "challenge is invalid; use an object such as"],
  "a challenge with a number": [
    { challenge: { scheme: "Bearer", params: { a: untyped(5) } } },
    "challenge is invalid; use an object such as",
  ],
  "an invalid header name": [
    { credentials: { headers: ["x user"] } },
    "credentials is not an object with lists of header, cookie or query parameter names",
  ],
  "an empty cookie": [
    { credentials: { cookies: [""] } },
    "credentials is not an object with lists of header, cookie or query parameter names",
  ],
};

for (const [name, [parts, wanted]] of Object.entries(unusable)) {
  Deno.test(`an authentication with ${name} serves no request`, async () => {
    const faults: unknown[] = [];
    const observer = { fault: ({ error }: { readonly error: unknown }) => faults.push(error) };
    const server = createServer({ name: "x", version: "1.0.0", auth: { authenticate, ...parts }, observer });
    const response = await server.fetch(toRequest("tools/list"));
    assertEquals(response.status, 500);
    assert(!(await response.text()).includes(wanted));
    assert(String(faults).includes(`Cannot use the authentication: ${wanted}`), String(faults));
    await assertRejects(() => server.ready(), TypeError, wanted);
    await server.close();
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
    assertThrows(make, TypeError, "Cannot refuse a request: ");
    const observer = { fault() {} };
    const server = createServer({ name: "x", version: "1.0.0", auth: make, observer });
    assertEquals((await server.fetch(toRequest("tools/list"))).status, 500);
    await server.close();
  }
});

Deno.test("apiKey() and basicAuth() throw if keys or users is empty, or is neither an object nor a function", () => {
  const key = "0123456789abcdef";
  const none = "the object is empty, so no request could be authenticated";
  assertThrows(() => apiKey({ keys: {} }), TypeError, `Cannot use the API keys: ${none}`);
  assertThrows(() => apiKey({ keys: { ada: { key: [] } } }), TypeError, none);
  assertThrows(() => basicAuth({ users: {} }), TypeError, `Cannot use the passwords: ${none}`);
  for (const keys of [undefined, null, [key], key]) {
    assertThrows(() => apiKey({ keys: untyped(keys) }), TypeError, "keys must be a function or an object such as");
    assertThrows(() => basicAuth({ users: untyped(keys) }), TypeError, "users must be a function or an object such as");
  }
  assertThrows(() => apiKey({ keys: { ada: untyped(null) } }), TypeError, "check that its environment variable is set");
  const scopes = untyped("notes:read");
  assertThrows(
    () => apiKey({ keys: { ada: { key, scopes } } }),
    TypeError,
    'the caller "ada": its scopes are not a list',
  );
});

Deno.test("the errors for other options name what is wrong with an untyped value", () => {
  assertThrows(() => customStore(untyped({})), TypeError, "Cannot create a store: the first argument has no get()");
  const server = { name: "x", version: "1.0.0" };
  assertThrows(() => createServer({ ...server, observer: untyped(() => {}) }), TypeError, "observer is a function");
  const own = extension({ id: "com.example/x" });
  const extensions = untyped({ own: own.attribute() });
  assertThrows(
    () => tool({ name: "t", extensions, run: () => "" }),
    TypeError,
    "extensions is not a list of attributes; create each attribute with extension.attribute()",
  );
  // `attribute()` needs no arguments, because all its options are optional.
  createServer({ ...server, handlers: [own, tool({ name: "t", extensions: [own.attribute()], run: () => "" })] });
});
