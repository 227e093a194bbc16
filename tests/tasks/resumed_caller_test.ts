// A task that another process continues has the same caller as its first run, with every member of the principal, or does
// not run at all.
import { assertEquals } from "@std/assert";
import { type Context, type Principal, type ServerOptions, tool } from "../../mod.ts";
import { hasScopes } from "../../src/auth/auth.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking, declared } from "./declared.ts";
import { openShared } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { reach, start, untilAborted, update } from "./requests.ts";
import { z } from "zod";
import { closeAtEnd } from "../support/running.ts";

type Run = (ctx: Context) => unknown;

function serve(store: Store, run: Run, options: Partial<ServerOptions> = {}, resume: TaskOptions["resume"] = true) {
  const faults: FaultEvent[] = [];
  const work = tool({
    name: "work",
    use: [task({ resume })],
    run: async (_input: unknown, ctx: Context) => JSON.stringify(await run(ctx)) ?? "nothing",
  });
  const server = openServer({
    handlers: [tasks(), work],
    store: openShared(store),
    limits: { calls: { closeMs: 20 } },
    observer: { fault: (event) => void faults.push(event) },
    ...options,
  });
  return { server, faults };
}

async function untilEnded(client: Connection, taskId: string) {
  let found: { readonly [key: string]: unknown } = {};
  const isEnded = async () => {
    found = await client.request("tasks/get", { taskId });
    return found.status !== "working";
  };
  await until(isEnded, "the end");
  return found;
}

/** Begins a task on one instance, and continues it on another. Returns the ended task. */
async function resume(
  run: Run,
  { client: options, ...server }: Partial<ServerOptions> & { readonly client: ConnectTestOptions },
) {
  const store = memoryStore();
  const first = serve(store, untilAborted, server);
  const client = await connectTest(first.server, { ...declared, ...options });
  const id = await start(client);
  const faults = first.faults.map(({ error }) => Object(error).message);
  await client.close();
  await first.server.close();
  const second = serve(store, run, server);
  const other = await connectTest(second.server, { ...declared, ...options });
  const ended = await untilEnded(other, id);
  await other.close();
  await second.server.close();
  return { ended, faults };
}

const textOfEnded = ({ result }: { readonly [key: string]: unknown }) => textOf(Object(result));

Deno.test("a task continues with every member of its caller's principal", async () => {
  const principal: Principal = {
    id: "ada",
    scopes: ["pay"],
    expiresAt: Date.now() + 3_600_000,
    tenant: { id: 7, path: ["eu", "it"], parent: null },
    readOnly: true,
    quota: 0.5,
    nothing: undefined,
    ["__proto__"]: { x: 1 },
  };
  const { ended, faults } = await resume(({ principal }) => principal, { client: { principal } });
  assertEquals(faults, []);
  assertEquals(JSON.parse(textOfEnded(ended)), JSON.parse(JSON.stringify(principal)));
});

Deno.test("an expired principal that may continue keeps all members except for the expiry", async () => {
  const principal = { id: "ada", tenant: "acme", expiresAt: Date.now() + 2000 };
  const store = memoryStore();
  const again = { afterExpiry: true };
  const first = serve(store, untilAborted, {}, again);
  const client = await connectTest(first.server, { ...declared, principal });
  const id = await start(client);
  await client.close();
  await first.server.close();
  await until(() => Date.now() > principal.expiresAt, "the expiry");
  const second = serve(store, ({ principal }) => principal, {}, again);
  const other = await connectTest(second.server, { ...declared, principal: { id: "ada" } });
  assertEquals(JSON.parse(textOfEnded(await untilEnded(other, id))), { id: "ada", tenant: "acme" });
  await other.close();
});

class Tenant {
  readonly name = "acme";
}

const doubtful: Readonly<Record<string, unknown>> = {
  date: new Date(0),
  number: { max: Number.POSITIVE_INFINITY },
  zero: [-0],
  object: new Tenant(),
  check: () => true,
  big: 7n,
  symbol: Symbol("staff"),
  missing: ["a", undefined],
  // deno-lint-ignore no-sparse-arrays -- the hole is what the test is about
  hole: ["a", , "b"],
  long: "x".repeat(40_000),
};

for (const [name, value] of Object.entries(doubtful)) {
  Deno.test(`a task whose principal would lose a member does not continue, which is reported when it begins: ${name}`, async () => {
    let runs = 0;
    const principal = { id: "ada", [name]: value };
    const { ended, faults } = await resume(() => ++runs, { client: { principal } });
    assertEquals(runs, 0);
    assertEquals(ended.status, "failed");
    assertEquals(faults, [sentence("work")]);
  });
}

Deno.test("the reason why tasks cannot continue is reported once for each tool", async () => {
  const { server, faults } = serve(memoryStore(), () => "done");
  await using client = await connectTest(server, { ...declared, principal: { id: "ada", check: () => true } });
  for (let i = 0; i < 3; i++) await untilEnded(client, await start(client));
  assertEquals(faults.length, 1);
});

Deno.test("a task without `resume` accepts any principal", async () => {
  const { server, faults } = serve(memoryStore(), ({ principal }) => typeof principal?.check, {}, false);
  await using client = await connectTest(server, { ...declared, principal: { id: "ada", check: () => true } });
  assertEquals(textOfEnded(await untilEnded(client, await start(client))), `"function"`);
  assertEquals(faults, []);
});

Deno.test("a task continues with the session value of its first run", async () => {
  for (const tenant of ["acme", undefined]) {
    const { ended } = await resume((ctx) => ctx.session() ?? null, {
      // Without a request, the function would give everybody the same tenant.
      sessionData: ({ http }) => http ? http.headers.get("x-tenant") ?? undefined : "everybody",
      client: { principal: { id: "ada" }, transport: "http", headers: tenant ? { "x-tenant": tenant } : {} },
    });
    assertEquals(textOfEnded(ended), JSON.stringify(tenant ?? null));
  }
});

Deno.test("a task of a caller without a principal continues with all scopes if its transport grants them", async () => {
  const run: Run = (ctx) => [ctx.principal ?? null, hasScopes(ctx, "pay"), hasScopes(ctx, "mail")];
  for (const transport of ["pipe", "http"] as const) {
    const { ended, faults } = await resume(run, { client: { transport } });
    const isLocal = transport === "pipe";
    assertEquals([JSON.parse(textOfEnded(ended)), faults], [[null, isLocal, isLocal], []], transport);
  }
  const { ended } = await resume(run, { client: { principal: { id: "ada", scopes: ["mail"] } } });
  assertEquals(JSON.parse(textOfEnded(ended)), [{ id: "ada", scopes: ["mail"] }, false, true]);
});

Deno.test("a task whose tool needs scopes continues for a caller that started the server", async () => {
  const store = memoryStore();
  const open = (run: Run) =>
    openServer({
      handlers: [
        tasks(),
        tool({
          name: "work",
          scopes: ["pay"],
          use: [task({ resume: true })],
          run: async (_input: unknown, ctx: Context) => `${await run(ctx)}`,
        }),
      ],
      store: openShared(store),
      limits: { calls: { closeMs: 20 } },
    });
  const first = open(untilAborted);
  const client = await connectTest(first, { ...declared, transport: "pipe" });
  const id = await start(client);
  await client.close();
  await first.close();
  await using second = open(() => "paid");
  await using other = await connectTest(second, { ...declared, transport: "pipe" });
  assertEquals(textOfEnded(await untilEnded(other, id)), "paid");
});

// A further run of a task may ask something else than the run before. An answer, such as a consent, counts only for the
// question that the client has seen.

const form = z.object({ name: z.string() });
const answers = { sure: { action: "accept", content: { name: "Ada" } } };

/** An instance whose tool asks for consent to a price. */
async function startInstance(
  shared: Store,
  { price, ends = true, options = {} }: {
    readonly price: number;
    readonly ends?: boolean;
    readonly options?: TaskOptions;
  },
) {
  const pay = tool({
    name: "pay",
    use: [task({ resume: true, ...options })],
    async run(_input, ctx) {
      const { action } = await ctx.elicit("sure", { message: `Pay ${price}?`, schema: form });
      return ends ? `${action} ${price}` : await untilAborted(ctx);
    },
  });
  const server = openServer({
    handlers: [tasks(), pay],
    store: openShared(shared),
    limits: { calls: { closeMs: 20 } },
  });
  await server.ready();
  const client = closeAtEnd(
    await connectTest(server, {
      ...asking,
      principal: { id: "ada" },
      onElicit: () => ({ action: "accept", content: { name: "Ada" } }),
    }),
  );
  return {
    client,
    async close() {
      await client.close();
      await server.close();
    },
  };
}

const toMessages = ({ inputRequests }: { readonly [key: string]: unknown }) =>
  Object.entries(Object(inputRequests)).map(([key, question]) => [key, Object(question).params.message]);
const toText = ({ result }: { readonly [key: string]: unknown }) => Object(result).content?.[0].text;

/** Starts a task that costs 10, answers its question, and stops its instance before the task has ended. */
async function stopAfterConsent(shared: Store, when: "before the call became a task" | "in the task") {
  const options = { after: when === "in the task" ? 0 : 50 };
  const first = await startInstance(shared, { price: 10, ends: false, options });
  const id = await start(first.client, {}, "pay");
  if (when === "in the task") {
    await reach(first.client, id, "input_required");
    await update(first.client, id, answers);
  }
  await reach(first.client, id, "working");
  await first.close();
  return { id, options };
}

for (const when of ["before the call became a task", "in the task"] as const) {
  Deno.test(`a consent does not count for another question of a further run (${when})`, async () => {
    const shared = memoryStore();
    const { id, options } = await stopAfterConsent(shared, when);
    const second = await startInstance(shared, { price: 1000, options });
    assertEquals(toMessages(await reach(second.client, id, "input_required")), [["sure (2)", "Pay 1000?"]]);
    await update(second.client, id, { sure: answers.sure });
    assertEquals((await reach(second.client, id, "input_required")).status, "input_required");
    await update(second.client, id, { "sure (2)": answers.sure });
    assertEquals(toText(await reach(second.client, id, "completed")), "accept 1000");
  });

  Deno.test(`a consent counts for the same question of a further run (${when})`, async () => {
    const shared = memoryStore();
    const { id, options } = await stopAfterConsent(shared, when);
    const second = await startInstance(shared, { price: 10, options });
    assertEquals(toText(await reach(second.client, id, "completed")), "accept 10");
  });
}

Deno.test("an answer to the question of an earlier run is not an answer to another question of a further run", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, { price: 10 });
  const id = await start(first.client, {}, "pay");
  await reach(first.client, id, "input_required", "sure");
  await first.close();
  const second = await startInstance(shared, { price: 1000 });
  assertEquals(toMessages(await reach(second.client, id, "input_required", "sure (2)")), [["sure (2)", "Pay 1000?"]]);
  await update(second.client, id, answers);
  await second.close();
  // A run that asks the first question again does not get the answer that was refused.
  const third = await startInstance(shared, { price: 10 });
  assertEquals(toMessages(await reach(third.client, id, "input_required", "sure")), [["sure", "Pay 10?"]]);
  await update(third.client, id, answers);
  assertEquals(toText(await reach(third.client, id, "completed")), "accept 10");
});

// A task that another instance continues makes its inner calls again, over the values of `once` and the answers that
// the first instance has stored.

function serveInner(store: Store, { names, makes, ends }: { names: string[]; makes: string[]; ends: boolean }) {
  const leaf = tool({
    name: "leaf",
    input: z.object({ name: z.string() }),
    run: async ({ name }, ctx) => {
      await turn(ends ? name.length : 5 - name.length);
      return await ctx.once("value", () => {
        makes.push(name);
        return `${name} ${makes.length}`;
      });
    },
  });
  const work = tool({
    name: "work",
    use: [task({ resume: true })],
    run: async (_input, ctx) => {
      const calls = names.map(async (name) => `${name}: ${textOf(await ctx.callTool(leaf, { name }))}`);
      const texts = await Promise.all(calls);
      return ends ? texts.sort().join(", ") : await untilAborted(ctx);
    },
  });
  return openServer({ handlers: [tasks(), leaf, work], store: openShared(store), limits: { calls: { closeMs: 20 } } });
}

Deno.test("a task that another instance continues gives each inner call its own stored values", async () => {
  const store = memoryStore();
  const makes: string[] = [];
  const names = ["a", "bb", "ccc"];
  const first = serveInner(store, { names, makes, ends: false });
  const client = await connectTest(first, { ...declared, principal: { id: "ada" } });
  const { taskId } = await client.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  await until(() => makes.length === 3, "all values are made");
  const made = makes.map((name, at) => `${name}: ${name} ${at + 1}`).sort().join(", ");
  await client.close();
  await first.close();
  await using second = serveInner(store, { names: names.toReversed(), makes, ends: true });
  await using other = await connectTest(second, { ...declared, principal: { id: "ada" } });
  let found: { readonly [key: string]: unknown } = {};
  await until(async () => (found = await other.request("tasks/get", { taskId })).status === "completed", "the end");
  assertEquals([textOf(Object(found.result)), makes.length], [made, 3]);
});
