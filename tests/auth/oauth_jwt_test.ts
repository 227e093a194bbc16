// JWT access tokens: which tokens the server accepts, and the reasons for refusals.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { SignJWT, UnsecuredJWT } from "jose";
import { tool } from "../../mod.ts";
import { oauth, toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { NO_PATH_PARAMS } from "../../src/server/engine/auth.ts";
import type { ServerHandle } from "../../src/extensions/extension.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { openPort } from "../peers/runtime.ts";
import { makeKey, RESOURCE, TestIssuer, type TokenParts } from "../support/issuer.ts";
import { until } from "../support/behaviour.ts";
import { callWith, METADATA, protect, toInvalid } from "../support/protected.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const now = () => Math.floor(Date.now() / 1000);

Deno.test("MUST validate tokens: a token that a trusted issuer issued for this server authenticates its subject", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const exp = now() + 600;
  const claims = { scope: "a b", exp, tenant: "red" };
  const { status, principal } = await callWith(server, await issuer.sign({ claims }));
  assertEquals(status, 200);
  assertEquals(principal.id, `oauth:["${issuer.name}","ada"]`);
  assertEquals(principal.id, toPrincipalId(issuer.name, "ada"));
  assertEquals([principal.issuer, principal.subject, principal.clientId], [issuer.name, "ada", "app"]);
  assertEquals([principal.scopes, principal.expiresAt], [["a", "b"], exp * 1000]);
  assertEquals([principal.claims.tenant, principal.claims.iss], ["red", issuer.name]);
});

Deno.test("tokens are accepted with every signature algorithm that uses a public key", async () => {
  for (const alg of ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"]) {
    await using issuer = await TestIssuer.start({ alg });
    const server = protect([issuer]);
    assertEquals((await callWith(server, await issuer.sign())).status, 200, alg);
    const other = protect([issuer], { oauth: { algorithms: [alg === "ES512" ? "ES256" : "ES512"] } });
    const { challenge } = await callWith(other, await issuer.sign());
    assertEquals(challenge, toInvalid(sentence()), alg);
    await server.close();
    await other.close();
  }
});

/** Invalid tokens, each with the claims that the reason names. */
const refusals: readonly (readonly [name: string, parts: TokenParts, ...claims: string[]])[] = [
  ["for another server", { claims: { aud: "https://other.example.com/mcp" } }],
  ["for a list of other servers", { claims: { aud: ["a", `${RESOURCE}/x`] } }],
  ["for a server whose name has the same beginning", { claims: { aud: `${RESOURCE}.evil` } }],
  ["for the host without the path", { claims: { aud: "https://mcp.example.com" } }],
  ["without audience", { claims: { aud: undefined } }],
  ["with an audience of another type", { claims: { aud: { [RESOURCE]: true } } }],
  ["by another issuer", { claims: { iss: "https://evil.example.com" } }],
  ["without issuer", { claims: { iss: undefined } }],
  ["with a list of issuers", { claims: { iss: ["x"] } }],
  ["that has expired", { claims: { exp: 1000 } }],
  ["that never expires", { claims: { exp: undefined } }, "exp"],
  ["with an expiry that is a text", { claims: { exp: "4102444800" } }, "exp", "nbf"],
  ["with an expiry beyond the largest date", { claims: { exp: 1e300 } }, "exp", "nbf"],
  ["that is not yet valid", { claims: { nbf: 4102444800 } }],
  ["with another type", { header: { typ: "id_token+jwt" } }],
  ["that is a grant", { header: { typ: "oauth-id-jag+jwt" } }],
  ["without subject", { claims: { sub: undefined, client_id: undefined } }, "sub", "client_id"],
  ["with a subject of another type", { claims: { sub: 5 } }, "sub", "client_id"],
  ["bound by a short hash", { claims: { cnf: { jkt: "x" } } }, "cnf"],
  ["bound to a certificate", { claims: { cnf: { "x5t#S256": "x".repeat(43) } } }, "cnf"],
  [
    "bound to a key and to a certificate",
    { claims: { cnf: { jkt: "x".repeat(43), "x5t#S256": "x".repeat(43) } } },
    "cnf",
  ],
  ["with a critical extension", { header: { crit: ["x"], x: 1 } }],
];

for (const [name, parts, ...named] of refusals) {
  Deno.test(`MUST respond with 401 to an invalid token: ${name}`, async () => {
    await using issuer = await TestIssuer.start();
    await using server = protect([issuer]);
    // jose refuses to sign a header with unknown critical extensions, so replace the header of the signed token.
    const { crit, ...header } = parts.header ?? {};
    let token = await issuer.sign({ ...parts, header });
    if (crit) {
      const [first, ...rest] = token.split(".");
      token = [btoa(JSON.stringify({ ...JSON.parse(atob(first)), crit })).replace(/=/g, ""), ...rest].join(".");
    }
    const { status, challenge, message } = await callWith(server, token);
    assertEquals([status, challenge], [401, toInvalid(sentence(...named))]);
    assertEquals(message, sentence(...named));
  });
}

Deno.test("aud can be a list, and can have scheme and host in upper case", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { oauth: { audience: ["api://notes", "https://Old.example.com"] } });
  const accepted = [
    ["x", RESOURCE],
    "HTTPS://MCP.EXAMPLE.COM/mcp",
    "https://mcp.example.com:443/mcp",
    "api://notes",
    "https://old.example.com/",
  ];
  for (const aud of accepted) {
    assertEquals((await callWith(server, await issuer.sign({ claims: { aud } }))).status, 200);
  }
  for (
    const aud of [
      "API://notes",
      "https://mcp.example.com/MCP",
      "https://mcp.example.com/mcp/",
      "http://mcp.example.com/mcp",
    ]
  ) {
    assertEquals((await callWith(server, await issuer.sign({ claims: { aud } }))).status, 401, aud);
  }
});

Deno.test("with the type option, the server refuses tokens of any other type", async () => {
  await using issuer = await TestIssuer.start();
  const [lenient, strict] = [protect([issuer]), protect([issuer], { oauth: { type: "at+jwt" } })];
  for (
    const [typ, statuses] of [
      ["at+jwt", [200, 200]],
      ["application/AT+JWT", [200, 200]],
      ["JWT", [200, 401]],
      [undefined, [200, 401]],
      ["dpop+jwt", [401, 401]],
    ] as const
  ) {
    const token = await issuer.sign({ header: { typ } });
    assertEquals<readonly number[]>(
      [(await callWith(lenient, token)).status, (await callWith(strict, token)).status],
      statuses,
      typ,
    );
  }
  await lenient.close();
  await strict.close();
});

Deno.test("hostile: a token is refused if it has no signature, or is signed with the public key as a shared secret", async () => {
  await using issuer = await TestIssuer.start({ alg: "RS256" });
  await using server = protect([issuer]);
  const claims = { iss: issuer.name, aud: RESOURCE, sub: "ada", exp: now() + 600 };
  const unsigned = new UnsecuredJWT(claims).encode();
  const [key] = issuer.keys;
  const secret = new TextEncoder().encode(JSON.stringify(key));
  const shared = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: key.kid }).sign(secret);
  const signed = await issuer.sign();
  const [header, payload, signature] = signed.split(".");
  const stripped = `${btoa(JSON.stringify({ alg: "NONE", typ: "at+jwt" })).replace(/=/g, "")}.${payload}.`;
  const attempts: readonly (readonly [token: string, reason: string])[] = [
    [unsigned, sentence("JWT")],
    [`${unsigned}${signature}`, sentence()],
    [stripped, sentence("JWT")],
    [shared, sentence()],
    [`${header}.${payload}.${signature.replace(/^../, "AA")}`, sentence()],
    [`${header}.${payload}`, sentence("JWT")],
    [`${signed}.x`, sentence("JWT")],
    ["x.y.z", sentence("JWT")],
  ];
  for (const [token, reason] of attempts) {
    const { status, challenge } = await callWith(server, token);
    assertEquals([status, challenge?.includes("invalid_token")], [401, true], token);
    if (token !== unsigned && token !== stripped) assertEquals(challenge, toInvalid(reason));
  }
  const forged = btoa(JSON.stringify({ ...claims, sub: "root" })).replace(/=/g, "").replace(/\+/g, "-").replace(
    /\//g,
    "_",
  );
  assertEquals((await callWith(server, `${header}.${forged}.${signature}`)).status, 401);
  assertThrows(() => oauth({ resource: RESOURCE, issuers: [issuer.name], algorithms: ["HS256"] }), TypeError, "HS256");
  assertThrows(() => oauth({ resource: RESOURCE, issuers: [issuer.name], algorithms: ["none"] }), TypeError, "none");
});

Deno.test("hostile: a token that is signed with a symmetric key from the key set is refused", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const k = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA";
  issuer.keys = [{ kty: "oct", k, kid: "1", alg: "HS256" }];
  const token = await new SignJWT({ iss: issuer.name, aud: RESOURCE, sub: "ada", exp: now() + 600 })
    .setProtectedHeader({ alg: "HS256", kid: "1" }).sign(new TextEncoder().encode(atob(k)));
  assertEquals((await callWith(server, token)).status, 401);
});

Deno.test("hostile: keys inside a token, or at a URL in a token, are never used", async () => {
  await using issuer = await TestIssuer.start();
  const own = await makeKey();
  let fetched = 0;
  await using evil = await openPort({
    fetch: () => {
      fetched++;
      return Promise.resolve(Response.json({ keys: [own.jwk] }));
    },
  });
  await using server = protect([issuer]);
  const url = `http://${evil.host}/jwks`;
  const [{ kid }] = issuer.keys;
  for (
    const header of [{ jwk: own.jwk }, { jku: url }, { x5u: url }, { x5c: ["MIIB"] }, { jku: url, jwk: own.jwk, kid }]
  ) {
    const { status } = await callWith(server, await issuer.sign({ key: own, header }));
    assertEquals(status, 401, JSON.stringify(header));
    // The server ignores `jku` instead of refusing it, because some issuers add `jku` to their own tokens.
    assertEquals((await callWith(server, await issuer.sign({ header: { jku: url } }))).status, 200);
  }
  assertEquals(fetched, 0);
});

Deno.test("hostile: a token that names one issuer but is signed by another issuer is refused", async () => {
  await using one = await TestIssuer.start();
  await using two = await TestIssuer.start();
  await using server = protect([one, two]);
  assertEquals((await callWith(server, await one.sign())).status, 200);
  assertEquals((await callWith(server, await two.sign())).status, 200);
  assertEquals((await callWith(server, await two.sign({ claims: { iss: one.name } }))).status, 401);
  const [{ kid }] = one.keys;
  assertEquals((await callWith(server, await two.sign({ claims: { iss: one.name }, header: { kid } }))).status, 401);
});

Deno.test("the same subject at two issuers gets two principal ids, and no subject can imitate another caller's id", async () => {
  await using one = await TestIssuer.start();
  await using two = await TestIssuer.start();
  await using server = protect([one, two]);
  const ids = new Set<string>();
  for (const issuer of [one, two]) {
    for (const sub of ["ada", 'ada"', "ada\\", `"],["ada`]) {
      ids.add((await callWith(server, await issuer.sign({ claims: { sub } }))).principal.id);
    }
  }
  assertEquals(ids.size, 8);
});

Deno.test("the principal has no subject if a client requested the token for itself", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const of = async (claims: Record<string, unknown>) =>
    (await callWith(server, await issuer.sign({ claims }))).principal;
  const own = await of({ sub: "app" });
  assertEquals([own.id, own.subject, own.clientId], [toPrincipalId(issuer.name, "app"), undefined, "app"]);
  const nameless = await of({ sub: undefined });
  assertEquals([nameless.id, nameless.subject], [`oauth:["${issuer.name}",null,"app"]`, undefined]);
  assertEquals(
    (await of({ sub: "app@clients", client_id: undefined, azp: "app", gty: "client-credentials" })).subject,
    undefined,
  );
  assertEquals((await of({ sub: "eve", client_id: undefined, azp: "web" })).clientId, "web");
});

Deno.test("scopes are read from the claim scope or scp, and a token without both claims has no scopes", async () => {
  await using issuer = await TestIssuer.start();
  const server = protect([issuer]);
  for (
    const [claims, scopes] of [
      [{ scope: "a b" }, ["a", "b"]],
      [{ scp: ["a", "b"] }, ["a", "b"]],
      [{ scp: "a b" }, ["a", "b"]],
      [{ scope: "" }, []],
      [{ scope: "all scopes" }, ["all", "scopes"]],
      [{ scope: "a  b " }, ["a", "b"]],
      [{ scope: null, scp: "a" }, ["a"]],
      [{}, []],
    ] as const
  ) {
    assertEquals((await callWith(server, await issuer.sign({ claims }))).principal.scopes, scopes);
  }
  const odd = [5, {}, true, ["all scopes"], ["a", "all scopes"], ["a", 5], [null], [["a"]], "a\tb", 'a"', "\u00e4"];
  for (const scp of odd) {
    const { status, challenge } = await callWith(server, await issuer.sign({ claims: { scp } }));
    assertEquals([status, challenge], [401, toInvalid(sentence())], JSON.stringify(scp));
  }
  const own = protect([issuer], { oauth: { readScopes: ({ roles }) => roles as string[] } });
  const { principal } = await callWith(own, await issuer.sign({ claims: { roles: ["x"], scope: "a" } }));
  assertEquals(principal.scopes, ["x"]);
  const none = await callWith(own, await issuer.sign({ claims: { scope: "a" } }));
  assertEquals([none.status, none.principal.scopes], [200, undefined], "a missing claim grants nothing");
  for (const roles of [null, "x", 5, {}, ["a b"], ["all scopes"], [5], ["x", null]]) {
    assertEquals((await callWith(own, await issuer.sign({ claims: { roles } }))).status, 500, JSON.stringify(roles));
  }
  await server.close();
  await own.close();
});

Deno.test("if readScopes returns undefined, the token grants no scopes, and the first refused call is reported as a fault", async () => {
  await using issuer = await TestIssuer.start();
  const faults: string[] = [];
  await using server = protect([issuer], {
    oauth: { readScopes: ({ permissions }) => permissions as string[] },
    handlers: [tool({ name: "write", scopes: ["notes:write"], run: () => "" })],
    server: { observer: { fault: ({ error }) => void faults.push(String(error)) } },
  });
  const token = await issuer.sign({ claims: { scope: "notes:write" } });
  for (let i = 0; i < 2; i++) assertEquals((await callWith(server, token, { name: "write" })).status, 403);
  await until(() => faults.length > 0, "the fault");
  assertEquals(faults.length, 1);
  assertStringIncludes(faults[0], sentence("notes:write", "allScopes"));
});

Deno.test("expiry times are compared with the server's clock and the tolerance skewMs", async () => {
  const clock = fakeClock(Date.UTC(2030, 0, 1));
  const at = clock.date() / 1000;
  await using issuer = await TestIssuer.start();
  const server = protect([issuer], { server: { clock } });
  const sign = (claims: Record<string, unknown>) => issuer.sign({ claims });
  const valid = await sign({ exp: at + 10, nbf: at + 4 });
  assertEquals((await callWith(server, valid)).status, 200);
  assertEquals((await callWith(server, await sign({ exp: at + 60, nbf: at + 6 }))).status, 401);
  await clock.advance(12_000);
  const late = await callWith(server, valid);
  assertEquals([late.status, late.principal.expiresAt], [200, (at + 15) * 1000]);
  await clock.advance(3000);
  const { status, challenge } = await callWith(server, valid);
  assertEquals([status, challenge], [401, toInvalid(sentence())]);
  const strict = protect([issuer], { server: { clock }, oauth: { skewMs: 0 } });
  assertEquals((await callWith(strict, await sign({ exp: at + 15 }))).status, 401);
  assertEquals((await callWith(strict, await sign({ exp: at + 16 }))).status, 200);
  await server.close();
  await strict.close();
});

Deno.test("a verified token is not verified again, and leaves the cache when it expires", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const principals = new Set<unknown>();
  const auth = oauth({ resource: RESOURCE, issuers: [issuer.name] });
  let handle: ServerHandle | undefined;
  const server = openServer({ auth: { ...auth, start: (server) => auth.start?.(handle = server) } });
  await server.ready();
  const token = await issuer.sign({ claims: { exp: Math.floor(clock.date() / 1000) + 30 } });
  const request = new Request(RESOURCE, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  const signal = AbortSignal.timeout(1000);
  const facts = { transport: "http", now: clock.date(), signal, ...NO_PATH_PARAMS } as const;
  assert(auth.authenticate(request, facts, handle) instanceof Promise);
  // Concurrent requests with the same token share one verification, so they get the same principal object.
  for (const found of await Promise.all([1, 2].map(() => auth.authenticate(request, facts, handle)))) {
    principals.add(found);
  }
  const known = auth.authenticate(request, facts, handle);
  assert(!(known instanceof Promise));
  principals.add(known);
  const headers = { authorization: `bearer   ${token}` };
  principals.add(auth.authenticate(new Request(RESOURCE, { method: "POST", headers }), facts, handle));
  assertEquals(principals.size, 1);
  const later = auth.authenticate(request, { ...facts, now: facts.now + 60_000 }, handle);
  assert(later instanceof Promise);
  assertEquals((await later as { status?: number }).status, 401);
});

Deno.test("hostile: a huge token or a text that is not a token causes no request to the issuer", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const huge = await issuer.sign({ claims: { fill: "x".repeat(16_000) } });
  assertEquals((await callWith(server, huge)).challenge, toInvalid(sentence(16384)));
  const header = btoa('{"alg":"ES256"}').replace(/=/g, "");
  for (
    const token of ["x".repeat(16_000), `${header}.${"A".repeat(9000)}.AA`, `${header}..`, "eyJ", "\u00e4", "a\tb"]
  ) {
    assertEquals((await callWith(server, token)).status, 401, token.slice(0, 20));
  }
  assertEquals(issuer.paths, []);
  const large = await issuer.sign({ claims: { groups: "x".repeat(8000) } });
  assertEquals((await callWith(server, large)).status, 200, "large tokens of real issuers are accepted");
});

Deno.test("the challenge for a request without a token has no error parameter", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const open = `Bearer resource_metadata="${METADATA}"`;
  for (const authorization of ["Basic YTpi", "Bearer", "bearer  ", "DPoPx", "Bearerx"]) {
    const { status, challenge } = await callWith(server, undefined, { headers: { authorization } });
    assertEquals([status, challenge], [401, open], authorization);
  }
  assertEquals((await callWith(server, undefined)).challenge, open);
  const token = await issuer.sign();
  assertEquals((await callWith(server, undefined, { headers: { authorization: `bEaReR  ${token}` } })).status, 200);
});

Deno.test("MUST refuse an ID token, even if its audience is the resource", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer]);
  const marks = [{ nonce: "n-1" }, { at_hash: "x" }, { c_hash: "x" }, { typ: "ID" }, { nonce: null }];
  for (const claims of [...marks, { at_hash: "x", typ: "Bearer" }]) {
    const { status, challenge } = await callWith(server, await issuer.sign({ claims, header: { typ: "JWT" } }));
    assertEquals([status, challenge], [401, toInvalid(sentence())], JSON.stringify(claims));
  }
  // Keycloak adds `nonce` to access tokens too, so a token whose type says that it is an access token is accepted.
  assertEquals(
    (await callWith(server, await issuer.sign({ claims: { nonce: "n" }, header: { typ: "at+jwt" } }))).status,
    200,
  );
  const bearer = await issuer.sign({ claims: { nonce: "n", typ: "Bearer" }, header: { typ: "JWT" } });
  assertEquals((await callWith(server, bearer)).status, 200);
});
