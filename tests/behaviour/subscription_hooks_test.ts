// A provider learns of the first and the last subscriber of each URI, however a subscription ends.
import { assertEquals } from "@std/assert";
import { type Context, createServer, resource, resourceProvider, type ResourceProviderOptions } from "../../mod.ts";
import { connect as connectTo, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, until } from "../support/behaviour.ts";

const settle = () => new Promise((resolve) => setTimeout(resolve, 30));

/** A provider that records its calls. */
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

behaviour("a provider learns of the first and the last subscriber of a URI", async (connect) => {
  const { calls, provider } = provide();
  const { client, join } = await connect({
    handlers: [provider, resource({ uri: "note://fixed", name: "fixed", read: () => "" })],
  });
  const other = await join();
  const first = await client.subscribe({ resourceSubscriptions: ["note://1", "note://fixed", "other://1"] });
  assertEquals(calls, ["+ note://1"]);
  const second = await other.subscribe({ resourceSubscriptions: ["note://1", "note://2"] });
  assertEquals(calls.splice(0), ["+ note://1", "+ note://2"]);
  await first.close();
  await settle();
  assertEquals(calls, []);
  await second.close();
  await until(() => calls.length === 2, "both to be called");
  assertEquals(calls.splice(0), ["- note://1", "- note://2"]);
  const third = await client.subscribe({ resourceSubscriptions: ["note://1"] });
  assertEquals(calls.splice(0), ["+ note://1"]);
  await third.close();
  await until(() => calls.length === 1, "the last subscriber");
  assertEquals(calls, ["- note://1"]);
});

behaviour("what subscribe announces reaches its subscribers", async (connect) => {
  const timers = new Map<string, ReturnType<typeof setInterval>>();
  const { provider } = provide({
    subscribe: (uri, { resourceUpdated }) => void timers.set(uri, setInterval(() => resourceUpdated(uri), 5)),
    unsubscribe: (uri) => clearInterval(timers.get(uri)),
  });
  const { client } = await connect({ handlers: [provider] });
  const subscription = await client.subscribe({ resourceSubscriptions: ["note://1"] });
  const news = await subscription.take(2);
  assertEquals(news.map(({ params }) => params.uri), ["note://1", "note://1"]);
  await subscription.close();
});

behaviour("the last subscriber may leave by closing its connection, or with the server", async (connect) => {
  const { calls, provider } = provide();
  const { client, server, join } = await connect({ handlers: [provider] });
  const leaving = await join();
  await leaving.subscribe({ resourceSubscriptions: ["note://1"] });
  assertEquals(calls.splice(0), ["+ note://1"]);
  await leaving.close();
  await until(() => calls.length > 0, "the connection to be closed");
  assertEquals(calls.splice(0), ["- note://1"]);
  await client.subscribe({ resourceSubscriptions: ["note://2"] });
  assertEquals(calls.splice(0), ["+ note://2"]);
  await server.close();
  assertEquals(calls, ["- note://2"]);
});

Deno.test("a session that expires has left its resources", async () => {
  const { calls, provider } = provide();
  const clock = fakeClock();
  const server = createServer({ name: "s", version: "1.0.0", handlers: [provider], clock });
  await using client = await connectTo(server, { era: "legacy", transport: "memory" });
  await client.request("resources/subscribe", { uri: "note://1" });
  await client.request("resources/subscribe", { uri: "note://1" });
  assertEquals(calls, ["+ note://1"]);
  await client.request("resources/unsubscribe", { uri: "note://1" });
  await client.request("resources/unsubscribe", { uri: "note://1" });
  await settle();
  await client.request("resources/subscribe", { uri: "note://1" });
  assertEquals(calls, ["+ note://1", "- note://1", "+ note://1"]);
  await clock.advance(25 * 60 * 60_000);
  await settle();
  assertEquals(calls, ["+ note://1", "- note://1", "+ note://1", "- note://1"]);
  await server.close();
});

behaviour("callers from which `allow` hides the provider do not count", async (connect) => {
  for (
    const allow of [
      ({ principal }: Context) => principal?.id === "ada",
      async ({ principal }: Context) => (await settle(), principal?.id === "ada"),
    ]
  ) {
    const { calls, provider } = provide({ allow });
    const { client, join } = await connect({ handlers: [provider] });
    const ada = await join({ principal: { id: "ada" } });
    const hidden = await client.subscribe({ resourceSubscriptions: ["note://1"] });
    await settle();
    await settle();
    assertEquals(calls, []);
    const seen = await ada.subscribe({ resourceSubscriptions: ["note://1"] });
    await until(() => calls.length === 1, "the subscriber");
    await seen.close();
    await until(() => calls.length === 2, "the subscriber to leave");
    assertEquals(calls, ["+ note://1", "- note://1"]);
    // One that leaves before `allow` has decided was never there.
    await (await ada.subscribe({ resourceSubscriptions: ["note://2"] })).close();
    await settle();
    await settle();
    assertEquals(calls.length % 2, 0);
    await hidden.close();
  }
});

behaviour("unsubscribe waits for a slow subscribe, and errors go to onError", async (connect) => {
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
  const { client, takeFaults } = await connect({ handlers: [provider] });
  for (let i = 0; i < 3; i++) {
    await (await client.subscribe({ resourceSubscriptions: ["note://1"] })).close();
    await settle();
  }
  assertEquals(calls, ["+ note://1"]);
  open();
  await until(() => calls.length === 2, "unsubscribe");
  await settle();
  assertEquals(calls, ["+ note://1", "- note://1"]);
  const faults = takeFaults().map(({ error, subject }) => [subject, Object(error).message]);
  assertEquals(faults, [["note://1", "cannot watch note://1"], ["note://1", "cannot leave note://1"]]);
});
