// Attacks with cursors, completions, log levels and subscriptions.
import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { prompt, resource, tool } from "../../mod.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { testLimits } from "../support/limits.ts";

const any = { type: "object" } as const;

/** Resolves to the error code of a response, or to `undefined` if the response is not an error. */
async function codeOf(asked: Promise<unknown>): Promise<unknown> {
  return await asked.then(() => undefined, (error) => error.code);
}

behaviour("a cursor is valid only in its own list, and does not reveal handlers of other callers", async (connect) => {
  const handlers = [
    ...["a", "b", "c", "d"].map((name) =>
      tool({ name, run: () => "", allow: ({ principal }) => name !== "c" || principal?.id === "ada" })
    ),
    ...["p", "q", "r"].map((name) => prompt({ name, run: () => "" })),
  ];
  const { client, server } = await connect({ handlers, limits: testLimits({ calls: { pageItems: 2 } }) });
  const list = async (method: string, cursor?: unknown) => {
    const result = await client.request(method, { cursor });
    const items: unknown = result.tools ?? result.prompts;
    return { names: Array.isArray(items) ? items.map(({ name }) => name) : [], next: result.nextCursor };
  };
  const first = await list("tools/list");
  assertEquals(first.names, ["a", "b"]);
  // With a cursor from another caller's list, a caller still does not see hidden handlers.
  assertEquals((await list("tools/list", first.next)).names, ["d"]);
  const prompts = await list("prompts/list");
  const bad = [
    prompts.next,
    5,
    "",
    {},
    "garbage",
    `${first.next}x`,
    String(first.next).toLowerCase(),
    String(first.next).slice(0, -1),
    "=".repeat(100_000),
    btoa("tools:none").replaceAll("=", ""),
    btoa("tools:__proto__").replaceAll("=", ""),
  ];
  for (const cursor of bad) assertEquals(await codeOf(list("tools/list", cursor)), -32602, `${cursor}`.slice(0, 50));
  // The cursor is no longer valid, because the handler at its position was removed.
  server.handlers.remove(handlers[1]);
  assertEquals(await codeOf(list("tools/list", first.next)), -32602);
  assertEquals((await list("tools/list")).names, ["a", "d"]);
});

behaviour("invalid completion requests are refused, and the number of returned values is limited", async (connect) => {
  const complete = { city: (value: string) => Array.from({ length: 100_000 }, (_, i) => `${value.slice(0, 5)}${i}`) };
  const input = { type: "object", properties: { city: { type: "string" } } } as const;
  const handlers = [prompt({ name: "trip", input, complete, run: () => "" })];
  const { client } = await connect({ handlers });
  const ref = { type: "ref/prompt", name: "trip" };
  const argument = { name: "city", value: "P" };
  const ask = (params: Record<string, unknown>) => client.request("completion/complete", params);
  const { completion } = await ask({ ref, argument });
  const { values, total, hasMore } = Object(completion);
  assertEquals([values.length, values[0], total, hasMore], [100, "P0", 100_000, true]);
  const wrong = [
    {},
    { ref },
    { argument },
    { ref: null, argument },
    { ref: "trip", argument },
    { ref: { type: "ref/tool", name: "trip" }, argument },
    { ref: { type: "constructor", name: "trip" }, argument },
    { ref: { type: "ref/prompt", name: "none" }, argument },
    { ref: { type: "ref/prompt", name: "__proto__" }, argument },
    { ref: { type: "ref/prompt" }, argument },
    { ref: { type: "ref/resource", uri: "x".repeat(1_000_000) }, argument },
    { ref, argument: { name: "city" } },
    { ref, argument: { name: "city", value: { toString: null } } },
    { ref, argument, context: [] },
    { ref, argument, context: { arguments: { other: 1 } } },
  ];
  for (const params of wrong) assertEquals(await codeOf(ask(params)), -32602, JSON.stringify(params).slice(0, 99));
  const large = await ask({ ref, argument: { name: "city", value: "x".repeat(1_000_000) } });
  assertEquals(Object(large.completion).values[0], "xxxxx0");
  for (const name of ["none", "__proto__", "constructor"]) {
    assertEquals(Object((await ask({ ref, argument: { name, value: "" } })).completion).values, []);
  }
});

behaviour(
  "log messages that cannot be serialized, or contain line breaks, affect no other message",
  async (connect) => {
    const odd = "\u001b[31mred\u001b[0m\nsecond line\r\n\ndata: {}\n\n";
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const speaks = tool({
      name: "speaks",
      async run(_input, ctx) {
        await ctx.log.info(odd);
        await ctx.log.info(circle);
        await ctx.log.info({ big: 1n });
        await ctx.log.info({
          toJSON: () => {
            throw new Error("never");
          },
        });
        await ctx.log.info(undefined);
        await ctx.log.info(() => {});
        await ctx.log.info({ password: "kept as it is" }, { logger: "logger\nname" });
        return "spoken";
      },
    });
    const { client } = await connect({ handlers: [speaks] }, { logLevel: "debug" });
    assertEquals(textOf(await client.callTool("speaks")), "spoken");
    await until(() => client.received.length >= 7, "all messages arrive");
    const [first, second, third, fourth, , , last] = client.received.map(({ params }) => Object(params));
    assertEquals(first.data, odd);
    // Data that JSON cannot represent is replaced with a string that says so.
    for (const { data } of [second, third, fourth]) assertEquals(typeof data, "string");
    assertEquals([last.data, last.logger], [{ password: "kept as it is" }, "logger\nname"]);
  },
);

behaviour(
  "invalid log levels are refused, and 10,000 changes of the level use no additional memory",
  async (connect) => {
    const { client } = await connect({ handlers: [tool({ name: "quick", run: () => "quick" })] });
    for (const level of ["loud", "INFO", "", null, 5, {}, ["info"], undefined, "constructor"]) {
      assertEquals(await codeOf(client.request("logging/setLevel", { level })), -32602, `${level}`);
    }
    for (let i = 0; i < 10_000; i++) await client.request("logging/setLevel", { level: i % 2 ? "info" : "error" });
    assertEquals(textOf(await client.callTool("quick")), "quick");
  },
  { eras: ["legacy"], transports: ["pipe"] },
);

behaviour("no log message is sent to a client that did not request it", async (connect) => {
  const speaks = tool({ name: "speaks", run: async (_input, ctx) => (await ctx.log.emergency("help"), "spoken") });
  const { client } = await connect({ handlers: [speaks] });
  assertEquals(textOf(await client.callTool("speaks")), "spoken");
  assertEquals(client.received, []);
}, { eras: ["modern"] });

behaviour(
  "each client has its own resource subscriptions, whose number and length are limited",
  async (connect, way) => {
    const { client, join, server } = await connect({
      handlers: [resource({ uri: "a://{+rest}", name: "any", read: () => "" })],
      limits: testLimits({ streams: { watchedUris: 10 } }),
    });
    const watch = (uri: unknown, method = "subscribe") => client.request(`resources/${method}`, { uri });
    for (const uri of [5, null, undefined, {}, ["a://x"]]) assertEquals(await codeOf(watch(uri)), -32602, `${uri}`);
    for (let i = 0; i < 10; i++) await watch(`a://${i}`);
    assertEquals(await codeOf(watch("a://10")), -32602);
    // A second subscription to the same URI does not count, and neither does a subscription that has ended.
    await watch("a://9");
    await watch("a://9", "unsubscribe");
    await watch("a://none", "unsubscribe");
    await watch("a://10");
    for (let i = 0; i < 11; i++) await watch(`a://${i}`, "unsubscribe");
    // The limit on characters allows one long URI if there are fewer URIs.
    assertEquals(await codeOf(watch("a://" + "x".repeat(10_000))), -32602);
    await watch("a://" + "x".repeat(2000));
    assertEquals(await codeOf(watch("a://" + "y".repeat(2000))), -32602);
    await watch("a://mine");
    // An unsubscribe by another client does not end this client's subscription.
    const other = await join();
    await other.request("resources/unsubscribe", { uri: "a://mine" });
    if (way.transport !== "pipe") return;
    server.resourceUpdated("a://mine");
    await until(() => client.received.length > 0, "the client gets the notification");
    assertEquals(other.received, []);
  },
  { eras: ["legacy"] },
);

behaviour("the total length of the URIs in one subscription is limited as well", async (connect) => {
  const { client } = await connect({
    handlers: [resource({ uri: "a://{+rest}", name: "any", read: () => "" })],
    limits: testLimits({ streams: { watchedUris: 10 } }),
  });
  const listen = (uris: readonly string[]) =>
    client.request("subscriptions/listen", { notifications: { resourceSubscriptions: uris } });
  assertEquals(await codeOf(listen(Array.from({ length: 11 }, (_, i) => `a://${i}`))), -32602);
  assertEquals(await codeOf(listen(["a://" + "x".repeat(10_000)])), -32602);
  assertEquals(await codeOf(listen(Array.from({ length: 10 }, (_, i) => `a://${i}${"x".repeat(1000)}`))), -32602);
}, { eras: ["modern"] });

behaviour("1,000 tools with large schemas are listed in pages, and each page is built only once", async (connect) => {
  const properties = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`field${i}`, { type: "string", description: "x".repeat(400) }]),
  );
  let made = 0;
  const handlers = Array.from({ length: 1000 }, (_, i) => {
    const made1 = tool({ name: `tool${i}`, input: { type: "object", properties }, run: () => "" });
    const internals = made1[INTERNALS];
    const definition = Object(internals.definition);
    return {
      ...made1,
      [INTERNALS]: {
        ...internals,
        definition: { ...definition, wire: (...args: unknown[]) => (made++, definition.wire(...args)) },
      },
    };
  });
  const { client, join } = await connect({ handlers });
  const clients = [client, ...await Promise.all(Array.from({ length: 3 }, () => join()))];
  const lists = await Promise.all(clients.map((each) => each.listTools()));
  for (const list of lists) assertEquals(list.length, 1000);
  assertEquals(new Set(lists[0].map(({ name }) => name)).size, 1000);
  assertEquals(made, 1000);
  const { tools, nextCursor } = await client.request("tools/list");
  assert(Array.isArray(tools) && tools.length === 250 && typeof nextCursor === "string");
  assertLess(nextCursor.length, 100);
  assertStringIncludes(JSON.stringify(tools[0]), "field19");
}, { transports: ["memory"] });

behaviour("a handler's changes to its input do not affect other requests", async (connect) => {
  const spoils = tool({
    name: "spoils",
    input: any,
    run(input, ctx) {
      const before = JSON.stringify([input, ctx.meta.own]);
      Object.assign(Object(input), { spoiled: true });
      Object.assign(Object(ctx.meta.own), { spoiled: true });
      return before;
    },
  });
  const { client } = await connect({ handlers: [spoils] });
  const args = { list: [1] };
  for (let i = 0; i < 2; i++) {
    const result = await client.callTool("spoils", args, { meta: { own: { a: 1 } } });
    assertEquals(textOf(result), '[{"list":[1]},{"a":1}]');
  }
});
