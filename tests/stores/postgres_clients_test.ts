// `postgresStore` on a real PostgreSQL server, with each client: it fulfils the contract of a store, even if the server
// is killed, paused or emptied.
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { openLink } from "../../src/stores/postgres/clients.ts";
import { type PostgresClient, postgresStore, type PostgresStoreOptions } from "../../src/stores/postgres/postgres.ts";
import type { Awaitable, Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { type ClientKind, CLIENTS, type Place, startReady } from "../support/postgres/clients.ts";
import { missingPostgres, type PostgresServer } from "../support/postgres/server.ts";
import { random } from "../support/random.ts";
import { needs } from "../support/required.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";

/** The server for the contract tests. */
const shared = new SharedServer(startReady, missingPostgres);

for (const { name, connect } of CLIENTS) {
  testStore(() => postgresStore(() => connect(shared.running)), {
    test: (rule, run) => shared.test(`${name} ${rule}`, run),
  });
}

/** Runs a test with two stores on a separate server, for each client. */
function eachAlone(name: string, run: (parts: Parts) => Promise<void>): void {
  for (const kind of CLIENTS) {
    Deno.test({
      ...needs(`${kind.name}: ${name}`, missingPostgres),
      async fn() {
        await using server = await startReady();
        await runIn({ server, kind, database: "postgres" }, run);
      },
    });
  }
}

/** Number of databases that tests have created. */
let databases = 0;

/** Runs a test with two stores in a separate database of the shared server, for each client. */
function each(name: string, run: (parts: Parts) => Promise<void>): void {
  for (const kind of CLIENTS) {
    shared.test(`${kind.name}: ${name}`, async () => {
      const server = shared.running;
      const database = `test_${++databases}`;
      server.run(`create database ${database} template template0`);
      await runIn({ server, kind, database }, run);
    });
  }
}

async function runIn(
  { server, kind, database }: Pick<Parts, "server" | "kind" | "database">,
  run: (parts: Parts) => Promise<void>,
): Promise<void> {
  const connect = (place?: Partial<Place>) => kind.connect({ folder: server.folder, database, ...place });
  const open = (options?: PostgresStoreOptions, place?: Partial<Place>) =>
    postgresStore(() => connect(place), { timeoutMs: 20_000, ...options });
  const stores = [open(), open()] as const;
  const runSql = (sql: string) => server.run(sql, { database });
  await run({ server, kind, database, connect, open, sql: runSql, store: stores[0], other: stores[1] });
  for (const store of stores) await store.close();
}

interface Parts {
  readonly server: PostgresServer;
  readonly kind: ClientKind;
  readonly database: string;
  readonly store: Store;
  readonly other: Store;
  connect(place?: Partial<Place>): Promise<PostgresClient>;
  open(options?: PostgresStoreOptions, place?: Partial<Place>): Store;
  /** Runs SQL in the database as the administrator. Returns the first column of all rows. */
  sql(sql: string): string;
}

const ttlMs = 60_000;

eachAlone("after the server was killed, nothing is lost, and subscribers receive later entries", async (parts) => {
  const { server, store, other } = parts;
  const heard: unknown[] = [];
  for (const text of ["a", "b"]) await other.publish("topic", text);
  await store.subscribe("topic", (text) => void heard.push(text), { after: 1, onGap: () => heard.push("gap") });
  await until(() => heard.length > 0, "the second text");
  await server.kill();
  await until(async () => !await isUp(store) && !await isUp(other), "the store is unavailable");
  server.start();
  await until(async () => await isUp(store) && await isUp(other), "the store is available again");
  for (const text of ["1", "2", "3"]) await other.publish("topic", text);
  await until(() => heard.includes("3"), "the last text");
  assertEquals(heard, ["b", "1", "2", "3"]);
});

eachAlone("while the server is paused, operations time out, and no operation runs twice", async (parts) => {
  const { server, store, other } = parts;
  server.pause();
  await assertRejects(async () => await store.append("log", "x", { ttlMs, max: 10, token: "one" }));
  server.resume();
  await until(async () => await isUp(store) && await isUp(other), "the store is available again");
  await store.append("log", "x", { ttlMs, max: 10, token: "one" });
  assertEquals((await other.read("log", { limit: 10 })).entries.map(({ value }) => value), ["x"]);
});

each("while a row is locked, writes to it fail before the timeout, and keep no connection", async (parts) => {
  const { store, open, connect, sql } = parts;
  await store.set("key", "1", { ttlMs });
  await store.append("log", "1", { ttlMs, max: 10 });
  const holder = openLink(await connect(), 1000);
  const held = holder.query("select pg_sleep(60) from (select from mcp.stored_values for update) as v", []);
  held.catch(() => {});
  // The statement sleeps once it has locked the row.
  const sleeping =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
  await until(() => sql(sleeping) === "1", "the row is locked");
  const waiting = open({ timeoutMs: 5000 });
  await assertRejects(async () => await waiting.set("key", "2", { ttlMs }), Error, sentence());
  await waiting.close();
  // Other rows are not affected.
  await store.append("log", "2", { ttlMs, max: 10 });
  await until(
    () =>
      sql("select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") ===
        "0",
    "no statement waits for the lock",
  );
  assertEquals((await store.get("key"))?.value, "1");
  await holder.close();
});

each("a subscriber whose connection for notifications ends receives later entries", async (parts) => {
  const { sql, store, other } = parts;
  const heard: string[] = [];
  await store.subscribe("topic", (text) => void heard.push(text));
  const ended =
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query like 'listen %'";
  assertEquals(sql(ended), "1");
  await other.publish("topic", "1");
  await until(() => heard.length > 0, "an entry has arrived");
  const listening =
    "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen %'";
  await until(() => sql(listening) === "1", "the store listens again");
  await other.publish("topic", "2");
  await until(() => heard.length > 1, "the next entry has arrived");
});

each("stores with different schemas do not see each other's data", async ({ store, open }) => {
  const other = open({ schema: "other_1" });
  await store.set("key", "1", { ttlMs });
  await store.append("log", "1", { ttlMs, max: 10 });
  const heard: string[] = [];
  await store.subscribe("log", (text) => void heard.push(text));
  await other.publish("log", "2");
  await store.publish("log", "3");
  await until(() => heard.length > 0, "an entry has arrived");
  assertEquals([heard, await other.get("key"), await other.list("", { limit: 9 })], [["3"], undefined, []]);
  await other.close();
});

each("many processes can create the schema at once, and create it again after it was dropped", async (parts) => {
  const { sql, open } = parts;
  const stores = Array.from({ length: 8 }, () => open({ schema: "fresh", timeoutMs: 10_000 }));
  const append = () => Promise.all(stores.map((store, i) => store.append("log", `${i}`, { ttlMs, max: 100 })));
  assertEquals((await append()).sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  sql("set client_min_messages = error; drop schema fresh cascade");
  assertEquals((await append()).sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  for (const store of stores) await store.close();
});

each("a role without rights gets an error with the statement that repairs it", async ({ sql, open, database }) => {
  const user = `app_${database}`;
  sql(`create role ${user} login`);
  const place = { user };
  const schema = "rights";
  const failing = open({ schema }, place);
  const error = await assertRejects(async () => await failing.get("key"));
  await failing.close();
  const reason = String(error instanceof Error && error.cause);
  assertMatch(reason, /permission denied/);
  sql(reason.slice(reason.indexOf("create schema")));
  const store = open({ schema }, place);
  await store.set("key", "1", { ttlMs });
  sql(`alter table rights.stored_values owner to postgres`);
  const denied = await assertRejects(async () => await store.get("key"));
  assertMatch(String(denied instanceof Error && denied.cause), /permission denied.*grant/s);
  sql(`grant select on rights.stored_values to ${user}`);
  assertEquals((await store.get("key"))?.value, "1");
  await store.close();
});

each("a role that may only use the tables needs no right to create them", async ({ sql, open, store, database }) => {
  const user = `app_${database}`;
  await store.set("key", "1", { ttlMs });
  sql(
    `create role ${user} login; grant usage on schema mcp to ${user}; grant execute on all functions in schema mcp to ${user};
    grant select, insert, update, delete on all tables in schema mcp to ${user}`,
  );
  const other = open({}, { user });
  assertEquals((await other.get("key"))?.value, "1");
  await other.append("log", "1", { ttlMs, max: 1 });
  await other.close();
});

each("a database with another encoding is refused", async ({ sql, open }) => {
  sql("drop database if exists latin");
  sql("create database latin encoding 'LATIN1' template template0 locale 'C'");
  const store = open({}, { database: "latin" });
  await assertRejects(async () => await store.get("key"), TypeError, sentence("encoding"));
  await store.close();
});

each("expired values and logs are deleted from the tables, in parts", async ({ sql, store, open }) => {
  await store.get("key");
  const count = (table: string) => Number(sql(`select count(*) from mcp.${table}`));
  sql(`insert into mcp.stored_values select 'old' || i, '', '', now() from generate_series(1, 700) as i;
    insert into mcp.logs select 'old' || i, 'epoch' || i, 1, 300, now() from generate_series(1, 3) as i;
    insert into mcp.log_entries select 'epoch' || i, j, 'token' || j, ''
      from generate_series(1, 3) as i, generate_series(1, 300) as j`);
  // The name of an expired log can be used again at once.
  assertEquals(await store.append("old1", "1", { ttlMs, max: 10 }), 1);
  await store.close();
  const next = open();
  const before = count("stored_values");
  await until(async () => {
    await next.set("key", "1", { ttlMs });
    return count("stored_values") === 1 && count("logs") === 1;
  }, "all rows have been deleted");
  assert(before <= 701, "no row was added");
  assertEquals(count("log_entries"), 1);
  await next.close();
});

each("random texts, keys and tokens are stored unchanged, and never run as SQL", async ({ sql, store, other }) => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const { below, pick, text } = random(seed);
  const pieces = [
    "'",
    '"',
    "\\",
    ";",
    "--",
    "/*",
    "$1",
    "$$",
    "$body$",
    "%",
    "_",
    "{",
    "}",
    ",",
    "\n",
    "\r",
    "\t",
    "\u0001",
  ]
    .concat([
      "\u007f",
      "é",
      "✓",
      "中",
      "😀",
      "\u2028",
      "\ufeff",
      "\ufffd",
      "\ue000",
      "null",
      "NULL",
      "",
      "x".repeat(3000),
    ])
    .concat(["'); drop schema mcp cascade; --", "\\x00", "\\u0000", "E'\\0'", "true", "1e999", "NaN", "[]", "{}"]);
  const letters = "abzABZ019-_";
  const values = new Map<string, string>();
  const entries: string[] = [];
  for (let i = 0; i < 150; i++) {
    const value = text(pieces, 12);
    const key = pick(letters) + text(letters, below(8) ? 6 : 255);
    const token = `${i}${text(letters, 100)}`;
    await store.set(key, value, { ttlMs, token });
    values.set(key, value);
    await store.append("log", value, { ttlMs, max: 1000, token });
    entries.push(value);
    if (!below(10)) {
      const gone = pick([...values.keys()]);
      await store.delete(gone);
      values.delete(gone);
    }
  }
  const sorted = [...values].sort(([a], [b]) => a < b ? -1 : 1);
  const found: [string, string][] = [];
  for (let after = "";;) {
    const page = await other.list("", { after, limit: 1 + below(20) });
    if (!page.length) break;
    for (const { key, value } of page) found.push([key, value]);
    after = page[page.length - 1].key;
  }
  assertEquals(found, sorted, `SEED ${seed}`);
  const { entries: read } = await other.read("log", { limit: 1000 });
  assertEquals(read.map(({ value }) => value), entries, `SEED ${seed}`);
  assertEquals(sql("select count(*) from mcp.logs"), "1");
});

Deno.test("postgresStore refuses a value that is not a function, an invalid schema, and an unknown client", async () => {
  // deno-lint-ignore no-explicit-any -- as from JavaScript
  const make = postgresStore as any;
  const schemas = ["", "A", "1a", 'a"b', "a b", "a-b", "a;b", "é", "a".repeat(49), 7, null];
  for (const args of [[{}], ...schemas.map((schema) => [() => ({}), { schema }])]) {
    assertThrows(() => make(...args), TypeError, sentence("Cannot create a store"));
  }
  for (const client of [{}, { end() {} }, { end() {}, connect() {}, query() {} }]) {
    const store: Store = make(() => client);
    await assertRejects(async () => await store.get("key"), TypeError, sentence("unknown client"));
  }
});

each("a function that returns the same pool twice cannot listen", async ({ connect }) => {
  const client = await connect();
  const store = postgresStore(() => client);
  await store.set("key", "1", { ttlMs });
  await assertRejects(async () => await store.subscribe("topic", () => {}), TypeError, sentence("new pool"));
  assertEquals((await store.get("key"))?.value, "1");
  await store.close();
});

each("a value that the database cannot store is a RangeError, and later operations work", async ({ sql, store }) => {
  await store.get("key");
  sql("alter table mcp.stored_values alter column value type varchar(10)");
  await assertRejects(async () => await store.set("key", "x".repeat(11), { ttlMs }), RangeError, sentence("too long"));
  await store.set("key", "x".repeat(10), { ttlMs });
});

each("with serializable transactions by default, concurrent writes are repeated until they succeed", async (parts) => {
  const { sql, open, database } = parts;
  sql(`alter database ${database} set default_transaction_isolation = 'serializable'`);
  const stores = [1, 2, 3].map(() => open({ timeoutMs: 20_000 }));
  let conflicts = 0;
  const repeat = async <T>(run: () => Awaitable<T>): Promise<T> => {
    while (true) {
      try {
        return await run();
      } catch (error) {
        // The store gives up after five attempts.
        assertMatch(String(error instanceof Error && error.cause), /could not serialize/);
        conflicts++;
      }
    }
  };
  await Promise.all(stores.map(async (store, at) => {
    for (let done = 0; done < 10;) {
      await repeat(() => store.append("log", "", { ttlMs, max: 100, token: `${at}-${done}` }));
      const found = await repeat(() => store.get("count"));
      const version = found?.version ?? null;
      const token = crypto.randomUUID();
      const value = `${Number(found?.value ?? 0) + 1}`;
      if (await repeat(() => store.set("count", value, { ttlMs, version, token }))) done++;
    }
  }));
  assertEquals([(await stores[0].get("count"))?.value, (await stores[0].read("log", { limit: 0 })).last], ["30", 30]);
  assert(conflicts < 300, `${conflicts} conflicts`);
  for (const store of stores) await store.close();
});
