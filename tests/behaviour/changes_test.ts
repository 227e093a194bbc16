// Change notifications for resources and lists from handlers and servers, in every revision.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type Context, createServer, prompt, resource, tool } from "../../mod.ts";
import type { ListName } from "../../src/types.ts";
import { fakeContext, McpError } from "../../src/testing/testing.ts";
import { behaviour, FENCE, fence, fenced, withoutFences } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
const FILTER = { ...LISTS, resourceSubscriptions: ["note://1"] };

function announce({ server: { resourceUpdated, listChanged } }: Context): void {
  resourceUpdated("note://1");
  listChanged("tools");
}

const everywhere = [
  tool({ name: "work", run: (_input, ctx) => announce(ctx) }),
  tool({ name: "idle", run: () => {} }),
  resource({ uri: "note://1", name: "note", read: (_uri, ctx) => (announce(ctx), "text") }),
  prompt({
    name: "ask",
    input: { type: "object", properties: { a: { type: "string" } } },
    complete: { a: (_value, _others, ctx) => (announce(ctx), ["one"]) },
    run: (_input, ctx) => (announce(ctx), "text"),
  }),
];

behaviour("every kind of handler can send change notifications through its context", async (connect) => {
  const { client } = await connect({
    handlers: everywhere,
    use: [(ctx, next) => {
      if (ctx.params.name === "idle") announce(ctx);
      return next();
    }],
  });
  await using subscription = await client.subscribe(FILTER);
  const calls = [
    () => client.callTool("work"),
    () => client.callTool("idle"),
    () => client.readResource("note://1"),
    () => client.getPrompt("ask"),
    () =>
      client.request("completion/complete", {
        ref: { type: "ref/prompt", name: "ask" },
        argument: { name: "a", value: "" },
      }),
  ];
  for (const [done, call] of calls.entries()) {
    await call();
    await subscription.take(2 * (done + 1));
    const news = subscription.received.slice(2 * done).map(({ method, params }) => [method, params.uri]);
    // The order of changes of different kinds is not defined.
    assertEquals(news.sort(), [
      ["notifications/resources/updated", "note://1"],
      ["notifications/tools/list_changed", undefined],
    ]);
  }
});

behaviour("the server sends a burst of changes as one notification", async (connect) => {
  const { client, server } = await connect({ handlers: [...everywhere, fenced] });
  await using subscription = await client.subscribe({ ...LISTS, resourceSubscriptions: ["note://1", FENCE] });
  const { listChanged } = server;
  for (let i = 0; i < 5; i++) {
    listChanged("tools");
    listChanged("prompts");
    listChanged("resources");
    server.handlers.add(tool({ name: `extra${i}`, run: () => {} }));
    server.resourceUpdated("note://1");
    server.resourceUpdated("note://2");
  }
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).map(({ method }) => method).sort(), [
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
  ]);
}, { perInstance: "later" });

behaviour("a burst of one change to many callers does not collect all functions", async (connect) => {
  const { client, server } = await connect({ handlers: [...everywhere, fenced] });
  await using subscription = await client.subscribe({ resourceSubscriptions: ["note://1", FENCE] });
  for (let i = 0; i < 250; i++) server.resourceUpdated("note://1", { to: () => i % 200 === 0 });
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).length, 2);
}, { perInstance: "later" });

behaviour(
  "the server does not announce a list that it never had, but announces a list that became empty",
  async (connect) => {
    const [work] = everywhere;
    const { client, server } = await connect({ handlers: [work] });
    await using subscription = await client.subscribe(LISTS);
    server.listChanged("prompts");
    server.listChanged("resources");
    server.handlers.remove(work);
    await subscription.take(1);
    server.listChanged("tools");
    assertEquals((await subscription.take(2)).map(({ method }) => method), [
      "notifications/tools/list_changed",
      "notifications/tools/list_changed",
    ]);
  },
);

behaviour(
  "a declared list is initially empty, and the server announces its first handler",
  async (connect, way) => {
    const { client, server, join } = await connect({ capabilities: { tools: true, resources: true, prompts: true } });
    const { capabilities } = client.server;
    if (way.era === "legacy") {
      assertEquals(capabilities.tools, { listChanged: true });
      assertEquals(capabilities.resources, { listChanged: true, subscribe: true });
      assertEquals(capabilities.prompts, { listChanged: true });
    }
    const lists = await Promise.all([
      client.listTools(),
      client.listResources(),
      client.listResourceTemplates(),
      client.listPrompts(),
    ]);
    assertEquals(lists, [[], [], [], []]);
    const added = [
      tool({ name: "late", run: () => "" }),
      resource({ uri: "x://late", name: "late", read: () => "" }),
      prompt({ name: "late", run: () => "" }),
    ];
    const ask = [
      () => client.callTool("other"),
      () => client.readResource("x://other"),
      () => client.getPrompt("other"),
      () => client.request("tools/call", {}),
      () => client.request("resources/read", {}),
      () => client.request("prompts/get", { name: 5 }),
    ];
    const refusals = async () =>
      await Promise.all(ask.map(async (send) => {
        const { code, message } = await assertRejects(send, McpError);
        return [code, message];
      }));
    const before = await refusals();
    await using subscription = await client.subscribe({ ...LISTS, resourceSubscriptions: ["x://late"] });
    for (const list of ["tools", "resources", "prompts"] as const) server.listChanged(list);
    await subscription.take(3);
    server.handlers.add(...added);
    const methods = (await subscription.take(6)).map(({ method }) => method);
    const expected = ["prompts", "resources", "tools"].map((list) => `notifications/${list}/list_changed`);
    assertEquals([methods.slice(0, 3).sort(), methods.slice(3).sort()], [expected, expected]);
    server.resourceUpdated("x://late");
    assertEquals((await subscription.take(7))[6].params.uri, "x://late");
    assertEquals(await refusals(), before, "the refusals changed after the handlers were added");
    assertEquals((await client.listTools()).map(({ name }) => name), ["late"]);
    server.handlers.remove(...added);
    assertEquals(await client.listTools(), []);
    assertEquals(await (await join()).listPrompts(), []);
  },
);

behaviour("a declared list is not announced with listChanged: false", async (connect) => {
  const { client, server } = await connect({ capabilities: { tools: true, listChanged: false } });
  await using subscription = await client.subscribe(LISTS);
  server.handlers.add(everywhere[0]);
  server.listChanged("tools");
  await client.listTools();
  assertEquals(subscription.received, []);
});

behaviour("listChanged notifies clients whatever `allow` returns for the handlers", async (connect) => {
  const hidden = tool({ name: "hidden", allow: () => false, run: () => {} });
  const { client, server } = await connect({ handlers: [everywhere[0], hidden, fenced] });
  await using subscription = await client.subscribe({ ...LISTS, resourceSubscriptions: [FENCE] });
  server.handlers.remove(hidden);
  await fence(server, subscription);
  assertEquals(withoutFences(subscription), []);
  server.handlers.add(hidden);
  server.listChanged("tools");
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).length, 1);
});

behaviour("listChanged with `to` notifies only the callers that `to` selects", async (connect) => {
  const work = tool({
    name: "work",
    run: (_input, ctx) => ctx.server.listChanged("tools", { to: ({ principal }) => principal?.id === "bob" }),
  });
  const { client, server, join, takeFaults } = await connect({ handlers: [work, fenced] });
  const clients = [client, await join({ principal: { id: "ada" } }), await join({ principal: { id: "bob" } })];
  const filter = { ...LISTS, resourceSubscriptions: [FENCE] };
  const subscriptions = await Promise.all(clients.map((client) => client.subscribe(filter)));
  const count = async () => {
    await fence(server, ...subscriptions);
    return subscriptions.map((subscription) => withoutFences(subscription).length);
  };
  const only = (id: string) => ({ to: (ctx: Context) => ctx.principal?.id === id });
  server.listChanged("tools", only("ada"));
  assertEquals(await count(), [0, 1, 0]);
  // Here a handler calls listChanged, with an asynchronous `to`.
  await client.callTool("work");
  assertEquals(await count(), [0, 1, 1]);
  server.listChanged("tools", { to: async (ctx) => await only("bob").to(ctx) });
  assertEquals(await count(), [0, 1, 2]);
  // Two calls within one batch of changes notify the callers of both.
  server.listChanged("tools", only("ada"));
  server.listChanged("tools", only("bob"));
  assertEquals(await count(), [0, 2, 3]);
  server.listChanged("tools", only("ada"));
  server.listChanged("tools");
  assertEquals(await count(), [1, 3, 4]);
  // A `to` function that throws selects no caller.
  server.listChanged("tools", {
    to(ctx) {
      if (ctx.principal?.id !== "ada") return false;
      throw new Error("no database");
    },
  });
  assertEquals(await count(), [1, 3, 4]);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), ["no database"]);
  for (const subscription of subscriptions) await subscription.close();
}, { perInstance: "functions" });

Deno.test("listChanged refuses an unknown list, and does nothing after close", async () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers: everywhere });
  assertThrows(() => server.listChanged("tool" as ListName), TypeError, '"tool"');
  await server.close();
  server.listChanged("tools");
  server.resourceUpdated("note://1");
});

Deno.test("resourceUpdated refuses a value that is not a string, such as the function that a resource with parameters returns", () => {
  const note = resource({ uri: "note://{id}", name: "note", read: () => "" });
  const server = createServer({ name: "s", version: "1.0.0", handlers: [note] });
  for (const { resourceUpdated } of [server, fakeContext().server]) {
    for (const uri of [note.uri, undefined, 5, new URL("note://1")]) {
      assertThrows(() => resourceUpdated(uri as unknown as string), TypeError, sentence("uri()"));
    }
    resourceUpdated(note.uri({ id: "1" }));
  }
});

Deno.test("a fake context records notifications", () => {
  const ctx = fakeContext();
  announce(ctx);
  assertEquals(ctx.announced, [{ kind: "resource", uri: "note://1" }, { kind: "list", list: "tools" }]);
  const to = () => true;
  ctx.server.listChanged("prompts", { to });
  assertEquals(ctx.announced[2], { kind: "list", list: "prompts", to });
});
