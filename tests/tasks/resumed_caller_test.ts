// A task that another process continues has the same caller as its first run, with every member of the principal, or does
// not run at all.
import { assertEquals } from "@std/assert";
import { type Context, createServer, type Principal, type ServerOptions, tool } from "../../mod.ts";
import { hasScopes } from "../../src/auth/auth.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { declared } from "./declared.ts";
import { openShared } from "./shared_store.ts";

type Run = (ctx: Context) => unknown;

function serve(store: Store, run: Run, options: Partial<ServerOptions> = {}, resume: TaskOptions["resume"] = true) {
  const faults: FaultEvent[] = [];
  const work = tool({
    name: "work",
    use: [task({ resume })],
    run: async (_input: unknown, ctx: Context) => JSON.stringify(await run(ctx)) ?? "nothing",
  });
  const server = createServer({
    name: "pair",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [tasks(), work],
    store: openShared(store),
    limits: { calls: { closeMs: 20 } },
    observer: { fault: (event) => void faults.push(event) },
    ...options,
  });
  return { server, faults };
}

const start = async (client: Connection) =>
  String((await client.request("tools/call", { name: "work", arguments: {} }, { finish: false })).taskId);

async function untilEnded(client: Connection, taskId: string) {
  let found: { readonly [key: string]: unknown } = {};
  const isEnded = async () => {
    found = await client.request("tasks/get", { taskId });
    return found.status !== "working";
  };
  await until(isEnded, "the end");
  return found;
}

const untilAborted: Run = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

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
  await second.server.close();
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
  await server.close();
});

Deno.test("a task without `resume` accepts any principal", async () => {
  const { server, faults } = serve(memoryStore(), ({ principal }) => typeof principal?.check, {}, false);
  await using client = await connectTest(server, { ...declared, principal: { id: "ada", check: () => true } });
  assertEquals(textOfEnded(await untilEnded(client, await start(client))), `"function"`);
  assertEquals(faults, []);
  await server.close();
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
    createServer({
      name: "pair",
      version: "1.0.0",
      secret: "a secret of at least thirty-two characters",
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
  const second = open(() => "paid");
  const other = await connectTest(second, { ...declared, transport: "pipe" });
  assertEquals(textOfEnded(await untilEnded(other, id)), "paid");
  await other.close();
  await second.close();
});
