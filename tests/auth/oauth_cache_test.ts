// The token cache has a maximum size, and issuers' keys are loaded at limited intervals.
import { assertEquals, assertRejects } from "@std/assert";
import { Loaded, Unavailable } from "../../src/auth/oauth/loaded.ts";
import { TokenCache } from "../../src/auth/token_cache.ts";
import { sentence } from "../support/messages.ts";

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
