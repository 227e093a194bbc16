/**
 * A store in PostgreSQL, for server instances on several machines.
 *
 * ```ts ignore
 * import { createServer } from "@x/mcp";
 * import { postgresStore } from "@x/mcp/stores/postgres";
 * import pg from "pg";
 *
 * const store = postgresStore(() => new pg.Pool({ connectionString: "postgres://127.0.0.1/notes" }));
 * export default createServer({ name: "notes", version: "1.0.0", store, secret: process.env.MCP_SECRET });
 * ```
 *
 * @module
 */
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineOptions,
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
} from "../../server/engine/store.ts";
import { deadline } from "../../core/kit/deadline.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { systemClock } from "../../core/timers.ts";
import { customStore, openOther, requireConnect, STORE_OPTIONS, type StoreOptions } from "../custom_store.ts";
import { type BatchEngine, GET_ALL } from "../get_all.ts";
import { openLink, type Parameter, type PostgresClient, type PostgresLink, type Row } from "./clients.ts";
import { type Statements, toStatements } from "./schema.ts";

export type { PostgresClient } from "./clients.ts";

/** Options of {@linkcode postgresStore}. */
export interface PostgresStoreOptions extends StoreOptions {
  /**
   * Schema for the tables and functions of the store: 1 to 48 lowercase letters, digits and `_`, not beginning with a
   * digit. All servers that share a store must use the same schema. Defaults to `mcp`.
   */
  readonly schema?: string;
}

const OPTIONS: KnownOptions<keyof PostgresStoreOptions> = { names: { ...STORE_OPTIONS.names, schema: true } };

/** The default of `timeoutMs`. */
const TIMEOUT_MS = 1000;

/**
 * Creates a store in PostgreSQL.
 *
 * `connect` must return a new pool on each call, because the store uses one pool for statements and another pool with a
 * single connection for notifications, and replaces a pool that does not respond. `connect` can return a promise. The
 * store closes the pools. With the first connection, the store creates its schema, tables and functions, unless they
 * exist.
 *
 * Behind a pooler that assigns connections per transaction, such as PgBouncer with `pool_mode=transaction`, notifications
 * do not arrive. The store detects this, and reads its topics every 50 ms instead.
 *
 * @throws {TypeError} if an option is not a number above 0, or if `schema` is not a valid name.
 */
export function postgresStore(
  connect: () => Awaitable<PostgresClient>,
  options: PostgresStoreOptions = {},
): Store {
  checkOptions("create a store", options, OPTIONS);
  const { schema = "mcp", ...rest } = options;
  requireConnect({ connect }, "postgresStore(() => new pg.Pool({ connectionString }))");
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,47}$/.test(schema)) {
    throw new TypeError(
      `Cannot create a store: schema is ${show(schema)}; use 1 to 48 lowercase letters, digits and "_"`,
    );
  }
  const place = { schema, timeoutMs: rest.timeoutMs ?? TIMEOUT_MS };
  return customStore(({ signal }) => openEngine(connect, place, signal), rest);
}

interface Place {
  readonly schema: string;
  readonly timeoutMs: number;
}

async function openEngine(
  connect: () => Awaitable<PostgresClient>,
  place: Place,
  signal: AbortSignal,
): Promise<StoreEngine> {
  const client = await connect();
  const toLink = (client: PostgresClient) => openLink(client, place.timeoutMs);
  const toOther = async () => toLink(await openOther(connect, client, { database: "PostgreSQL", kind: "pool" }));
  const engine = new PostgresEngine(toLink(client), place, toOther);
  try {
    await engine.install(signal);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Part of `timeoutMs` for which a statement waits for a lock, and for which `listen` waits for its own notification. */
const WAIT_SHARE = 0.8;
/** Maximum length of the text of a notification. PostgreSQL allows 7,999 bytes. */
const RING_CHARACTERS = 7000;
/** Maximum milliseconds for which closing waits for notifications that are being sent. */
const CLOSE_MS = 500;
/** Minimum milliseconds between two removals of expired rows by one process. */
const SWEEP_MS = 10_000;
/** Maximum number of expired rows per removal. */
const SWEEP_ROWS = 500;

class PostgresEngine implements BatchEngine {
  readonly #link: PostgresLink;
  readonly #schema: string;
  readonly #statements: Statements;
  readonly #openOther: () => Promise<PostgresLink>;
  readonly #waitMs: number;
  /** Identifies this engine in its notifications. */
  readonly #id = crypto.randomUUID();
  /** The names of logs whose new entries are still to be announced. */
  // Bound: `store.operations`.
  readonly #rung = new Set<string>();
  #ringing?: Promise<void>;
  #installing?: Promise<void>;
  #onRing?: (log: string) => void;
  #onLost?: (error: unknown) => void;
  #sweepAt = 0;

  constructor(link: PostgresLink, { schema, timeoutMs }: Place, openOther: () => Promise<PostgresLink>) {
    this.#link = link;
    this.#schema = schema;
    this.#statements = toStatements(schema);
    this.#openOther = openOther;
    this.#waitMs = Math.max(1, Math.floor(WAIT_SHARE * timeoutMs));
  }

  async install(signal?: AbortSignal): Promise<void> {
    const [found] = await this.#link.query(this.#statements.probe, [], signal);
    if (found.encoding !== "UTF8") {
      throw new TypeError(
        `Cannot use a PostgreSQL database: its encoding is ${found.encoding}; use a database with the encoding UTF8`,
      );
    }
    if (found.ready === true) return;
    try {
      await this.#link.run(this.#statements.install);
    } catch (cause) {
      if (toState(cause) !== "42501") throw cause;
      throw new Error(
        `Cannot create the tables of the store in PostgreSQL: ${toMessage(cause)}; run as an administrator: ` +
          `create schema ${this.#schema} authorization "${found.role}"`,
        { cause },
      );
    }
  }

  async get(key: string, { signal }: EngineOptions): Promise<StoredValue | undefined> {
    const [row] = await this.#query(this.#statements.get, [key], signal);
    if (row) return toStored(row);
  }

  async [GET_ALL](
    keys: readonly string[],
    { signal }: EngineOptions,
  ): Promise<readonly (StoredValue | undefined)[]> {
    const rows = await this.#query(this.#statements.getAll, [keys.join(",")], signal);
    const found = new Map(rows.map((row) => [row.key, toStored(row)]));
    return keys.map((key) => found.get(key));
  }

  async set(
    key: string,
    value: string,
    { ttlMs, version, token, signal }: SetOptions & EngineWriteOptions,
  ): Promise<boolean> {
    const mode = version === undefined ? "any" : version === null ? "none" : "is";
    const parameters = [key, value, token, `${ttlMs}`, mode, version ?? null];
    return await this.#write(this.#statements.set, parameters, signal) === true;
  }

  async delete(key: string, { version, signal }: DeleteOptions & EngineOptions): Promise<boolean> {
    return await this.#write(this.#statements.delete, [key, version ?? null], signal) === true;
  }

  async list(
    prefix: string,
    { after = "", limit, signal }: ListOptions & EngineOptions,
  ): Promise<readonly StoredEntry[]> {
    // "~" sorts after all characters that are allowed in keys.
    const rows = await this.#query(this.#statements.list, [prefix, `${prefix}~`, after, `${limit}`], signal);
    return rows.map((row) => ({ key: String(row.key), ...toStored(row) }));
  }

  async append(
    log: string,
    value: string,
    { ttlMs, max, token, signal }: AppendOptions & EngineWriteOptions,
  ): Promise<number> {
    const parameters = [log, value, token, `${ttlMs}`, `${max}`, crypto.randomUUID()];
    const id = Number(await this.#write(this.#statements.append, parameters, signal));
    this.#onRing?.(log);
    this.#ring(log);
    return id;
  }

  async read(log: string, { after = 0, limit, signal }: ReadOptions & EngineOptions): Promise<LogPage> {
    const rows = await this.#query(this.#statements.read, [log, `${after}`, `${limit}`], signal);
    const entries = rows.filter(({ id }) => id !== null)
      .map(({ id, value }) => ({ id: Number(id), value: String(value) }));
    return { ...toHead(rows[0]), entries };
  }

  async trim(log: string, before: number, { signal }: EngineOptions): Promise<void> {
    await this.#write(this.#statements.trim, [log, `${before}`], signal);
  }

  async heads(logs: readonly string[], { signal }: EngineOptions): Promise<readonly LogHead[]> {
    const rows = await this.#query(this.#statements.heads, [logs.join(",")], signal);
    const found = new Map(rows.map((row) => [row.log, row]));
    return logs.map((log) => toHead(found.get(log)));
  }

  async listen(
    onRing: (log: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<(() => void) | undefined> {
    const link = await this.#openOther();
    let isOver = false;
    const stop = () => {
      if (isOver) return;
      isOver = true;
      this.#onRing = this.#onLost = undefined;
      link.close().catch(() => {});
    };
    const test = crypto.randomUUID();
    const { promise: heard, resolve: hear } = Promise.withResolvers<boolean>();
    const onText = (text: string) => {
      if (text === test) hear(true);
      const [id, ...logs] = text.split(" ");
      // This engine has announced its own entries to its listener directly.
      if (id !== this.#id) { for (const log of logs) onRing(log); }
    };
    const reportLoss = (error?: unknown) => {
      if (isOver) return;
      stop();
      hear(false);
      onLost(error);
    };
    try {
      await link.listen(this.#channel, onText, reportLoss);
      await this.#query(this.#statements.notify, [this.#channel, test]);
      const onTimeout = () => false;
      const isHeard = await deadline(heard, { ms: this.#waitMs / 2, onTimeout, clock: systemClock });
      if (!isHeard || isOver) {
        stop();
        return;
      }
    } catch (error) {
      stop();
      throw error;
    }
    this.#onRing = onRing;
    if (link.losesSilently) this.#onLost = reportLoss;
    return stop;
  }

  async close(): Promise<void> {
    if (this.#ringing) await deadline(this.#ringing, { ms: CLOSE_MS, onTimeout: () => {}, clock: systemClock });
    await this.#link.close();
  }

  get #channel(): string {
    return `${this.#schema}_rings`;
  }

  async #write(sql: string, parameters: readonly Parameter[], signal: AbortSignal): Promise<unknown> {
    const [row] = await this.#query(sql, [...parameters, `${this.#waitMs}`], signal);
    this.#sweep();
    return row.result;
  }

  async #query(sql: string, parameters: readonly Parameter[], signal?: AbortSignal): Promise<readonly Row[]> {
    try {
      return await this.#link.query(sql, parameters, signal);
    } catch (error) {
      const state = toState(error);
      if (!signal?.aborted && (!state || LOST.test(state))) this.#onLost?.(error);
      if (state && DROPPED.includes(state)) {
        await (this.#installing ??= this.install().finally(() => this.#installing = undefined));
        return await this.#link.query(sql, parameters, signal);
      }
      throw toStoreError(error, this.#schema);
    }
  }

  /**
   * Announces an entry to the other processes, after its transaction. PostgreSQL commits transactions with a notification
   * one after another in the whole cluster, so a notification in each transaction of `append` would slow down all of them.
   * Entries that are appended while a notification is being sent share the next notification. A process that ends before
   * it has sent the notification is noticed by the polling of the other processes.
   */
  #ring(log: string): void {
    this.#rung.add(log);
    this.#ringing ??= this.#sendRings().finally(() => this.#ringing = undefined);
  }

  async #sendRings(): Promise<void> {
    while (this.#rung.size) {
      let text = this.#id;
      for (const log of this.#rung) {
        if (text.length + log.length > RING_CHARACTERS) break;
        text += ` ${log}`;
        this.#rung.delete(log);
      }
      // If the notification is lost, the other processes find the entries by polling.
      await this.#query(this.#statements.notify, [this.#channel, text]).catch(() => {});
    }
  }

  #sweep(): void {
    const now = systemClock.now();
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + SWEEP_MS;
    this.#query(this.#statements.sweep, [`${SWEEP_ROWS}`]).then(([{ result }]) => {
      if (result === true) this.#sweepAt = 0;
    }, () => {});
  }
}

/** Codes of errors after which the schema, a table or a function is missing. */
const DROPPED: readonly string[] = ["3F000", "42P01", "42883"];
/** Codes of errors that mean that the server or its connection has failed. */
const LOST = /^(08|57P)/;

/** Returns the SQLSTATE of an error, or `undefined` if the error is not from the database server. */
function toState(error: unknown): string | undefined {
  const { code, severity } = Object(error);
  return typeof severity === "string" && typeof code === "string" ? code : undefined;
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : show(error);
}

// The store repeats an operation after all errors but a RangeError or a TypeError.
function toStoreError(error: unknown, schema: string): unknown {
  const state = toState(error);
  if (!state) return error;
  const cause = { cause: error };
  // Data exceptions, and limits such as the size of a row.
  if (/^(22|54)/.test(state)) return new RangeError(`Cannot use the value in PostgreSQL: ${toMessage(error)}`, cause);
  if (state !== "42501") return error;
  return new Error(
    `Cannot use the tables of the store in PostgreSQL: ${toMessage(error)}; grant the role usage on the schema ` +
      `${schema}, execute on its functions, and select, insert, update and delete on its tables`,
    cause,
  );
}

function toStored({ value, version }: Row): StoredValue {
  return { value: String(value), version: String(version) };
}

function toHead(row: Row | undefined): LogHead {
  if (!row) return { first: 1, last: 0, epoch: "" };
  return { first: Number(row.first), last: Number(row.last), epoch: String(row.epoch) };
}
