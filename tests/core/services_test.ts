// The service container: lifetimes, keys, limits, cycles, and failures during disposal.
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { createServer, type Server, type ServerOptions, type Service, service, tool } from "../../mod.ts";
import { connectTest, fakeClock, fakeContext, replay } from "../../src/testing/testing.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { makeFolder, removeFolder } from "../support/copies.ts";
import { gate, textOf, turn, until } from "../support/behaviour.ts";
import { closeAtEnd } from "../support/running.ts";
import { ask, call, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";

const identity = { name: "services", version: "1.0.0" };

/** Creates a server that closes at the end of the test, and collects the errors that it reports. */
function make(options: Partial<ServerOptions>): { readonly server: Server; readonly faults: string[] } {
  const faults: string[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(Object(error).message) };
  return { server: closeAtEnd(createServer({ ...identity, ...options, observer })), faults };
}

/** Returns the argument `key` of a call. */
const byKey = ({ params }: { readonly params: Readonly<Record<string, unknown>> }) =>
  String(Object(params.arguments).key);

const textIn = async (server: Server, name: string, args = {}) =>
  textOf(await call(server, "tools/call", { name, arguments: args }));

Deno.test("services: creating a server creates no service, and ready() creates server-wide services once", async () => {
  let made = 0;
  const db = service("db", () => ++made);
  const tx = service("tx", () => assert(false, "made too early"), { per: "call" });
  const { server } = make({ handlers: [tool({ name: "t", services: { db, tx }, run: () => "" })] });
  await turn();
  assertEquals(made, 0);
  await Promise.all([server.ready(), server.ready()]);
  await server.ready();
  assertEquals(made, 1);
});

Deno.test("services: ready() also creates the server-wide services in the `uses` of other services, and fails if one of them fails", async () => {
  const made: string[] = [];
  let isBroken = false;
  const disk = service("disk", () => {
    if (isBroken) throw new Error("the disk is full");
    made.push("disk");
    return "disk";
  });
  const pool = service("pool", async ({ get }) => {
    made.push("pool");
    return await get(disk);
  }, { uses: [disk] });
  const cache = service("cache", () => assert(false, "made too early"), { per: () => "all" });
  const tx = service("tx", async ({ get }) => await get(pool), { per: "call", uses: [pool, cache] });
  const handlers = [tool({ name: "t", services: { tx }, run: (_, { services }) => services.tx })];
  const { server } = make({ handlers });
  await server.ready();
  assertEquals(made, ["disk", "pool"]);
  assertEquals(await textIn(server, "t"), "disk");
  assertEquals(made, ["disk", "pool"]);
  await server.close();
  isBroken = true;
  const { server: broken } = make({ handlers });
  await assertRejects(() => broken.ready(), Error, "the disk is full");
});

Deno.test("services: services whose `uses` refer to each other are created once, and a service outside of `uses` still works", async () => {
  const made: string[] = [];
  const list: Service[] = [];
  const first = service("first", () => void made.push("first"), { uses: list });
  const second = service("second", () => void made.push("second"), { uses: [first] });
  list.push(second);
  const third = service("third", () => "third");
  const last = service("last", ({ get }) => get(third), { per: "call", uses: [second] });
  const { server } = make({
    handlers: [tool({ name: "t", services: { last }, run: (_, { services }) => services.last })],
  });
  await server.ready();
  assertEquals(made.sort(), ["first", "second"]);
  assertEquals(await textIn(server, "t"), "third");
});

Deno.test("services: a server without services is ready", async () => {
  const { server } = make({});
  await server.ready();
});

Deno.test("services: the first request creates server-wide services, and a failure is reported even if no call waits for it", async () => {
  let made = 0;
  const db = service("db", () => {
    made++;
    throw new RangeError("down");
  });
  const idle = tool({ name: "idle", run: () => "ok" });
  const { server, faults } = make({ handlers: [idle, tool({ name: "t", services: { db }, run: () => "" })] });
  assertEquals(await textIn(server, "idle"), "ok");
  assertEquals([made, faults], [1, ["down"]]);
  await textIn(server, "idle");
  assertEquals(made, 1);
});

Deno.test("services: ready() reports a cycle, whichever service the cycle starts from", async () => {
  const parts: Record<string, ReturnType<typeof service<unknown>>> = {};
  const from = (name: string, next: string, waits: boolean) =>
    parts[name] = service(name, async ({ get }) => {
      if (waits) await undefined;
      return await get(parts[next]);
    });
  for (const waits of [false, true]) {
    from("a", "b", waits);
    from("b", "c", !waits);
    from("c", "a", waits);
    const { server } = make({ handlers: [tool({ name: "t", services: { ...parts }, run: () => "" })] });
    const { message } = await assertRejects(() => server.ready(), TypeError);
    assertMatch(message, /"(.)".*\(\1 → . → . → \1\)/);
  }
  const self = service("self", ({ get }): Promise<unknown> => get(self));
  const { server } = make({ handlers: [tool({ name: "t", services: { self }, run: () => "" })] });
  await assertRejects(() => server.ready(), TypeError, sentence('service "self"', "self → self"));
});

Deno.test("services: a service that depends on a service with a shorter lifetime fails at startup", async () => {
  const tx = service("tx", () => 1, { per: "call" });
  const cart = service("cart", () => 1, { per: () => "key" });
  for (const narrow of [tx, cart]) {
    const db = service("db", ({ get }) => get<number>(narrow));
    const { server } = make({ handlers: [tool({ name: "t", services: { db }, run: () => "" })] });
    await assertRejects(() => server.ready(), TypeError, sentence('service "db"', `"${narrow.name}"`));
  }
});

Deno.test("services: a service with a key can use a server-wide service, and another service with the same key", async () => {
  const per = (ctx: { readonly principal?: { readonly id: string } }) => ctx.principal?.id;
  const db = service("db", () => "db");
  const user = service("user", async ({ get, key }) => `${await get(db)} ${key}`, { per });
  const cart = service("cart", async ({ get, key }) => `${await get(user)} ${key}`, { per });
  const other = service("other", ({ get }) => get(user), { per: () => "x" });
  const t = tool({ name: "t", services: { cart }, run: (_, { services: { cart } }) => cart });
  const u = tool({ name: "u", services: { other }, run: () => "" });
  const { server, faults } = make({ handlers: [t, u] });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  assertEquals(textOf(await ada.callTool("t")), "db ada ada");
  // Without a key, the value lives for one call.
  await using nobody = await connectTest(server);
  assertEquals(textOf(await nobody.callTool("t")), "db undefined undefined");
  await nobody.callTool("u");
  assertEquals(faults.length, 1);
  assertEquals(faults[0], sentence('service "other"', '"user"'));
});

Deno.test("services: values with the same key are shared, disposed when idle, and evicted in order of least recent use", async () => {
  const log: string[] = [];
  const clock = fakeClock();
  const cart = service("cart", ({ key }) => (log.push(`make ${key}`), { key }), {
    per: byKey,
    dispose: ({ key }) => void log.push(`dispose ${key}`),
    idleMs: 1000,
    max: 2,
  });
  const input = { type: "object", properties: { key: { type: "string" } } } as const;
  const t = tool({ name: "t", input, services: { cart }, run: (_, { services: { cart } }) => cart.key });
  const { server } = make({ handlers: [t], clock });
  const use = async (key: string) => assertEquals(await textIn(server, "t", { key }), key);
  for (const key of ["a", "b", "a", "c"]) await use(key);
  assertEquals(log, ["make a", "make b", "dispose b", "make c"]);
  await clock.advance(600);
  await use("a");
  await clock.advance(600);
  await until(() => log.includes("dispose c"), "c was idle");
  assert(!log.includes("dispose a"));
  await server.close();
  assertEquals(log.at(-1), "dispose a");
});

Deno.test("services: a value in use is never evicted, and a call that would exceed `max` fails", async () => {
  const { pass, open } = gate();
  const log: string[] = [];
  const cart = service("cart", ({ key }) => key, {
    per: byKey,
    dispose: (key) => void log.push(`dispose ${key}`),
    max: 1,
  });
  const started = gate();
  const run = () => (started.open(), pass);
  const t = tool({ name: "t", input: { type: "object" }, services: { cart }, run });
  const { server } = make({ handlers: [t] });
  const first = call(server, "tools/call", { name: "t", arguments: { key: "a" } });
  await started.pass;
  const second = await ask(server, "tools/call", { name: "t", arguments: { key: "b" } });
  assertEquals(second.error?.message, sentence('service "cart"', 1, "max"));
  assertEquals([second.status, log], [503, []]);
  open();
  await first;
  await call(server, "tools/call", { name: "t", arguments: { key: "b" } });
  assertEquals(log, ["dispose a"]);
});

Deno.test("hostile: a client with many keys neither evicts values of other clients nor uses up all values", async () => {
  const log: string[] = [];
  const waiting: (() => void)[] = [];
  const value = service("value", ({ key }) => key, { per: byKey, dispose: (key) => void log.push(`${key}`), max: 40 });
  const t = tool({
    name: "t",
    input: { type: "object", properties: { slow: { type: "boolean" } } },
    services: { value },
    run: async ({ slow }, { services: { value } }) => {
      if (slow) await new Promise<void>((resolve) => waiting.push(resolve));
      return `${value}`;
    },
  });
  const { server } = make({ handlers: [t] });
  const use = async (id: string, key: string, slow = false) => {
    const request = toRequest("tools/call", { name: "t", arguments: { key, slow } });
    const response = await server.fetch(request, { principal: { id } });
    await response.text();
    return response.status;
  };
  for (const id of ["ada", "bob", "cyd"]) assertEquals(await use(id, id), 200);
  for (let key = 0; key < 100; key++) assertEquals(await use("eve", `eve ${key}`), 200);
  assertEquals(log.filter((key) => !key.startsWith("eve")), []);
  // Four clients use as many values as they can.
  const slow = [];
  for (let key = 0; key < 10; key++) {
    for (const id of ["eve", "fay", "gus", "hal"]) slow.push(use(id, `${id} slow ${key}`, true));
  }
  await until(() => waiting.length > 20, "the slow calls run");
  await turn(20);
  for (const id of ["ada", "bob", "cyd", "new"]) assertEquals(await use(id, id), 200, id);
  assertEquals(log.filter((key) => !key.startsWith("eve")), []);
  for (const end of waiting) end();
  assertEquals([...new Set(await Promise.all(slow))].sort(), [200, 503]);
  // Three quarters of all values, without those of the other clients.
  assertEquals(waiting.length, 27);
  // Values that are disposed leave their room.
  for (let key = 0; key < 60; key++) assertEquals(await use("new", `new ${key}`), 200);
});

Deno.test("services: the only client of a process, whose address is unknown, can use all values at once", async () => {
  const { pass, open } = gate();
  const value = service("value", ({ key }) => key, { per: byKey, max: 8 });
  const t = tool({ name: "t", input: { type: "object" }, services: { value }, run: () => pass });
  const { server } = make({ handlers: [t] });
  const all = Array.from({ length: 9 }, (_, key) => ask(server, "tools/call", { name: "t", arguments: { key } }));
  await until(() => server.stats().running === 8, "all values are in use");
  open();
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  assertEquals(statuses.sort(), [...Array(8).fill(200), 503]);
});

Deno.test("hostile: a client with many keys cannot open values faster than they can be closed", async () => {
  const log: string[] = [];
  const { pass, open } = gate();
  const value = service("value", ({ key }) => (log.push(`make ${key}`), key), {
    per: byKey,
    dispose: () => pass,
    max: 3,
  });
  const t = tool({ name: "t", input: { type: "object" }, services: { value }, run: () => "done" });
  const { server } = make({ handlers: [t] });
  const use = async (key: number) => (await ask(server, "tools/call", { name: "t", arguments: { key } })).status;
  const statuses: number[] = [];
  for (let key = 0; key < 8; key++) statuses.push(await use(key));
  assertEquals(statuses, [200, 200, 200, 200, 200, 200, 503, 503]);
  assertEquals(log.length, 6);
  open();
  await until(async () => await use(9) === 200, "a value was closed");
});

Deno.test("services: a key that is not a string is an error, and an undefined key hides handlers whose `allow` needs the service", async () => {
  const bad = service("bad", () => 1, { per: () => 5 as unknown as string });
  const none = service("none", () => 1, { per: () => undefined });
  const t = tool({ name: "t", services: { bad }, run: () => "" });
  const h = tool({ name: "h", services: { none }, allow: () => true, run: () => "" });
  const empty = service("empty", () => 1, { per: ({ principal }) => principal?.id ?? "" });
  const e = tool({ name: "e", services: { empty }, run: () => "" });
  const { server, faults } = make({ handlers: [t, h, e] });
  await textIn(server, "t");
  assertEquals(faults.splice(0), [sentence('service "bad"', 5)]);
  await textIn(server, "e");
  // With an empty key, all callers without an id would share the value.
  assertEquals(faults.splice(0), [sentence('service "empty"')]);
  assertEquals((await ask(server, "tools/call", { name: "h" })).error?.message, sentence('"h"'));
  assertEquals(faults[0], sentence('service "none"'));
});

Deno.test("services: if a service fails synchronously, a service that is still being created is disposed", async () => {
  const log: string[] = [];
  const slow = service("slow", async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return "slow";
  }, { per: "call", dispose: (value, end) => void log.push(`${value} ${end}`) });
  const bad = service("bad", () => 1, { per: throwing(new RangeError("no key")) });
  const t = tool({ name: "t", services: { slow, bad }, run: () => "" });
  const { server, faults } = make({ handlers: [t] });
  await textIn(server, "t");
  await until(() => log.length > 0, "the value was disposed");
  assertEquals([log, faults], [["slow cancelled"], ["no key"]]);
});

Deno.test("services: ctx.get keeps a value with a key in use while the handler runs, but not while `allow` runs", async () => {
  const { pass, open } = gate();
  const log: string[] = [];
  let got = 0;
  const cart = service("cart", ({ key }) => key, {
    per: byKey,
    dispose: (key) => void log.push(`dispose ${key}`),
    max: 1,
  });
  const t = tool({
    name: "t",
    input: { type: "object" },
    allow: async (ctx) => (await ctx.get(cart)) !== "hidden",
    run: async (_, ctx) => {
      await ctx.get(cart);
      got++;
      await pass;
      return "ok";
    },
  });
  const { server } = make({ handlers: [t] });
  const send = (key: string) => ask(server, "tools/call", { name: "t", arguments: { key } });
  assertEquals((await send("hidden")).error?.message, sentence('"t"'));
  const first = send("a");
  await until(() => got > 0, "the handler runs");
  // `allow` fails, because the only allowed value is in use.
  assertEquals((await send("b")).error?.message, sentence('"t"'));
  assertEquals(log, ["dispose hidden"]);
  open();
  await first;
  await until(async () => !(await send("b")).error, "the value is no longer in use");
  assertEquals(log, ["dispose hidden", "dispose a"]);
});

Deno.test("services: over stdio without signals, the server creates its services before it reads its input", async () => {
  const log: string[] = [];
  const db = service("db", async () => {
    await turn();
    log.push("made");
  }, { dispose: () => void log.push("disposed") });
  const { server } = make({ handlers: [tool({ name: "t", services: { db }, run: () => "" })] });
  const input = new ReadableStream<Uint8Array>({
    pull(controller) {
      log.push("read");
      controller.close();
    },
  }, { highWaterMark: 0 });
  await serveStdio(server, { input, output: () => Promise.resolve() });
  assertEquals(log, ["made", "read", "disposed"]);
});

Deno.test("services: a disposal that throws or hangs does not block other services or close()", async () => {
  const log: string[] = [];
  const clock = fakeClock();
  const make1 = (name: string, dispose: () => unknown) =>
    service(name, () => name, { dispose: () => (log.push(name), dispose()) });
  const services = {
    a: make1("a", () => {}),
    b: make1("b", throwing(new RangeError("b fails"))),
    c: make1("c", () => Promise.reject(new RangeError("c fails"))),
    d: make1("d", () => Promise.withResolvers<never>().promise),
  };
  const { server, faults } = make({ handlers: [tool({ name: "t", services, run: () => "" })], clock });
  await server.ready();
  const closing = server.close();
  await until(() => log.length > 0, "close() disposes");
  await clock.advance(10_000);
  await closing;
  assertEquals(log, ["d", "c", "b", "a"]);
  assertEquals(faults, [sentence('service "d"', 10_000), "c fails", "b fails"]);
});

Deno.test("services: Symbol.asyncDispose and Symbol.dispose of a value are called, as its methods", async () => {
  const log: string[] = [];
  class Later {
    name = "later";
    async [Symbol.asyncDispose]() {
      await undefined;
      log.push(this.name);
    }
  }
  class Now {
    name = "now";
    [Symbol.dispose]() {
      log.push(this.name);
    }
  }
  const services = { later: service("later", () => new Later()), now: service("now", () => new Now()) };
  const { server } = make({ handlers: [tool({ name: "t", services, run: () => "" })] });
  await server.ready();
  await server.close();
  assertEquals(log, ["now", "later"]);
});

Deno.test("services: close() aborts a make that is running, and disposes a value that the make still returns", async () => {
  const log: string[] = [];
  const slow = service("slow", async ({ signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    log.push("aborted");
    return 1;
  }, { dispose: () => void log.push("disposed") });
  const { server } = make({ handlers: [tool({ name: "t", services: { slow }, run: () => "" })] });
  const ready = assertRejects(() => server.ready(), Error, sentence('service "slow"'));
  await server.close();
  await ready;
  assertEquals(log, ["aborted", "disposed"]);
  await assertRejects(() => server.ready(), Error, sentence('service "slow"'));
});

Deno.test("services: requesting a service while another service is being disposed throws", async () => {
  const states: string[] = [];
  const late = service("late", () => 1, { per: () => "key" });
  let get: (() => Promise<unknown>) | undefined;
  const db = service("db", () => 1, {
    dispose: () => get?.().then(() => states.push("made"), (error) => states.push(error.message)),
  });
  const t = tool({
    name: "t",
    services: { db },
    run: (_, ctx) => {
      get = () => ctx.get(late);
      return "";
    },
  });
  const { server } = make({ handlers: [t] });
  await textIn(server, "t");
  await server.close();
  assertEquals(states, [sentence('service "late"', "get()")]);
});

Deno.test("services: two servers with the same service have separate values", async () => {
  let made = 0;
  const log: number[] = [];
  const db = service("db", () => ++made, { dispose: (value) => void log.push(value) });
  const t = tool({ name: "t", services: { db }, run: (_, { services: { db } }) => db });
  const servers = [make({ handlers: [t] }).server, make({ handlers: [t] }).server];
  assertEquals(await Promise.all(servers.map((server) => textIn(server, "t"))), ["1", "2"]);
  await servers[0].close();
  assertEquals(log, [1]);
  assertEquals(await textIn(servers[1], "t"), "2");
});

Deno.test("services: a service from another copy of the library works, alone and together with this copy's services", async () => {
  const folder = await makeFolder();
  try {
    const theirs: typeof import("../../mod.ts") = await import(new URL("mod.ts", folder).href);
    const log: string[] = [];
    const dispose = (value: string) => void log.push(value);
    const a = service("a", () => "a", { dispose });
    const b = theirs.service("b", async ({ get }) => `b${await get(a)}`, { dispose });
    const c = service("c", async ({ get }) => `c${await get(b)}`, { per: "call", dispose });
    const mine = tool({ name: "mine", services: { b, c }, run: (_, { services: { b, c } }) => b + c });
    const other = theirs.tool({ name: "other", services: { c, b }, run: (_, { services: { b, c } }) => b + c });
    for (const handlers of [[mine, other], [other, mine]]) {
      const { server } = make({ handlers });
      assertEquals([await textIn(server, "mine"), await textIn(server, "other")], ["bacba", "bacba"]);
      await server.close();
      assertEquals(log.splice(0), ["cba", "cba", "ba", "a"]);
    }
  } finally {
    await removeFolder(folder);
  }
});

Deno.test("services: the services of handlers that are added later are created too", async () => {
  const db = service("db", () => "db");
  const { server } = make({});
  server.handlers.add(tool({ name: "t", services: { db }, run: (_, { services: { db } }) => db }));
  assertEquals(await textIn(server, "t"), "db");
});

Deno.test("services: a value can be undefined, a promise-like value is awaited, and several names can share a service", async () => {
  const nothing = service("nothing", () => undefined);
  const query = service("query", () => ({ then: (resolve: (value: string) => void) => resolve("row") }) as never);
  const t = tool({
    name: "t",
    services: { nothing, query, again: query },
    run: (_, { services }) => `${services.nothing} ${services.query} ${services.again}`,
  });
  const { server } = make({ handlers: [t] });
  assertEquals(await textIn(server, "t"), "undefined row row");
});

Deno.test("services: rest() disposes services, and a later call creates them again", async () => {
  const log: string[] = [];
  const db = service("db", () => log.push("make"), { dispose: () => void log.push("dispose") });
  const t = tool({ name: "t", services: { db }, run: () => "ok" });
  const { server } = make({ handlers: [t] });
  const container = server[INTERNALS].host.container;
  await server.ready();
  await container?.disposeUnlessStarted();
  {
    await using client = await connectTest(server, { transport: "pipe" });
    assertEquals(textOf(await client.callTool("t")), "ok");
  }
  assertEquals(log, ["make", "dispose", "make"]);
  // While the server handles requests, rest() keeps the services.
  await textIn(server, "t");
  await container?.disposeUnlessStarted();
  assertEquals(log.length, 3);
  await server.close();
  assertEquals(log.at(-1), "dispose");
});

Deno.test("services: an invalid definition is refused with the name of the invalid field", () => {
  const options = (wrong: object) => () => service("db", () => 1, wrong);
  assertThrows(() => service("", () => 1), TypeError, sentence('service ""'));
  assertThrows(() => service("db", 5 as never), TypeError, sentence('service "db"'));
  assertThrows(options({ per: "session" }), TypeError, sentence('service "db"', '"session"', '"server"', '"call"'));
  assertThrows(options({ dispose: 5 }), TypeError, sentence("dispose", 5));
  for (const uses of [{}, [5], [undefined], "db"]) {
    assertThrows(options({ uses }), TypeError, sentence('service "db"'));
  }
  assertThrows(options({ per: () => "", max: 0 }), TypeError, sentence("max", 0));
  assertThrows(options({ per: () => "", idleMs: -1 }), TypeError, sentence("idleMs", -1));
  // If this string were accepted, a time plus the string would be a string, and the value would never be disposed.
  assertThrows(options({ per: () => "", idleMs: "600000" }), TypeError, sentence("idleMs", '"600000"'));
  assertThrows(options({ per: () => "", max: "10" }), TypeError, sentence("max", '"10"'));
  const define = () => tool({ name: "t", services: { db: 5 as never }, run: () => "" });
  assertThrows(define, TypeError, sentence('tool "t"', "services.db"));
});

Deno.test("services: a fake context has fake services, and the error for a missing fake names it", async () => {
  const db = service("db", () => ({ list: () => ["real"] }));
  const tx = service("tx", () => 1, { per: "call" });
  const notes = tool({
    name: "notes",
    services: { db, tx },
    allow: ({ services: { db } }) => db.list().length > 0,
    run: async (_, { services, get, defer, session }) => {
      defer(() => {});
      return `${services.db.list()} ${(await get(db)).list()} ${session()}`;
    },
  });
  const fakes = { db: { list: () => ["fake"] } };
  const ctx = fakeContext({ services: fakes, session: "s" });
  assertEquals(await notes.run({}, ctx), "fake fake s");
  assertEquals(ctx.deferred.length, 1);
  assertEquals(await notes.allow?.(fakeContext({ services: fakes })), true);
  const wanted = sentence('service "db"', "services");
  await assertRejects(async () => await notes.run({}, fakeContext()), TypeError, wanted);
  const other = tool({ name: "other", run: (_, ctx) => ctx.get(db) });
  await assertRejects(async () => await other.run({}, fakeContext()), TypeError, wanted);
  assertEquals((await replay(notes, {}, { services: fakes })).value, "fake fake undefined");
});
