// A list of several sources leaves out a source that fails or is too slow. Pages say how long they may be cached.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type Handler,
  McpError,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  tool,
  toolProvider,
  type ToolProviderOptions,
} from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, fence, fenced, textOf, until, withoutFences } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const say = (name: string) => tool({ name, description: name, run: () => name });
const provide = (name: string, list: ToolProviderOptions["list"], more: Partial<ToolProviderOptions> = {}) =>
  toolProvider({ name, list, find: (each) => each.startsWith(name) ? say(each) : undefined, ...more });

/** A source that works, fails, or never answers. */
class Source {
  state: "up" | "down" | "hanging" = "down";

  async list<T>(items: readonly T[]): Promise<readonly T[]> {
    if (this.state === "down") throw new Error("the other server is down");
    return this.state === "up" ? items : await new Promise<never>(() => {});
  }
}

/** Returns handlers of each kind with a source of their own, and the request that lists them. */
const KINDS: Record<string, (source: Source) => readonly Handler[]> = {
  tools: (
    source,
  ) => [say("own"), provide("late", () => source.list([say("late_1")])), provide("good", () => [say("good_1")])],
  prompts: (source) => [
    prompt({ name: "own", run: () => "" }),
    promptProvider({
      name: "late",
      list: () => source.list([prompt({ name: "late_1", run: () => "" })]),
      find: () => undefined,
    }),
    promptProvider({ name: "good", list: () => [prompt({ name: "good_1", run: () => "" })], find: () => undefined }),
  ],
  resources: (source) => [
    resource({ uri: "own:1", name: "own", read: () => "" }),
    resourceProvider({
      scheme: "late",
      name: "late",
      list: async () => ({ resources: await source.list([{ uri: "late:1", name: "late_1" }]) }),
      read: () => "",
    }),
    resourceProvider({
      scheme: "good",
      name: "good",
      list: () => ({ resources: [{ uri: "good:1", name: "good_1" }] }),
      read: () => "",
    }),
  ],
};

for (const [kind, make] of Object.entries(KINDS)) {
  behaviour(
    `a source of ${kind} that fails leaves the list, is reported once, and comes back`,
    async (join, { era }) => {
      const source = new Source();
      const { client, takeFaults } = await join({ handlers: make(source), ttlMs: 5000 });
      await using changes = await client.subscribe({ [`${kind}ListChanged`]: true });
      const list = async () => {
        const { [kind]: entries, ttlMs } = await client.request(`${kind}/list`);
        return [(entries as { readonly name: string }[]).map(({ name }) => name), ttlMs];
      };
      const hints = (ttlMs: number) => era === "modern" ? ttlMs : undefined;
      for (let i = 0; i < 3; i++) assertEquals(await list(), [["own", "good_1"], hints(0)]);
      assertEquals(takeFaults().map(({ error }) => Object(error).message), ["the other server is down"]);
      source.state = "up";
      assertEquals(await list(), [["own", "late_1", "good_1"], hints(5000)]);
      await changes.take(1);
      source.state = "down";
      await list();
      assertEquals(takeFaults().length, 1);
    },
    { perInstance: "observer" },
  );
}

behaviour("a source that fails for one caller, or with its second page, does not seem to come back", async (join) => {
  let isWhole = false;
  const perCaller = provide("closed", (_cursor, { principal }) => {
    if (principal?.id === "ada") throw new Error("ada has no account");
    return [];
  });
  const perPage = provide("paged", (cursor, { principal }) => {
    if (principal?.id === "bob" && !cursor) return { tools: [], nextCursor: "2" };
    if (cursor && !isWhole) throw new Error("the second page is broken");
    return [];
  });
  const { client: ada, server, takeFaults, join: joinAs } = await join(
    { handlers: [say("own"), perCaller, perPage, fenced] },
    { principal: { id: "ada" } },
  );
  const bob = await joinAs({ principal: { id: "bob" } });
  await using changes = await bob.subscribe({ toolsListChanged: true, resourceSubscriptions: ["fence://1"] });
  for (let i = 0; i < 2; i++) for (const client of [ada, bob]) await client.listTools();
  await fence(server, changes);
  assertEquals(withoutFences(changes), []);
  isWhole = true;
  await bob.listTools();
  await until(() => withoutFences(changes).length, "the source is back");
  takeFaults();
}, { perInstance: "observer" });

behaviour("a source that is slower than listMs leaves the list", async (join) => {
  const clock = fakeClock();
  const source = new Source();
  source.state = "hanging";
  const slow = provide("slow", () => source.list([say("slow_1")]), { listMs: 500 });
  const { client, takeFaults } = await join({ handlers: [say("own"), slow], clock });
  const tools = await advanceUntil(clock, 100, client.listTools());
  assertEquals(tools.map(({ name }) => name), ["own"]);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("500 ms", "listMs")]);
});

behaviour("an only source that fails fails the list, and so does an McpError for the client", async (join) => {
  const error = new McpError(-31_401, "sign in first");
  const { client, takeFaults } = await join({
    handlers: [
      say("own"),
      provide("a", () => {
        throw error;
      }),
    ],
  });
  await assertRejects(() => client.listTools(), McpError, "sign in first");
  assertEquals(takeFaults(), []);
  const { client: other } = await join({
    handlers: [provide("a", () => new Source().list([]))],
  });
  await assertRejects(() => other.listTools(), McpError);
  assertEquals(takeFaults().length, 1);
}, { perInstance: "observer" });

behaviour("a search leaves out a source that fails", async (join) => {
  const source = new Source();
  const handlers = [toolSearch(), say("weather_forecast"), provide("late", () => source.list([]))];
  const { client, takeFaults } = await join({ handlers });
  assert(textOf(await client.callTool("search_tools", { query: "weather" })).includes("weather_forecast"));
  takeFaults();
});

behaviour("pages and contents say how long they may be cached, within the server's limits", async (join) => {
  const page = (ttlMs: number) => ({ ttlMs, cacheScope: "public" as const, _meta: { "example.com/a": ttlMs } });
  const handlers = [
    provide("a", () => ({ tools: [say("a_1")], ...page(9000) })),
    provide("b", () => ({ tools: [say("b_1")], ...page(400) })),
    resourceProvider({
      scheme: "a",
      name: "a",
      cacheScope: "public",
      list: () => ({ resources: [{ uri: "a:1", name: "a" }], ...page(300) }),
      read: (uri) => ({
        contents: [{ uri, text: "a" }],
        ttlMs: 200,
        ...uri === "a:2" && { cacheScope: "private" },
        _meta: { "example.com/b": 1, "io.modelcontextprotocol/serverInfo": 2 },
      }),
    }),
  ];
  const { client } = await join({ handlers, ttlMs: 1000 });
  const tools = await client.request("tools/list");
  assertEquals([tools.ttlMs, tools.cacheScope, Object(tools._meta)["example.com/a"]], [400, "private", 9000]);
  const resources = await client.request("resources/list");
  assertEquals([resources.ttlMs, Object(resources._meta)["example.com/a"]], [300, 300]);
  const [open, closed] = [await client.readResource("a:1"), await client.readResource("a:2")];
  assertEquals([open.ttlMs, open.cacheScope, closed.cacheScope], [200, "public", "private"]);
  const { "io.modelcontextprotocol/serverInfo": info, ...meta } = Object(open._meta);
  assertEquals([meta, typeof info], [{ "example.com/b": 1 }, "object"]);
}, { eras: ["modern"] });

Deno.test("listMs must be a number of milliseconds", () => {
  for (const listMs of [0, -1, NaN]) {
    assertThrows(() => provide("a", () => [], { listMs }), TypeError, sentence("listMs"));
    assertThrows(
      () => resourceProvider({ scheme: "a", name: "a", listMs, read: () => "" }),
      TypeError,
      sentence("listMs"),
    );
  }
});
