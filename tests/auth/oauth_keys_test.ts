// The keys of issuers: discovery, loading, rotation and limits.
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { makeKey, RESOURCE, TestIssuer } from "../support/issuer.ts";
import { callWith, protect, toInvalid } from "../support/protected.ts";
import { advanceUntil, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

/** Signs a token that stays valid for a year, because tests advance the clock by hours. */
function signLong(issuer: TestIssuer, parts: Parameters<TestIssuer["sign"]>[0] = {}): Promise<string> {
  return issuer.sign({ ...parts, claims: { exp: Math.floor(Date.now() / 1000) + 86_400 * 365, ...parts.claims } });
}

Deno.test("MUST load the metadata of an issuer from each possible well-known URL", async () => {
  const places: readonly (readonly [path: string, wellKnown: string, before: readonly string[]])[] = [
    ["", "/.well-known/oauth-authorization-server", []],
    ["", "/.well-known/openid-configuration", ["/.well-known/oauth-authorization-server"]],
    ["/", "/.well-known/oauth-authorization-server", []],
    ["/realms/a", "/.well-known/oauth-authorization-server/realms/a", []],
    ["/realms/a", "/.well-known/openid-configuration/realms/a", ["/.well-known/oauth-authorization-server/realms/a"]],
    ["/realms/a/", "/realms/a/.well-known/openid-configuration", [
      "/.well-known/oauth-authorization-server/realms/a",
      "/.well-known/openid-configuration/realms/a",
    ]],
  ];
  for (const [path, wellKnown, before] of places) {
    await using issuer = await TestIssuer.start({ path, wellKnown });
    const server = protect([issuer]);
    assertEquals(issuer.paths, [], "nothing is loaded before a token needs it");
    const statuses = await Promise.all([1, 2, 3].map(async () => (await callWith(server, await issuer.sign())).status));
    assertEquals([statuses, issuer.paths], [[200, 200, 200], [...before, wellKnown, "/jwks"]]);
    await server.close();
  }
});

Deno.test("MUST refuse metadata whose issuer is not exactly the same text", async () => {
  for (
    const change of [
      (name: string) => `${name}/`,
      (name: string) => name.toUpperCase(),
      () => "https://evil.example.com",
    ]
  ) {
    await using issuer = await TestIssuer.start();
    issuer.metadata = { issuer: change(issuer.name) };
    const faults: string[] = [];
    const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
    const server = protect([issuer], { server: { observer } });
    const { status, message, challenge } = await callWith(server, await issuer.sign());
    assertEquals([status, challenge, message], [503, null, sentence()]);
    assertStringIncludes(faults.join(), sentence(issuer.name, change(issuer.name)));
    assertEquals(issuer.keyFetches, 0);
    await server.close();
  }
});

Deno.test("keys are loaded only over https, or over http on loopback if the issuer is on loopback too", async () => {
  for (const jwks_uri of ["http://keys.example.com/jwks", "file:///etc/passwd", "ftp://x/", "", undefined, 5]) {
    await using issuer = await TestIssuer.start();
    issuer.metadata = { jwks_uri };
    const server = protect([issuer]);
    assertEquals((await callWith(server, await issuer.sign())).status, 503);
    await server.close();
  }
  const asked: string[] = [];
  const send = (url: string) => {
    asked.push(url);
    const json = { issuer: "https://login.example.com", jwks_uri: "http://127.0.0.1:1/jwks" };
    return Promise.resolve(Response.json(json));
  };
  await using issuer = await TestIssuer.start();
  const server = protect([], { oauth: { issuers: ["https://login.example.com"], fetch: send } });
  assertEquals(
    (await callWith(server, await issuer.sign({ claims: { iss: "https://login.example.com" } }))).status,
    503,
  );
  assertEquals(asked, ["https://login.example.com/.well-known/oauth-authorization-server"]);
  await server.close();
});

Deno.test("a redirect, an HTML page or an endless response is refused as metadata and as a key set", async () => {
  const bodies: readonly (() => Response)[] = [
    () => Response.redirect("http://127.0.0.1:1/"),
    () => new Response("<html>"),
    () => Response.json([]),
    () => Response.json({ keys: 5 }),
    () => Response.json({ keys: ["x", null, { kty: "RSA" }] }),
    () => new Response("x".repeat(1_000_000)),
    () => new Response("busy", { status: 500 }),
  ];
  for (const path of ["/.well-known/oauth-authorization-server", "/jwks"]) {
    for (const respond of bodies) {
      await using issuer = await TestIssuer.start();
      issuer.overrides.set(path, respond);
      const server = protect([issuer]);
      const { status } = await callWith(server, await issuer.sign());
      assert(status === 503 || status === 401, `${path}: ${status}`);
      await server.close();
    }
  }
});

Deno.test("metadata of up to 512 KiB is read, and larger metadata is refused", async () => {
  for (const [length, expected] of [[500_000, 200], [524_288, 503]] as const) {
    await using issuer = await TestIssuer.start();
    issuer.metadata = { filler: "x".repeat(length) };
    const server = protect([issuer]);
    assertEquals((await callWith(server, await issuer.sign())).status, expected);
    await server.close();
  }
});

Deno.test("keys are loaded again when a token names an unknown key, and removed keys are no longer accepted", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const server = protect([issuer], { server: { clock } });
  const old = await signLong(issuer);
  assertEquals((await callWith(server, old)).status, 200);
  const next = await makeKey();
  issuer.keys.push(next.jwk);
  const token = await signLong(issuer, { key: next });
  const early = await callWith(server, token);
  assertEquals([early.status, early.challenge], [401, toInvalid(sentence())]);
  await clock.advance(30_000);
  assertEquals((await callWith(server, token)).status, 200);
  assertEquals((await callWith(server, old)).status, 200);
  assertEquals(issuer.keyFetches, 2);
  // The issuer removes its first key, for example because the key was stolen.
  issuer.keys.shift();
  await clock.advance(600_000);
  assertEquals((await callWith(server, await signLong(issuer, { key: next, claims: { jti: "2" } }))).status, 200);
  assertEquals(issuer.keyFetches, 3);
  assertEquals(
    (await callWith(server, old)).status,
    401,
    "a token that was verified by the removed key is no longer cached",
  );
  await server.close();
});

/** Counts the signatures that `use` verifies. */
async function countVerified(use: () => Promise<void>): Promise<number> {
  const { subtle } = crypto;
  const { verify } = subtle;
  let count = 0;
  subtle.verify = (...args: Parameters<typeof verify>) => {
    count++;
    return verify.apply(subtle, args);
  };
  try {
    await use();
  } finally {
    subtle.verify = verify;
  }
  return count;
}

Deno.test("a token is refused 10 minutes after its key was removed, although no other token arrives", async () => {
  for (const idleMs of [600_000, 86_400_000]) {
    const clock = fakeClock(Date.now());
    await using issuer = await TestIssuer.start();
    const server = protect([issuer], { server: { clock } });
    const token = await signLong(issuer);
    assertEquals((await callWith(server, token)).status, 200);
    issuer.keys = [(await makeKey()).jwk];
    await clock.advance(599_999);
    assertEquals([(await callWith(server, token)).status, issuer.keyFetches], [200, 1]);
    await clock.advance(idleMs - 599_999);
    const late = await Promise.all(Array.from({ length: 3 }, () => callWith(server, token)));
    assertEquals(late.at(0)?.status, 401);
    assertEquals([(await callWith(server, token)).status, issuer.keyFetches], [401, 2]);
    await server.close();
  }
});

Deno.test("if the keys are the same after 10 minutes, a token is verified once more and then cached again", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const server = protect([issuer], { server: { clock } });
  const token = await signLong(issuer);
  for (let round = 1; round <= 3; round++) {
    const verified = await countVerified(async () => {
      for (let i = 0; i < 5; i++) assertEquals((await callWith(server, token)).status, 200);
    });
    assertEquals([verified, issuer.keyFetches], [1, round]);
    await clock.advance(600_000);
  }
  await server.close();
});

Deno.test("while the issuer fails, cached tokens are accepted for an hour, and verified at most once every 30 seconds", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const server = protect([issuer], { server: { clock } });
  const token = await signLong(issuer);
  assertEquals((await callWith(server, token)).status, 200);
  issuer.overrides.set("/jwks", () => new Response("down", { status: 500 }));
  await clock.advance(600_000);
  for (let round = 1; round <= 3; round++) {
    const verified = await countVerified(async () => {
      for (let i = 0; i < 5; i++) assertEquals((await callWith(server, token)).status, 200);
    });
    assertEquals([verified, issuer.keyFetches], [1, 1 + round]);
    await clock.advance(30_000);
  }
  await clock.advance(3_000_000);
  assertEquals((await callWith(server, token)).status, 503);
  issuer.overrides.clear();
  await clock.advance(30_000);
  assertEquals((await callWith(server, token)).status, 200);
  await server.close();
});

Deno.test("hostile: an issuer that does not respond delays callers with known keys by at most a second", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const server = protect([issuer], { server: { clock, limits: testLimits({ auth: { timeoutMs: 4000 } }) } });
  const token = await signLong(issuer);
  assertEquals((await callWith(server, token)).status, 200);
  const { promise, resolve } = Promise.withResolvers<Response>();
  issuer.overrides.set("/jwks", () => promise);
  await clock.advance(600_000);
  let isFirstOver = false;
  const first = callWith(server, token).finally(() => isFirstOver = true);
  await until(() => issuer.keyFetches === 2, "the keys are requested");
  const others = await Promise.all(Array.from({ length: 3 }, () => callWith(server, token)));
  assertEquals([others.map(({ status }) => status), isFirstOver], [[200, 200, 200], false]);
  assertEquals((await first).status, 200);
  assertEquals((await callWith(server, await signLong(issuer, { claims: { jti: "2" } }))).status, 200);
  // The late response counts.
  resolve(Response.json({ keys: [(await makeKey()).jwk] }));
  await until(async () => (await callWith(server, token)).status === 401, "the new keys are used");
  await server.close();
});

Deno.test("rotated keys are loaded even if the keys have no ids", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const keys = [await makeKey("ES256", ""), await makeKey("ES256", ""), await makeKey("ES256", "")];
  const strip = (key: typeof keys[number]) => ({ ...key, jwk: { ...key.jwk, kid: undefined } });
  const [first, second, third] = keys.map(strip);
  issuer.keys = [first.jwk, second.jwk].map((jwk) => JSON.parse(JSON.stringify(jwk)));
  const server = protect([issuer], { server: { clock } });
  assertEquals((await callWith(server, await signLong(issuer, { key: first }))).status, 200);
  assertEquals((await callWith(server, await signLong(issuer, { key: second }))).status, 200);
  assertEquals((await callWith(server, await signLong(issuer, { key: third }))).status, 401);
  issuer.keys = [JSON.parse(JSON.stringify(third.jwk))];
  await clock.advance(30_000);
  assertEquals((await callWith(server, await signLong(issuer, { key: third }))).status, 200);
  await server.close();
});

Deno.test("hostile: a flood of tokens with unknown keys loads only the key set of their issuer, at most once every 30 seconds", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  const server = protect([issuer, other], { server: { clock } });
  assertEquals((await callWith(server, await signLong(other))).status, 200);
  assertEquals((await callWith(server, await signLong(issuer))).status, 200);
  const key = await makeKey();
  const flood = async () => {
    const tokens = Array.from({ length: 40 }, (_, index) => signLong(issuer, { key, header: { kid: `k${index}` } }));
    const statuses = await Promise.all(tokens.map(async (token) => (await callWith(server, await token)).status));
    assertEquals(new Set(statuses), new Set([401]));
  };
  for (let round = 0; round < 3; round++) {
    await flood();
    await flood();
    assertEquals([issuer.keyFetches, other.keyFetches], [1 + round, 1]);
    assertEquals((await callWith(server, await signLong(other))).status, 200);
    assertEquals((await callWith(server, await signLong(issuer))).status, 200);
    await clock.advance(30_000);
  }
  await server.close();
});

Deno.test("hostile: a failing JWKS endpoint is requested at most once every 30 seconds, and other issuers are not affected", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  issuer.overrides.set("/jwks", () => new Response("down", { status: 500 }));
  const faults: string[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
  const server = protect([issuer, other], { server: { clock, observer } });
  const token = await signLong(issuer);
  for (let round = 1; round < 4; round++) {
    const called = await Promise.all(Array.from({ length: 20 }, () => callWith(server, token)));
    called.push(await callWith(server, await signLong(issuer)));
    assertEquals(new Set(called.map(({ status }) => status)), new Set([503]));
    assertEquals([issuer.keyFetches, faults.length], [round, round], "and each failure is reported once");
    assertEquals((await callWith(server, await signLong(other))).status, 200);
    await clock.advance(30_000);
  }
  assertStringIncludes(faults[0], sentence(issuer.name, "/jwks", 500));
  issuer.overrides.clear();
  assertEquals((await callWith(server, token)).status, 200);
  // While the JWKS endpoint fails, the server uses the loaded keys for up to an hour.
  issuer.overrides.set("/jwks", () => new Response("down", { status: 500 }));
  await clock.advance(1_200_000);
  assertEquals((await callWith(server, await signLong(issuer, { claims: { jti: "2" } }))).status, 200);
  await clock.advance(3_000_000);
  assertEquals((await callWith(server, await signLong(issuer, { claims: { jti: "3" } }))).status, 503);
  await server.close();
});

Deno.test("hostile: an issuer that does not respond delays only callers with tokens from this issuer", async () => {
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  const { promise, resolve } = Promise.withResolvers<Response>();
  issuer.overrides.set("/jwks", () => promise);
  const clock = fakeClock(Date.now());
  const server = protect([issuer, other], { server: { clock, limits: testLimits({ auth: { timeoutMs: 200 } }) } });
  const waiting = issuer.sign().then((token) => callWith(server, token));
  assertEquals((await callWith(server, await other.sign())).status, 200);
  assertEquals((await advanceUntil(clock, 200, waiting)).status, 503);
  resolve(Response.json({ keys: issuer.keys }));
  const isServed = async () => {
    const calling = issuer.sign().then((token) => callWith(server, token));
    return (await advanceUntil(clock, 1, calling)).status === 200;
  };
  await until(isServed, "the keys that arrive late are used");
  await server.close();
});

Deno.test("oauth() throws if an option has an invalid value", () => {
  const options = { resource: RESOURCE, issuers: ["https://login.example.com"] };
  const client = { clientId: "a", clientSecret: "b" };
  for (
    const [change, ...names] of [
      [{ resource: "http://mcp.example.com/mcp" }, "resource", "http://mcp.example.com/mcp"],
      [{ resource: "mcp.example.com" }, "resource", '"mcp.example.com"'],
      [{ resource: "https://mcp.example.com/mcp#x" }, "resource", "https://mcp.example.com/mcp#x"],
      [{ resource: "https://a:b@mcp.example.com/mcp" }, "resource"],
      [{ issuers: [] }, "issuers"],
      [{ issuers: undefined }, "issuers"],
      [{ issuers: ["http://login.example.com"] }, "issuer", "http://login.example.com"],
      [{ issuers: ["https://login.example.com?x"] }, "issuer", "https://login.example.com?x"],
      [{ issuers: ["login"] }, "issuer", '"login"'],
      [{ scopes: ["offline_access"] }, "scopes", "offline_access"],
      [{ scopes: ["a b"] }, "scopes"],
      [{ scopes: ['"'] }, "scopes"],
      [{ algorithms: [] }, "algorithms"],
      [{ algorithms: ["ES256", "HS512"] }, "algorithms", '"HS512"'],
      [{ skewMs: -1 }, "skewMs", "-1"],
      [{ skewMs: NaN }, "skewMs", "NaN"],
      // Adding a string to a time would append digits, so expired tokens would be accepted.
      [{ skewMs: "5000" }, "skewMs", '"5000"'],
      [{ skewMs: null }, "skewMs", "null"],
      [{ audience: "" }, "audience"],
      [{ audience: ["api://notes", ""] }, "audience"],
      [{ audience: [undefined] }, "audience", "undefined"],
      [{ audience: null }, "audience", "object"],
      [{ introspection: { ...client, clientId: 5 } }, "introspection", "clientId"],
      [{ exchange: { ...client, issuer: "https://other.example.com" } }, "exchange", "issuer", "issuers"],
      [{ introspection: { ...client, endpoint: "http://x.example.com" } }, "introspection", "endpoint"],
      [
        { issuers: ["https://a.example.com", "https://b.example.com"], introspection: client },
        "introspection",
        "issuer",
        "issuers",
      ],
    ] as const
  ) {
    assertThrows(() => oauth({ ...options, ...change as object }), TypeError, sentence(...names));
  }
  for (const resource of ["http://localhost:3000/mcp", "http://127.0.0.1/mcp", "http://[::1]:80/mcp", "https://a.b/"]) {
    oauth({ ...options, resource, issuers: ["http://localhost:9000/x"] });
  }
});
