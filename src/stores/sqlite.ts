/**
 * A store in an SQLite file, for several processes on one machine.
 *
 * ```ts ignore
 * import { DatabaseSync } from "node:sqlite";
 * import { createServer } from "@x/mcp";
 * import { sqliteStore } from "@x/mcp/stores/sqlite";
 *
 * const store = sqliteStore(() => new DatabaseSync("./mcp.db"));
 * export default createServer({ name: "notes", version: "1.0.0", store, secret: process.env.MCP_SECRET });
 * ```
 *
 * @module
 */
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineWriteOptions,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  Store,
  StoredEntry,
  StoredValue,
  StoreEngine,
} from "../server/engine/store.ts";
import { type Clock, systemClock } from "../core/timers.ts";
import { FileWatch } from "./replaced_file.ts";
import { customStore, requireConnect, type StoreOptions } from "./custom_store.ts";

/** An open database: `DatabaseSync` of `node:sqlite`, or `Database` of `bun:sqlite` or better-sqlite3. */
export interface SqliteDatabase {
  /** Runs statements. */
  exec(sql: string): unknown;
  /** Compiles a SQL statement. */
  prepare(sql: string): SqliteStatement;
  /** Closes the file. */
  close(): unknown;
}

/** A compiled statement. */
export interface SqliteStatement {
  /** Returns the first row, or `undefined` or `null` if there is no row. */
  get(...values: readonly (string | number)[]): unknown;
  /** Returns all rows. */
  all(...values: readonly (string | number)[]): readonly unknown[];
  /** Runs the statement. */
  run(...values: readonly (string | number)[]): unknown;
}

/**
 * Creates a store in an SQLite file. `open` opens the database, and can return a promise. The store calls `open` again
 * if three consecutive operations fail. The store creates its tables, whose names start with `mcp_`, switches to the
 * write-ahead log, and closes the database.
 *
 * Operations are synchronous. While another process writes, an operation waits at most 20 ms and is then retried at
 * most four times. Each wait blocks the event loop. The expiry of values depends on the wall-clock time of the
 * server's clock.
 *
 * @throws {TypeError} if an option is not a number above 0.
 */
export function sqliteStore(open: () => Awaitable<SqliteDatabase>, options: StoreOptions = {}): Store {
  requireConnect({ open }, "sqliteStore(() => new DatabaseSync(path))");
  return customStore(async ({ clock }) => new SqliteEngine(await open(), { open, clock }), options);
}

const TABLES = `pragma journal_mode = wal; pragma synchronous = normal; pragma busy_timeout = 20;
create table if not exists mcp_values (key text primary key, value text, version text, due real) without rowid;
create table if not exists mcp_logs (log text primary key, last integer, epoch text, due real) without rowid;
create table if not exists mcp_entries (log text, id integer, token text, value text, primary key (log, id)) without rowid;
create unique index if not exists mcp_tokens on mcp_entries (log, token);
create table if not exists mcp_rings (id integer primary key autoincrement, log text);`;

/** Milliseconds between two checks for log entries by other processes while the store listens. */
const LOOK_MS = 20;
/** Maximum number of notifications of new entries that the file keeps for other processes. */
const RINGS = 1000;
/** Minimum milliseconds between two removals of expired rows. */
const SWEEP_MS = 10_000;
/** Maximum number of expired rows per removal. */
const SWEEP_ROWS = 200;

type Row = Readonly<Record<string, unknown>>;

interface SqliteOptions {
  readonly open: () => Awaitable<SqliteDatabase>;
  readonly clock: Clock;
}

class SqliteEngine implements StoreEngine {
  readonly #db: SqliteDatabase;
  readonly #clock: Clock;
  // Bound: one per statement.
  readonly #statements = new Map<string, SqliteStatement>();
  #onRing?: (log: string) => void;
  readonly #file: FileWatch<SqliteDatabase>;
  #sweepAt = 0;

  constructor(db: SqliteDatabase, { open, clock }: SqliteOptions) {
    this.#db = db;
    this.#clock = clock;
    db.exec(TABLES);
    this.#file = new FileWatch(db, identify(db), { open, identify });
  }

  get(key: string): StoredValue | undefined {
    this.#file.check();
    return this.#get(key);
  }

  #get(key: string): StoredValue | undefined {
    const row = this.#row("select value, version from mcp_values where key = ? and due > ?", key, this.#clock.date());
    if (row) return { value: String(row.value), version: String(row.version) };
  }

  set(key: string, value: string, { ttlMs, version, token }: SetOptions & EngineWriteOptions): boolean {
    return this.#write(() => {
      const known = this.#get(key)?.version ?? null;
      if (known === token) return true;
      if (version !== undefined && known !== version) return false;
      this.#run("insert or replace into mcp_values values (?, ?, ?, ?)", key, value, token, this.#clock.date() + ttlMs);
      return true;
    });
  }

  delete(key: string, { version }: DeleteOptions): boolean {
    return this.#write(() => {
      const known = this.#get(key)?.version ?? null;
      if (known !== null && version !== undefined && known !== version) return false;
      this.#run("delete from mcp_values where key = ?", key);
      return true;
    });
  }

  list(prefix: string, { after = "", limit }: ListOptions): readonly StoredEntry[] {
    this.#file.check();
    const sql = "select key, value, version from mcp_values where key > ? and key >= ? and key < ? and due > ? " +
      "order by key limit ?";
    // "~" sorts after all characters that are allowed in keys.
    return this.#rows(sql, after, prefix, `${prefix}~`, this.#clock.date(), limit)
      .map(({ key, value, version }) => ({ key: String(key), value: String(value), version: String(version) }));
  }

  append(log: string, value: string, { ttlMs, max, token }: AppendOptions & EngineWriteOptions): number {
    const id = this.#write(() => {
      const head = this.#findLog(log);
      // If the log has expired, delete its old entries.
      if (!head) this.#run("delete from mcp_entries where log = ?", log);
      const repeated = this.#row("select id from mcp_entries where log = ? and token = ?", log, token);
      if (repeated) return Number(repeated.id);
      const id = (head?.last ?? 0) + 1;
      const epoch = head?.epoch ?? crypto.randomUUID();
      this.#run("insert or replace into mcp_logs values (?, ?, ?, ?)", log, id, epoch, this.#clock.date() + ttlMs);
      this.#run("insert into mcp_entries values (?, ?, ?, ?)", log, id, token, value);
      this.trim(log, id - max + 1);
      this.#run("insert into mcp_rings (log) values (?)", log);
      return id;
    });
    // Notify this process's listener directly, because `pragma data_version` changes only for other connections.
    this.#onRing?.(log);
    return id;
  }

  read(log: string, { after = 0, limit }: ReadOptions): LogPage {
    return this.#atomic("begin", () => {
      const head = this.#toHead(log);
      const sql = "select id, value from mcp_entries where log = ? and id > ? order by id limit ?";
      const rows = head.last && limit ? this.#rows(sql, log, after, limit) : [];
      return { ...head, entries: rows.map(({ id, value }) => ({ id: Number(id), value: String(value) })) };
    });
  }

  trim(log: string, before: number): void {
    this.#run("delete from mcp_entries where log = ? and id < ?", log, before);
  }

  heads(logs: readonly string[]): readonly LogHead[] {
    return this.#atomic("begin", () => logs.map((log) => this.#toHead(log)));
  }

  listen(onRing: (log: string) => void, onLost: (error?: unknown) => void): () => void {
    let known = this.#readVersion();
    let last = Number(this.#row("select max(id) as last from mcp_rings")?.last ?? 0);
    const look = () => {
      try {
        this.#file.check();
        const version = this.#readVersion();
        for (const ring of version === known ? [] : this.#rows("select * from mcp_rings where id > ?", last)) {
          last = Math.max(last, Number(ring.id));
          onRing(String(ring.log));
        }
        known = version;
        stop = systemClock.start(look, LOOK_MS, { background: true });
      } catch (error) {
        onLost(error);
      }
    };
    let stop = systemClock.start(look, LOOK_MS, { background: true });
    this.#onRing = onRing;
    return () => {
      stop();
      this.#onRing = undefined;
    };
  }

  close(): void {
    this.#db.close();
  }

  // Returns a number that changes whenever another connection has written to the database.
  #readVersion(): unknown {
    return this.#row("pragma data_version")?.data_version;
  }

  #findLog(log: string): { readonly last: number; readonly epoch: string } | undefined {
    const row = this.#row("select last, epoch from mcp_logs where log = ? and due > ?", log, this.#clock.date());
    if (row) return { last: Number(row.last), epoch: String(row.epoch) };
  }

  #toHead(log: string): LogHead {
    const head = this.#findLog(log);
    if (!head) return { first: 1, last: 0, epoch: "" };
    const first = this.#row("select min(id) as first from mcp_entries where log = ?", log)?.first;
    return { first: Number(first ?? head.last + 1), ...head };
  }

  #write<T>(run: () => T): T {
    return this.#atomic("begin immediate", () => {
      const result = run();
      this.#sweep();
      return result;
    });
  }

  #atomic<T>(begin: string, run: () => T): T {
    this.#file.check();
    this.#db.exec(begin);
    try {
      const result = run();
      this.#db.exec("commit");
      return result;
    } catch (error) {
      this.#db.exec("rollback");
      throw error;
    }
  }

  // Deletes a limited number of expired rows, because deleting many rows at once could block the event loop.
  #sweep(): void {
    const now = this.#clock.date();
    if (now < this.#sweepAt) return;
    const old = this.#rows("select key from mcp_values where due < ? limit ?", now, SWEEP_ROWS);
    for (const { key } of old) this.#run("delete from mcp_values where key = ?", String(key));
    const [dead] = this.#rows("select log from mcp_logs where due < ? limit 1", now);
    if (dead) {
      this.#run("delete from mcp_entries where log = ?", String(dead.log));
      this.#run("delete from mcp_logs where log = ?", String(dead.log));
    }
    this.#run("delete from mcp_rings where id < (select max(id) from mcp_rings) - ?", RINGS);
    if (old.length < SWEEP_ROWS && !dead) this.#sweepAt = now + SWEEP_MS;
  }

  #run(sql: string, ...values: readonly (string | number)[]): void {
    this.#prepare(sql).run(...values);
  }

  #row(sql: string, ...values: readonly (string | number)[]): Row | undefined {
    const row = this.#prepare(sql).get(...values);
    return isRow(row) ? row : undefined;
  }

  #rows(sql: string, ...values: readonly (string | number)[]): readonly Row[] {
    return this.#prepare(sql).all(...values).filter(isRow);
  }

  #prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

const READ_ID = "select id from mcp_files";
const WRITE_ID = `create table if not exists mcp_files (id text);
insert into mcp_files select hex(randomblob(16)) where not exists (select 1 from mcp_files);`;

/** Returns the random id of a database file. The first process that opens a file writes the id. */
function identify(db: SqliteDatabase): unknown {
  const known = readId(db);
  if (known !== undefined) return known;
  db.exec(WRITE_ID);
  return readId(db);
}

function readId(db: SqliteDatabase): unknown {
  try {
    const row = db.prepare(READ_ID).get();
    return isRow(row) ? row.id : undefined;
  } catch (error) {
    // The file is new and has no tables yet.
    if (/no such table/.test(String(error))) return;
    throw error;
  }
}

function isRow(row: unknown): row is Row {
  return typeof row === "object" && row !== null;
}
