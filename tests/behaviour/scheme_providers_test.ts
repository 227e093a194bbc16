// Several resource providers of one scheme: the server calls them in order, until a `read` function returns a value.
import { assertEquals, assertRejects } from "@std/assert";
import { extension, McpError, resource, resourceProvider, type ResourceProviderOptions, tool } from "../../mod.ts";
import { layer, quota } from "../../src/layers/layers.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, raise, started, textOf, turn, until } from "../support/behaviour.ts";

/** Creates a provider of the resources `note://NAME` and `note://both`. */
function provide(name: string, options: Partial<ResourceProviderOptions> = {}) {
  return resourceProvider({
    scheme: "note",
    name,
    list: () => ({ resources: [{ uri: `note://${name}`, name }] }),
    read: (uri) => uri === `note://${name}` || uri === "note://both" ? name : undefined,
    ...options,
  });
}

behaviour("a read calls the providers of a scheme in order, until read returns a value", async (connect) => {
  const handlers = [
    provide("a"),
    provide("b"),
    provide("c", { read: (uri) => uri === "note://c" ? "c" : null as never }),
    resource({ uri: "note://fixed", name: "fixed", read: () => undefined }),
    tool({ name: "inner", run: async (_, ctx) => (await ctx.readResource("note://b"))[0] }),
  ];
  const { client, server } = await connect({ handlers });
  const read = async (uri: string) => textOf({ content: (await client.readResource(uri)).contents });
  assertEquals((await client.listResources()).map(({ uri }) => uri), [
    "note://fixed",
    "note://a",
    "note://b",
    "note://c",
  ]);
  for (const [uri, text] of [["note://a", "a"], ["note://b", "b"], ["note://c", "c"], ["note://both", "a"]]) {
    assertEquals(await read(uri), text);
  }
  for (const uri of ["note://none", "note://fixed"]) {
    await assertRejects(() => client.readResource(uri), McpError, "not found");
  }
  assertEquals((await client.callTool("inner")).isError, undefined);
  server.handlers.remove(handlers[0]);
  assertEquals(await read("note://both"), "b");
  await assertRejects(() => client.readResource("note://a"), McpError, "not found");
}, { perInstance: "handlers" });

behaviour(
  "an error of a provider is final, and only a missing resource leads to the next provider",
  async (connect) => {
    const failing = provide("a", {
      read(uri) {
        throw uri === "note://gone" ? McpError.resourceNotFound(uri) : new McpError(7, "broken");
      },
    });
    const { client } = await connect({ handlers: [failing, provide("b", { read: () => "b" })] });
    await assertRejects(() => client.readResource("note://b"), McpError, "broken");
    await assertRejects(() => client.readResource("note://gone"), McpError, "not found");
  },
);

behaviour("a missing resource leads to the next provider within layers that wrap the read too", async (connect) => {
  const ran: string[] = [];
  const audit = extension({ id: "com.example/audit" });
  const wrap = (name: string) =>
    audit.layer({
      around: async (_call, next) => {
        ran.push(name);
        return await next();
      },
    });
  const { client } = await connect({
    handlers: [audit, provide("a", { use: [wrap("a")] }), provide("b", { use: [wrap("b")] }), provide("c")],
  });
  const read = async (uri: string) => textOf({ content: (await client.readResource(uri)).contents });
  assertEquals(await read("note://both"), "a");
  assertEquals(await read("note://b"), "b");
  assertEquals(await read("note://c"), "c");
  assertEquals(ran, ["a", "a", "b", "a", "b"]);
  await assertRejects(() => client.readResource("note://none"), McpError, "not found");
});

behaviour("a missing resource of an inner read, or an error of middleware, is final", async (connect) => {
  const lacking = provide("a", { read: async (_uri, ctx) => await ctx.readResource("other://none") });
  const replacing = provide("a", {
    read: () => undefined,
    use: [(_ctx, next) => Promise.resolve(next()).catch(() => raise(new McpError(7, "replaced")))],
  });
  const other = resource({ uri: "other://none", name: "other", read: () => undefined });
  const { client } = await connect({ handlers: [lacking, provide("b"), other] });
  await assertRejects(() => client.readResource("note://b"), McpError, "not found");
  const { client: second } = await connect({ handlers: [replacing, provide("b")] });
  await assertRejects(() => second.readResource("note://b"), McpError, "replaced");
});

behaviour("the server's middleware runs once for a read, whatever layers the providers have", async (connect) => {
  const audit = extension({ id: "com.example/audit" });
  const layers = [
    quota({ timeoutMs: 60_000 }),
    layer(() => ({ name: "enter", enter: async (_call, next) => await next() })),
    audit.layer({ around: async (_call, next) => await next() }),
  ];
  for (const use of [[], ...layers.map((each) => [each])]) {
    for (const at of ["a", "b"]) {
      const seen: string[] = [];
      const { client } = await connect({
        handlers: [audit, ...["a", "b"].map((name) => provide(name, name === at ? { use } : {}))],
        use: [async ({ method }, next) => {
          if (method !== "resources/read") return await next();
          try {
            const result = await next();
            seen.push("result");
            return result;
          } catch {
            seen.push("error");
            throw new McpError(7, "replaced");
          }
        }],
      });
      assertEquals(textOf({ content: (await client.readResource("note://b")).contents }), "b");
      await assertRejects(() => client.readResource("note://none"), McpError, "replaced");
      assertEquals(seen, ["result", "error"]);
    }
  }
});

behaviour("allow, scopes and layers of each provider of a scheme apply", async (connect) => {
  const ran: string[] = [];
  const rate = quota({ rate: { calls: 1, perMs: 60_000 } });
  const { client: ada, join } = await connect({
    handlers: [
      provide("a", {
        allow: ({ principal }) => principal?.id === "ada",
        use: [(_ctx, next) => (ran.push("a"), next())],
      }),
      provide("b", {
        use: [(_ctx, next) => (ran.push("b"), next()), quota({ timeoutMs: 60_000, concurrency: { calls: 2 } })],
      }),
      provide("c", { scopes: ["c"], use: [rate] }),
    ],
  }, { principal: { id: "ada", scopes: ["c"] } });
  const eve = await join({ principal: { id: "eve", scopes: [] } });
  assertEquals((await eve.listResources()).map(({ uri }) => uri), ["note://b", "note://c"]);
  assertEquals(textOf({ content: (await eve.readResource("note://both")).contents }), "b");
  assertEquals(ran.splice(0), ["b"]);
  assertEquals(Object(await assertRejects(() => eve.readResource("note://c"))).code, -31403);
  assertEquals(ran.splice(0), ["b"]);
  assertEquals(textOf({ content: (await ada.readResource("note://c")).contents }), "c");
  assertEquals(ran.splice(0), ["a", "b"]);
  // Only reads that call the last provider count against its limit.
  assertEquals(textOf({ content: (await ada.readResource("note://both")).contents }), "a");
  await assertRejects(() => ada.readResource("note://c"), McpError, "too many");
}, { perInstance: "limits" });

behaviour(
  "subscribe and unsubscribe of templates, fixed resources and all providers of a scheme are called",
  async (connect) => {
    const calls: string[] = [];
    const hooks = (name: string) => ({
      subscribe: (uri: string) => void calls.push(`${name} + ${uri}`),
      unsubscribe: (uri: string) => void calls.push(`${name} - ${uri}`),
    });
    const { client, server } = await connect({
      handlers: [
        resource({ uri: "fixed://1", name: "fixed", read: () => "", ...hooks("fixed") }),
        resource({ uri: "item://{id}", name: "item", read: () => "", ...hooks("item") }),
        provide("a", hooks("a")),
        provide("b", hooks("b")),
      ],
    });
    const subscription = await client.subscribe({ resourceSubscriptions: ["fixed://1", "item://1", "note://1"] });
    await until(() => calls.length === 4, "all hooks were called");
    assertEquals(calls.splice(0).sort(), ["a + note://1", "b + note://1", "fixed + fixed://1", "item + item://1"]);
    server.resourceUpdated("item://1");
    assertEquals((await subscription.take(1))[0].params.uri, "item://1");
    await subscription.close();
    await until(() => calls.length === 4, "all hooks were called again");
    assertEquals(calls.sort(), ["a - note://1", "b - note://1", "fixed - fixed://1", "item - item://1"]);
  },
  { perInstance: "hooks" },
);

/** A chain of providers that the client reads. Only the provider `slow` has the resource, and never returns. */
interface SlowChain {
  /** `timeoutMs` of the providers, in order. The index of `slow` is `at`. */
  readonly timeouts: readonly (number | undefined)[];
  readonly at: number;
  /** Milliseconds after which the read fails, and the limit that the error names. */
  readonly ms: number;
  readonly limit: string;
}

const SLOW: Readonly<Record<string, SlowChain>> = {
  "the first provider": { timeouts: [50, undefined], at: 0, ms: 50, limit: "handler.timeoutMs" },
  "the last provider": { timeouts: [undefined, 50], at: 1, ms: 50, limit: "handler.timeoutMs" },
  "a provider after one with another timeout": {
    timeouts: [20, 50, undefined],
    at: 1,
    ms: 50,
    limit: "handler.timeoutMs",
  },
  "a provider with more time than other calls": {
    timeouts: [undefined, 20_000],
    at: 1,
    ms: 20_000,
    limit: "handler.timeoutMs",
  },
  "a provider without a timeout": { timeouts: [50, undefined], at: 1, ms: 10_000, limit: "calls.timeoutMs" },
};

for (const [name, { timeouts, at, ms, limit }] of Object.entries(SLOW)) {
  for (const [by, options] of Object.entries({ "": {}, " that is not for everybody": { allow: () => true } })) {
    for (const isInner of [false, true]) {
      behaviour(
        `a read of ${name}${by} ends at its limit${isInner ? " in an inner call" : ""}`,
        async (connect) => {
          const clock = fakeClock();
          let waiting = 0;
          const hang = (_uri: string, { signal }: { readonly signal: AbortSignal }) => {
            waiting++;
            return new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("late")));
          };
          const providers = timeouts.map((timeoutMs, index) =>
            provide(`${index}`, {
              ...options,
              use: timeoutMs === undefined ? [] : [quota({ timeoutMs })],
              read: index === at ? hang : () => undefined,
            })
          );
          const read = tool({ name: "read", run: async (_, ctx) => void await ctx.readResource("note://slow") });
          const { client } = await connect({
            handlers: [...providers, read],
            clock,
            limits: { calls: { timeoutMs: 10_000 } },
          });
          let isOver = false;
          const call = started<unknown>(isInner ? client.callTool("read") : client.readResource("note://slow"));
          call.catch(() => isOver = true);
          await until(() => waiting, "the provider reads");
          await turn(5);
          // The timeout of the outer call applies too.
          const end = isInner ? Math.min(ms, 10_000) : ms;
          await clock.advance(end - 1);
          await turn(5);
          assertEquals(isOver, false);
          await clock.advance(1);
          await assertRejects(
            () => call,
            McpError,
            `longer than ${end} ms (${end === ms ? limit : "calls.timeoutMs"})`,
          );
        },
        { perInstance: "limits", transports: ["pipe"] },
      );
    }
  }
}

for (const timeoutMs of [20, Infinity]) {
  behaviour(
    `the timeout ${timeoutMs} of a provider does not apply to limit of the next provider`,
    async (connect) => {
      const clock = fakeClock();
      let deciding = 0;
      const hung = layer(() => ({
        name: "hung",
        limit: () => {
          deciding++;
          return new Promise<void>(() => {});
        },
      }));
      const providers = [
        provide("a", { use: [quota({ timeoutMs })] }),
        provide("b", { use: [hung] }),
      ];
      const { client } = await connect({ handlers: providers, clock });
      const call = started(client.readResource("note://b"));
      await until(() => deciding, "limit decides");
      await assertRejects(() => advanceUntil(clock, 1000, call), McpError, "calls.timeoutMs");
    },
    { perInstance: "hooks", transports: ["pipe"] },
  );
}
