// An elicitation link opens only at the page, for the user and at the server for which the link was created. A link
// with `singleUse` opens only once.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type ElicitationLinks, elicitationLinks, type ElicitationLinksOptions } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { fakeContext } from "../../src/testing/testing.ts";
import { wrapEngine } from "../support/engines.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const secret = "0123456789abcdef0123456789abcdef";
const PAGE = "https://a.example.com/pay?lang=en";

async function make(options: ElicitationLinksOptions, url = PAGE, singleUse?: boolean): Promise<string> {
  const ctx = fakeContext({ principal: { id: "ada" }, answers: { k: { action: "accept" } } });
  await elicitationLinks(options).elicit(ctx, "k", { message: "m", url, singleUse });
  return String(ctx.asked[0].params.url);
}

/** Creates a link with `singleUse` for Ada. */
async function makeLink(links: ElicitationLinks): Promise<string> {
  const ctx = fakeContext({ principal: { id: "ada" }, answers: { k: { action: "accept" } } });
  await links.elicit(ctx, "k", { message: "m", url: PAGE, singleUse: true });
  return String(ctx.asked[0].params.url);
}

Deno.test("a link opens at the origin and path of its page, with any other query parameters", async () => {
  const options = { secret, server: "shop" };
  const links = elicitationLinks(options);
  const link = new URL(await make(options));
  const state = link.searchParams.get("state");
  for (
    const url of [
      link.href,
      `https://a.example.com/pay?state=${state}`,
      `https://A.example.com:443/pay?state=${state}#x`,
    ]
  ) {
    assertEquals(await links.open(url, "ada"), { data: null }, url);
  }
  const others = [
    "https://a.example.com/newsletter",
    "https://a.example.com/pay/",
    "https://a.example.com/pay/now",
    "https://a.example.com/PAY",
    "https://a.example.com/",
    "http://a.example.com/pay",
    "https://a.example.com:8443/pay",
    "https://b.example.com/pay",
  ];
  for (const url of others) assertEquals(await links.open(`${url}?state=${state}`, "ada"), undefined, url);
});

Deno.test("a link that one server created does not open at another server with the same secret", async () => {
  const link = await make({ secret, server: "news" });
  assertEquals(await elicitationLinks({ secret, server: "news" }).open(link, "ada"), { data: null });
  assertEquals(await elicitationLinks({ secret, server: "shop" }).open(link, "ada"), undefined);
  for (const server of [undefined, "", null, 5]) {
    assertThrows(() => elicitationLinks({ secret, server: server as never }), TypeError);
  }
  for (const store of [null, {}, "memory"]) {
    assertThrows(() => elicitationLinks({ store: store as never }), TypeError, sentence("store", "get()"));
  }
  assertThrows(() => elicitationLinks({ secret }), TypeError, sentence("`server`"));
});

Deno.test("a link with singleUse opens only once, even if two requests open the link concurrently", async () => {
  const store = memoryStore();
  for (const options of [{}, { store }, { secret, server: "shop", store }]) {
    const links = elicitationLinks(options);
    const ctx = fakeContext({ principal: { id: "ada" }, answers: { k: { action: "accept" } } });
    await links.elicit(ctx, "k", { message: "m", url: PAGE, singleUse: true });
    const link = String(ctx.asked[0].params.url);
    // The link stays valid if it is opened by another user or at another page.
    assertEquals(await links.open(link, "eve"), undefined);
    assertEquals(await links.open(link.replace("/pay", "/news"), "ada"), undefined);
    const opened = await Promise.all(Array.from({ length: 10 }, () => links.open(link, "ada")));
    assertEquals(opened.filter((each) => each).length, 1);
    assertEquals(await links.open(link, "ada"), undefined);
  }
});

Deno.test("processes that share a store open a link only once, and without a store only the process that created a link opens the link", async () => {
  const store = memoryStore();
  const options = { secret, server: "shop", store };
  const link = await make(options, PAGE, true);
  const opened = await Promise.all([1, 2, 3].map(() => elicitationLinks(options).open(link, "ada")));
  assertEquals(opened.filter((each) => each).length, 1);
  const alone = { secret, server: "shop" };
  assertEquals(await elicitationLinks(alone).open(await make(alone, PAGE, true), "ada"), undefined);
  assertEquals(await elicitationLinks(options).open(await make(alone, PAGE, true), "ada"), undefined);
  assertEquals(await elicitationLinks(alone).open(await make(options, PAGE, true), "ada"), undefined);
  assert(await elicitationLinks(alone).open(await make(alone, PAGE, false), "ada"));
});

Deno.test("after the store has lost its data, no earlier link opens, and later links do", async () => {
  const store = memoryStore();
  const links = [
    elicitationLinks({ secret, server: "shop", store }),
    elicitationLinks({ secret, server: "shop", store }),
  ];
  const [used, unused] = [await makeLink(links[0]), await makeLink(links[0])];
  assertEquals(await links[1].open(used, "ada"), { data: null });
  // Links have their time in milliseconds, and so has the store's new record of uses.
  const madeAt = Date.now();
  await until(() => Date.now() > madeAt + 1, "the links are older than the new record");
  for (const { key } of await store.list("", { limit: 1000 })) await store.delete(key);
  for (const link of [used, unused]) for (const each of links) assertEquals(await each.open(link, "ada"), undefined);
  for (const each of links) assertEquals(await links[0].open(await makeLink(each), "ada"), { data: null });
});

Deno.test("opening a link with singleUse throws while the store is unavailable", async () => {
  let isLost = false;
  const engine = await memoryStore()[INTERNALS].connect();
  const store = customStore(() =>
    wrapEngine(engine, ({ run }) => {
      if (isLost) throw new Error("lost");
      return run();
    })
  );
  const options = { secret, server: "shop", store };
  const link = await make(options, PAGE, true);
  isLost = true;
  await assertRejects(() => elicitationLinks(options).open(link, "ada"), Error, sentence("store"));
  isLost = false;
  assertEquals(await elicitationLinks(options).open(link, "ada"), { data: null });
  assertEquals(await elicitationLinks(options).open(link, "ada"), undefined);
});

Deno.test("elicitationLinks throws if singleUse is not a boolean", async () => {
  for (const singleUse of ["true", 1, null, Promise.resolve(true)]) {
    await assertRejects(() => make({}, PAGE, singleUse as never), TypeError, sentence("singleUse"));
  }
});
