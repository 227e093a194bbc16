// Opaque tokens: how the server checks introspection responses, and how long the server caches the result.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { type IntrospectionOptions, oauth } from "../../src/auth/oauth/oauth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { makeKey, RESOURCE, TestIssuer } from "../support/issuer.ts";
import { callWith, protect, toInvalid } from "../support/protected.ts";
import { sentence } from "../support/messages.ts";
import { sendJson } from "../../src/auth/oauth/http.ts";
import { tool } from "../../mod.ts";
import { toRequest } from "../support/requests.ts";
import { advanceUntil, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";

const introspection = { clientId: "notes server", clientSecret: "p:ss%w+rd" };

/**
 * Adds an introspection endpoint for the given tokens to an issuer. Returns a list of the forms and headers that the
 * endpoint has received.
 */
function know(issuer: TestIssuer, tokens: Map<string, Record<string, unknown>>) {
  const asked: { readonly form: URLSearchParams; readonly authorization: string | null }[] = [];
  issuer.overrides.set("/introspect", async (request) => {
    const form = new URLSearchParams(await request.text());
    asked.push({ form, authorization: request.headers.get("authorization") });
    const found = tokens.get(form.get("token") ?? "");
    return Response.json(
      found ? { active: true, aud: RESOURCE, sub: "ada", client_id: "app", ...found } : { active: false },
    );
  });
  return asked;
}

Deno.test("an opaque token authenticates the subject in the introspection response", async () => {
  await using issuer = await TestIssuer.start();
  const exp = Math.floor(Date.now() / 1000) + 600;
  const asked = know(issuer, new Map([["opaque-1", { scope: "a b", exp, iss: issuer.name }]]));
  const server = protect([issuer], { oauth: { introspection } });
  const { status, principal } = await callWith(server, "opaque-1");
  assertEquals([status, principal.id], [200, `oauth:["${issuer.name}","ada"]`]);
  assertEquals([principal.scopes, principal.expiresAt, principal.clientId], [["a", "b"], exp * 1000, "app"]);
  const [{ form, authorization }] = asked;
  assertEquals([form.get("token"), form.get("token_type_hint")], ["opaque-1", "access_token"]);
  // RFC 6749 requires the client id and the secret to be form-encoded before they are joined.
  assertEquals(atob(authorization?.slice("Basic ".length) ?? ""), "notes+server:p%3Ass%25w%2Brd");
  const unknown = await callWith(server, "opaque-2");
  assertEquals([unknown.status, unknown.challenge], [401, toInvalid(sentence())]);
  assertEquals(
    (await callWith(server, await issuer.sign())).status,
    200,
    "JWTs are verified by the keys of the issuer",
  );
  assertEquals(asked.length, 2);
  await server.close();
  await using closed = protect([issuer]);
  assertEquals((await callWith(closed, "opaque-1")).challenge, toInvalid(sentence("JWT")));
});

Deno.test("MUST refuse an opaque token that was not issued for this server, or is not an access token", async () => {
  await using issuer = await TestIssuer.start();
  const cases: readonly (readonly [Record<string, unknown>, ...names: string[]])[] = [
    [{ aud: undefined }],
    [{ iss: "https://other.example.com" }],
    [{ aud: "https://other.example.com" }],
    [{ iss: 5 }],
    [{ exp: 1000 }],
    [{ nbf: 4102444800 }],
    [{ token_type: "DPoP" }, "cnf"],
    [{ token_use: "refresh_token" }],
    [{ cnf: { jkt: "x" } }, "cnf"],
    [{ sub: undefined, client_id: undefined }, "sub", "client_id"],
  ];
  know(issuer, new Map(cases.map(([found], index) => [`t${index}`, found])));
  await using server = protect([issuer], { oauth: { introspection } });
  for (const [index, [, ...names]] of cases.entries()) {
    assertEquals((await callWith(server, `t${index}`)).challenge, toInvalid(sentence(...names)));
  }
});

Deno.test("an introspection response is cached for only 30 seconds, because tokens can be revoked", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const tokens = new Map([["opaque", {}]]);
  const asked = know(issuer, tokens);
  await using server = protect([issuer], { oauth: { introspection }, server: { clock } });
  const statuses = await Promise.all([1, 2, 3].map(async () => (await callWith(server, "opaque")).status));
  assertEquals([statuses, asked.length], [[200, 200, 200], 1]);
  await clock.advance(29_999);
  assertEquals([(await callWith(server, "opaque")).status, asked.length], [200, 1]);
  tokens.delete("opaque");
  await clock.advance(1);
  assertEquals([(await callWith(server, "opaque")).status, asked.length], [401, 2]);
  tokens.set("opaque", {});
  assertEquals([(await callWith(server, "opaque")).status, asked.length], [401, 2]);
  await clock.advance(30_000);
  assertEquals([(await callWith(server, "opaque")).status, asked.length], [200, 3]);
});

Deno.test("a failed introspection request is reported as a fault, and the caller does not receive the reason", async () => {
  await using issuer = await TestIssuer.start();
  const responses = [
    () => new Response("no", { status: 500 }),
    () => Response.json({ error: "invalid_client", error_description: "opaque" }, { status: 401 }),
    () => Response.json({ active: "true" }),
    () => new Response("<html>"),
    () => Response.redirect("http://127.0.0.1:1/"),
  ];
  for (const [index, respond] of responses.entries()) {
    issuer.overrides.set("/introspect", respond);
    const faults: string[] = [];
    const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
    await using server = protect([issuer], { oauth: { introspection }, server: { observer } });
    const { status, message } = await callWith(server, `opaque${index}`);
    assertEquals([status, message], [503, sentence()]);
    assertEquals(faults.length, 1);
    assertStringIncludes(faults[0], sentence(issuer.name));
    assert(!faults[0].includes("opaque"), faults[0]);
    issuer.overrides.delete("/introspect");
  }
  issuer.metadata = { introspection_endpoint: "http://example.com/introspect" };
  await using server = protect([issuer], { oauth: { introspection } });
  assertEquals((await callWith(server, "opaque")).status, 503);
});

Deno.test("the server authenticates to the issuer with a secret in the header, a secret in the body or a private key", async () => {
  await using issuer = await TestIssuer.start();
  const asked = know(issuer, new Map([["opaque", {}]]));
  const key = await makeKey("ES256", "own");
  const privateJwk = { ...await crypto.subtle.exportKey("jwk", key.privateKey), alg: "ES256", kid: "own" };
  const clients: readonly IntrospectionOptions[] = [
    { ...introspection, secretIn: "body" },
    { clientId: "notes", privateKey: key.privateKey },
    { clientId: "notes", privateKey: privateJwk, endpoint: `${issuer.origin}/introspect` },
  ];
  for (const introspection of clients) {
    await using server = protect([issuer], { oauth: { introspection } });
    assertEquals((await callWith(server, "opaque")).status, 200);
  }
  const [body, byKey, byJwk] = asked.map(({ form, authorization }) => ({ ...Object.fromEntries(form), authorization }));
  assertEquals<object>(body, {
    token: "opaque",
    token_type_hint: "access_token",
    client_id: "notes server",
    client_secret: "p:ss%w+rd",
    authorization: null,
  });
  for (const [form, kid] of [[byKey, undefined], [byJwk, "own"]] as const) {
    const { client_assertion, client_assertion_type, client_id } = form as Record<string, string>;
    assertEquals([client_id, client_assertion_type], [
      "notes",
      "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    ]);
    const [header, payload] = client_assertion.split(".").slice(0, 2).map((part) => JSON.parse(atob(part)));
    assertEquals([header.alg, header.kid], ["ES256", kid]);
    assertEquals([payload.iss, payload.sub, payload.aud], ["notes", "notes", issuer.name]);
    assert(payload.exp - payload.iat <= 60 && payload.jti);
  }
});

Deno.test("the introspection option can be a function that returns the claims of a token", async () => {
  await using one = await TestIssuer.start();
  await using two = await TestIssuer.start();
  const introspect = (token: string) => token === "known" ? { iss: two.name, aud: RESOURCE, sub: "eve" } : undefined;
  const server = protect([one, two], { oauth: { introspection: introspect } });
  assertEquals((await callWith(server, "known")).principal.id, `oauth:["${two.name}","eve"]`);
  assertEquals((await callWith(server, "other")).status, 401);
  await server.close();
  await using only = protect([one], { oauth: { introspection: () => Promise.resolve({ aud: RESOURCE, sub: "eve" }) } });
  assertEquals((await callWith(only, "known")).principal.id, `oauth:["${one.name}","eve"]`);
});

Deno.test("hostile: handlers do not see a jti claim that contains the opaque token itself", async () => {
  await using issuer = await TestIssuer.start();
  know(issuer, new Map([["canary-5f2b", { jti: "canary-5f2b", ext: { of: ["x-canary-5f2b"] }, username: "ada" }]]));
  await using server = protect([issuer], { oauth: { introspection } });
  const { principal } = await callWith(server, "canary-5f2b");
  assertEquals(principal.claims.username, "ada");
  assert(!JSON.stringify(principal).includes("canary"));
});

Deno.test("an introspection function authenticates no caller if it returns an inactive token or an invalid value", async () => {
  await using issuer = await TestIssuer.start();
  const valid = { aud: RESOURCE, sub: "eve" };
  for (
    const [found, status] of [
      [{ active: true, ...valid }, 200],
      [{ active: undefined, ...valid }, 200],
      [{ active: false, ...valid }, 401],
      [{ active: "true", ...valid }, 401],
      [{ active: null, ...valid }, 401],
      [{ active: 1, ...valid }, 401],
      [null, 401],
      [true, 500],
      ["eve", 500],
      [[valid], 500],
      [{ ...valid, scope: ["all scopes"] }, 401],
      [{ ...valid, nonce: "n" }, 401],
    ] as const
  ) {
    await using server = protect([issuer], { oauth: { introspection: () => found as unknown as typeof valid } });
    assertEquals((await callWith(server, "opaque")).status, status, JSON.stringify(found));
  }
});

Deno.test("handlers see a claim whose text happens to contain a short opaque token", async () => {
  await using issuer = await TestIssuer.start();
  know(issuer, new Map([["a", { scope: "read", username: "ada", jti: "a", groups: ["team-a"] }]]));
  await using server = protect([issuer], { oauth: { introspection } });
  const { principal } = await callWith(server, "a");
  assertEquals([principal.scopes, principal.claims.username, principal.claims.groups], [["read"], "ada", ["team-a"]]);
  assertEquals([principal.claims.jti, principal.claims.client_id], [undefined, "app"]);
});

// Functions in options that never settle and ignore their signal do not block requests.

const resource = "http://localhost/mcp";

Deno.test("a token is checked again after its first check has timed out", async () => {
  let asked = 0;
  const hang = new Promise<never>(() => {});
  const auth = oauth({
    resource,
    issuers: ["https://login.example.com"],
    introspection: () => asked++ ? { active: true, aud: resource, sub: "ada" } : hang,
  });
  const limits = testLimits({ auth: { timeoutMs: 50 } });
  const handlers = [tool({ name: "hi", run: () => "Hi" })];
  const clock = fakeClock();
  const server = openServer({ auth, limits, handlers, observer: { fault() {} }, clock });
  const ask = async () => {
    const request = new Request(toRequest("tools/list"));
    request.headers.set("authorization", "Bearer opaque");
    const response = await server.fetch(request);
    await response.body?.cancel();
    return response.status;
  };
  const first = ask();
  await until(() => asked === 1, "the first check");
  const statuses = [await advanceUntil(clock, 50, first), await ask()];
  assertEquals([statuses, asked], [[503, 200], 2]);
});

Deno.test("a request to an authorization server times out even if the custom fetch never settles", async () => {
  const never = new Promise<never>(() => {});
  const hanging = new ReadableStream<Uint8Array>();
  for (const send of [() => never, () => Promise.resolve(new Response(hanging))]) {
    const stop = new AbortController();
    turn(5).then(() => stop.abort(new Error("it took too long")));
    const outcome = () => sendJson(send, "https://login.example.com/", { signal: stop.signal });
    await assertRejects(outcome, Error, "it took too long");
  }
});
