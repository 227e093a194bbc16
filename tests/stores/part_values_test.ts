// What a part of a server (a layer, an extension, an authentication) keeps in a store that others can write to.
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { type Authentication, extension, type Handler, type ServerOptions, tool } from "../../mod.ts";
import type { ServerHandle, StoreView } from "../../src/extensions/extension.ts";
import { layer } from "../../src/layers/layers.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { openShared } from "../tasks/shared_store.ts";
import { openServer } from "../support/servers.ts";

const other = "another secret of at least thirty-two chars";
const ttlMs = 60_000;

interface Parts {
  /** The store of a layer, an extension and an authentication. */
  readonly all: readonly StoreView[];
  readonly close: () => Promise<void>;
}

const plain = (name: string) => tool({ name, run: () => name });

/** Starts an instance of a server whose parts use the data of `shared`. */
async function start(shared: Store, options: Partial<ServerOptions> & { readonly before?: readonly Handler[] } = {}) {
  const { before = [], ...rest } = options;
  const handles: ServerHandle[] = [];
  const keep = (at: number) => (handle: ServerHandle) => void (handles[at] = handle);
  const kept = layer(() => ({ name: "kept", start: keep(0) }));
  const audit = extension({ id: "com.example/audit", start: keep(1) });
  const auth: Authentication = { authenticate: () => ({ id: "ada" }), start: keep(2) };
  const layered = [...before, plain("a")].map((handler) =>
    handler.name === "bare" ? handler : tool({
      name: handler.name ?? "",
      use: [kept],
      run: () => "",
    })
  );
  const server = openServer({ auth, handlers: [...layered, audit], store: openShared(shared), ...rest });
  await server.ready();
  const all = handles.map(({ store }) => {
    if (!store) throw new Error("no store");
    return store.own;
  });
  const parts: Parts = { all, close: () => server.close() };
  return parts;
}

/** The values in the data of a store, as somebody sees them who can read the store. */
const look = async (shared: Store) => (await shared.list("", { limit: 1000 })).filter(({ key }) => /^.{16}-/.test(key));

const texts = (list: readonly { readonly value: string }[]) => list.map(({ value }) => value);

Deno.test("a part's value is readable for other instances, and not for somebody who can read the store", async () => {
  const shared = memoryStore();
  const [here, there] = [await start(shared), await start(shared)];
  for (const [at, part] of here.all.entries()) {
    await part.set("balance", `secret ${at}`, { ttlMs });
    await part.append("entries", `secret ${at}`, { ttlMs, max: 10 });
    assertEquals((await there.all[at].get("balance"))?.value, `secret ${at}`);
    assertEquals(texts(await there.all[at].list("", { limit: 10 })), [`secret ${at}`]);
    assertEquals(texts((await there.all[at].read("entries", { limit: 10 })).entries), [`secret ${at}`]);
  }
  const found = await look(shared);
  assertEquals(found.length, 3);
  assert(!JSON.stringify(found).includes("secret"));
});

Deno.test("a value that was sealed with another secret is absent, and can be replaced", async () => {
  const shared = memoryStore();
  const [here, there] = [await start(shared), await start(shared, { secret: other })];
  for (const [at, part] of here.all.entries()) {
    const foreign = there.all[at];
    const heard: string[] = [];
    const stop = await part.subscribe("entries", (text) => heard.push(text));
    await foreign.set("balance", "1", { ttlMs });
    await foreign.append("entries", "1", { ttlMs, max: 10 });
    assertEquals(await part.get("balance"), undefined);
    assertEquals(await part.list("", { limit: 10 }), []);
    assertEquals((await part.read("entries", { limit: 10 })).entries, []);
    await part.publish("entries", "2");
    await until(() => heard.length > 0, "the entry of this secret");
    assertEquals(heard, ["2"]);
    assertEquals((await part.read("entries", { limit: 1 })).entries, [{ id: 2, value: "2" }]);
    assertNotEquals(await part.set("balance", "2", { ttlMs, version: null }), undefined);
    assertEquals(await part.set("balance", "3", { ttlMs, version: null }), undefined);
    assertEquals((await part.get("balance"))?.value, "2");
    stop();
  }
});

Deno.test("a value that somebody has made, changed or moved is absent", async () => {
  const shared = memoryStore();
  const { all: [part, neighbor], close } = await start(shared);
  await part.set("balance", "1", { ttlMs });
  const [{ key, value }] = await look(shared);
  await neighbor.set("balance", "9", { ttlMs });
  await part.set("price", "9", { ttlMs });
  const [mine, theirs] = (await look(shared)).filter((each) => each.key !== key).toSorted((a, b) =>
    Number(b.key.endsWith("price")) - Number(a.key.endsWith("price"))
  );
  for (const made of ["1", "", '{"a":1}', value.replace(/.$/, (last) => last === "A" ? "B" : "A"), `${value}AAAA`]) {
    await shared.set(key, made, { ttlMs });
    assertEquals(await part.get("balance"), undefined, made);
  }
  for (const moved of [mine, theirs]) {
    await shared.set(key, moved.value, { ttlMs });
    assertEquals(await part.get("balance"), undefined, moved.key);
  }
  assertEquals(texts(await part.list("", { limit: 10 })), ["9"]);
  await close();
});

Deno.test("an entry of a log is absent in another log, and as a value", async () => {
  const shared = memoryStore();
  const logs = new Map<string, string>();
  const { all: [part], close } = await start(spy(shared, logs));
  await part.append("credit", "100", { ttlMs, max: 10 });
  await part.append("debit", "1", { ttlMs, max: 10 });
  const [[, credit], [debit]] = logs;
  await shared.append(debit, credit, { ttlMs, max: 10 });
  assertEquals(texts((await part.read("debit", { limit: 10 })).entries), ["1"]);
  await part.set("credit", "", { ttlMs });
  const [{ key }] = await look(shared);
  await shared.set(key, credit, { ttlMs });
  assertEquals(await part.get("credit"), undefined);
  // The name of a log is not the key of a value either.
  for (const [log, text] of logs) await shared.set(log, text, { ttlMs });
  assertEquals(await part.list("", { limit: 10 }), []);
  await close();
});

/** Records the last entry of each log that is written to the data of `shared`. */
function spy(shared: Store, logs: Map<string, string>): Store {
  return new Proxy(shared, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof name !== "symbol") return typeof value === "function" ? value.bind(target) : value;
      const { connect } = Object(value);
      const open = async () => {
        const engine = await connect();
        const append = engine.append.bind(engine);
        return new Proxy(engine, {
          get: (engine, name) => {
            const method: unknown = Reflect.get(engine, name, engine);
            if (name !== "append") return typeof method === "function" ? method.bind(engine) : method;
            return (log: string, text: string, ...rest: readonly unknown[]) => {
              logs.set(log, text);
              return append(log, text, ...rest);
            };
          },
        });
      };
      return { ...Object(value), connect: open };
    },
  });
}

Deno.test("an older value that was put back counts, because the server cannot tell it from a write", async () => {
  const shared = memoryStore();
  const { all: [part], close } = await start(shared);
  await part.set("balance", "1", { ttlMs });
  const [{ key, value }] = await look(shared);
  await part.set("balance", "2", { ttlMs });
  await shared.set(key, value, { ttlMs });
  assertEquals((await part.get("balance"))?.value, "1");
  await close();
});

Deno.test("values that cannot be opened hide no other values from pages of a list or a log", async () => {
  const shared = memoryStore();
  const [here, there] = [await start(shared), await start(shared, { secret: other })];
  const [part] = here.all;
  for (let at = 0; at < 9; at++) {
    const writer = at % 4 ? there.all[0] : part;
    await writer.set(`k${at}`, `${at}`, { ttlMs });
    await writer.append("log", `${at}`, { ttlMs, max: 10 });
  }
  const first = await part.list("k", { limit: 2 });
  assertEquals(first.map(({ key }) => key), ["k0", "k4"]);
  assertEquals((await part.list("k", { limit: 2, after: "k4" })).map(({ key }) => key), ["k8"]);
  const found: string[] = [];
  for (let after = 0, isEnd = false; !isEnd;) {
    const { entries } = await part.read("log", { after, limit: 1 });
    isEnd = !entries.length;
    found.push(...texts(entries));
    after = entries.at(-1)?.id ?? after;
  }
  assertEquals(found, ["0", "4", "8"]);
});

Deno.test("a part can use any text as a key", async () => {
  for (const shared of [true, false]) {
    const data = memoryStore();
    const { all: [part], close } = await start(data, shared ? {} : { store: data });
    const keys = ["", "a", "a_", "a_0022", 'a"', 'tool "pay"', "é", "\0", "\ud800", "a".repeat(230)];
    for (const key of keys) {
      await part.set(key, `value of ${key.length}`, { ttlMs });
      await part.append(key, "entry", { ttlMs, max: 10 });
    }
    for (const key of keys) assertEquals((await part.get(key))?.value, `value of ${key.length}`);
    const listed = async (prefix: string) => (await part.list(prefix, { limit: 100 })).map(({ key }) => key).toSorted();
    assertEquals(await listed(""), keys.toSorted());
    assertEquals(await listed("a_"), ["a_", "a_0022"]);
    assertEquals(await listed('a"'), ['a"']);
    assertEquals((await part.read("é", { limit: 9 })).last, 1);
    await assertRejects(async () => await part.get("a".repeat(300)), RangeError, sentence("characters"));
    await assertRejects(async () => await part.set("a", "\0", { ttlMs }), RangeError, sentence("U+0000"));
    await assertRejects(async () => await part.set("a", 1 as never, { ttlMs }), TypeError, sentence("string"));
    await close();
  }
});

Deno.test("limits count the bytes of a sealed value", async () => {
  const { all: [part], close } = await start(memoryStore());
  assertNotEquals(await part.set("a", "x".repeat(780_000), { ttlMs }), undefined);
  await assertRejects(async () => await part.set("a", "x".repeat(800_000), { ttlMs }), RangeError, sentence("bytes"));
  await close();
});

Deno.test("the part of a layer does not depend on the order of the handlers", async () => {
  const shared = memoryStore();
  const before = await start(shared);
  await before.all[0].set("balance", "1", { ttlMs });
  await before.close();
  const after = await start(shared, { before: [plain("added")] });
  assertEquals((await after.all[0].get("balance"))?.value, "1");
});
