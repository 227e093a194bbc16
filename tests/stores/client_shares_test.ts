// A client that has used up its share of a store is refused with code -31503. Such a refusal is never treated like a
// failure of the store, so the client gains nothing by it, and other clients and the process itself notice nothing.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { extension, resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { type Authentication, refuseRequest } from "../../src/server/engine/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";
import { health } from "../../src/observe/observe.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { toCall, toGet, toInitialize, toLegacy, toListen } from "../hostile/attack.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { openOn, wrapEngine } from "../support/engines.ts";
import { LATE_STREAMS, testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { toReply, toRequest } from "../support/requests.ts";
import { readTo } from "../support/read_to.ts";
import { openServer } from "../support/servers.ts";

const REVISION = { "mcp-protocol-version": "2025-11-25" };
const HOLD = "hold-";
const META = {
  "io.modelcontextprotocol/clientCapabilities": {
    elicitation: { form: {} },
    extensions: { "io.modelcontextprotocol/tasks": {}, "test.example/hold": {} },
  },
};

/** Runs of handlers on all instances, by tool. */
let runs: Record<string, number> = {};

/** An instance of a server. Commands of its engine for keys that contain {@linkcode HOLD} wait. */
interface Instance extends AsyncDisposable {
  readonly server: Server;
  readonly store: Store;
  /** Number of commands that wait. */
  waiting: number;
  /** Lets all commands continue. */
  finish(): void;
  /** Number of requests for `hold/later` whose first operation is done. */
  begun: number;
  /** Lets requests for `hold/later` start their second operation. */
  goOn(): void;
  /** The states of the store that were reported to the observer. */
  readonly states: string[];
  /** The limits that clients have reached, as reported to the observer. */
  readonly reached: Set<string>;
}

interface Options extends BoundOptions {
  readonly leaseMs?: number;
  readonly pending?: number;
  /** The clock of the store. */
  readonly clock?: FakeClock;
}

function startInstance(shared: Store, { leaseMs, pending, clock, ...bounds }: Options = {}): Instance {
  const { pass, open: finish } = gate();
  const { pass: later, open: goOn } = gate();
  const states: string[] = [];
  const reached = new Set<string>();
  const instance = { waiting: 0, begun: 0, finish, goOn, states, reached };
  const connect = async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ args: [key], run }) => {
      if (!String(key).includes(HOLD)) return await run();
      instance.waiting++;
      await pass;
      instance.waiting--;
      return await run();
    });
  const storeOptions = { timeoutMs: 60_000, leaseMs, pending };
  const store = clock ? openOn(clock, connect, storeOptions) : customStore(connect, storeOptions);
  const count = (name: string) => runs[name] = (runs[name] ?? 0) + 1;
  const hold = extension({
    id: "test.example/hold",
    // Only an extension that starts has a store.
    start() {},
    methods: {
      "hold/one": {
        run: async (_params, ctx, server) => {
          await server?.store?.by(ctx).get(HOLD + crypto.randomUUID());
          return {};
        },
      },
      "hold/two": {
        run: async (_params, ctx, server) => {
          // The second operation of a request is not refused.
          for (let i = 0; i < 2; i++) await server?.store?.by(ctx).get(HOLD + crypto.randomUUID());
          return {};
        },
      },
      "hold/later": {
        run: async (_params, ctx, server) => {
          await server?.store?.by(ctx).get("first");
          instance.begun++;
          await later;
          await server?.store?.by(ctx).get("second");
          return {};
        },
      },
      "hold/again": {
        run: async (_params, ctx, server) => {
          const get = async () => await server?.store?.by(ctx).get("key");
          await get().catch(get);
          return {};
        },
      },
      "hold/lease": {
        run: async (_params, ctx, server) => {
          await server?.store?.by(ctx).lease.isHeld("unknown");
          return {};
        },
      },
    },
  });
  const server = openServer({
    store,
    limits: testLimits({ ...LATE_STREAMS, calls: { closeMs: 20 }, ...bounds }),
    auth: auth(),
    sharedDisable: true,
    routes: health(),
    handlers: [
      tasks(),
      hold,
      tool({
        name: "pay",
        input: z.object({ key: z.string() }),
        use: [idempotent(({ key }) => key)],
        run: () => `paid ${count("pay")}`,
      }),
      tool({
        name: "rated",
        use: [quota({ rate: { calls: 3, perMs: 3_600_000 }, shared: true })],
        run: () => `rated ${count("rated")}`,
      }),
      tool({ name: "keep", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => "line\n".repeat(1000) }),
      tool({
        name: "consent",
        async run(_, ctx) {
          const { action } = await ctx.elicit("sure", { message: "?", schema: z.object({}), singleUse: true });
          count("consent");
          return action;
        },
      }),
      tool({
        name: "tail",
        async run(_, { progress, signal }) {
          await progress(1);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return "tailed";
        },
      }),
      resource({ uri: "test://a", name: "a", read: () => "" }),
      tool({ name: "off", run: () => "off" }),
      tool({ name: "work", use: [task()], run: () => `worked ${count("work")}` }),
      tool({
        name: "charge",
        use: [task({ resume: true })],
        async run(_, ctx) {
          count("charge");
          await ctx.once("charge", () => count("once"));
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return "charged";
        },
      }),
    ],
    observer: {
      store: ({ state }) => void states.push(state),
      limit: ({ limit }) => void reached.add(limit),
      fault() {},
    },
  });
  return Object.assign(instance, {
    server,
    store,
    async [Symbol.asyncDispose]() {
      finish();
      goOn();
      await server.close();
    },
  });
}

/** Accepts every caller, and marks an id as used for a caller that sends a proof. */
function auth(): Authentication {
  return {
    start() {},
    async authenticate({ headers }, { now }, server) {
      const id = headers.get("authorization")?.slice("Bearer ".length);
      if (!id) return;
      const proof = headers.get("x-proof");
      if (proof === null) return { id };
      const use = await server?.markUsed({ id: proof, principal: id, at: now, ttlMs: 60_000 });
      return use === "new" ? { id } : refuseRequest(503, { reason: "it is unknown whether the proof was used" });
    },
  };
}

/** Sends requests as one caller. */
class Caller {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  async send({ server }: Instance, request: Request): Promise<Response> {
    request.headers.set("authorization", `Bearer ${this.id}`);
    return await server.fetch(request);
  }

  /** Sends a request, and returns the HTTP status, the error code, and the text of the response. */
  async ask(instance: Instance, request: Request): Promise<Answer> {
    const response = await this.send(instance, request);
    return toAnswer(response.status, await response.text());
  }

  async method(instance: Instance, method: string, params: { readonly [key: string]: unknown } = {}): Promise<Answer> {
    const headers: Record<string, string> = typeof params.taskId === "string" ? { "mcp-name": params.taskId } : {};
    return await this.ask(instance, toRequest(method, { _meta: META, ...params }, headers));
  }

  async call(instance: Instance, name: string, given: object = {}, more: object = {}): Promise<Answer> {
    return await this.method(instance, "tools/call", { name, arguments: given, ...more });
  }

  /** Opens a session. */
  async begin(instance: Instance): Promise<string> {
    const { headers } = await this.send(instance, toLegacy(toInitialize(), REVISION));
    return headers.get("mcp-session-id") ?? "";
  }

  async inSession(instance: Instance, session: string, message: object): Promise<Answer> {
    const headers = { ...REVISION, "mcp-session-id": session };
    return await this.ask(instance, toLegacy({ jsonrpc: "2.0", ...message }, headers));
  }

  async end(instance: Instance, session: string): Promise<Answer> {
    return await this.ask(instance, new Request(toGet(session), { method: "DELETE" }));
  }

  /** Starts a call in a session whose stream stays open. Returns the id of its first event. */
  async tail(instance: Instance, session: string): Promise<string> {
    const params = { name: "tail", arguments: {}, _meta: { progressToken: "p" } };
    const headers = { ...REVISION, "mcp-session-id": session };
    const request = toLegacy({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, headers);
    const { body } = await this.send(instance, request);
    const text = await readTo(body, `"progress":1`);
    return /(?<=^id: ).+$/m.exec(text)?.[0] ?? "";
  }

  /** Resumes a stream. Returns the answer, or only the status if the stream was resumed. */
  async resume(instance: Instance, session: string, event: string): Promise<Answer> {
    const response = await this.send(instance, toGet(session, event));
    if (response.status !== 200) return toAnswer(response.status, await response.text());
    await response.body?.cancel();
    return { status: 200, text: "" };
  }
}

interface Answer {
  readonly status: number;
  readonly code?: number;
  readonly text: string;
}

function toAnswer(status: number, text: string): Answer {
  const code = /"code":(-?\d+)/.exec(text)?.[1];
  return { status, ...code !== undefined && { code: Number(code) }, text };
}

/** Fills a client's share of an instance's store: 32 operations in progress, and 64 that wait. */
async function fillShare(caller: Caller, instance: Instance): Promise<readonly Promise<Answer>[]> {
  const filling = Array.from({ length: 96 }, () => caller.method(instance, "hold/one"));
  await until(() => instance.waiting === 32, "the operations in progress");
  const { pots } = instance.server[INTERNALS].engine.accounts;
  await until(() => pots.get("store.waiting")?.used === 64, "the waiting operations");
  return filling;
}

function assertRefused(answer: Answer, status = 503): void {
  assertEquals([answer.status, answer.code], [status, -31503], answer.text);
}

const ping = { id: 2, method: "ping" };

Deno.test("a client has 32 store operations in progress and 64 that wait; further requests are refused, and no request is refused halfway", async () => {
  await using a = startInstance(memoryStore());
  const [eve, ada] = [new Caller("eve"), new Caller("ada")];
  const waiting = [eve.method(a, "hold/two"), ...Array.from({ length: 95 }, () => eve.method(a, "hold/one"))];
  await until(() => a.waiting === 32, "the operations in progress");
  const { pots } = a.server[INTERNALS].engine.accounts;
  await until(() => pots.get("store.waiting")?.used === 64, "the waiting operations");
  assertEquals(a.reached, new Set());
  const refused = await eve.method(a, "hold/one");
  assertRefused(refused);
  assertEquals(a.reached, new Set(["store.operations"]));
  assertEquals(JSON.parse(toReply(refused.text)).error.message, sentence("store.operations"));
  // Another client uses the store meanwhile.
  assertEquals((await ada.call(a, "pay", { key: "1" })).status, 200);
  a.finish();
  for (const each of waiting) assertEquals((await each).status, 200);
  assertEquals((await eve.method(a, "hold/one")).status, 200);
  for (const name of ["store.operations", "store.waiting"]) assertEquals(pots.get(name)?.used, 0, name);
  assertEquals(a.states, []);
});

Deno.test("a request that has used the store is not refused if its client uses up its share in the meantime", async () => {
  await using a = startInstance(memoryStore());
  const eve = new Caller("eve");
  const begun = eve.method(a, "hold/later");
  await until(() => a.begun === 1, "the first operation of the request");
  const filling = await fillShare(eve, a);
  assertRefused(await eve.method(a, "hold/later"));
  // A request that was refused has not used the store.
  const again = eve.method(a, "hold/again");
  a.goOn();
  // The operation now waits, although there is no room for further requests.
  await turn();
  const { pots } = a.server[INTERNALS].engine.accounts;
  assertEquals(pots.get("store.waiting")?.used, 64);
  a.finish();
  assertEquals((await begun).status, 200);
  assertRefused(await again);
  for (const each of filling) assertEquals((await each).status, 200);
});

Deno.test("if a store has too many operations, a new request is refused, and a request that has used the store fails", async () => {
  // Two of the eight operations are reserved for the process.
  await using a = startInstance(memoryStore(), { pending: 8 });
  const eve = new Caller("eve");
  const begun = eve.method(a, "hold/later");
  await until(() => a.begun === 1, "the first operation of the request");
  const filling = Array.from({ length: 6 }, () => a.store.get(HOLD + crypto.randomUUID()));
  await until(() => a.waiting === 6, "the operations in progress");
  assertRefused(await eve.method(a, "hold/one"));
  a.goOn();
  // A refusal would tell the client that nothing has happened.
  assertEquals((await begun).code, -32603);
  a.finish();
  await Promise.all(filling);
  assertEquals((await eve.method(a, "hold/later")).status, 200);
});

Deno.test("if several clients have used up all slots of a store, a client that uses few resources gets a slot, and the others take turns", async () => {
  // Each client has two slots, and room for four operations that wait.
  await using a = startInstance(memoryStore(), { store: { operations: 16 } });
  const eves = Array.from({ length: 7 }, (_, at) => new Caller(`eve${at}`));
  const { pots } = a.server[INTERNALS].engine.accounts;
  const look = () => [a.waiting, pots.get("store.waiting")?.used];
  const filling: Promise<Answer>[] = [];
  // Six clients use all slots but the reserve. The seventh client has one operation in the reserve. Wait for each
  // client, because operations of several clients may reach the store in any order.
  for (const [at, eve] of eves.entries()) {
    filling.push(...Array.from({ length: 8 }, () => eve.method(a, "hold/one")));
    await until(() => a.waiting === Math.min(2 * (at + 1), 13), "the operations in progress", look);
    await until(() => pots.get("store.waiting")?.used === 4 * (at + 1), "the waiting operations", look);
  }
  assertEquals((await new Caller("ada").call(a, "pay", { key: "1" })).status, 200);
  a.finish();
  // The other requests had no room to wait.
  assertEquals((await Promise.all(filling)).filter(({ status }) => status === 200).length, 13 + 28);
});

Deno.test("each request that needs the store is refused if its client has used up its share, and nothing happens", async () => {
  runs = {};
  const shared = memoryStore();
  await using a = startInstance(shared);
  await using b = startInstance(shared);
  const [ada, bob] = [new Caller("ada"), new Caller("bob")];
  // What the clients have before.
  const [open, unopened, ended] = [await ada.begin(a), await ada.begin(a), await ada.begin(a)];
  assertEquals((await ada.inSession(b, open, ping)).status, 200);
  const event = await ada.tail(a, unopened);
  const tailed = await ada.begin(a);
  const tail = await ada.tail(a, tailed);
  await until(async () => (await ada.resume(b, tailed, tail)).status === 200, "the stream is in the store");
  const own = await ada.begin(a);
  const unread = await ada.tail(a, own);
  assertEquals((await ada.inSession(b, own, ping)).status, 200);
  const { text } = await ada.call(a, "keep");
  const uri = /result:\/\/keep\/[^"\\ :]+/.exec(text)?.[0] ?? "";
  const ask = async (caller: Caller) => /"requestState":"([^"]+)"/.exec((await caller.call(b, "consent")).text)?.[1];
  const requestState = await ask(ada);
  const answer = { requestState, inputResponses: { sure: { action: "accept", content: {} } } };
  const taskId = /"taskId":"([^"]+)"/.exec((await ada.call(a, "work")).text)?.[1] ?? "";
  assertEquals((await ada.call(b, "pay", { key: "old" })).status, 200);
  runs = {};
  const filling = await fillShare(ada, b);

  const setLevel = { id: 3, method: "logging/setLevel", params: { level: "error" } };
  const cancelled = { method: "notifications/cancelled", params: { requestId: 1 } };
  // A session that another instance may have ended is not accepted.
  assertRefused(await ada.inSession(b, unopened, ping));
  assertRefused(await ada.end(b, ended));
  assertRefused(await ada.resume(b, unopened, event));
  assertRefused(await ada.resume(b, own, unread));
  assertRefused(await ada.inSession(b, open, setLevel), 429);
  assertRefused(await ada.inSession(b, open, cancelled));
  assertRefused(await ada.method(b, "resources/read", { uri }));
  assertRefused(await ada.call(b, "consent", {}, answer));
  for (const key of ["new", "old"]) assertRefused(await ada.call(b, "pay", { key }));
  for (let i = 0; i < 3; i++) assertRefused(await ada.call(b, "rated"));
  assertRefused(await ada.call(b, "work"));
  for (const method of ["tasks/get", "tasks/cancel"]) assertRefused(await ada.method(b, method, { taskId }));
  assertRefused(await ada.method(b, "tasks/update", { taskId, inputResponses: {} }));
  assertRefused(await ada.ask(b, toListen({ taskIds: [taskId] }, META)));
  for (const method of ["hold/one", "hold/lease"]) assertRefused(await ada.method(b, method));
  const proven = toCall("tail");
  proven.headers.set("x-proof", "p1");
  assertRefused(await ada.ask(b, proven));
  // The handler of a task starts before the task is stored, and is then cancelled.
  assertEquals(runs, { work: 1 });
  // A session that is already open on this instance still works.
  assertEquals((await ada.inSession(b, open, ping)).status, 200);

  // Other clients, and the process itself, notice nothing.
  const session = await bob.begin(a);
  assertEquals((await bob.inSession(b, session, ping)).status, 200);
  assertEquals((await bob.inSession(b, session, setLevel)).status, 200);
  assertMatch((await bob.call(b, "pay", { key: "new" })).text, /paid 1/);
  assertMatch((await bob.call(b, "rated")).text, /rated 1/);
  assertEquals((await bob.end(b, session)).status, 204);
  const { body } = await bob.send(a, toListen({ resourceSubscriptions: ["test://a"] }));
  const reading = readTo(body, "notifications/resources/updated");
  b.server.resourceUpdated("test://a");
  assertMatch(await reading, /"uri":"test:\/\/a"/);
  b.server.handlers.disable({ tool: "off" });
  await until(async () => (await bob.call(a, "off")).code === -32602, "the tool is disabled on the other instance");
  const ready = await b.server.fetch(new Request("http://localhost/ready"));
  assertEquals([ready.status, b.states], [200, []]);
  await ready.body?.cancel();

  b.finish();
  for (const each of filling) assertEquals((await each).status, 200);
  // Nothing was lost or counted.
  assertEquals((await ada.inSession(b, unopened, ping)).status, 200);
  assertEquals((await ada.inSession(b, ended, ping)).status, 200);
  assertEquals((await ada.end(b, ended)).status, 204);
  assertEquals((await ada.resume(b, own, unread)).status, 200);
  assertMatch((await ada.method(b, "resources/read", { uri })).text, /line/);
  assertMatch((await ada.call(b, "consent", {}, answer)).text, /accept/);
  for (let i = 0; i < 3; i++) assertEquals((await ada.call(a, "rated")).status, 200);
  assertEquals((await ada.call(a, "rated")).code, -31429);
  assertMatch((await ada.method(b, "tasks/get", { taskId })).text, /completed/);
  assertEquals(b.states, []);
});

Deno.test("while requests of a client wait for a slow store, leases are renewed, and no living task runs a second time", async () => {
  runs = {};
  const leaseMs = 500;
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  await using a = startInstance(shared, { leaseMs, clock });
  await using b = startInstance(shared, { leaseMs, clock });
  const [eve, ada] = [new Caller("eve"), new Caller("ada")];
  const taskId = /"taskId":"([^"]+)"/.exec((await ada.call(a, "charge")).text)?.[1] ?? "";
  await b.server.ready();
  const toUnknown = () => (HOLD + crypto.randomUUID()).slice(0, 32);
  const flood = Array.from(
    { length: 20 },
    () => eve.send(a, toListen({ taskIds: Array.from({ length: 100 }, toUnknown) }, META)),
  );
  await until(() => a.waiting >= 32, "the flood");
  const { lease } = a.store;
  for (let renewals = 0; renewals < 6; renewals++) {
    const known = lease.heldUntil;
    await until(async () => {
      assert(await shared.get(lease.id));
      await clock.advance(10);
      return lease.heldUntil > known;
    }, "a renewal");
    assertEquals((await ada.call(a, "pay", { key: `${renewals}` })).status, 200);
  }
  assertEquals([runs.charge, runs.once], [1, 1]);
  assertMatch((await ada.method(b, "tasks/get", { taskId })).text, /"working"/);
  a.finish();
  for (const each of flood) await (await each).body?.cancel();
});

Deno.test("a client follows as many topics as it may have streams; a further resumed stream ends, and streams of other clients continue", async () => {
  const shared = memoryStore();
  await using a = startInstance(shared);
  await using b = startInstance(shared, { connections: { streamsPerClient: 2 } });
  const [ada, bob] = [new Caller("ada"), new Caller("bob")];
  // A stream is followed until its call has ended, even if the client has disconnected.
  const follow = async (caller: Caller) => {
    const session = await caller.begin(a);
    const event = await caller.tail(a, session);
    await until(async () => (await caller.resume(b, session, event)).status === 200, "the stream is in the store");
    return { session, event };
  };
  const { pots } = b.server[INTERNALS].engine.accounts;
  for (let i = 0; i < 2; i++) await follow(ada);
  await until(() => pots.get("store.subscriptions")?.used === 2, "both streams are followed");
  const { session, event } = await follow(ada);
  const last = await ada.send(b, toGet(session, event));
  // The stream ends without the result of its call.
  assert(!(await last.text()).includes("tailed"));
  await follow(bob);
  await until(() => pots.get("store.subscriptions")?.used === 3, "the stream of the other client");
});

Deno.test("a request to subscribe reads its tasks four at a time", async () => {
  let most = 0;
  let reading = 0;
  const shared = memoryStore();
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, args: [key], run }) => {
      if (name !== "get" || !String(key).includes("-t-")) return await run();
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setTimeout(resolve));
      reading--;
      return await run();
    })
  );
  const server = openServer({ store, handlers: [tasks()] });
  const taskIds = Array.from({ length: 100 }, () => crypto.randomUUID().replaceAll("-", ""));
  const { body } = await server.fetch(toListen({ taskIds }, META));
  assertMatch(await readTo(body, "acknowledged"), /"taskIds":\[\]/);
  assertEquals(most, 4);
});
