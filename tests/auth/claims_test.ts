// The `claims` option of `oauth()`: which tokens are refused, which claims handlers receive, and which reason the
// caller and the observer receive.
import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import * as v from "valibot";
import { z } from "zod";
import { type Principal, tool } from "../../mod.ts";
import { apiKey, findPrincipal, requirePrincipal } from "../../src/auth/auth.ts";
import { oauth, type OAuthPrincipal, toPrincipalId } from "../../src/auth/oauth/oauth.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { RESOURCE, TestIssuer } from "../support/issuer.ts";
import { callWith, protect, toInvalid } from "../support/protected.ts";
import { sentence } from "../support/messages.ts";

const roles = z.object({ roles: z.array(z.enum(["reader", "admin"])) });
const issuers = ["https://login.example.com"];
const base = { resource: RESOURCE, issuers };

/** The same claims schema in each supported schema language. */
const forms = {
  zod: roles,
  valibot: v.object({ roles: v.array(v.picklist(["reader", "admin"])) }),
  "JSON Schema": {
    type: "object",
    properties: { roles: { type: "array", items: { enum: ["reader", "admin"] } } },
    required: ["roles"],
  },
  shape: { roles: z.array(z.enum(["reader", "admin"])) },
  asynchronous: roles.refine(() => Promise.resolve(true)),
} as const;

for (const [name, claims] of Object.entries(forms)) {
  Deno.test(`a token whose claims do not match the schema is refused, and only the observer receives the reason (${name})`, async () => {
    await using issuer = await TestIssuer.start();
    const events: { readonly state: string; readonly reason?: string; readonly detail?: string }[] = [];
    const faults: unknown[] = [];
    const observer = { auth: (event: typeof events[0]) => void events.push(event), fault: faults.push.bind(faults) };
    // The cast gives each schema the type of `roles`.
    await using server = protect([issuer], { oauth: { claims: claims as typeof roles }, server: { observer } });
    const call = async (claims: Record<string, unknown>) => await callWith(server, await issuer.sign({ claims }));
    const { status, principal } = await call({ roles: ["admin"], team: "red" });
    assertEquals([status, principal.claims.roles, principal.subject], [200, ["admin"], "ada"]);
    assertEquals(events.splice(0).map(({ detail }) => detail), [undefined]);
    for (const wrong of [{}, { roles: "admin" }, { roles: ["admin", "owner-4711"] }, { roles: [{ admin: true }] }]) {
      const { status, challenge, message } = await call(wrong);
      const [{ state, reason = "", detail }] = events.splice(0);
      assertEquals([state, reason], ["refused", sentence()]);
      assertEquals([status, challenge, message?.endsWith(`: ${reason}`)], [401, toInvalid(reason), true]);
      assertMatch(String(detail), /roles/);
    }
    assertEquals(faults, []);
  });
}

Deno.test("handlers receive the output of the claims schema, without claims that the schema removes", async () => {
  await using issuer = await TestIssuer.start();
  const claims = z.object({
    roles: z.array(z.string()).default([]),
    born: z.string().transform((text) => text.length).optional(),
  });
  // `protect` has no type parameter for the schema, so the cast hides the schema's type.
  await using server = protect([issuer], { oauth: { claims: claims as unknown as undefined } });
  const { principal } = await callWith(server, await issuer.sign({ claims: { born: "abc", secret: "x", scope: "a" } }));
  assertEquals(principal.claims, { roles: [], born: 3 });
  assertEquals([principal.scopes, principal.clientId], [["a"], "app"]);
});

Deno.test("a claims schema that throws or does not return an object is reported as a fault", async () => {
  await using issuer = await TestIssuer.start();
  const schemas = [
    z.object({}).transform(() => "text"),
    z.object({}).transform(() => undefined),
    z.object({}).transform(() => ({ big: 1n })),
    z.object({}).transform((): object => {
      throw new Error("broken");
    }),
    z.object({}).transform(() => ({ roles: new Map() })),
  ];
  for (const claims of schemas) {
    await using server = protect([issuer], { oauth: { claims: claims as unknown as undefined } });
    assertEquals((await callWith(server, await issuer.sign())).status, 500);
  }
  for (const claims of ["roles", 1, null]) {
    const wrong = { ...base, claims } as unknown as typeof base; // The cast passes claims that the types forbid.
    assertThrows(() => oauth(wrong), TypeError, sentence("claims", "oauth()"));
  }
});

Deno.test("claims of opaque tokens are checked too, and the reason for a refusal is cached", async () => {
  await using issuer = await TestIssuer.start();
  let asked = 0;
  const details: unknown[] = [];
  await using server = protect([issuer], {
    oauth: {
      claims: roles as unknown as undefined,
      introspection: (token) => {
        asked++;
        return { aud: RESOURCE, sub: "ada", roles: token === "good" ? ["admin"] : ["owner"] };
      },
    },
    server: { observer: { auth: ({ detail }) => void details.push(detail) } },
  });
  assertEquals((await callWith(server, "good")).principal.claims, { roles: ["admin"] });
  for (let times = 0; times < 2; times++) assertEquals((await callWith(server, "bad")).status, 401);
  assertEquals(asked, 2);
  assertEquals(details[0], undefined);
  for (const detail of details.slice(1)) assertStringIncludes(String(detail), "roles");
});

Deno.test("requirePrincipal returns claims with the output type of the schema", () => {
  const auth = oauth({ ...base, claims: roles });
  const byPath = oauth({ ...base, resource: () => RESOURCE, claims: forms.valibot });
  const byJson = oauth({
    ...base,
    claims: { type: "object", properties: { level: { type: "number" } }, required: ["level"] },
  });
  const untyped = oauth(base);
  const spread = { ...auth, checkPath() {} };
  const keys = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853" } });
  type Role = "reader" | "admin";
  tool({
    name: "types",
    run(_, ctx) {
      const typed: readonly Role[] = requirePrincipal(ctx, auth).claims.roles;
      const typedByPath: readonly Role[] = requirePrincipal(ctx, byPath).claims.roles;
      const found: readonly Role[] | undefined = findPrincipal(ctx, spread)?.claims.roles;
      const level: number = requirePrincipal(ctx, byJson).claims.level;
      const issuer: string = requirePrincipal(ctx, untyped).issuer;
      // @ts-expect-error: without a schema, claims are unknown
      const unknown: string = requirePrincipal(ctx, untyped).claims.roles;
      // @ts-expect-error: the schema has no such claim
      const missing = requirePrincipal(ctx, auth).claims.team;
      const key: Principal = requirePrincipal(ctx, keys);
      // @ts-expect-error: callers with keys have no claims of this type
      const wrong: OAuthPrincipal = requirePrincipal(ctx, keys);
      return [typed, typedByPath, found, level, issuer, unknown, missing, key, wrong].length;
    },
  });
});

Deno.test("the claims of a principal from a test or another process are checked again", () => {
  const auth = oauth({ ...base, claims: roles });
  const id = toPrincipalId(issuers[0], "ada");
  const find = (principal: Principal | undefined) => findPrincipal({ principal }, auth);
  const read = find({ id, claims: { roles: ["admin"], more: 1 } });
  assertEquals([read?.id, read?.issuer, read?.claims], [id, issuers[0], { roles: ["admin"] }]);
  const client = find({ id: `oauth:${JSON.stringify([issuers[0], null, "app"])}`, claims: { roles: [] } });
  assertEquals(client?.claims, { roles: [] });
  const claims = { roles: ["admin"] };
  const others = [
    "ada",
    "apikey:ada",
    toPrincipalId("https://evil.example.com", "ada"),
    "oauth:",
    "oauth:[]",
    "oauth:{}",
  ];
  for (const id of [...others, "oauth:null", 'oauth:["https://login.example.com"', "Oauth:x", "oauth:[[]]"]) {
    assertEquals(find({ id, claims }), undefined, id);
  }
  assertEquals(find(undefined), undefined);
  for (const claims of [undefined, null, "x", [], { roles: ["owner"] }, { roles: "admin" }]) {
    assertThrows(() => find({ id, claims }), TypeError, sentence(issuers[0]));
  }
  const slow = oauth({ ...base, claims: forms.asynchronous });
  assertThrows(() => findPrincipal({ principal: { id, claims } }, slow), TypeError, sentence("claims"));
});

Deno.test("the code for a JSON Schema of claims loads without a request", async () => {
  const auth = oauth({ ...base, claims: forms["JSON Schema"] });
  const principal = { id: toPrincipalId(issuers[0], "ada"), claims: { roles: ["admin"] } };
  const find = () => findPrincipal({ principal }, auth)?.claims.roles;
  const isLoaded = () => {
    try {
      return find() !== undefined;
    } catch {
      return false;
    }
  };
  await until(isLoaded, "the schema has loaded");
  assertEquals(find(), ["admin"]);
});

Deno.test("claims are not transformed twice, even if the token is used after its expiry within skewMs", async () => {
  await using issuer = await TestIssuer.start();
  const auth = oauth({
    resource: RESOURCE,
    issuers: [issuer.name],
    claims: z.object({ level: z.string().transform(Number) }),
    skewMs: 60_000,
  });
  const show = tool({ name: "show", run: (_, ctx) => ({ level: requirePrincipal(ctx, auth).claims.level }) });
  const clock = fakeClock();
  await clock.advance(Date.now() - clock.date());
  await using server = protect([issuer], { handlers: [show], server: { auth, clock } });
  const exp = Math.floor(clock.date() / 1000) + 10;
  const token = await issuer.sign({ claims: { level: "7", exp } });
  assertEquals((await callWith(server, token, { name: "show" })).principal, { level: 7 });
  await clock.advance(30_000);
  assertEquals((await callWith(server, token, { name: "show" })).principal, { level: 7 });
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`the handlers that a caller sees depend on its roles (${era})`, async () => {
    await using issuer = await TestIssuer.start();
    const auth = oauth({ resource: RESOURCE, issuers: [issuer.name], claims: roles });
    const key = "bot-8d3f5a7c6e1b9042";
    // The field `claims` of an API key's owner must not count as the claims of a token.
    const keys = apiKey({ keys: { bot: { key, claims: { roles: ["admin"] } } }, header: "x-api-key" });
    const wipe = tool({
      name: "wipe",
      allow: (ctx) => findPrincipal(ctx, auth)?.claims.roles.includes("admin") === true,
      run: () => "Wiped.",
    });
    await using server = protect([issuer], { handlers: [wipe], server: { auth: [auth, keys] } });
    const names = async (headers: Record<string, string>) => {
      await using client = await connectTest(server, { era, transport: "http", headers });
      return (await client.listTools()).map(({ name }) => name).sort();
    };
    const bearer = async (...roles: string[]) => ({
      authorization: `Bearer ${await issuer.sign({ claims: { roles } })}`,
    });
    assertEquals(await names(await bearer("admin")), ["whoami", "wipe"]);
    assertEquals(await names(await bearer("reader")), ["whoami"]);
    assertEquals(await names({ "x-api-key": key }), ["whoami"]);
    assert((await callWith(server, await issuer.sign({ claims: { roles: ["owner"] } }))).status === 401);
  });
}
