// The keys of issuers: discovery, loading, rotation and limits.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { makeKey, RESOURCE, TestIssuer } from "../support/issuer.ts";
import { callWith, protect, toInvalid } from "../support/protected.ts";
import { advanceUntil, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { Loaded, Unavailable } from "../../src/auth/oauth/loaded.ts";
import { TokenCache } from "../../src/auth/token_cache.ts";

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
    await using server = protect([issuer]);
    assertEquals(issuer.paths, [], "nothing is loaded before a token needs it");
    const statuses = await Promise.all([1, 2, 3].map(async () => (await callWith(server, await issuer.sign())).status));
    assertEquals([statuses, issuer.paths], [[200, 200, 200], [...before, wellKnown, "/jwks"]]);
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
    await using server = protect([issuer], { server: { observer } });
    const { status, message, challenge } = await callWith(server, await issuer.sign());
    assertEquals([status, challenge, message], [503, null, sentence()]);
    assertStringIncludes(faults.join(), sentence(issuer.name, change(issuer.name)));
    assertEquals(issuer.keyFetches, 0);
  }
});

Deno.test("keys are loaded only over https, or over http on loopback if the issuer is on loopback too", async () => {
  for (const jwks_uri of ["http://keys.example.com/jwks", "file:///etc/passwd", "ftp://x/", "", undefined, 5]) {
    await using issuer = await TestIssuer.start();
    issuer.metadata = { jwks_uri };
    await using server = protect([issuer]);
    assertEquals((await callWith(server, await issuer.sign())).status, 503);
  }
  const asked: string[] = [];
  const send = (url: string) => {
    asked.push(url);
    const json = { issuer: "https://login.example.com", jwks_uri: "http://127.0.0.1:1/jwks" };
    return Promise.resolve(Response.json(json));
  };
  await using issuer = await TestIssuer.start();
  await using server = protect([], { oauth: { issuers: ["https://login.example.com"], fetch: send } });
  assertEquals(
    (await callWith(server, await issuer.sign({ claims: { iss: "https://login.example.com" } }))).status,
    503,
  );
  assertEquals(asked, ["https://login.example.com/.well-known/oauth-authorization-server"]);
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
      await using server = protect([issuer]);
      const { status } = await callWith(server, await issuer.sign());
      assert(status === 503 || status === 401, `${path}: ${status}`);
    }
  }
});

Deno.test("metadata of up to 512 KiB is read, and larger metadata is refused", async () => {
  for (const [length, expected] of [[500_000, 200], [524_288, 503]] as const) {
    await using issuer = await TestIssuer.start();
    issuer.metadata = { filler: "x".repeat(length) };
    await using server = protect([issuer]);
    assertEquals((await callWith(server, await issuer.sign())).status, expected);
  }
});

Deno.test("keys are loaded again when a token names an unknown key, and removed keys are no longer accepted", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { server: { clock } });
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
    await using server = protect([issuer], { server: { clock } });
    const token = await signLong(issuer);
    assertEquals((await callWith(server, token)).status, 200);
    issuer.keys = [(await makeKey()).jwk];
    await clock.advance(599_999);
    assertEquals([(await callWith(server, token)).status, issuer.keyFetches], [200, 1]);
    await clock.advance(idleMs - 599_999);
    const late = await Promise.all(Array.from({ length: 3 }, () => callWith(server, token)));
    assertEquals(late.at(0)?.status, 401);
    assertEquals([(await callWith(server, token)).status, issuer.keyFetches], [401, 2]);
  }
});

Deno.test("if the keys are the same after 10 minutes, a token is verified once more and then cached again", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { server: { clock } });
  const token = await signLong(issuer);
  for (let round = 1; round <= 3; round++) {
    const verified = await countVerified(async () => {
      for (let i = 0; i < 5; i++) assertEquals((await callWith(server, token)).status, 200);
    });
    assertEquals([verified, issuer.keyFetches], [1, round]);
    await clock.advance(600_000);
  }
});

Deno.test("while the issuer fails, cached tokens are accepted for an hour, and verified at most once every 30 seconds", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { server: { clock } });
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
});

Deno.test("hostile: an issuer that does not respond delays callers with known keys by at most a second", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { server: { clock, limits: testLimits({ auth: { timeoutMs: 4000 } }) } });
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
});

Deno.test("rotated keys are loaded even if the keys have no ids", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  const keys = [await makeKey("ES256", ""), await makeKey("ES256", ""), await makeKey("ES256", "")];
  const strip = (key: typeof keys[number]) => ({ ...key, jwk: { ...key.jwk, kid: undefined } });
  const [first, second, third] = keys.map(strip);
  issuer.keys = [first.jwk, second.jwk].map((jwk) => JSON.parse(JSON.stringify(jwk)));
  await using server = protect([issuer], { server: { clock } });
  assertEquals((await callWith(server, await signLong(issuer, { key: first }))).status, 200);
  assertEquals((await callWith(server, await signLong(issuer, { key: second }))).status, 200);
  assertEquals((await callWith(server, await signLong(issuer, { key: third }))).status, 401);
  issuer.keys = [JSON.parse(JSON.stringify(third.jwk))];
  await clock.advance(30_000);
  assertEquals((await callWith(server, await signLong(issuer, { key: third }))).status, 200);
});

Deno.test("hostile: a flood of tokens with unknown keys loads only the key set of their issuer, at most once every 30 seconds", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  await using server = protect([issuer, other], { server: { clock } });
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
});

Deno.test("hostile: a failing JWKS endpoint is requested at most once every 30 seconds, and other issuers are not affected", async () => {
  const clock = fakeClock(Date.now());
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  issuer.overrides.set("/jwks", () => new Response("down", { status: 500 }));
  const faults: string[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(String(error)) };
  await using server = protect([issuer, other], { server: { clock, observer } });
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
});

Deno.test("hostile: an issuer that does not respond delays only callers with tokens from this issuer", async () => {
  await using issuer = await TestIssuer.start();
  await using other = await TestIssuer.start();
  const { promise, resolve } = Promise.withResolvers<Response>();
  issuer.overrides.set("/jwks", () => promise);
  const clock = fakeClock(Date.now());
  await using server = protect([issuer, other], {
    server: { clock, limits: testLimits({ auth: { timeoutMs: 200 } }) },
  });
  const waiting = issuer.sign().then((token) => callWith(server, token));
  assertEquals((await callWith(server, await other.sign())).status, 200);
  assertEquals((await advanceUntil(clock, 200, waiting)).status, 503);
  resolve(Response.json({ keys: issuer.keys }));
  const isServed = async () => {
    const calling = issuer.sign().then((token) => callWith(server, token));
    return (await advanceUntil(clock, 1, calling)).status === 200;
  };
  await until(isServed, "the keys that arrive late are used");
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

// The token cache has a maximum size, and issuers' keys are loaded at limited intervals.

Deno.test("a token cache evicts the oldest token when it exceeds its maximum number of tokens", () => {
  const cache = new TokenCache<number>({ entries: 3, characters: 1000 });
  for (let i = 0; i < 5; i++) cache.set(`t${i}`, { value: i, until: 100 }, 0);
  assertEquals([cache.size, cache.get("t1", 0), cache.get("t2", 0), cache.get("t4", 99)], [3, undefined, 2, 4]);
  assertEquals([cache.get("t4", 100), cache.size], [undefined, 2]);
  cache.clear();
  assertEquals(cache.size, 0);
});

Deno.test("a token cache evicts the oldest tokens when its tokens and values exceed the maximum number of characters", () => {
  const cache = new TokenCache<number>({ entries: 1000, characters: 100 });
  for (let i = 10; i < 50; i++) cache.set(`token-${i}`, { value: i, until: 100 }, 0);
  assertEquals([cache.size, cache.get("token-37", 0), cache.get("token-38", 0)], [12, undefined, 38]);
  cache.set("large", { value: 1, until: 100, characters: 90 }, 0);
  assertEquals([cache.size, cache.get("token-49", 0), cache.get("large", 0)], [2, 49, 1]);
  cache.set("large", { value: 2, until: 100, characters: 92 }, 0);
  assertEquals([cache.size, cache.get("large", 0)], [2, 2]);
  cache.set("larger", { value: 3, until: 100, characters: 101 }, 0);
  assertEquals(cache.size, 0, "a token that is too large is not cached");
});

Deno.test("expired tokens are deleted within a minute, even if no request contains the tokens again", () => {
  const cache = new TokenCache<number>({ entries: 1000, characters: 10_000 });
  for (let i = 0; i < 100; i++) cache.set(`t${i}`, { value: i, until: 1000 }, 0);
  cache.set("later", { value: 1, until: 100_000 }, 59_999);
  assertEquals(cache.size, 101);
  cache.set("latest", { value: 1, until: 100_000 }, 60_000);
  assertEquals(cache.size, 2);
});

Deno.test("concurrent requests share one load, a load starts at most once every 30 seconds, and a value is used for an hour while loads fail", async () => {
  let loads = 0;
  let isDown = false;
  const value = new Loaded("it", async () => {
    loads++;
    await Promise.resolve();
    if (isDown) throw new Error("down");
    return loads;
  });
  assertEquals(await Promise.all([value.get(0), value.get(0), value.get(1)]), [1, 1, 1]);
  assertEquals([await value.get(599_999), loads], [1, 1]);
  assertEquals(await value.renew(29_999), undefined);
  assertEquals([await value.renew(30_000), await value.get(30_001)], [2, 2]);
  isDown = true;
  assertEquals([await value.get(700_000), await value.get(700_001), loads], [2, 2, 3]);
  await assertRejects(() => value.renew(730_000), Unavailable, sentence("down"));
  await assertRejects(() => value.get(4_000_000), Unavailable, sentence("down"));
  await assertRejects(() => value.get(4_000_001), Unavailable, sentence());
  isDown = false;
  // A clock that is set back must not prevent loading until the clock catches up.
  assertEquals([await value.get(1_000_000), loads], [6, 6]);
});
