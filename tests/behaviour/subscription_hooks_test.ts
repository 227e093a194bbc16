// A resource provider is notified of the first and the last subscriber of each URI, for whatever reason the
// subscription ends.
import { assertEquals } from "@std/assert";
import { createServer, resource, resourceProvider } from "../../mod.ts";
import type { Context, Observer, ResourceProviderOptions } from "../../mod.ts";
import { connectTest as connectTo, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, turn, until } from "../support/behaviour.ts";

/** Creates an observer that counts ended subscriptions. */
function countEnds() {
  const ends = { count: 0 };
  const observer: Observer = { subscription: ({ state }) => void (ends.count += Number(state === "ended")) };
  return { ends, observer };
}

/** Creates a provider that records its calls. */
function provide(options: Partial<ResourceProviderOptions> = {}) {
  const calls: string[] = [];
  const provider = resourceProvider({
    scheme: "note",
    name: "notes",
    read: (uri) => uri,
    subscribe: (uri) => void calls.push(`+ ${uri}`),
    unsubscribe: (uri) => void calls.push(`- ${uri}`),
    ...options,
  });
  return { calls, provider };
}

behaviour("a provider is notified of the first and the last subscriber of a URI", async (connect) => {
  const { calls, provider } = provide();
  const { ends, observer } = countEnds();
  const { client, join } = await connect({
    handlers: [provider, resource({ uri: "note://fixed", name: "fixed", read: () => "" })],
    observer,
  });
  const other = await join();
  const first = await client.subscribe({ resourceSubscriptions: ["note://1", "note://fixed", "other://1"] });
  assertEquals(calls, ["+ note://1"]);
  const second = await other.subscribe({ resourceSubscriptions: ["note://1", "note://2"] });
  assertEquals(calls.splice(0), ["+ note://1", "+ note://2"]);
  await first.close();
  await until(() => ends.count > 0, "the first subscription has ended");
  await turn(10);
  assertEquals(calls, []);
  await second.close();
  await until(() => calls.length === 2, "unsubscribe was called for both URIs");
  assertEquals(calls.splice(0), ["- note://1", "- note://2"]);
  const third = await client.subscribe({ resourceSubscriptions: ["note://1"] });
  assertEquals(calls.splice(0), ["+ note://1"]);
  await third.close();
  await until(() => calls.length === 1, "the last subscriber was removed");
  assertEquals(calls, ["- note://1"]);
}, { perInstance: "hooks" });

behaviour("a change that subscribe announces reaches the new subscriber", async (connect) => {
  const timers = new Map<string, ReturnType<typeof setInterval>>();
  const { provider } = provide({
    subscribe: (uri, { resourceUpdated }) => void timers.set(uri, setInterval(() => resourceUpdated(uri), 5)),
    unsubscribe: (uri) => clearInterval(timers.get(uri)),
  });
  const { client } = await connect({ handlers: [provider] });
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://1"] });
  const news = await subscription.take(2);
  assertEquals(news.map(({ params }) => params.uri), ["note://1", "note://1"]);
}, { perInstance: "hooks" });

behaviour("a subscriber is removed when its connection closes, and when the server closes", async (connect) => {
  const { calls, provider } = provide();
  const { client, server, join } = await connect({ handlers: [provider] });
  const leaving = await join();
  await leaving.subscribe({ resourceSubscriptions: ["note://1"] });
  assertEquals(calls.splice(0), ["+ note://1"]);
  await leaving.close();
  await until(() => calls.length > 0, "the connection has closed");
  assertEquals(calls.splice(0), ["- note://1"]);
  await client.subscribe({ resourceSubscriptions: ["note://2"] });
  assertEquals(calls.splice(0), ["+ note://2"]);
  await server.close();
  assertEquals(calls, ["- note://2"]);
}, { perInstance: "hooks" });

Deno.test("an expired session no longer counts as a subscriber of its resources", async () => {
  const { calls, provider } = provide();
  const clock = fakeClock();
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [provider], clock });
  await using client = await connectTo(server, { era: "legacy", transport: "memory" });
  await client.request("resources/subscribe", { uri: "note://1" });
  await client.request("resources/subscribe", { uri: "note://1" });
  assertEquals(calls, ["+ note://1"]);
  await client.request("resources/unsubscribe", { uri: "note://1" });
  await client.request("resources/unsubscribe", { uri: "note://1" });
  await turn(10);
  await client.request("resources/subscribe", { uri: "note://1" });
  assertEquals(calls, ["+ note://1", "- note://1", "+ note://1"]);
  await clock.advance(25 * 60 * 60_000);
  await turn(10);
  assertEquals(calls, ["+ note://1", "- note://1", "+ note://1", "- note://1"]);
});

behaviour("callers from which `allow` hides the provider do not count as subscribers", async (connect) => {
  let decided = 0;
  const isAda = ({ principal }: Context) => (decided++, principal?.id === "ada");
  for (const allow of [isAda, async (ctx: Context) => (await turn(), isAda(ctx))]) {
    const { calls, provider } = provide({ allow });
    const { client, join } = await connect({ handlers: [provider] });
    const ada = await join({ principal: { id: "ada" } });
    decided = 0;
    await using _hidden = await client.subscribe({ resourceSubscriptions: ["note://1"] });
    await until(() => decided > 0, "`allow` has decided on the subscriber");
    await turn(10);
    assertEquals(calls, []);
    const seen = await ada.subscribe({ resourceSubscriptions: ["note://1"] });
    await until(() => calls.length === 1, "the subscriber is known");
    await seen.close();
    await until(() => calls.length === 2, "the subscriber has unsubscribed");
    assertEquals(calls, ["+ note://1", "- note://1"]);
    // A client that unsubscribes before `allow` has decided never counts as a subscriber.
    decided = 0;
    await (await ada.subscribe({ resourceSubscriptions: ["note://2"] })).close();
    await until(() => decided > 0, "`allow` has decided on the next subscriber");
    await turn(10);
    await until(() => calls.length % 2 === 0, "the provider was called twice, or never");
  }
}, { perInstance: "hooks" });

behaviour("unsubscribe waits until a slow subscribe has ended, and errors go to onError", async (connect) => {
  const { pass, open } = gate();
  const calls: string[] = [];
  const { provider } = provide({
    async subscribe(uri) {
      calls.push(`+ ${uri}`);
      await pass;
      throw new Error(`cannot watch ${uri}`);
    },
    unsubscribe(uri) {
      calls.push(`- ${uri}`);
      throw new Error(`cannot leave ${uri}`);
    },
  });
  const { ends, observer } = countEnds();
  const { client, takeFaults } = await connect({ handlers: [provider], observer });
  for (let i = 0; i < 3; i++) {
    const before = ends.count;
    await (await client.subscribe({ resourceSubscriptions: ["note://1"] })).close();
    await until(() => ends.count > before, "the subscription has ended");
  }
  await turn(10);
  assertEquals(calls, ["+ note://1"]);
  open();
  await until(() => calls.length === 2, "unsubscribe");
  await turn(10);
  assertEquals(calls, ["+ note://1", "- note://1"]);
  const faults = takeFaults().map(({ error, subject }) => [subject, Object(error).message]);
  assertEquals(faults, [["note://1", "cannot watch note://1"], ["note://1", "cannot leave note://1"]]);
}, { perInstance: "hooks" });
