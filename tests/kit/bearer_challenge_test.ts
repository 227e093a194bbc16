// Reading WWW-Authenticate headers from servers with several schemes.
import { assertEquals } from "@std/assert";
import { type Challenge, toChallengeHeaders } from "../../src/server/engine/auth.ts";
import { readChallenge, readChallenges } from "../../src/core/kit/bearer_challenge.ts";

const bearer: Challenge = { scheme: "Bearer", params: { resource_metadata: "https://h/.well-known/x", scope: "a b" } };

Deno.test("the Bearer challenge is found at any position among other challenges", () => {
  const others: readonly Challenge[] = [
    { scheme: "Basic", params: { realm: 'a", Bearer scope="evil", b="\\', charset: "UTF-8" } },
    { scheme: "ApiKey" },
    { scheme: "DPoP", params: { algs: "ES256", error: "use_dpop_nonce" } },
    { scheme: "Negotiate" },
  ];
  for (let at = 0; at <= others.length; at++) {
    const all = others.toSpliced(at, 0, bearer);
    const header = toChallengeHeaders(all)["www-authenticate"];
    const found = readChallenge(header);
    assertEquals([found?.scheme, Object.fromEntries(found?.params ?? [])], ["bearer", bearer.params], header);
    const read = readChallenges(header).map(({ scheme, params }) => ({ scheme, params: Object.fromEntries(params) }));
    assertEquals(read, all.map(({ scheme, params = {} }) => ({ scheme: scheme.toLowerCase(), params })), header);
  }
});

Deno.test("without a Bearer challenge, the first challenge is read", () => {
  assertEquals(readChallenge('Basic realm="x", ApiKey')?.scheme, "basic");
  assertEquals(readChallenge("Negotiate YII==, ApiKey")?.scheme, "negotiate");
  for (const none of [null, "", " , ,"]) assertEquals(readChallenge(none), undefined);
});
