// Tokens that are bound to a key (DPoP, RFC 9449): each request needs its own proof.
import { assert, assertEquals } from "@std/assert";
import { base64url, calculateJwkThumbprint, type JWTHeaderParameters, SignJWT } from "jose";
import type { Server } from "../../mod.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type IssuerKey, makeKey, RESOURCE, TestIssuer } from "../support/issuer.ts";
import { toRequest } from "../support/requests.ts";
import { type Called, callWith, METADATA, protect } from "../support/protected.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

const ALGORITHMS = ["ES256", "ES384", "ES512", "Ed25519", "EdDSA"];
const algs = ALGORITHMS.join(" ");

async function hash(text: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

function publicOf({ jwk: { kty, crv, x, y } }: IssuerKey): Record<string, unknown> {
  return JSON.parse(JSON.stringify({ kty, crv, x, y }));
}

interface ProofParts {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  /** Key that signs the proof. Defaults to the key in the proof's header. */
  readonly signer?: IssuerKey;
}

/** Signs a proof for a tool call with the given token. Claims with the value `undefined` are omitted. */
async function prove(key: IssuerKey, token: string, { claims = {}, header = {}, signer = key }: ProofParts = {}) {
  const iat = Math.floor(Date.now() / 1000);
  const all = { htm: "POST", htu: RESOURCE, ath: await hash(token), iat, jti: crypto.randomUUID(), ...claims };
  // The cast lets tests pass header values that the types forbid.
  const protectedHeader = { typ: "dpop+jwt", alg: key.alg, jwk: publicOf(key), ...header } as JWTHeaderParameters;
  return await new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader(protectedHeader).sign(signer.privateKey);
}

/** Signs a token that is bound to the given key. */
async function bind(issuer: TestIssuer, key: IssuerKey, claims: Record<string, unknown> = {}): Promise<string> {
  return await issuer.sign({ claims: { cnf: { jkt: await calculateJwkThumbprint(publicOf(key)) }, ...claims } });
}

/** Creates a protected server that `await using` closes at the end of a test. */
function open(...args: Parameters<typeof protect>): Pick<Server, "fetch"> & AsyncDisposable {
  const server = protect(...args);
  return { fetch: (request) => server.fetch(request), [Symbol.asyncDispose]: () => server.close() };
}

async function callBound(server: Pick<Server, "fetch">, token: string, dpop?: string): Promise<Called> {
  const headers: Record<string, string> = dpop === undefined ? {} : { dpop };
  return await callWith(server, undefined, { headers: { authorization: `DPoP ${token}`, ...headers } });
}

function toChallenge(scheme: "Bearer" | "DPoP", error: string, reason: string): string {
  const problem = `error="${error}", error_description="${reason}", `;
  const [bearer, dpop] = scheme === "Bearer" ? [problem, ""] : ["", problem];
  return `Bearer ${bearer}resource_metadata="${METADATA}", DPoP ${dpop}algs="${algs}", resource_metadata="${METADATA}"`;
}

for (const alg of ALGORITHMS) {
  Deno.test(`a token that is bound to an ${alg} key needs a proof in each request`, async () => {
    await using issuer = await TestIssuer.start();
    await using server = open([issuer]);
    const key = await makeKey(alg);
    const token = await bind(issuer, key);
    for (let call = 0; call < 3; call++) {
      const { status, principal } = await callBound(server, token, await prove(key, token));
      assertEquals([status, principal.subject], [200, "ada"]);
    }
    // The first call has cached the token, and a cached token needs a proof too.
    const { status, challenge } = await callBound(server, token);
    assertEquals([status, challenge], [401, toChallenge("DPoP", "invalid_dpop_proof", sentence("DPoP"))]);
  });
}

type Refusal = readonly [
  name: string,
  make: (key: IssuerKey, token: string) => string | Promise<string>,
  /** Parts of the reason. */
  ...names: readonly string[],
];

const later = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;
const claim = (claims: Record<string, unknown>) => (key: IssuerKey, token: string) => prove(key, token, { claims });
const head = (header: Record<string, unknown>) => (key: IssuerKey, token: string) => prove(key, token, { header });
const encode = (value: unknown) => base64url.encode(JSON.stringify(value));

const refusals: readonly Refusal[] = [
  ["for another method", claim({ htm: "GET" }), "HTTP"],
  ["for a method in lower case", claim({ htm: "post" }), "HTTP"],
  ["without method", claim({ htm: undefined }), "HTTP"],
  ["for another host", claim({ htu: "https://evil.example.com/mcp" }), "URL"],
  ["for the host behind the proxy", claim({ htu: "http://localhost/mcp" }), "URL"],
  ["for another path", claim({ htu: "https://mcp.example.com/other" }), "URL"],
  ["for a longer path", claim({ htu: `${RESOURCE}/x` }), "URL"],
  ["for another port", claim({ htu: "https://mcp.example.com:8443/mcp" }), "URL"],
  ["for another scheme", claim({ htu: "http://mcp.example.com/mcp" }), "URL"],
  ["with a text that is not a URL", claim({ htu: "/mcp" }), "URL"],
  ["with a list of URLs", claim({ htu: [RESOURCE] }), "URL"],
  ["without URL", claim({ htu: undefined }), "URL"],
  ["made before", claim({ iat: later(-90) }), "iat", "60"],
  ["made later", claim({ iat: later(90) }), "iat", "60"],
  ["without a time", claim({ iat: undefined }), "iat", "60"],
  ["without a hash of the token", claim({ ath: undefined })],
  ["with the hash of another token", claim({ ath: "x".repeat(43) })],
  ["without id", claim({ jti: undefined }), "jti", "256"],
  ["with an empty id", claim({ jti: "" }), "jti", "256"],
  ["with a number as its id", claim({ jti: 5 }), "jti", "256"],
  ["with a long id", claim({ jti: "x".repeat(257) }), "jti", "256"],
  ["of another type", head({ typ: "JWT" }), "typ", "dpop+jwt"],
  ["without type", head({ typ: undefined }), "typ", "dpop+jwt"],
  ["without key", head({ jwk: undefined })],
  ["with a shared key", head({ jwk: { kty: "oct", k: "AAAA" } })],
  ["of another key", async (_, token) => await prove(await makeKey(), token)],
  ["that another key signs", async (key, token) => await prove(key, token, { signer: await makeKey() })],
  [
    "with a private key",
    async (_, token) => {
      const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
      const jwk = await crypto.subtle.exportKey("jwk", pair.privateKey);
      return await prove({ alg: "ES256", privateKey: pair.privateKey, jwk: {} }, token, { header: { jwk } });
    },
  ],
  [
    "without signature",
    async (key, token) => {
      const [, payload] = (await prove(key, token)).split(".");
      return `${encode({ typ: "dpop+jwt", alg: "none", jwk: publicOf(key) })}.${payload}.`;
    },
  ],
  [
    "with a shared secret",
    async (key, token) => {
      const [, payload] = (await prove(key, token)).split(".");
      const header = { typ: "dpop+jwt", alg: "HS256", jwk: publicOf(key) };
      const claims = JSON.parse(new TextDecoder().decode(base64url.decode(payload)));
      return await new SignJWT(claims).setProtectedHeader(header).sign(new Uint8Array(32));
    },
  ],
  ["repeated in a second header", async (key, token) => `${await prove(key, token)}, ${await prove(key, token)}`],
  ["that is too long", claim({ x: "x".repeat(5000) }), "4096"],
  ["that is not a JWT", () => "x"],
  ["that is the token itself", async (_, token) => await Promise.resolve(token)],
];

for (const [name, make, ...names] of refusals) {
  Deno.test(`MUST refuse a proof ${name}`, async () => {
    await using issuer = await TestIssuer.start();
    await using server = open([issuer]);
    const key = await makeKey();
    const token = await bind(issuer, key);
    const { status, challenge } = await callBound(server, token, await make(key, token));
    assertEquals([status, challenge], [401, toChallenge("DPoP", "invalid_dpop_proof", sentence(...names))]);
    assertEquals((await callBound(server, token, await prove(key, token))).status, 200);
  });
}

Deno.test("a proof is accepted if its URL is equivalent to the requested URL without the query", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const key = await makeKey();
  const token = await bind(issuer, key);
  for (const htu of ["HTTPS://MCP.example.com:443/mcp", `${RESOURCE}?a=b`, `${RESOURCE}#c`]) {
    assertEquals((await callBound(server, token, await prove(key, token, { claims: { htu } }))).status, 200, htu);
  }
});

Deno.test("MUST compare the URL of a proof with the resource, whatever host the framework puts into the request's URL", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer], { server: { hosts: ["mcp.example.com", "other.example"] } });
  const key = await makeKey();
  const token = await bind(issuer, key);
  const call = async (url: string, host: string, htu: string) => {
    const dpop = await prove(key, token, { claims: { htu } });
    const { headers, body } = toRequest(
      "tools/call",
      { name: "whoami" },
      { host, authorization: `DPoP ${token}`, dpop },
    );
    const response = await server.fetch(
      new Request(url, { method: "POST", headers, body: await new Response(body).text() }),
    );
    await response.body?.cancel();
    return response.status;
  };
  for (const built of ["http://localhost:41020/mcp", "http://other.example/mcp", "https://evil.example/mcp"]) {
    for (const host of ["mcp.example.com", "other.example"]) {
      assertEquals(await call(built, host, RESOURCE), 200, built);
      assertEquals(await call(built, host, built), 401, built);
      assertEquals(await call(built, host, `https://${host}:8443/mcp`), 401, built);
      assertEquals(await call(built, host, "https://other.example/mcp"), 401, built);
    }
  }
});

Deno.test("MUST accept a proof only once, even if two concurrent requests contain the proof", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const key = await makeKey();
  const token = await bind(issuer, key);
  const proof = await prove(key, token);
  const both = await Promise.all([callBound(server, token, proof), callBound(server, token, proof)]);
  assertEquals(both.map(({ status }) => status).sort(), [200, 401]);
  const { challenge } = await callBound(server, token, proof);
  assertEquals(challenge, toChallenge("DPoP", "invalid_dpop_proof", sentence()));
});

Deno.test("MUST accept a proof at only one of several instances that share a store", async () => {
  await using issuer = await TestIssuer.start();
  const store = closeAtEnd(memoryStore());
  const secret = "0123456789abcdef0123456789abcdef";
  await using one = open([issuer], { server: { store, secret } });
  await using other = open([issuer], { server: { store, secret } });
  const key = await makeKey();
  const token = await bind(issuer, key);
  const proof = await prove(key, token);
  assertEquals((await callBound(one, token, proof)).status, 200);
  assertEquals((await callBound(other, token, proof)).status, 401);
  assertEquals((await callBound(other, token, await prove(key, token))).status, 200);
});

Deno.test("a caller who sends many proofs invalidates only their own old proofs, and no used proof becomes valid again", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const [key, other] = [await makeKey(), await makeKey()];
  const token = await bind(issuer, key);
  const victim = await bind(issuer, other, { sub: "bob" });
  const used = await prove(other, victim);
  assertEquals((await callBound(server, victim, used)).status, 200);
  const first = await prove(key, token);
  assertEquals((await callBound(server, token, first)).status, 200);
  const iat = later(-5);
  const statuses = new Set<number>();
  for (let call = 0; call < 400; call++) {
    statuses.add((await callBound(server, token, await prove(key, token, { claims: { iat } }))).status);
  }
  assertEquals(statuses, new Set([200, 429]));
  assertEquals((await callBound(server, token, first)).status, 401);
  assertEquals((await callBound(server, victim, used)).status, 401);
  assertEquals((await callBound(server, victim, await prove(other, victim, { claims: { iat } }))).status, 200);
  assertEquals((await callBound(server, token, await prove(key, token))).status, 200);
});

Deno.test("an app with a fast clock that sends many proofs affects no other app of its user", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const [phone, laptop] = [await makeKey(), await makeKey()];
  const [ofPhone, ofLaptop] = [await bind(issuer, phone), await bind(issuer, laptop)];
  const used = await prove(laptop, ofLaptop);
  assertEquals((await callBound(server, ofLaptop, used)).status, 200);
  const iat = later(55);
  const statuses: number[] = [];
  for (let call = 0; call < 280; call++) {
    statuses.push((await callBound(server, ofPhone, await prove(phone, ofPhone, { claims: { iat } }))).status);
  }
  // All of these proofs have the same time, so the server no longer distinguishes further proofs.
  assertEquals(statuses.indexOf(429), 257);
  assertEquals((await callBound(server, ofLaptop, used)).status, 401);
  const proofs = await Promise.all(Array.from({ length: 40 }, () => prove(laptop, ofLaptop)));
  const others = await Promise.all(proofs.map((proof) => callBound(server, ofLaptop, proof)));
  assertEquals(new Set(others.map(({ status }) => status)), new Set([200]));
  assertEquals(
    (await callBound(server, ofPhone, await prove(phone, ofPhone, { claims: { iat: iat + 2 } }))).status,
    200,
  );
});

Deno.test("MUST refuse a bound token with the scheme Bearer, and an unbound token with the scheme DPoP", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const key = await makeKey();
  const token = await bind(issuer, key);

  for (const dpop of ["", await prove(key, token), ""]) {
    const { status, challenge } = await callWith(server, token, { headers: dpop ? { dpop } : {} });
    assertEquals([status, challenge], [401, toChallenge("Bearer", "invalid_token", sentence("DPoP"))]);
    assertEquals((await callBound(server, token, await prove(key, token))).status, 200);
  }
  const free = await issuer.sign();
  for (let call = 0; call < 2; call++) {
    const { status, challenge } = await callBound(server, free, await prove(key, free));
    assertEquals([status, challenge], [401, toChallenge("DPoP", "invalid_token", sentence("Bearer"))]);
    assertEquals((await callWith(server, free)).status, 200);
  }
});

Deno.test("MUST read the key of an opaque token from the introspection response", async () => {
  await using issuer = await TestIssuer.start();
  const key = await makeKey();
  const cnf = { jkt: await calculateJwkThumbprint(publicOf(key)) };
  const introspection = () => ({ sub: "ada", aud: RESOURCE, token_type: "DPoP", cnf });
  await using server = open([issuer], { oauth: { introspection } });
  assertEquals((await callBound(server, "opaque", await prove(key, "opaque"))).status, 200);
  assertEquals((await callBound(server, "opaque")).status, 401);
  assertEquals((await callWith(server, "opaque")).status, 401);
});

Deno.test("oauth({ dpop: 'required' }) refuses a token that is not bound to a key, and the challenge has the scheme DPoP", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer], { oauth: { dpop: "required" } });
  const key = await makeKey();
  const token = await bind(issuer, key);
  assertEquals((await callBound(server, token, await prove(key, token))).status, 200);
  const { status, challenge } = await callWith(server, await issuer.sign());
  assertEquals(status, 401);
  const named = `error="invalid_token", error_description="${sentence("DPoP")}"`;
  assertEquals(challenge, `DPoP ${named}, algs="${algs}", resource_metadata="${METADATA}"`);
  const metadata = await (await server.fetch(new Request(METADATA.replace("https", "http")))).json();
  assertEquals([metadata.dpop_bound_access_tokens_required, metadata.dpop_signing_alg_values_supported], [
    true,
    ALGORITHMS,
  ]);
});

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } },
};

Deno.test("each request in a session needs its own proof with the HTTP method of the request", async () => {
  await using issuer = await TestIssuer.start();
  await using server = open([issuer]);
  const key = await makeKey();
  const token = await bind(issuer, key);
  const send = async (method: string, dpop: string, id?: string) => {
    const response = await server.fetch(
      new Request("http://localhost/mcp", {
        method,
        headers: {
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          authorization: `DPoP ${token}`,
          dpop,
          ...id === undefined ? {} : { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" },
        },
        ...method === "POST"
          ? { body: JSON.stringify(id ? { ...initialize, method: "ping", params: {} } : initialize) }
          : {},
      }),
    );
    await response.body?.cancel();
    return response;
  };
  const proof = await prove(key, token);
  const begun = await send("POST", proof);
  const id = begun.headers.get("mcp-session-id") ?? "";
  assert(begun.status === 200 && id);
  assertEquals((await send("POST", proof, id)).status, 401);
  assertEquals((await send("POST", await prove(key, token), id)).status, 200);
  assertEquals((await send("GET", await prove(key, token), id)).status, 401);
  assertEquals((await send("GET", await prove(key, token, { claims: { htm: "GET" } }), id)).status, 200);
  assertEquals((await send("DELETE", await prove(key, token), id)).status, 401);
  const end = await prove(key, token, { claims: { htm: "DELETE" } });
  assert((await send("DELETE", end, id)).ok);
});

Deno.test("the recheck of an open stream needs no second proof, and the stream ends when the token expires", async () => {
  const clock = fakeClock();
  const expires = Math.floor(clock.date() / 1000) + 300;
  await using issuer = await TestIssuer.start();
  await using server = open([issuer], {
    oauth: { skewMs: 0 },
    server: { clock },
  });
  const key = await makeKey();
  const token = await bind(issuer, key, { exp: expires });
  const dpop = await prove(key, token, { claims: { iat: Math.floor(clock.date() / 1000) } });
  const listen = toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, {
    authorization: `DPoP ${token}`,
    dpop,
  });
  const response = await server.fetch(listen);
  assertEquals(response.status, 200);
  let hasEnded = false;
  const reader = response.body?.getReader();
  const reading = (async () => {
    while (!(await reader?.read())?.done);
    hasEnded = true;
  })();
  await clock.advance(240_000);
  assert(!hasEnded, "the stream ended before its token");
  await clock.advance(120_000);
  await until(() => hasEnded, "the end of the stream");
  await reading;
});
