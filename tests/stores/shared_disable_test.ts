// A handler that one instance disables for all callers is disabled on all instances, also after a restart.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import {
  createServer,
  extension,
  group,
  type Handler,
  type PathServerOptions,
  prompt,
  resource,
  type Server,
  type ServerOptions,
  tool,
} from "../../mod.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { Sealer } from "../../src/server/call/sealer.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { customStore, memoryStore, type Store, type StoreEngine } from "../../src/stores/stores.ts";
import { type Connection, connectTest, type ConnectTestOptions, McpError } from "../../src/testing/testing.ts";
import { FENCE, fence, fenced, gate, textOf, turn, until, withoutFences } from "../support/behaviour.ts";
import { createLosable, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { random } from "../support/random.ts";
import { CLIENTS } from "../support/redis/clients.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { needs } from "../support/required.ts";
import { openServer } from "../support/servers.ts";

const SECRET = "a secret of at least thirty-two characters";
const REALM = JSON.stringify(["test", "/mcp"]);

const read = tool({ name: "read", run: () => "Read." });
const wipe = tool({ name: "wipe", tags: ["admin"], run: () => "Wiped." });
const ask = prompt({ name: "ask", tags: ["admin"], run: () => "Ask." });
const file = resource({ uri: "disk://file", name: "file", tags: ["admin"], read: () => "text" });
const notes = group("notes", [tool({ name: "add", run: () => "Added." })]);
const HANDLERS = [read, wipe, ask, file, notes];

/** Starts instances. Disposing closes the instances and their clients. */
class Fleet implements AsyncDisposable {
  readonly events: StoreEvent[] = [];
  readonly #open: () => Store;
  readonly #stack = new AsyncDisposableStack();

  constructor(open: () => Store) {
    this.#open = open;
  }

  start(options: Partial<PathServerOptions> = {}): Server {
    const server = openServer({
      store: this.#open(),
      sharedDisable: true,
      handlers: HANDLERS,
      observer: { store: (event) => void this.events.push(event) },
      ...options,
    } as ServerOptions);
    this.#stack.defer(() => server.close());
    return server;
  }

  async join(server: Server, options?: ConnectTestOptions): Promise<Connection> {
    return this.#stack.use(await connectTest(server, options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Returns a function that opens one shared store in memory. Topics are read often, so that tests do not wait long. */
function shareMemory(): () => Store {
  const memory = memoryStore();
  return () => customStore(memory[INTERNALS].connect, { pollMs: 50 });
}

const folder = mkdtempSync(`${tmpdir()}/shared-disable-`);
let files = 0;

const stores: Readonly<Record<string, () => () => Store>> = {
  memory: shareMemory,
  SQLite: () => {
    const path = `${folder}/${files++}.db`;
    return () => sqliteStore(() => new DatabaseSync(path));
  },
};

const names = async (client: Connection) => (await client.listTools()).map(({ name }) => name).join();

async function untilNames(client: Connection, wanted: string): Promise<void> {
  await until(async () => await names(client) === wanted, `the client lists the tools ${wanted}`);
}

function listChanged({ received }: Connection): string[] {
  return received.flatMap(({ method }) => /notifications\/(\w+)\/list_changed/.exec(method)?.[1] ?? []).sort();
}

async function isBusy(run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return false;
  } catch (error) {
    assert(error instanceof McpError && error.code === -31503, `${error}`);
    return true;
  }
}

async function assertBusy(run: () => Promise<unknown>): Promise<void> {
  const { code } = await assertRejects(run, McpError, sentence());
  assertEquals(code, -31503);
}

for (const [store, open] of Object.entries(stores)) {
  for (const era of ["modern", "legacy"] as const) {
    for (const transport of ["http", "pipe"] as const) {
      Deno.test(`a handler that one of three instances disables is hidden on all instances, and stays hidden after a restart (${store}, ${era} over ${transport})`, async () => {
        await using fleet = new Fleet(open());
        const servers = [fleet.start(), fleet.start(), fleet.start()];
        const clients = await Promise.all(servers.map((server) => fleet.join(server, { era, transport })));
        const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        const subscriptions = await Promise.all(clients.map((client) => client.subscribe(lists)));
        const all = "read,wipe,notes_add";
        for (const client of clients) assertEquals([await names(client), listChanged(client)], [all, []]);
        servers[0].handlers.disable({ tag: "admin" });
        assertEquals(await names(clients[0]), "read,notes_add");
        for (const client of clients) {
          await untilNames(client, "read,notes_add");
          await until(
            () => listChanged(client).join() === "prompts,resources,tools",
            "the client is notified once for each list",
          );
          await assertRejects(() => client.callTool("wipe"), Error, sentence("wipe"));
          await assertRejects(() => client.getPrompt("ask"), Error, sentence("ask"));
          await assertRejects(() => client.readResource("disk://file"), Error, sentence());
          assertEquals([await client.listPrompts(), await client.listResources()], [[], []]);
          assertEquals(textOf(await client.callTool("read")), "Read.");
        }
        // A later rule from another instance takes precedence.
        servers[1].handlers.enable(wipe);
        servers[2].handlers.disable({ group: "notes" });
        for (const client of clients) await untilNames(client, "read,wipe");
        for (const subscription of subscriptions) await subscription.close();
        await Promise.all(servers.map((server) => server.close()));
        const later = await fleet.join(fleet.start(), { era, transport });
        assertEquals([await names(later), await later.listPrompts()], ["read,wipe", []]);
        assertEquals(fleet.events, []);
      });
    }
  }

  Deno.test(`concurrent rules of several instances all apply, and the last rule for a handler decides (${store})`, async () => {
    await using fleet = new Fleet(open());
    const tools = Array.from({ length: 12 }, (_, i) => tool({ name: `t${i}`, run: () => "" }));
    const servers = [0, 1, 2].map(() => fleet.start({ handlers: tools }));
    const clients = await Promise.all(servers.map((server) => fleet.join(server)));
    for (const [i, each] of tools.entries()) if (i > 2) servers[i % 3].handlers.disable(each);
    for (const client of clients) await untilNames(client, "t0,t1,t2");
    // After concurrent rules for one handler, all instances converge, including instances that start later.
    for (let round = 0; round < 5; round++) {
      servers[round % 3].handlers.disable({ tool: "t0" });
      servers[(round + 1) % 3].handlers.enable({ tool: "t0" });
      await until(async () => new Set(await Promise.all(clients.map(names))).size === 1, "all agree");
    }
    servers[0].handlers.disable({ tool: "t0" });
    for (const client of clients) await untilNames(client, "t1,t2");
    assertEquals(await names(await fleet.join(fleet.start({ handlers: tools }))), "t1,t2");
    assertEquals(fleet.events, []);
  });
}

Deno.test("instances converge after concurrent rules, including instances that start later", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const { below } = random(seed);
  const tools = Array.from(
    { length: 6 },
    (_, i) => tool({ name: `t${i}`, tags: [`even${i % 2}`, `third${i % 3}`], run: () => "" }),
  );
  const selectors = [
    ...tools.map(({ name }) => ({ tool: name })),
    ...["even0", "even1", "third0", "third1", "third2"].map((tag) => ({ tag })),
  ];
  for (let round = 0; round < 10; round++) {
    await using fleet = new Fleet(shareMemory());
    const servers = [0, 1, 2].map(() => fleet.start({ handlers: tools }));
    const clients = await Promise.all(servers.map((server) => fleet.join(server)));
    for (let step = 0; step < 30; step++) {
      const { handlers } = servers[below(3)];
      const selected = selectors[below(selectors.length)];
      if (below(3)) handlers.disable(selected);
      else handlers.enable(selected);
      if (!below(4)) await turn(below(3));
    }
    // A server writes its pending rules before it closes.
    await servers[0].close();
    const last = await fleet.join(fleet.start({ handlers: tools }));
    await until(async () => {
      const seen = await Promise.all([...clients.slice(1), last].map(names));
      return new Set(seen).size === 1;
    }, `all instances agree (seed ${seed}, round ${round})`);
  }
});

Deno.test("a sequence of rules has the same effect on every instance as on a server without a store", async () => {
  const { below } = random(7);
  const tools = Array.from({ length: 4 }, (_, i) => tool({ name: `t${i}`, tags: [`even${i % 2}`], run: () => "" }));
  const bundle = group("g", [tool({ name: "x", tags: ["even0"], run: () => "" })]);
  const marker = tool({ name: "marker", run: () => "" });
  const handlers: Handler[] = [...tools, bundle, marker];
  const selectors = [
    ...tools.map(({ name }) => ({ tool: name })),
    ...[{ tag: "even0" }, { tag: "even1" }, { group: "g" }, { tool: "g_x" }],
  ];
  await using fleet = new Fleet(shareMemory());
  const alone = openServer({ handlers });
  const model = await fleet.join(alone);
  const servers = [fleet.start({ handlers }), fleet.start({ handlers })];
  const clients = await Promise.all(servers.map((server) => fleet.join(server)));
  for (let step = 0; step < 60; step++) {
    const selected = selectors[below(selectors.length)];
    const change = below(2) ? "disable" as const : "enable" as const;
    // The marker is written last, so the other rules have arrived when the marker has arrived.
    const mark = step % 2 ? "enable" as const : "disable" as const;
    for (const { handlers } of [alone, servers[below(2)]]) {
      handlers[change](selected);
      handlers[mark](marker);
    }
    for (const client of clients) await untilNames(client, await names(model));
  }
});

Deno.test("rules that select callers with a function apply only on their own instance, and reveal no handler that is hidden on all instances", async () => {
  await using fleet = new Fleet(shareMemory());
  const [a, b] = [fleet.start(), fleet.start()];
  const ada = { principal: { id: "ada" } };
  const [here, there, bob] = [await fleet.join(a, ada), await fleet.join(b, ada), await fleet.join(a)];
  const isAda = ({ principal }: { readonly principal?: { readonly id: string } }) => principal?.id === "ada";
  a.handlers.disable(wipe, isAda);
  a.handlers.disable(read);
  await untilNames(there, "wipe,notes_add");
  assertEquals([await names(here), await names(bob)], ["notes_add", "wipe,notes_add"]);
  b.handlers.enable(read, isAda);
  assertEquals(await names(there), "wipe,notes_add");
  b.handlers.enable(read);
  b.handlers.enable(wipe);
  await untilNames(here, "read,notes_add");
  assertEquals([await names(there), await names(bob)], ["read,wipe,notes_add", "read,wipe,notes_add"]);
});

Deno.test("if another instance disables a resource, its updates are no longer sent, and a new handler that matches the rule is hidden immediately", async () => {
  await using fleet = new Fleet(shareMemory());
  const handlers = [...HANDLERS, fenced];
  const [a, b] = [fleet.start({ handlers }), fleet.start({ handlers })];
  const there = await fleet.join(b);
  await using changes = await there.subscribe({ resourceSubscriptions: ["disk://file", FENCE] });
  a.handlers.disable({ resource: "disk://file" });
  a.handlers.disable({ tag: "new" });
  await until(async () => (await there.listResources()).length === 1, "the rule arrives");
  a.resourceUpdated("disk://file");
  b.resourceUpdated("disk://file");
  for (const server of [a, b]) await fence(server, changes);
  a.handlers.enable({ resource: "disk://file" });
  await until(async () => (await there.listResources()).length === 2, "the rule has been removed");
  a.resourceUpdated("disk://file");
  await fence(a, changes);
  assertEquals(withoutFences(changes).map(({ params }) => params.uri), ["disk://file"]);
  b.handlers.add(tool({ name: "late", tags: ["new"], run: () => "" }));
  assertEquals(await names(there), "read,wipe,notes_add");
});

Deno.test("if a handler is disabled while the store is unavailable, this instance hides the handler immediately, and other instances do so after the recovery", async () => {
  const losable = createLosable({ pollMs: 50 });
  let isCut = false;
  const cut = customStore(async () =>
    wrapEngine(await losable.open()[INTERNALS].connect(), ({ run }) => {
      if (isCut) throw new Error("no route to the store");
      return run();
    }), { timeoutMs: 200, pollMs: 50 });
  await using fleet = new Fleet(losable.open);
  const [a, b] = [fleet.start({ store: cut }), fleet.start()];
  const [here, there] = [await fleet.join(a), await fleet.join(b)];
  for (const client of [here, there]) assertEquals(await names(client), "read,wipe,notes_add");
  isCut = true;
  a.handlers.disable(wipe);
  a.handlers.disable(read);
  a.handlers.enable(read);
  b.handlers.disable({ group: "notes" });
  assertEquals(await names(here), "read,notes_add");
  await until(() => fleet.events.some(({ state }) => state === "degraded"), "the observer is notified");
  assertEquals([await names(here), await names(there)], ["read,notes_add", "read,wipe"]);
  const since = performance.now();
  isCut = false;
  for (const client of [here, there]) await untilNames(client, "read");
  assert(performance.now() - since < 5000, "the store did not recover automatically");
  await until(() => fleet.events.some(({ state }) => state === "recovered"), "the observer is notified");
});

Deno.test("an instance informs other instances of a write whose response was lost", async () => {
  const { connect } = memoryStore()[INTERNALS];
  let fails = false;
  const open = () =>
    customStore(async () =>
      wrapEngine(await connect(), async ({ name, run }) => {
        const result = await run();
        if (fails && name === "set") throw new Error("the answer is lost");
        return result;
      }), { timeoutMs: 200, pollMs: 50 });
  await using fleet = new Fleet(open);
  const [a, b] = [fleet.start(), fleet.start()];
  const there = await fleet.join(b);
  // Both instances have read the rules, so that only the lost response is a reason to write the rules again.
  for (const client of [await fleet.join(a), there]) assertEquals(await names(client), "read,wipe,notes_add");
  fails = true;
  a.handlers.disable(wipe);
  await until(() => fleet.events.some(({ state }) => state === "degraded"), "the write has failed");
  fails = false;
  await untilNames(there, "read,notes_add");
});

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "pipe"] as const) {
    Deno.test(`an instance that starts while the store is unavailable shows no handlers, returns an error that states why, and recovers (${era} over ${transport})`, async () => {
      const losable = createLosable({ pollMs: 50 });
      await using fleet = new Fleet(losable.open);
      const first = fleet.start();
      first.handlers.disable({ tag: "admin" });
      await first.close();
      losable.isLost = true;
      const server = fleet.start();
      // The handshake and pings do not need the rules.
      const client = await fleet.join(server, { era, transport });
      if (era === "legacy") await client.request("ping", {});
      await assertBusy(() => client.listTools());
      await assertBusy(() => client.callTool("wipe"));
      await assertBusy(() => client.callTool("read"));
      await assertBusy(() => client.readResource("disk://file"));
      await assertBusy(() => client.getPrompt("ask"));
      if (era === "modern") await assertBusy(() => client.subscribe({ toolsListChanged: true }));
      else await assertBusy(() => client.request("resources/subscribe", { uri: "disk://file" }));
      assert(fleet.events.some(({ state }) => state === "degraded"));
      // Rules that are made at the same time are kept.
      server.handlers.disable({ group: "notes" });
      const since = performance.now();
      losable.isLost = false;
      await until(async () => !await isBusy(() => client.listTools()), "the store is available again");
      assert(performance.now() - since < 5000, "the store did not recover automatically");
      assertEquals([await names(client), await client.listPrompts()], ["read", []]);
      if (era === "legacy" && transport === "pipe") {
        await until(() => listChanged(client).includes("tools"), "a session whose requests were refused is notified");
      }
      const other = await fleet.join(fleet.start(), { era, transport });
      await untilNames(other, "read");
      // From here on, calls do not need the store.
      losable.isLost = true;
      for (const each of [client, other]) {
        assertEquals([await names(each), textOf(await each.callTool("read"))], ["read", "Read."]);
        await assertRejects(() => each.callTool("wipe"), Error, sentence("wipe"));
      }
    });
  }
}

Deno.test("an instance hides all handlers while it cannot compile a rule from another instance", async () => {
  let isBroken = false;
  const views = extension({ id: "com.example/views" });
  const verify = () => {
    if (isBroken) throw new Error("the check is broken");
    return undefined;
  };
  const viewed = tool({ name: "viewed", use: [views.layer({ verify })], run: () => "" });
  await using fleet = new Fleet(shareMemory());
  const [a, b] = [fleet.start(), fleet.start({ handlers: [views, viewed, ...HANDLERS] })];
  const [here, there] = [await fleet.join(a), await fleet.join(b)];
  assertEquals([await names(here), await names(there)], ["read,wipe,notes_add", "viewed,read,wipe,notes_add"]);
  await using changes = await there.subscribe({ toolsListChanged: true });
  isBroken = true;
  assertThrows(() => b.handlers.disable(read), Error, "the check is broken");
  assertEquals(await names(there), "viewed,read,wipe,notes_add");
  a.handlers.disable({ tag: "admin" });
  await until(() => isBusy(() => there.listTools()), "the rule arrives");
  await assertBusy(() => there.callTool("wipe"));
  assertStringIncludes(String(fleet.events[0].error), "the check is broken");
  isBroken = false;
  await until(() => changes.received.length > 0, "the client is notified");
  assertEquals([await names(here), await names(there)], ["read,notes_add", "viewed,read,notes_add"]);
});

Deno.test("a request that arrives while the server is reading the rules waits until the rules are read", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const waits: Promise<void>[] = [];
  const open = () =>
    customStore(async () =>
      wrapEngine(await connect(), async ({ name, run }) => {
        if (name === "get") await waits[0];
        return await run();
      })
    );
  await using fleet = new Fleet(open);
  const first = fleet.start();
  first.handlers.disable(wipe);
  await first.close();
  const slow = gate();
  waits.push(slow.pass);
  const client = await fleet.join(fleet.start());
  const listed = names(client);
  const called = client.callTool("wipe").then(textOf, String);
  slow.open();
  assertEquals(await listed, "read,notes_add");
  assertEquals(await called, sentence("McpError", "wipe"));
});

Deno.test("if the store loses its data, disabled handlers stay disabled, and the rules are written to the store again", async () => {
  let engine: StoreEngine = await memoryStore()[INTERNALS].connect();
  const open = () =>
    customStore(
      wrapEngine(engine, ({ name, args }) => Reflect.apply(Reflect.get(engine, name), engine, args), {
        listen: undefined,
      }),
      { pollMs: 20 },
    );
  await using fleet = new Fleet(open);
  const handlers = [...HANDLERS, fenced];
  const [a, b] = [fleet.start({ handlers }), fleet.start({ handlers })];
  const [here, there] = [await fleet.join(a), await fleet.join(b)];
  a.handlers.disable(wipe);
  b.handlers.disable(read);
  for (const client of [here, there]) await untilNames(client, "notes_add");
  // Both instances have received entries, so they can detect that the store has lost them.
  for (const [client, other] of [[here, b], [there, a]] as const) {
    await using changes = await client.subscribe({ resourceSubscriptions: [FENCE] });
    await fence(other, changes);
  }
  const empty = memoryStore();
  engine = await empty[INTERNALS].connect();
  await until(async () => (await empty.list("", { limit: 100 })).length > 0, "the rules are written again");
  assertEquals([await names(here), await names(there)], ["notes_add", "notes_add"]);
  assertEquals(await names(await fleet.join(fleet.start())), "notes_add");
});

Deno.test({
  ...needs(
    "rules are kept if Redis is killed and loses its data, and apply immediately on instances that have them",
    missingRedis,
  ),
  async fn() {
    await using redis = startRedis();
    const { connect } = CLIENTS[0];
    await using fleet = new Fleet(() => redisStore(() => connect(redis.socket)));
    const [a, b] = [fleet.start(), fleet.start()];
    const clients = [await fleet.join(a), await fleet.join(b)];
    await until(async () => !await isBusy(() => clients[0].listTools()), "the server has started");
    a.handlers.disable(wipe);
    for (const client of clients) {
      await until(async () => !await isBusy(() => client.listTools()), "the rules have been read");
      await untilNames(client, "read,notes_add");
    }
    await redis.kill();
    b.handlers.disable({ group: "notes" });
    await until(() => fleet.events.some(({ state }) => state === "degraded"), "the instance has detected the loss");
    assertEquals([await names(clients[0]), await names(clients[1])], ["read,notes_add", "read"]);
    assertEquals(textOf(await clients[0].callTool("read")), "Read.");
    const late = await fleet.join(fleet.start());
    await assertBusy(() => late.listTools());
    redis.start();
    for (const client of [...clients, late]) {
      await until(async () => !await isBusy(() => client.listTools()) && await names(client) === "read", "all agree");
    }
  },
});

/** Finds the value that contains the rules. */
async function findRules(store: Store): Promise<{ key: string; opened: unknown; text: string }> {
  const sealer = new Sealer({ secret: SECRET, realm: REALM });
  for (const { key, value } of await store.list("", { limit: 100 })) {
    const opened = await sealer.open(`store ${key}`, value);
    if (Array.isArray(opened) && Array.isArray(Object(opened[1]).rules)) {
      return { key, opened, text: JSON.stringify(opened) };
    }
  }
  throw new Error("there are no rules");
}

for (
  const [what, spoil] of Object.entries({
    "in the format of a later version": ([, value]: readonly unknown[]) => [2, value],
    "that are malformed": ([, value]: readonly unknown[]) => [1, { ...Object(value), rules: [["tool", 1, 1]] }],
  })
) {
  Deno.test(`rules ${what} are not overwritten, and hide all handlers from a new instance`, async () => {
    const memory = memoryStore();
    await using fleet = new Fleet(() => customStore(memory[INTERNALS].connect, { pollMs: 50 }));
    const a = fleet.start();
    const here = await fleet.join(a);
    a.handlers.disable(wipe);
    await until(() => findRules(memory).then(() => true, () => false), "the rules are written");
    const { key, opened } = await findRules(memory);
    assert(Array.isArray(opened));
    const text = await new Sealer({ secret: SECRET, realm: REALM }).seal(`store ${key}`, spoil(opened));
    await memory.set(key, text, { ttlMs: 60_000 });
    const there = await fleet.join(fleet.start());
    await assertBusy(() => there.listTools());
    const refused = fleet.events.filter(({ state }) => state === "refused");
    assertEquals(refused.length, 1);
    assertEquals(String(refused[0].error), sentence());
    a.handlers.disable(read);
    await until(() => fleet.events.filter(({ state }) => state === "refused").length === 2, "both are informed");
    assertEquals([await names(here), (await memory.get(key))?.value], ["notes_add", text]);
  });
}

Deno.test("a new instance seals the rules with its newest secret", async () => {
  const open = shareMemory();
  const next = "the next secret of at least thirty-two characters";
  await using fleet = new Fleet(open);
  const first = fleet.start();
  first.handlers.disable(wipe);
  await first.close();
  for (const secret of [[SECRET, next], [next, SECRET], [next]]) {
    await using server = fleet.start({ secret });
    assertEquals(await names(await fleet.join(server)), "read,notes_add");
  }
});

Deno.test("instances with different handlers keep the rules for handlers that they do not have", async () => {
  await using fleet = new Fleet(shareMemory());
  const old = fleet.start();
  const before = await fleet.join(old);
  old.handlers.disable(wipe);
  await untilNames(before, "read,notes_add");
  const newer = fleet.start({ version: "2.0.0", handlers: [read, tool({ name: "scan", run: () => "" })] });
  const after = await fleet.join(newer);
  newer.handlers.disable({ tool: "scan" });
  newer.handlers.disable({ tool: "read" });
  await untilNames(before, "notes_add");
  assertEquals(await names(after), "");
  await Promise.all([old.close(), newer.close()]);
  // After a rollback to the old version, disabled handlers are still hidden.
  assertEquals(await names(await fleet.join(fleet.start())), "notes_add");
});

Deno.test("rules without an effect are not stored, and the size of the stored rules is limited", async () => {
  const memory = memoryStore();
  await using fleet = new Fleet(() => customStore(memory[INTERNALS].connect));
  const server = fleet.start();
  const client = await fleet.join(server);
  server.handlers.disable(wipe);
  const untilWritten = async (marker: string) => {
    server.handlers.disable({ tool: marker });
    await until(
      async () => await findRules(memory).then(({ text }) => text.includes(marker), () => false),
      "the changes before the marker have been written",
    );
    server.handlers.enable({ tool: marker });
  };
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 500; i++) {
      server.handlers.disable({ tool: `t${round}-${i}` });
      server.handlers.enable({ tool: `t${round}-${i}` });
    }
    await untilWritten(`marker${round}`);
  }
  const churn = () => {
    for (let i = 0; i < 100_000; i++) server.handlers.enable({ tool: `shown${i}` });
  };
  const refused = assertThrows(churn, RangeError);
  assertEquals(refused.message.replace(/\d+/, "N"), sentence("shownN"));
  await until(async () => {
    try {
      await untilWritten("marker");
      return true;
    } catch (error) {
      if (error instanceof RangeError) return false;
      throw error;
    }
  }, "there is room again");
  assertEquals(await names(client), "read,notes_add");
  let added = 0;
  const add = () => {
    for (; added < 100_000; added++) server.handlers.disable({ tool: `gone${added}` });
  };
  const error = assertThrows(add, RangeError);
  assertEquals(error.message.replace(`${added}`, "N"), sentence("goneN", "gone0"));
  assert(added > 500, `${added}`);
  assertThrows(() => server.handlers.disable({ tag: "x".repeat(100_000) }), RangeError, sentence(32768));
  // The refused rule has changed nothing, and there is room again.
  server.handlers.enable({ tool: "gone0" });
  server.handlers.disable(read);
  assertEquals(await names(client), "notes_add");
  await server.close();
  const { opened } = await findRules(memory);
  assert(Array.isArray(opened));
  assertEquals(Object(opened[1]).rules.length, added + 1);
  const later = fleet.start();
  assertEquals(await names(await fleet.join(later)), "notes_add");
  for (let i = 1; i < added; i++) later.handlers.enable({ tool: `gone${i}` });
  later.handlers.enable(read);
  later.handlers.enable(wipe);
  await later.close();
  assertEquals(Object((await findRules(memory)).opened)[1].rules, []);
});

Deno.test("an instance whose rules exceed the limit applies rules from other instances, and writes its own rules once there is room", async () => {
  const memory = memoryStore();
  const { connect } = memory[INTERNALS];
  let isCut = false;
  const cut = customStore(async () =>
    wrapEngine(await connect(), ({ run }) => {
      if (isCut) throw new Error("no route to the store");
      return run();
    }), { timeoutMs: 200, pollMs: 50 });
  await using fleet = new Fleet(() => customStore(connect, { pollMs: 50 }));
  const [a, b] = [fleet.start({ store: cut }), fleet.start()];
  const [here, there] = [await fleet.join(a), await fleet.join(b)];
  assertEquals([await names(here), await names(there)], ["read,wipe,notes_add", "read,wipe,notes_add"]);
  isCut = true;
  a.handlers.disable(wipe);
  for (let i = 0; i < 500; i++) a.handlers.disable({ tool: `of-a-${i}` });
  for (let i = 0; i < 500; i++) b.handlers.disable({ tool: `of-b-${i}` });
  b.handlers.disable(read);
  const isWritten = async () => await findRules(memory).then(({ text }) => text.includes("read"), () => false);
  await until(isWritten, "the other instance's rules have been written");
  isCut = false;
  await untilNames(here, "notes_add");
  await until(() => fleet.events.some(({ state }) => state === "refused"), "the observer is notified");
  assertEquals(await names(there), "wipe,notes_add");
  // Rules that exceed the limit can be revoked.
  for (let i = 0; i < 500; i++) a.handlers.enable({ tool: `of-b-${i}` });
  await untilNames(there, "notes_add");
});

Deno.test("while the rules for all paths are unreadable, a path's rule is kept that shows handlers which all paths hide", async () => {
  const { connect } = memoryStore()[INTERNALS];
  let lost: unknown;
  let isCut = false;
  const open = () =>
    customStore(async () =>
      wrapEngine(await connect(), ({ name, args, run }) => {
        if (!isCut || name !== "get") return run();
        // The server reads the rules for all paths first.
        lost ??= args[0];
        if (args[0] === lost) throw new Error("this value is lost");
        return run();
      }), { timeoutMs: 200, pollMs: 50 });
  await using fleet = new Fleet(open);
  const start = () => fleet.start({ path: "/tenants/:tenant/mcp", handlers: [read, wipe, reveal] });
  const acme = { pathParams: { tenant: "acme" } };
  const first = start();
  first.handlers.disable(wipe);
  const before = await fleet.join(first, acme);
  await before.callTool("reveal");
  assertEquals(await names(before), "read,wipe,reveal");
  await first.close();
  isCut = true;
  const client = await fleet.join(start(), acme);
  await assertBusy(() => client.listTools());
  isCut = false;
  await until(async () => !await isBusy(() => client.listTools()), "the value is readable again");
  assertEquals(await names(client), "read,wipe,reveal");
});

for (const [title, era] of [["2026-07-28", "modern"], ["a session", "legacy"]] as const) {
  Deno.test(`calls and lists send no requests for shared rules to the engine, and a rule takes three operations (${title})`, async () => {
    const { connect } = memoryStore()[INTERNALS];
    const asked: string[] = [];
    // The topic and the value of the rules, which the server reads first. A session writes other keys at any time.
    const keys = new Map<string, unknown>();
    const counted = customStore(async () =>
      wrapEngine(await connect(), ({ name, args: [key], run }) => {
        if (/^(read|get)$/.test(name) && !keys.has(name)) keys.set(name, key);
        if ([...keys.values()].includes(key)) asked.push(name);
        return run();
      }), { pollMs: 60_000 });
    await using fleet = new Fleet(() => customStore(connect));
    const server = fleet.start({ store: counted });
    const client = await fleet.join(server, { era });
    await client.callTool("read");
    await until(() => asked.splice(0).length === 0, "everything before");
    for (let i = 0; i < 5; i++) {
      await client.callTool("read");
      await client.listTools();
      await client.listResources();
      await client.readResource("disk://file");
    }
    assertEquals(asked, []);
    server.handlers.disable(wipe);
    await untilNames(client, "read,notes_add");
    await until(() => asked.includes("append"), "the rule has been written");
    assertEquals(asked.filter((name) => name !== "read"), ["get", "set", "append"]);
    await until(() => asked.splice(0).length === 0, "the rule");
    // A rule that changes nothing on any instance is not written again.
    server.handlers.disable(wipe);
    await until(() => asked.includes("get"), "the rules have been read");
    assertEquals(asked.filter((name) => name !== "get"), []);
  });
}

const reset = tool({
  name: "reset",
  run: (_input, { server: { handlers } }) => {
    handlers.disable({ tag: "admin" });
    return "Disabled.";
  },
});
const reveal = tool({
  name: "reveal",
  run: (_input, { server: { handlers } }) => {
    handlers.enable({ tool: "wipe" });
    return "Enabled.";
  },
});

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "pipe"] as const) {
    Deno.test(`on a server with paths, a rule for the server applies to all paths on all instances, and a rule for a path applies only to this path (${era} over ${transport})`, async () => {
      const toTenant = (tenant: string) => ({ pathParams: { tenant }, era, transport });
      const path = "/tenants/:tenant/mcp";
      await using fleet = new Fleet(shareMemory());
      const handlers = [read, wipe, reset, reveal];
      const start = () => fleet.start({ path, handlers });
      const [a, b] = [start(), start()];
      const all = "read,wipe,reset,reveal";
      const hidden = "read,reset,reveal";
      const [acme, acmeToo] = [await fleet.join(a, toTenant("acme")), await fleet.join(b, toTenant("acme"))];
      const other = await fleet.join(b, toTenant("other"));
      for (const client of [acme, acmeToo, other]) assertEquals(await names(client), all);
      await acme.callTool("reset");
      await untilNames(acmeToo, hidden);
      assertEquals([await names(acme), await names(other)], [hidden, all]);
      await acmeToo.callTool("reveal");
      await untilNames(acme, all);
      // The last rule decides, whichever instance made it.
      a.handlers.disable(wipe);
      for (const client of [acme, acmeToo, other]) await untilNames(client, hidden);
      await other.callTool("reveal");
      assertEquals([await names(other), await names(acmeToo)], [all, hidden]);
      await Promise.all([a.close(), b.close()]);
      const later = start();
      assertEquals(await names(await fleet.join(later, toTenant("other"))), all);
      assertEquals(await names(await fleet.join(later, toTenant("acme"))), hidden);
      assertEquals(await names(await fleet.join(later, toTenant("new"))), hidden);
      // Check a path in use and an unused path on an instance that has just started.
      later.handlers.enable(wipe);
      const last = await fleet.join(start(), toTenant("new"));
      await untilNames(last, all);
      assertEquals(fleet.events, []);
    });

    Deno.test(`the last rule decides even if the clocks of the two instances differ (${era} over ${transport})`, async () => {
      const { now } = Date;
      let ahead = 0;
      Date.now = () => 1_800_000_000_000 + ahead;
      try {
        await using fleet = new Fleet(shareMemory());
        const start = () => fleet.start({ path: "/tenants/:tenant/mcp", handlers: [read, wipe, reset, reveal] });
        const [a, b] = [start(), start()];
        const pathParams = { tenant: "acme" };
        const [client, other] = [
          await fleet.join(a, { pathParams, era, transport }),
          await fleet.join(b, { pathParams, era, transport }),
        ];
        await client.callTool("reset");
        await untilNames(other, "read,reset,reveal");
        ahead = 2000;
        await other.callTool("reveal");
        await untilNames(client, "read,wipe,reset,reveal");
        ahead = 0;
        a.handlers.disable(wipe);
        for (const each of [client, other]) await untilNames(each, "read,reset,reveal");
        // The rule is made a second time, so it is now newer than the path's rule.
        ahead = 2000;
        await other.callTool("reveal");
        await untilNames(client, "read,wipe,reset,reveal");
        ahead = 0;
        a.handlers.disable(wipe);
        for (const each of [client, other]) await untilNames(each, "read,reset,reveal");
      } finally {
        Date.now = now;
      }
    });

    Deno.test(`while the store is unavailable at the startup of an instance, no path shows a handler (${era} over ${transport})`, async () => {
      const losable = createLosable({ pollMs: 50 });
      await using fleet = new Fleet(losable.open);
      const start = () => fleet.start({ path: "/tenants/:tenant/mcp", handlers: [read, wipe, reset] });
      const first = start();
      first.handlers.disable(read);
      const before = await fleet.join(first, { pathParams: { tenant: "acme" }, era, transport });
      await before.callTool("reset");
      await first.close();
      losable.isLost = true;
      const server = start();
      const client = await fleet.join(server, { pathParams: { tenant: "acme" }, era, transport });
      await assertBusy(() => client.listTools());
      await assertBusy(() => client.callTool("wipe"));
      losable.isLost = false;
      await until(async () => !await isBusy(() => client.listTools()), "the store is available again");
      assertEquals(await names(client), "reset");
    });
  }
}

Deno.test("a server without a store cannot share rules", () => {
  const options = { name: "disk", version: "1.0.0", handlers: [read] };
  assertThrows(() => createServer({ ...options, sharedDisable: true }), TypeError, sentence("sharedDisable"));
  assertThrows(() => createServer({ ...options, sharedDisable: "yes" as never }), TypeError, sentence("sharedDisable"));
});

Deno.test("a server that closes while the store is unavailable reports the rules that it could not write", async () => {
  const losable = createLosable();
  await using fleet = new Fleet(losable.open);
  const server = fleet.start();
  losable.isLost = true;
  server.handlers.disable(wipe);
  server.handlers.disable(read);
  await server.close();
  assertEquals(String(fleet.events.at(-1)?.error), sentence(2));
});

Deno.test("cleanup: the store process ends", () => rmSync(folder, { recursive: true, force: true }));
