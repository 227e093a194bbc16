/**
 * Adapts the PostgreSQL clients pg and postgres.js. Recognizes a client by its methods, without an import.
 */

/** A client of PostgreSQL: `new Pool()` of pg, or `postgres()` of postgres.js. */
export interface PostgresClient {
  /** A method that these clients have. It lets TypeScript reject other objects. */
  end: unknown;
}

export type Row = Readonly<Record<string, unknown>>;

export type Parameter = string | null;

/** Connections to PostgreSQL, with the same methods for every client. */
export interface PostgresLink {
  /** When `signal` aborts, a statement that still waits for a connection is not sent. */
  query(sql: string, parameters: readonly Parameter[], signal?: AbortSignal): Promise<readonly Row[]>;
  /** Runs several statements in one transaction. */
  run(sql: string): Promise<void>;
  /**
   * Subscribes to a channel on a connection of its own. Calls `onText` for each notification, and `onLost` when
   * notifications may have been missed. `channel` must be a valid identifier.
   */
  listen(channel: string, onText: (text: string) => void, onLost: (error?: unknown) => void): Promise<void>;
  /** Whether the client may lose the connection of `listen` without calling `onLost` until it is connected again. */
  readonly losesSilently: boolean;
  /** Closes all connections, also those that are in use. */
  close(): Promise<void>;
}

interface PgPool {
  readonly options?: { connectionTimeoutMillis?: number };
  on(event: string, listener: (value: unknown) => void): unknown;
  connect(): Promise<PgClient>;
  end(): Promise<unknown>;
}

interface PgClient {
  on(event: string, listener: (value: unknown) => void): unknown;
  query(sql: string, parameters?: readonly Parameter[]): Promise<{ readonly rows: readonly Row[] }>;
  /** Returns the connection to the pool, or closes the connection. */
  release(close?: boolean): void;
}

interface PostgresJs {
  readonly options?: { fetch_types?: boolean };
  unsafe(
    sql: string,
    parameters?: readonly Parameter[],
    options?: { readonly prepare: boolean },
  ): PostgresJsQuery;
  listen(channel: string, onText: (text: string) => void, onListen: () => void): Promise<unknown>;
  end(options: { readonly timeout: number }): Promise<unknown>;
}

/** A query of postgres.js, which is sent when its result is awaited. */
interface PostgresJsQuery extends PromiseLike<readonly Row[]> {
  /** Missing until the query is sent. */
  readonly state?: unknown;
  cancel(): void;
}

/**
 * Wraps a client. `timeoutMs` is the timeout of an operation.
 *
 * @throws {TypeError} if the kind of client is unknown.
 */
export function openLink(client: object, timeoutMs: number): PostgresLink {
  if (isPostgresJs(client)) return new PostgresJsLink(client);
  if (isPgPool(client)) return new PgLink(client, timeoutMs);
  throw new TypeError(
    "Cannot connect to PostgreSQL: connect returned an unknown client; return a Pool of pg, or a client of postgres.js",
  );
}

function isPostgresJs(client: object): client is PostgresJs {
  return ["unsafe", "listen", "end"].every((name) => typeof Reflect.get(client, name) === "function");
}

// A single connection of pg is not a pool, and cannot replace a broken connection.
function isPgPool(client: object): client is PgPool {
  return "totalCount" in client && ["connect", "end"].every((name) => typeof Reflect.get(client, name) === "function");
}

const ignore = () => {};

class PgLink implements PostgresLink {
  readonly losesSilently = false;
  readonly #pool: PgPool;
  /** The connections in use, each with a function that closes the connection. */
  // Bound: the size of the pool.
  readonly #inUse = new Map<PgClient, () => void>();

  constructor(pool: PgPool, timeoutMs: number) {
    this.#pool = pool;
    // Without a listener, an error of an unused connection would end the process.
    pool.on("error", ignore);
    pool.on("connect", (client) => void (isEmitter(client) && client.on("error", ignore)));
    // By default, pg waits forever for a connection, and would send a statement long after its operation has failed.
    if (pool.options) pool.options.connectionTimeoutMillis ||= timeoutMs;
  }

  async query(sql: string, parameters: readonly Parameter[], signal?: AbortSignal): Promise<readonly Row[]> {
    const client = await this.#pool.connect();
    const release = this.#use(client);
    const abort = () => release(true);
    if (signal?.aborted) {
      release(false);
      throw signal.reason;
    }
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return (await client.query(sql, parameters)).rows;
    } finally {
      signal?.removeEventListener("abort", abort);
      // The pool itself removes a broken connection.
      release(false);
    }
  }

  async run(sql: string): Promise<void> {
    const client = await this.#pool.connect();
    const release = this.#use(client);
    try {
      // Without parameters, the statements are one simple query, and therefore one transaction.
      await client.query(sql);
    } finally {
      release(false);
    }
  }

  async listen(channel: string, onText: (text: string) => void, onLost: (error?: unknown) => void): Promise<void> {
    const client = await this.#pool.connect();
    this.#use(client);
    client.on("notification", (message) => onText(String(Object(message).payload)));
    client.on("error", onLost);
    client.on("end", () => onLost());
    await client.query(`listen "${channel}"`);
  }

  async close(): Promise<void> {
    for (const close of [...this.#inUse.values()]) close();
    await this.#pool.end();
  }

  #use(client: PgClient): (close: boolean) => void {
    const release = (close: boolean) => {
      if (this.#inUse.delete(client)) client.release(close);
    };
    this.#inUse.set(client, () => release(true));
    return release;
  }
}

function isEmitter(client: unknown): client is Pick<PgClient, "on"> {
  return typeof client === "object" && client !== null && "on" in client;
}

class PostgresJsLink implements PostgresLink {
  readonly losesSilently = true;
  readonly #sql: PostgresJs;

  constructor(sql: PostgresJs) {
    this.#sql = sql;
    // Each new connection would read the types of arrays, which the store does not use. If the client is closed during
    // this query, nothing handles its error, which ends the process.
    if (sql.options) sql.options.fetch_types = false;
  }

  async query(sql: string, parameters: readonly Parameter[], signal?: AbortSignal): Promise<readonly Row[]> {
    signal?.throwIfAborted();
    // A prepared statement takes one round trip. Without it, the client first asks for the types of the parameters.
    const query = this.#sql.unsafe(sql, parameters, { prepare: true });
    // The client cancels a running statement with another connection, whose failure it would not handle.
    const abort = () => void (!query.state && query.cancel());
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await query;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async run(sql: string): Promise<void> {
    await this.#sql.unsafe(sql);
  }

  async listen(channel: string, onText: (text: string) => void, onLost: () => void): Promise<void> {
    let isStarted = false;
    // The client itself connects again, and listens again.
    await this.#sql.listen(channel, onText, () => {
      if (isStarted) onLost();
      isStarted = true;
    });
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 0 });
  }
}
