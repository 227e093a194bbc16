// Mistakes in authentication options: an invalid `Authentication` refuses every request with a reason, and `fetch`
// never throws.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, createServer, extension, tool } from "../../mod.ts";
import { apiKey, basicAuth, refuseRequest } from "../../src/auth/auth.ts";
import { customStore } from "../../src/stores/stores.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";

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
    const server = createServer({ name: "x", version: "1.0.0", auth: { authenticate, ...parts }, observer });
    const response = await server.fetch(toRequest("tools/list"));
    assertEquals(response.status, 500);
    const { message } = await assertRejects(() => server.ready(), TypeError, sentence(...names));
    assertStringIncludes(String(faults), message);
    const [, reason = message] = message.split(": ");
    assert(!(await response.text()).includes(reason));
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
    assertThrows(make, TypeError, sentence());
    const observer = { fault() {} };
    const server = createServer({ name: "x", version: "1.0.0", auth: make, observer });
    assertEquals((await server.fetch(toRequest("tools/list"))).status, 500);
    await server.close();
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
