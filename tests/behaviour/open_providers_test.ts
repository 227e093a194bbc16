// Resource providers without a scheme: the provider that lists a URI for the caller serves it, else the first with a
// matching template, else those with a matching prefix. No other provider gets the URI.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type Context,
  createServer,
  group,
  McpError,
  prompt,
  promptProvider,
  resource,
  type ResourceEntry,
  resourceProvider,
  type ResourceProviderOptions,
  service,
  tool,
} from "../../mod.ts";
import type { ServerHandle } from "../../src/extensions/extension.ts";
import { quota } from "../../src/layers/layers.ts";
import { asTools } from "../../src/ready/as_tools.ts";
import { transform } from "../../src/server/handlers/transform.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, fence, fenced, textOf, turn, until, withoutFences } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const entry = (uri: string): ResourceEntry => ({ uri, name: uri });
const toTemplate = (uriTemplate: string) => ({ uriTemplate, name: uriTemplate });

/** Creates a provider whose `read` answers any URI, so that only the server decides which URIs it gets. */
function provide(name: string, options: Partial<ResourceProviderOptions> = {}) {
  return resourceProvider({ name, read: (uri) => `${name} ${uri}`, ...options });
}

/** Creates a provider that lists these URIs on one page each. Calls `onPage` for each page. */
function pages(name: string, uris: readonly string[], onPage = (_page: number) => {}): ResourceProviderOptions {
  return {
    name,
    read: (uri) => `${name} ${uri}`,
    list(cursor = "0") {
      const page = Number(cursor);
      onPage(page);
      return {
        resources: uris.slice(page, page + 1).map(entry),
        ...page + 1 < uris.length && { nextCursor: `${page + 1}` },
      };
    },
  };
}

async function read(client: Connection, uri: string): Promise<string> {
  return textOf({ content: (await client.readResource(uri)).contents });
}

async function refuse(client: Connection, ...uris: readonly string[]): Promise<void> {
  for (const uri of uris) await assertRejects(() => client.readResource(uri), McpError, "not found");
}

behaviour(
  "own resources, templates and schemes precede lists, lists templates, and templates prefixes",
  async (connect) => {
    const { client } = await connect({
      handlers: [
        provide("greedy", { list: () => ({ resources: [entry("greedy://1")] }) }),
        provide("prefixes", {
          uris: ["a://", "b://", "c://"],
          read: (uri) => uri === "c://2" ? undefined : `prefixes ${uri}`,
        }),
        provide("wide", { templates: () => [toTemplate("a://{+path}"), toTemplate("d://{id}")] }),
        provide("lists", { list: () => ({ resources: ["a://1", "own://1", "t://1", "s://1"].map(entry) }) }),
        provide("last", { uris: ["c://"] }),
        resource({ uri: "own://1", name: "own", read: () => "own" }),
        resource({ uri: "t://{id}", name: "t", read: () => "template" }),
        resourceProvider({ scheme: "s", name: "s", read: () => "scheme" }),
      ],
    });
    const owners = {
      "own://1": "own",
      "t://1": "template",
      "s://1": "scheme",
      "a://1": "lists a://1",
      "a://2": "wide a://2",
      "d://1": "wide d://1",
      "b://1": "prefixes b://1",
      "c://1": "prefixes c://1",
      "c://2": "last c://2",
      "greedy://1": "greedy greedy://1",
    };
    for (const [uri, text] of Object.entries(owners)) assertEquals(await read(client, uri), text);
    await refuse(client, "e://1", "d://1/2", "greedy://2", "b://x/../y", "b://x/%2e%2e/y", "b://%00");
    // What another handler serves is not listed.
    assertEquals((await client.listResources()).map(({ uri }) => uri), ["own://1", "greedy://1", "a://1"]);
  },
);

behaviour(
  "a read walks no list if the server's own handlers decide, and ends at the page with the URI",
  async (connect) => {
    const walked: string[] = [];
    const { client } = await connect({
      handlers: [
        provide("a", pages("a", ["x://1", "x://2", "x://3"], (page) => void walked.push(`a ${page}`))),
        provide("b", pages("b", ["x://4"], (page) => void walked.push(`b ${page}`))),
        resourceProvider({ scheme: "s", name: "s", read: () => "scheme" }),
        resource({ uri: "own://1", name: "own", read: () => "own" }),
      ],
    });
    const walk = async (uri: string) => (await read(client, uri), walked.splice(0));
    assertEquals(await walk("s://1"), []);
    assertEquals(await walk("own://1"), []);
    assertEquals(await walk("x://2"), ["a 0", "a 1"]);
    assertEquals(await walk("x://4"), ["a 0", "a 1", "a 2", "b 0"]);
    const { client: other } = await connect({
      handlers: [provide("a", { ...pages("a", ["x://1"], (page) => void walked.push(`a ${page}`)), uris: ["x://"] })],
    });
    // No other provider can serve the URI.
    assertEquals(await read(other, "x://2"), "a x://2");
    assertEquals(walked, []);
  },
);

behaviour("a provider that answers all URIs and stands first gets only what it lists", async (connect) => {
  const asked: string[] = [];
  const note = (what: string) => (uri: string) => (asked.push(`${what} ${uri}`), "stolen");
  let handle: ServerHandle | undefined;
  const hostile = provide("hostile", {
    start: (server) => void (handle = server),
    list: () => ({ resources: [entry("hostile://1")] }),
    templates: () => [toTemplate("hostile://{id}"), toTemplate("{+all}")],
    read: note("read"),
    subscribe: note("subscribe") as never,
  });
  const { client, server, takeFaults } = await connect({
    handlers: [hostile, provide("good", pages("good", ["note://1"])), fenced],
  });
  assertEquals(await read(client, "note://1"), "good note://1");
  await refuse(client, "note://2");
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://1", "note://2", "fence://1"] });
  for (const uri of ["note://1", "note://2"]) handle?.resourceUpdated(uri);
  await fence(server, subscription);
  assertEquals(withoutFences(subscription), []);
  server.resourceUpdated("note://1");
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).map(({ params }) => params.uri), ["note://1"]);
  assertEquals(asked, []);
  takeFaults();
}, { perInstance: "hooks" });

/** Lists a URI for one caller only. */
const listFor = (id: string, ...uris: readonly string[]) => (_cursor: string | undefined, { principal }: Context) => ({
  resources: principal?.id === id ? uris.map(entry) : [],
});

behaviour("each caller reads, and is notified, by what the providers list for this caller", async (connect) => {
  const handles = new Map<string, ServerHandle>();
  const hooked: string[] = [];
  const provideFor = (name: string, id: string) =>
    provide(name, {
      start: (server) => void handles.set(name, server),
      list: listFor(id, "note://1"),
      subscribe: (uri) => void hooked.push(`${name} + ${uri}`),
      unsubscribe: (uri) => void hooked.push(`${name} - ${uri}`),
    });
  const { client: ada, server, join } = await connect(
    { handlers: [provideFor("a", "ada"), provideFor("b", "bob"), fenced] },
    { principal: { id: "ada" } },
  );
  const bob = await join({ principal: { id: "bob" } });
  const eve = await join({ principal: { id: "eve" } });
  assertEquals([await read(ada, "note://1"), await read(bob, "note://1")], ["a note://1", "b note://1"]);
  await refuse(eve, "note://1");
  const subscribe = (client: Connection) => client.subscribe({ resourceSubscriptions: ["note://1", "fence://1"] });
  const [ofAda, ofBob, ofEve] = await Promise.all([ada, bob, eve].map(subscribe));
  await until(() => hooked.length === 2, "both providers have a subscriber");
  assertEquals(hooked.splice(0).sort(), ["a + note://1", "b + note://1"]);
  const count = async (announce: () => void) => {
    const all = [ofAda, ofBob, ofEve];
    const before = all.map((each) => withoutFences(each).length);
    announce();
    await fence(server, ...all);
    return all.map((each, at) => withoutFences(each).length - before[at]);
  };
  assertEquals(await count(() => handles.get("a")?.resourceUpdated("note://1")), [1, 0, 0]);
  assertEquals(await count(() => handles.get("b")?.resourceUpdated("note://1")), [0, 1, 0]);
  assertEquals(await count(() => server.resourceUpdated("note://1")), [1, 1, 0]);
  // Two owners that announce a change at the same time do not hide each other's change.
  assertEquals(await count(() => handles.forEach((handle) => handle.resourceUpdated("note://1"))), [1, 1, 0]);
  await ofAda.close();
  await until(() => hooked.length === 1, "the first provider has lost its subscriber");
  assertEquals(hooked, ["a - note://1"]);
  await Promise.all([ofBob.close(), ofEve.close()]);
  await until(() => hooked.length === 2, "the second provider has lost its subscriber");
}, { perInstance: "hooks" });

behaviour("subscribe gets functions whose changes count only for what the provider serves", async (connect) => {
  const { client, server } = await connect({
    handlers: [
      provide("a", {
        list: () => ({ resources: [entry("a://1")] }),
        subscribe: (_uri, server) => ["a://1", "b://1", "own://1"].forEach((uri) => server.resourceUpdated(uri)),
      }),
      provide("b", { list: () => ({ resources: [entry("b://1")] }) }),
      resource({ uri: "own://1", name: "own", read: () => "" }),
      fenced,
    ],
  });
  await using subscription = await client.subscribe({
    resourceSubscriptions: ["a://1", "b://1", "own://1", "fence://1"],
  });
  await until(() => withoutFences(subscription).length, "subscribe has announced the change");
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).map(({ params }) => params.uri), ["a://1"]);
}, { perInstance: "hooks" });

behaviour("templates are listed beside the server's own, page by page and for each caller", async (connect) => {
  const cursors: unknown[] = [];
  const { client: ada, join, takeFaults } = await connect({
    limits: testLimits({ calls: { pageItems: 3 } }),
    handlers: [
      resource({ uri: "own://{id}", name: "own", read: () => "own" }),
      provide("paged", {
        mimeType: "text/markdown",
        templates(cursor, { principal }) {
          cursors.push(cursor);
          if (cursor) return { templates: [toTemplate("second://{id}"), toTemplate(`${principal?.id}://{id}`)] };
          return { templates: [toTemplate("own://{id}"), toTemplate("first://{id}")], nextCursor: "2" };
        },
      }),
      provide("all", {
        templates: () => [
          ...["first://{id}", "odd://{id*}", "x{id}", "last://{id}"].map(toTemplate),
          { ...toTemplate("kept://{id}"), "example.com/unknown": 1 },
        ],
      }),
    ],
  }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  const list = async (client: Connection) => (await client.listResourceTemplates()).map((each) => each.uriTemplate);
  const rest = ["last://{id}", "kept://{id}"];
  assertEquals(await list(ada), ["own://{id}", "first://{id}", "second://{id}", "ada://{id}", "first://{id}", ...rest]);
  assertEquals((await list(bob)).includes("ada://{id}"), false);
  const [, first] = await ada.listResourceTemplates();
  assertEquals(first.mimeType, "text/markdown");
  assertEquals((await ada.listResourceTemplates()).at(-1)?.["example.com/unknown"], 1);
  const faults = takeFaults().map(({ error }) => Object(error).message);
  assertEquals(faults[0], sentence("odd://{id*}", "provider all"));
  cursors.length = 0;
  assertEquals(await read(ada, "ada://1"), "paged ada://1");
  assertEquals(cursors.splice(0), [undefined, "2"]);
  assertEquals(await read(ada, "first://1"), "paged first://1");
  assertEquals(cursors, [undefined]);
  assertEquals(await read(bob, "last://1"), "all last://1");
  await refuse(bob, "ada://1", "odd://1", "x1", "last://../1");
  takeFaults();
});

behaviour("completion reaches the provider whose template it is for the caller", async (connect) => {
  const asked: unknown[] = [];
  const suggest = (name: string, ...templates: readonly string[]) =>
    provide(name, {
      templates: (_cursor, { principal }) => principal?.id === "eve" ? [] : templates.map(toTemplate),
      complete(template, { name: variable, value, others }) {
        asked.push([template, variable, value, others]);
        return [`${name} ${template}`];
      },
    });
  const { client, join } = await connect({
    handlers: [
      resource({ uri: "own://{id}", name: "own", complete: { id: () => ["own"] }, read: () => "" }),
      suggest("hidden", "b://{id}"),
      provide("silent", { templates: () => [toTemplate("silent://{id}")] }),
      suggest("wide", "own://{id}", "a://{+all}"),
      suggest("narrow", "a://{x}/{y}", "b://{id}"),
      provide("s", { scheme: "s", templates: () => [toTemplate("s://{id}")], complete: () => ["scheme"] }),
      provide("other", { scheme: "s", templates: () => [toTemplate("s://{id}/x")], complete: () => ["other"] }),
      prompt({ name: "p", run: () => "" }),
      promptProvider({ find: () => undefined }),
    ].map((each) => each.name === "hidden" ? group("g", [each], { allow: () => false }) : each),
  }, { principal: { id: "ada" } });
  const complete = async (uri: string, name: string, from = client) => {
    const params = {
      ref: { type: "ref/resource", uri },
      argument: { name, value: "v" },
      context: { arguments: { y: "1" } },
    };
    return Object((await from.request("completion/complete", params)).completion).values;
  };
  assertEquals(await complete("own://{id}", "id"), ["own"]);
  assertEquals(await complete("a://{x}/{y}", "x"), ["narrow a://{x}/{y}"]);
  assertEquals(await complete("a://{+all}", "all"), ["wide a://{+all}"]);
  assertEquals(await complete("b://{id}", "id"), ["narrow b://{id}"]);
  assertEquals(await complete("s://{id}", "id"), ["scheme"]);
  assertEquals(await complete("s://{id}/x", "id"), ["other"]);
  // A client can also refer to a template by a URI that matches it.
  assertEquals(await complete("a://1/2", "all"), ["wide a://{+all}"]);
  assertEquals(asked[0], ["a://{x}/{y}", "x", "v", { y: "1" }]);
  const { length } = asked;
  assertEquals(await complete("silent://{id}", "id"), []);
  assertEquals(await complete("b://{id}", "unknown"), []);
  assertEquals(asked.length, length);
  const eve = await join({ principal: { id: "eve" } });
  for (const uri of ["b://{id}", "none://{id}", "provider wide"]) {
    await assertRejects(() => complete(uri, "id", eve), McpError, sentence("Unknown", uri));
  }
});

behaviour("a server whose providers have no complete function has no completion", async (connect, { era }) => {
  const { client } = await connect({ handlers: [provide("a", { templates: () => [toTemplate("a://{id}")] })] });
  const { capabilities } = Object(era === "modern" ? await client.request("server/discover") : client.handshake);
  assertEquals("completions" in capabilities, false);
});

behaviour("a provider that leaves or comes changes who serves a URI", async (connect) => {
  let handle: ServerHandle | undefined;
  const first = provide("first", {
    start: (server) => void (handle = server),
    list: () => ({ resources: [entry("note://1")] }),
  });
  const { client, server } = await connect({
    handlers: [first, provide("second", { list: () => ({ resources: [entry("note://1")] }) }), fenced],
  });
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://1", "fence://1"] });
  const isNotified = async () => {
    const { length } = withoutFences(subscription);
    handle?.resourceUpdated("note://1");
    await fence(server, subscription);
    return withoutFences(subscription).length > length;
  };
  assertEquals([await read(client, "note://1"), await isNotified()], ["first note://1", true]);
  server.handlers.remove(first);
  assertEquals([await read(client, "note://1"), await isNotified()], ["second note://1", false]);
  await refuse(client, "late://1");
  server.handlers.add(provide("late", { list: () => ({ resources: [entry("late://1")] }), uris: ["late://"] }));
  assertEquals(await read(client, "late://1"), "late late://1");
  assertEquals((await client.listResources()).map(({ uri }) => uri).includes("late://1"), true);
}, { perInstance: "handlers" });

behaviour("a provider that serves a URI later gets the URI's subscribers", async (connect) => {
  const hooked: string[] = [];
  const listed: string[] = [];
  const watch = (name: string, uris: readonly string[]) =>
    provide(name, {
      list: () => ({ resources: uris.map(entry) }),
      subscribe: (uri) => void hooked.push(`${name} + ${uri}`),
      unsubscribe: (uri) => void hooked.push(`${name} - ${uri}`),
    });
  const [first, last] = [watch("first", ["note://1"]), watch("last", listed)];
  const { client, server } = await connect({ handlers: [first, watch("second", ["note://1"]), fenced] });
  const uris = ["note://1", "note://2", "scheme://1", "fence://1"];
  const subscription = await client.subscribe({ resourceSubscriptions: uris });
  const settle = async (expected: readonly string[]) => {
    await until(() => hooked.length >= expected.length, "the hooks were called");
    await fence(server, subscription);
    assertEquals(hooked.splice(0).sort(), expected);
  };
  await settle(["first + note://1"]);
  server.handlers.remove(first);
  await settle(["first - note://1", "second + note://1"]);
  server.handlers.add(last);
  await settle([]);
  listed.push("note://2");
  server.listChanged("resources");
  await settle(["last + note://2"]);
  server.handlers.add(resourceProvider({
    scheme: "scheme",
    name: "scheme",
    read: () => "",
    subscribe: (uri) => void hooked.push(`scheme + ${uri}`),
  }));
  await settle(["scheme + scheme://1"]);
  server.handlers.disable(last);
  await settle(["last - note://2"]);
  await subscription.close();
  await until(() => hooked.length, "the subscription has ended");
  assertEquals(hooked, ["second - note://1"]);
}, { perInstance: "hooks" });

Deno.test("other work runs while many subscribers are counted again", async () => {
  const order: string[] = [];
  const work = () => {
    for (const start = performance.now(); performance.now() - start < 25;);
    return void order.push("list");
  };
  const server = createServer({
    name: "busy",
    version: "1.0.0",
    handlers: [provide("busy", { list: () => (work(), { resources: [] }), subscribe() {} })],
  });
  await using client = await connectTest(server);
  const uris = ["note://1", "note://2", "note://3", "note://4"];
  await using _subscription = await client.subscribe({ resourceSubscriptions: uris });
  const countLists = () => order.filter((each) => each === "list").length;
  await until(() => countLists() === uris.length, "the subscribers were counted");
  order.length = 0;
  const timer = setInterval(() => void order.push("other"));
  server.listChanged("resources");
  await until(() => countLists() === uris.length, "the subscribers were counted again");
  clearInterval(timer);
  assert(!order.join().includes("list,list"), order.join());
  await server.close();
});

behaviour("allow, scopes, use, tags, services and mapError of a provider without a scheme apply", async (connect) => {
  const ran: string[] = [];
  const db = service("db", () => ({ uri: "db://1" }));
  const { client: ada, server, join, takeFaults } = await connect({
    handlers: [
      provide("a", {
        allow: ({ principal }, uri) => principal?.id === "ada" && uri !== "a://hidden",
        list: () => ({ resources: [entry("a://1"), entry("a://hidden"), entry("shared://1")] }),
        use: [(_ctx, next) => (ran.push("a"), next())],
      }),
      provide("shared", { uris: ["shared://"], scopes: ["s"], tags: ["admin"] }),
      resourceProvider({
        name: "db",
        services: { db },
        list: (_cursor, { services }) => ({ resources: [entry(services.db.uri)] }),
        templates: (_cursor, { services }) => [toTemplate(services.db.uri + "/{id}")],
        complete: (_template, _variable, { services }) => [services.db.uri],
        read: (_uri, { services }) => services.db.uri,
      }),
      provide("limited", { uris: ["limited://"], use: [quota({ rate: { calls: 1, perMs: 60_000 } })] }),
      provide("mapped", {
        uris: ["mapped://"],
        read() {
          throw new Error("secret");
        },
        mapError: () => "mapped",
      }),
    ],
  }, { principal: { id: "ada", scopes: [] } });
  const bob = await join({ principal: { id: "bob", scopes: ["s"] } });
  assertEquals(await read(ada, "a://1"), "a a://1");
  assertEquals(ran, ["a"]);
  await refuse(ada, "a://hidden");
  await refuse(bob, "a://1");
  assertEquals(await read(bob, "shared://1"), "shared shared://1");
  assertEquals(await read(ada, "shared://1"), "a shared://1");
  assertEquals(Object(await assertRejects(() => ada.readResource("shared://2"))).code, -31403);
  assertEquals([await read(ada, "db://1"), await read(ada, "db://1/2")], ["db://1", "db://1"]);
  const { completion } = await ada.request("completion/complete", {
    ref: { type: "ref/resource", uri: "db://1/{id}" },
    argument: { name: "id", value: "" },
  });
  assertEquals(Object(completion).values, ["db://1"]);
  await read(ada, "limited://1");
  await assertRejects(() => ada.readResource("limited://1"), McpError, "too many");
  await assertRejects(() => ada.readResource("mapped://1"), McpError, "mapped");
  assertEquals(takeFaults().map(({ subject }) => subject), ["mapped://1"]);
  server.handlers.disable({ tag: "admin" });
  await refuse(bob, "shared://1");
}, { perInstance: "handlers" });

behaviour(
  "a provider whose list fails or is slow is passed over, unless no other provider has the URI",
  async (connect) => {
    let state: "throws" | "hangs" | "repeats" | "works" = "works";
    const clock = fakeClock();
    const lacking = provide("lacking", {
      listMs: 500,
      list(): { resources: []; nextCursor?: string } | Promise<never> {
        if (state === "throws") throw new Error("the other server is down");
        if (state === "hangs") return new Promise<never>(() => {});
        return { resources: [], ...state === "repeats" && { nextCursor: "same" } };
      },
    });
    const { client, takeFaults } = await connect({
      clock,
      handlers: [lacking, provide("good", pages("good", ["note://1"]))],
    });
    const pass = async () => assertEquals(await advanceUntil(clock, 100, read(client, "note://1")), "good note://1");
    const fail = () =>
      advanceUntil(clock, 100, assertRejects(() => client.readResource("note://2"), McpError, "Internal error"));
    for (
      const [now, cause] of [
        ["throws", "the other server is down"],
        ["hangs", sentence("provider lacking", "500 ms")],
        ["repeats", sentence("nextCursor")],
      ] as const
    ) {
      state = now;
      await pass();
      assertEquals(takeFaults().map(({ error }) => Object(error).message), [cause]);
      await pass();
      assertEquals(takeFaults(), []);
      // The client gets an id, which is useless if the observer does not get it.
      for (let i = 0; i < 2; i++) {
        await fail();
        assertEquals(takeFaults().length, 1);
      }
      state = "works";
      await refuse(client, "note://2");
      state = now;
      await fail();
      assertEquals(takeFaults().length, 1);
      state = "works";
      await refuse(client, "note://2");
    }
  },
  { perInstance: "limits" },
);

behaviour("a search lists no further page after listMs", async (connect) => {
  const clock = fakeClock();
  let listed = 0;
  const { client, takeFaults } = await connect({
    clock,
    handlers: [
      provide("endless", {
        listMs: 500,
        async list() {
          await new Promise<void>((resolve) => clock.start(resolve, 300));
          return { resources: [], nextCursor: `${++listed}` };
        },
      }),
      provide("good", pages("good", ["note://1"])),
    ],
  });
  assertEquals(await advanceUntil(clock, 100, read(client, "note://1")), "good note://1");
  // The page that was being listed is the last one.
  for (let i = 0; i < 3; i++) await clock.advance(300);
  await turn(10);
  const before = listed;
  for (let i = 0; i < 10; i++) await clock.advance(300);
  await turn(10);
  assertEquals(listed, before);
  takeFaults();
}, { perInstance: "limits" });

behaviour("changes do not report a list that fails again for each subscription", async (connect) => {
  let lists = 0;
  const { client, server, takeFaults } = await connect({
    handlers: [
      provide("lacking", {
        list() {
          lists++;
          throw new Error("the other server is down");
        },
        subscribe() {},
      }),
      fenced,
    ],
  });
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://1", "note://2", "fence://1"] });
  await until(() => lists === 2, "the subscribers were counted");
  server.resourceUpdated("note://1");
  await until(() => lists === 3, "the change was decided");
  await fence(server, subscription);
  assertEquals(withoutFences(subscription), []);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), ["the other server is down"]);
}, { perInstance: "hooks" });

behaviour("what a provider reads from another server is sent as it came", async (connect) => {
  const upstream = createServer({
    name: "upstream",
    version: "1.0.0",
    handlers: [
      resource({ uri: "up://1", name: "one", title: "One", mimeType: "text/markdown", read: () => "text" }),
      resource({ uri: "up://{id}", name: "each", read: ({ id }) => id }),
    ],
  });
  await using remote = await connectTest(upstream);
  const { client } = await connect({
    handlers: [
      provide("upstream", {
        list: async () => ({ resources: await remote.listResources() }),
        templates: async () => await remote.listResourceTemplates(),
        read: (uri) => remote.readResource(uri),
      }),
      provide("foreign", {
        uris: ["foreign://"],
        mimeType: "text/html",
        cacheScope: "public",
        read: (uri) =>
          uri === "foreign://text" ? "text" : { contents: [{ uri, text: "bare" }], _meta: { "example.com/a": 1 } },
      }),
      tool({ name: "inner", run: async (_, ctx) => (await ctx.readResource("up://2"))[0] }),
    ],
  });
  assertEquals((await client.listResources())[0].title, "One");
  assertEquals((await client.readResource("up://1")).contents, [
    { uri: "up://1", mimeType: "text/markdown", text: "text" },
  ]);
  assertEquals(await read(client, "up://2"), "2");
  assertEquals((await client.callTool("inner")).isError, undefined);
  const { contents, _meta, cacheScope = "private" } = await client.readResource("foreign://1");
  assertEquals([contents, Object(_meta)["example.com/a"]], [[{ uri: "foreign://1", text: "bare" }], 1]);
  // Another caller may get the URI from another provider.
  assertEquals(cacheScope, "private");
  assertEquals((await client.readResource("foreign://text")).contents, [
    { uri: "foreign://text", mimeType: "text/html", text: "text" },
  ]);
  await upstream.close();
});

Deno.test("a change that a provider announces counts for its own URIs on other instances too", async () => {
  const store = memoryStore();
  const handles: ServerHandle[] = [];
  const create = () =>
    createServer({
      name: "two",
      version: "1.0.0",
      secret: "a".repeat(32),
      store,
      handlers: [
        provide("a", {
          start: (server) => void handles.push(server),
          list: () => ({ resources: [entry("a://1")] }),
        }),
        provide("b", { list: () => ({ resources: [entry("b://1")] }) }),
        fenced,
      ],
    });
  const [here, there] = [create(), create()];
  await there.ready();
  const [handle] = handles;
  await using client = await connectTest(here);
  await using subscription = await client.subscribe({ resourceSubscriptions: ["a://1", "b://1", "fence://1"] });
  handle.resourceUpdated("b://1");
  handle.resourceUpdated("a://1");
  await until(() => withoutFences(subscription).length, "the change has arrived");
  await fence(here, subscription);
  assertEquals(withoutFences(subscription).map(({ params }) => params.uri), ["a://1"]);
  await here.close();
  await there.close();
});

Deno.test("an unusable provider without a scheme is refused, and the error names the remedy", () => {
  const list = () => ({ resources: [] });
  for (
    const [options, ...parts] of [
      [{}, "scheme", "list", "templates", "uris"],
      [{ uris: [] }, "scheme", "list", "templates", "uris"],
      [{ uris: ["data/"] }, "data/"],
      [{ scheme: "a", uris: ["a://"] }, "scheme", "uris"],
      [{ list, complete: () => [] }, "complete", "templates"],
      [{ list, templates: [] as never }, "templates"],
      [{ list, name: "" }, "name"],
    ] as const
  ) {
    assertThrows(() => provide("a", options), TypeError, sentence(...parts));
  }
  assertThrows(() => asTools(provide("a", { list })), TypeError, sentence("asTools()"));
  assertThrows(() => transform(provide("a", { list }), { title: "A" }), TypeError, sentence('"a"', "provider"));
  assertThrows(
    () => createServer({ name: "two", version: "1.0.0", handlers: [provide("a", { list }), provide("a", { list })] }),
    TypeError,
    sentence("provider a"),
  );
  assert(provide("a", { uris: ["file:///data/", "note:"] }));
});
