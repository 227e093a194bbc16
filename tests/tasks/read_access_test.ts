// A tool can read resources for its caller. Whoever uses the tool's task needs the rights to these resources too.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, resource, resourceProvider, tool, toolProvider } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { cache } from "../../src/layers/cache.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, textOf, turn, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { openShared, toStoredLog } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { get, reach, start } from "./requests.ts";

const modern = { eras: ["modern"] } as const;
const form = z.object({ name: z.string() });
const INSUFFICIENT_SCOPE = -31_403;
const INVALID_PARAMS = -32_602;

const strong = { ...asking, principal: { id: "ada", scopes: ["vault"], staff: true } };
const weak = { ...asking, principal: { id: "ada", scopes: [], staff: true } };
const guest = { ...asking, principal: { id: "ada", scopes: ["vault"], staff: false } };

/** A tool without scopes that reads resources, and resources with rules, of which one asks. */
function makeHandlers({ uris, resume, wait }: {
  readonly uris: readonly string[];
  readonly resume?: TaskOptions["resume"];
  readonly wait?: (ctx: Context) => Promise<unknown>;
}) {
  const read = async (_: unknown, ctx: Context) => {
    const { content } = await ctx.elicit("who", { message: "Who?", schema: form });
    return `the secret of ${content?.name}`;
  };
  return [
    tasks(),
    tool({
      name: "read",
      use: [task({ resume })],
      async run(_input: unknown, ctx: Context) {
        const texts: unknown[] = [];
        for (const uri of uris) texts.push(...(await ctx.readResource(uri)).map((each) => "text" in each && each.text));
        await wait?.(ctx);
        return texts.join(", ");
      },
    }),
    resource({ uri: "vault://one", name: "vault", scopes: ["vault"], read }),
    resource({ uri: "page://{id}", name: "page", scopes: ["vault"], read: ({ id }) => `page ${id}` }),
    resource({ uri: "drawer://one", name: "drawer", allow: ({ principal }) => principal?.staff === true, read }),
    resource({ uri: "outer://one", name: "outer", read: (_, ctx) => ctx.readResource("vault://one").then(() => "x") }),
    resource({ uri: "open://one", name: "open", read: () => "open" }),
  ];
}

const codeOf = async (run: () => Promise<unknown>) => (await assertRejects(run, McpError)).code;

async function answer(client: Connection, taskId: string) {
  const { inputRequests } = await get(client, taskId);
  return await give(client, taskId, Object.keys(Object(inputRequests))[0]);
}

const give = async (client: Connection, taskId: string, key: string) =>
  await client.request("tasks/update", {
    taskId,
    inputResponses: { [key]: { action: "accept", content: { name: "Ada" } } },
  });

for (
  const { uri, other, code } of [
    { uri: "vault://one", other: weak, code: INSUFFICIENT_SCOPE },
    { uri: "outer://one", other: weak, code: INSUFFICIENT_SCOPE },
    { uri: "drawer://one", other: guest, code: INVALID_PARAMS },
  ]
) {
  behaviour(`a task needs the rights to the resource that its tool reads: ${uri}`, async (connect) => {
    const { client, join } = await connect({ handlers: makeHandlers({ uris: [uri] }) }, strong);
    const few = await join(other);
    const id = await start(client, {}, "read");
    const wanted = { extensions: { taskIds: [id] } };
    const early = await few.subscribe(wanted);
    const { inputRequests } = await reach(client, id, "input_required");
    const [key] = Object.keys(Object(inputRequests));
    for (const run of [() => get(few, id), () => give(few, id, key)]) assertEquals(await codeOf(run), code);
    assertEquals((await few.subscribe(wanted)).granted.extensions?.taskIds ?? [], []);
    await answer(client, id);
    const { result } = await reach(client, id, "completed");
    assertEquals(textOf(Object(result)).length > 0, true);
    assertEquals(await codeOf(() => get(few, id)), code, "the result of an ended task");
    await turn(3);
    assertEquals(early.received.filter(({ params }) => params.status === "completed"), []);
  }, modern);
}

for (const uris of [["vault://one"], Array.from({ length: 40 }, (_, id) => `page://${id}`)]) {
  behaviour(
    `clients that follow a task before its tool reads need the rights to ${uris.length} resources`,
    async (connect) => {
      const { pass, open } = gate();
      const { client, join } = await connect({
        handlers: [
          tasks(),
          resource({ uri: "vault://one", name: "vault", scopes: ["vault"], read: () => "one" }),
          resource({ uri: "page://{id}", name: "page", scopes: ["vault"], read: ({ id }) => `page ${id}` }),
          tool({
            name: "read",
            use: [task()],
            async run(_input: unknown, ctx: Context) {
              await pass;
              for (const uri of uris) await ctx.readResource(uri);
              await ctx.progress(1, { message: "read" });
              return "done";
            },
          }),
        ],
      }, strong);
      const few = await join(weak);
      const id = await start(client, {}, "read");
      const wanted = { extensions: { taskIds: [id] } };
      const [own, other] = [await client.subscribe(wanted), await few.subscribe(wanted)];
      assertEquals([own, other].map(({ granted }) => granted.extensions?.taskIds), [[id], [id]]);
      open();
      const { result } = await reach(client, id, "completed");
      assertEquals(textOf(Object(result)), "done");
      const ends = ({ received }: typeof own) => received.filter(({ params }) => params.status === "completed").length;
      // Each instance with a subscriber may ask for the state when the task has just ended, so the end may come twice.
      await until(() => ends(own) > 0, "the notification");
      await turn(3);
      assertEquals(ends(other), 0);
    },
    modern,
  );
}

/** The rules of the first and of the second provider of one scheme, of which the second serves the URI. */
const PAIRS: Readonly<Record<string, readonly [first: object, second: object]>> = {
  "scopes of the second": [{}, { scopes: ["vault"] }],
  "allow of the second": [{}, { allow: ({ principal }: Context) => principal?.staff === true }],
  "allow of the first": [{ allow: ({ principal }: Context) => principal?.staff === true, read: () => "vault" }, {}],
};

for (const [rules, [first, second]] of Object.entries(PAIRS)) {
  behaviour(`a task needs the rights to what one of several providers has read: ${rules}`, async (connect) => {
    const handlers = [
      ...makeHandlers({ uris: ["safe://one"] }),
      resourceProvider({ scheme: "safe", name: "first", read: () => undefined, ...first }),
      resourceProvider({ scheme: "safe", name: "second", read: () => "vault", ...second }),
    ];
    const { client, join } = await connect({ handlers }, strong);
    const few = await join({ ...asking, principal: { id: "ada", scopes: [], staff: false } });
    const id = await start(client, {}, "read");
    assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "vault");
    await assertRejects(() => get(few, id), McpError);
  }, modern);
}

behaviour("a task needs the right to the tools of providers that its tool calls", async (connect) => {
  const found = tool({ name: "vault", run: () => "vault" });
  const vault = toolProvider({
    find: (name, { principal }) => name === "vault" && principal?.staff === true ? found : undefined,
  });
  const outer = tool({
    name: "read",
    use: [task()],
    run: async (_, ctx) => textOf(await ctx.callTool("vault")),
  });
  const { client, join } = await connect({ handlers: [tasks(), outer, vault] }, strong);
  const few = await join(guest);
  const id = await start(client, {}, "read");
  assertEquals(textOf(Object((await reach(client, id, "completed")).result)), "vault");
  await assertRejects(() => get(few, id), McpError);
}, modern);

behaviour("a resource without rules limits no task", async (connect) => {
  const { server, client, join } = await connect({ handlers: makeHandlers({ uris: ["open://one"] }) }, strong);
  const few = await join(weak);
  const id = await start(client, {}, "read");
  await reach(few, id, "completed");
  server.handlers.remove(server.handlers.get("resource", "open://one"));
  assertEquals(textOf(Object((await get(few, id)).result)), "open");
}, modern);

behaviour("a task that has read many resources is only for the same caller", async (connect) => {
  const uris = Array.from({ length: 40 }, (_, id) => `page://${id}`);
  const { client, join } = await connect({ handlers: makeHandlers({ uris }) }, strong);
  const id = await start(client, {}, "read");
  await reach(client, id, "completed");
  const renewed = await join({ ...strong, principal: { ...strong.principal, expiresAt: Date.now() + 1e6 } });
  await reach(renewed, id, "completed");
  for (const other of [weak, guest]) {
    const few = await join(other);
    assertEquals(await codeOf(() => get(few, id)), INVALID_PARAMS);
  }
}, modern);

Deno.test("a task that another instance resumes keeps the resources of its first run", async () => {
  const store = memoryStore();
  const { pass, open } = gate();
  const serve = (uris: readonly string[], wait: (ctx: Context) => Promise<unknown>) =>
    openServer({
      handlers: makeHandlers({ uris, resume: true, wait }),
      store: openShared(store),
      limits: { calls: { closeMs: 20 } },
    });
  const stopped = gate();
  const first = serve(["page://1"], async ({ signal, progress }) => {
    await progress(1);
    stopped.open();
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const client = await connectTest(first, strong);
  const id = await start(client, {}, "read");
  await stopped.pass;
  await client.close();
  await first.close();
  await using second = serve([], () => pass);
  await using same = await connectTest(second, strong);
  await using few = await connectTest(second, weak);
  await reach(same, id, "working");
  assertEquals(await codeOf(() => get(few, id)), INSUFFICIENT_SCOPE);
  open();
  await reach(same, id, "completed");
  assertEquals(await codeOf(() => get(few, id)), INSUFFICIENT_SCOPE);
});

Deno.test("a value of ctx.once that a crashed process has stored keeps the resources that it comes from", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  let isDead = false;
  let journal = "";
  const dying = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, args, run }) => {
      if (isDead) throw new Error("the process has crashed");
      const result = await run();
      // The process crashes as soon as the value is in the store.
      if (name === "append" && args[0] === journal) isDead = true;
      return result;
    }), { leaseMs: 1000, pollMs: 20 });
  const serve = (store: Store) =>
    openServer({
      handlers: [
        tasks(),
        resource({ uri: "vault://three", name: "vault", scopes: ["vault"], read: () => "the secret" }),
        tool({
          name: "read",
          use: [task({ resume: true })],
          async run(_input: unknown, ctx: Context) {
            // The record is in the store before the handler reads.
            await pass;
            return await ctx.once("text", async () => JSON.stringify(await ctx.readResource("vault://three")));
          },
        }),
      ],
      store,
      observer: { store() {} },
      limits: { calls: { closeMs: 20 } },
    });
  const first = serve(dying);
  const client = await connectTest(first, strong);
  const id = await start(client, {}, "read");
  journal = await toStoredLog(`j-${id}`);
  open();
  await until(() => isDead, "the value is stored");
  const second = serve(openShared(shared));
  await using same = await connectTest(second, strong);
  await using few = await connectTest(second, weak);
  await reach(same, id, "completed");
  assertEquals(await codeOf(() => get(few, id)), INSUFFICIENT_SCOPE);
  await client.close();
});

for (
  const { what, uris, allowed } of [
    { what: "a resource with scopes", uris: ["vault://one"], allowed: guest },
    { what: "a resource that reads another", uris: ["outer://one"], allowed: guest },
    { what: "a resource with a rule", uris: ["drawer://one"], allowed: weak },
    { what: "many resources", uris: Array.from({ length: 40 }, (_, id) => `page://${id}`), allowed: undefined },
  ]
) {
  Deno.test(`a run that gets a kept value of ${what} makes no link, and fills no cache`, async () => {
    const store = memoryStore();
    const stopped = [gate(), gate()];
    let isReading = true;
    /** Reads the resources in the first run of a task. Further runs get the text without reading. */
    const readOnce = async (ctx: Context) =>
      await ctx.once("text", async () => {
        const all = isReading ? await Promise.all(uris.map((uri) => ctx.readResource(uri))) : [];
        return isReading ? `secret of ${all.length}` : "no secret";
      });
    const serve = (isFirst: boolean) => {
      const wait = async ({ signal }: Context, at: number) => {
        if (!isFirst) return;
        stopped[at].open();
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      };
      let text = "";
      return openServer({
        store: openShared(store),
        limits: { calls: { closeMs: 20 } },
        handlers: [
          tasks(),
          resource({ uri: "vault://one", name: "vault", scopes: ["vault"], read: () => "one" }),
          resource({ uri: "outer://one", name: "outer", read: (_, ctx) => ctx.readResource("vault://one") }),
          resource({
            uri: "drawer://one",
            name: "drawer",
            allow: (ctx) => ctx.principal?.staff === true,
            read: () => "",
          }),
          resource({ uri: "page://{id}", name: "page", scopes: ["vault"], read: ({ id }) => `page ${id}` }),
          tool({
            name: "large",
            use: [task({ resume: true }), quota({ resultBytes: 2000, onLarge: "link" })],
            async run(_input: unknown, ctx: Context) {
              const text = await readOnce(ctx);
              await wait(ctx, 0);
              return text.repeat(1000);
            },
          }),
          tool({
            name: "cached",
            annotations: { readOnlyHint: true },
            // The cache does not know that the middleware keeps a value.
            use: [task({ resume: true }), cache({ ttlMs: 60_000 }), async (ctx, next) => {
              text = await readOnce(ctx as Context);
              await wait(ctx as Context, 1);
              return await next();
            }],
            run: () => text,
          }),
        ],
      });
    };
    const first = serve(true);
    const client = await connectTest(first, strong);
    const begin = async (client: Connection, name: string) =>
      String((await client.request("tools/call", { name, arguments: {} }, { finish: false })).taskId);
    const ids = [await begin(client, "large"), await begin(client, "cached")];
    await Promise.all(stopped.map(({ pass }) => pass));
    await client.close();
    await first.close();
    isReading = false;
    await using second = serve(false);
    await using same = await connectTest(second, strong);
    const texts: string[] = [];
    for (const id of ids) {
      const { content } = Object((await reach(same, id, "completed")).result);
      assertEquals(content.some(({ type }: { readonly type: string }) => type === "resource_link"), false);
      texts.push(textOf({ content }));
    }
    assertEquals(texts, [sentence("large"), `secret of ${uris.length}`]);
    const again = await reach(same, await begin(same, "cached"), "completed");
    assertEquals(textOf(Object(again.result)), "no secret");
    for (const other of [weak, guest]) {
      await using few = await connectTest(second, other);
      for (const id of ids) assertEquals(await get(few, id).then(() => true, () => false), other === allowed);
    }
  });
}

behaviour("no cache, once value or link forgets the resources that a tool has read", async (join) => {
  const { pass, open } = gate();
  const read = async (ctx: Context) =>
    (await ctx.readResource("vault://two")).map((each) => "text" in each && each.text);
  const { server } = await join({
    handlers: [
      tasks(),
      resource({ uri: "vault://two", name: "vault", scopes: ["vault"], read: () => "the secret" }),
      tool({
        name: "cached",
        annotations: { readOnlyHint: true },
        use: [task(), cache({ ttlMs: 60_000, shared: true })],
        run: async (_, ctx) => `${await read(ctx)}`,
      }),
      tool({
        name: "late",
        use: [task({ after: 50 })],
        async run(_, ctx) {
          const text = await ctx.once("text", () => read(ctx));
          await ctx.elicit("who", { message: "Who?", schema: form });
          await pass;
          return `${text}`;
        },
      }),
      tool({
        name: "large",
        use: [quota({ resultBytes: 2000, onLarge: "link" })],
        run: async (_, ctx) => `${await read(ctx)}`.repeat(1000),
      }),
    ],
  });
  const onElicit = () => ({ action: "accept", content: { name: "Ada" } }) as const;
  await using ada = await connectTest(server, { ...strong, onElicit });
  await using other = await connectTest(server, weak);
  const start = async (name: string) => await ada.request("tools/call", { name, arguments: {} }, { finish: false });
  for (let i = 0; i < 2; i++) {
    const { taskId } = await start("cached");
    await until(async () => (await ada.request("tasks/get", { taskId })).status === "completed", "the result");
    await assertRejects(() => other.request("tasks/get", { taskId }), McpError);
  }
  // The client answers the question, and the repeated call becomes a task.
  const { taskId } = await start("late");
  open();
  await until(async () => (await ada.request("tasks/get", { taskId })).status === "completed", "the late result");
  await assertRejects(() => other.request("tasks/get", { taskId }), McpError);
  const { content } = await ada.callTool("large");
  assertEquals(content.some(({ type }) => type === "resource_link"), false);
}, modern);
