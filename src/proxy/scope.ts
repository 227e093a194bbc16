/**
 * What a proxy keeps for all callers, or for one caller: the connection, and the known lists.
 */
import { isMcpError, isRemoteError, isToolError, McpError, ToolError } from "../core/protocol/errors.ts";
import type { Params, Result } from "../core/protocol/jsonrpc.ts";
import { matchesTemplate } from "../core/protocol/uri_template.ts";
import type { RequestOptions } from "../client/rpc.ts";
import type { ClientCapabilities, Context } from "../library.ts";
import type { Holding } from "../server/capacity/account.ts";
import type { UpstreamState } from "../server/engine/upstreams.ts";
import { type ChangingList, Connection, isConnectionError, OWN_HEADERS } from "./connection.ts";
import { KeptList } from "./kept_list.ts";
import { type Client, type Kind, KINDS, type RequestFacts, type ScopeParts, type UpstreamParts } from "./parts.ts";
import { isLines } from "./settings.ts";

/** Milliseconds without requests after which a connection is closed. */
const IDLE_MS = 5 * 60_000;
/** Milliseconds before the first attempt to reconnect. The time doubles with each attempt, up to a maximum. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;

type Headers = Readonly<Record<string, string>>;

export interface ScopeOptions {
  /** The caller to whom the scope belongs. `undefined` if it belongs to all callers. */
  readonly caller?: string | object;
  /** The client of the caller, to which connections are charged. */
  readonly client?: Client;
  readonly capabilities: ClientCapabilities;
}

export class Scope implements ScopeParts {
  readonly lists: Readonly<Record<Kind, KeptList>>;
  readonly caller?: string | object;
  readonly capabilities: ClientCapabilities;
  readonly #client?: Client;
  readonly #upstream: UpstreamParts;
  #opening?: Promise<Connection>;
  /** The connection, if it is open. */
  #open?: Connection;
  #place?: Holding;
  /** The headers of messages that belong to no request of a caller. */
  #headers: Headers = {};
  // Bound: `proxy.watched`.
  readonly #watched = new Set<string>();
  #stopIdle = () => {};
  #stopRetry = () => {};
  #retryMs = RETRY_MS;
  /** Time before which the command is not started again. */
  #notBefore = 0;
  #failure: unknown;
  readonly #closed = new AbortController();
  /** The connections that are not used for new requests. */
  // Bound: each ends with its last request.
  readonly #ending = new Set<Connection>();

  constructor(upstream: UpstreamParts, { caller, client, capabilities }: ScopeOptions) {
    this.#upstream = upstream;
    this.caller = caller;
    this.#client = client;
    this.capabilities = capabilities;
    // The cast is safe, because `KINDS` has all kinds.
    this.lists = Object.fromEntries(KINDS.map((kind) => [kind, new KeptList(this, upstream, kind)])) as Scope["lists"];
  }

  get isIdle(): boolean {
    return !this.#open?.isUsed && (!this.#opening || !!this.#open);
  }

  get state(): UpstreamState {
    return this.#open && !this.#open.isStale ? "ok" : this.#failure === undefined ? "none" : "failed";
  }

  announces(list: ChangingList): boolean {
    return this.#open?.announces(list) ?? false;
  }

  async request(
    method: string,
    params: Params,
    options: RequestOptions,
    { ctx, isRepeatable }: RequestFacts,
  ): Promise<Result> {
    const own = await this.#toHeaders(ctx);
    const sent = { ...options, ...own && { headers: { ...own, [OWN_HEADERS]: "1" } } };
    for (let attempt = 0;; attempt++) {
      const connection = await this.connect(undefined);
      try {
        return await this.#use(connection, (client) => client.request(method, params, sent));
      } catch (error) {
        if (options.signal?.aborted || !isConnectionError(error)) throw this.#toWords(error, method);
        connection.lose();
        if (!isRepeatable) throw this.#upstream.toLost(error);
        if (attempt) throw this.#upstream.toDown(error);
      }
    }
  }

  async connect(ctx: Context | undefined): Promise<Connection> {
    this.#place?.touch();
    if (this.#open && !this.#open.isStale) return this.#open;
    if (this.#closed.signal.aborted) throw this.#upstream.toDown(undefined);
    const { clock } = this.#upstream.server;
    if (!this.#opening && clock.now() < this.#notBefore) throw this.#upstream.toDown(this.#failure);
    await this.#toHeaders(ctx);
    this.#opening ??= this.#connect();
    try {
      return await this.#opening;
    } catch (error) {
      if (isToolError(error) || isMcpError(error)) throw error;
      throw this.#upstream.toDown(error);
    }
  }

  /** Throws an error for the model if the lock hides a name. */
  refuse(kind: Kind, key: string): undefined {
    const { prefix } = this.#upstream.settings;
    if (key.startsWith(prefix)) this.#open?.lock?.refuse(kind, key.slice(prefix.length), key);
  }

  serves(uri: string): boolean {
    const { resources, resourceTemplates } = this.lists;
    const { uris = [] } = this.#upstream.settings;
    if (resources.get(uri) || uris.some((prefix) => uri.startsWith(prefix))) return true;
    return resourceTemplates.known.some(({ key }) => matchesTemplate(key, uri));
  }

  async watch(uri: string): Promise<void> {
    this.#watched.add(uri);
    await (await this.connect(undefined)).watch(uri);
  }

  async unwatch(uri: string): Promise<void> {
    this.#watched.delete(uri);
    await this.#open?.unwatch(uri);
    this.#startIdle();
  }

  async close(): Promise<void> {
    this.#closed.abort(new DOMException("The server is closing", "AbortError"));
    this.#stopRetry();
    this.#stopIdle();
    for (const list of Object.values(this.lists)) list.close();
    await this.disconnect();
    await Promise.all([...this.#ending].map((connection) => connection.close()));
  }

  /** Closes the connection. The next request opens another one. */
  async disconnect(): Promise<void> {
    const opening = this.#opening;
    this.#opening = this.#open = undefined;
    const connection = await opening?.catch(() => undefined);
    if (!connection) return;
    this.#ending.add(connection);
    await connection.close();
    this.#ending.delete(connection);
  }

  /** Returns the headers of a caller's request, if `headers` is a function. Each request can have other headers. */
  async #toHeaders(ctx: Context | undefined): Promise<Headers | undefined> {
    const { headers = {} } = this.#upstream.settings;
    if (typeof headers === "object") this.#headers = headers;
    else if (ctx) return this.#headers = await headers(ctx);
  }

  /** Runs with the connection, which is not idle meanwhile. */
  async #use<T>(connection: Connection, run: (client: Connection["client"]) => Promise<T>): Promise<T> {
    this.#stopIdle();
    try {
      return await connection.run(run);
    } finally {
      this.#startIdle();
    }
  }

  async #connect(): Promise<Connection> {
    this.#stopRetry();
    const { settings, server } = this.#upstream;
    // The server waits for running calls before it stops its parts.
    const signal = AbortSignal.any([this.#closed.signal, server.signal]);
    let opened: Connection | undefined;
    let place: Holding | undefined;
    try {
      place = this.#client && await this.#upstream.reserve(this.#client, () => opened?.giveWay());
      const connection: Connection = await Connection.open({
        settings,
        capabilities: this.capabilities,
        isShared: this.caller === undefined,
        signal,
        headers: () => this.#headers,
        onChange: (list) => this.#onChange(list),
        onUpdated: (uri) => this.#watched.has(uri) && this.#upstream.updated(uri, this.caller),
        onLost: () => this.#onLost(connection),
        onWarning: (text) => server.report(new Error(`${settings.name}: ${text}`)),
      });
      opened = connection;
      this.#place = place;
      void connection.closed.then(() => place?.end());
      if (this.#closed.signal.aborted) await connection.close();
      this.#upstream.learn(connection.client.server);
      this.#open = connection;
      this.#retryMs = RETRY_MS;
      this.#failure = undefined;
      this.#startIdle();
      for (const uri of this.#watched) void connection.watch(uri).catch(server.report);
      return connection;
    } catch (error) {
      place?.end();
      this.#opening = undefined;
      // One report for each outage.
      if (this.#failure === undefined && !isToolError(error) && !signal.aborted) {
        server.report(new Error(`Cannot connect to ${settings.name}: it cannot be reached`, { cause: error }));
      }
      this.#failure = error;
      if (isLines(settings.target)) this.#notBefore = server.clock.now() + RETRY_MS;
      this.#retry();
      throw error;
    }
  }

  #onChange(list: ChangingList): void {
    for (const kind of KINDS) if (this.lists[kind].changesWith === list) this.lists[kind].refresh();
  }

  #onLost(connection: Connection): void {
    if (this.#open !== connection) return;
    this.#opening = this.#open = undefined;
    this.#ending.add(connection);
    connection.closed.then(() => this.#ending.delete(connection));
    this.#retry();
  }

  /** Connects again after a growing delay, if somebody may wait for changes. */
  #retry(): void {
    if (this.#closed.signal.aborted || this.caller !== undefined && !this.#watched.size) return;
    const { clock } = this.#upstream.server;
    this.#stopRetry();
    this.#stopRetry = clock.start(
      () => {
        this.connect(undefined).then(() => {
          for (const kind of KINDS) this.lists[kind].refresh();
        }).catch(() => {});
      },
      this.#retryMs,
      { background: true },
    );
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
  }

  /** Closes the connection after an idle time. A shared connection stays open if it announces changes. */
  #startIdle(): void {
    this.#stopIdle();
    const { clock } = this.#upstream.server;
    const isAwaited = this.caller === undefined &&
      (["tools", "prompts", "resources"] as const).some((list) => this.announces(list));
    if (isAwaited || this.#closed.signal.aborted) return;
    this.#stopIdle = clock.start(
      () => {
        if (this.isIdle) void this.disconnect();
      },
      IDLE_MS,
      { background: true },
    );
  }

  /** Returns an error for the model, if there was no response in time, or if the response was not an MCP message. */
  #toWords(error: unknown, method: string): unknown {
    const { name, timeoutMs } = this.#upstream.settings;
    if (error instanceof DOMException && error.name === "TimeoutError") {
      const time = timeoutMs === undefined ? "in time" : `within ${timeoutMs} ms`;
      return new ToolError(`Cannot finish the request: ${name} did not respond ${time}; ${toRemedy(method)}`);
    }
    if (!isRemoteError(error) || error.code) return error;
    this.#upstream.server.report(error);
    const { status } = error;
    const state = status === 401 || status === 403
      ? `${name} refuses the credentials of this server (HTTP ${status}); only its operator can change them`
      : `the response of ${name} is not a message${status ? ` (HTTP ${status})` : ""}; ${toRemedy(method, status)}`;
    return method === "tools/call"
      ? new ToolError(`Cannot finish the request: ${state}`)
      : new McpError(-32603, `Cannot finish the request: ${state}`);
  }
}

/** A model repeats a call, unless the error says that the call may have had its effect. */
function toRemedy(method: string, status = 0): string {
  const isRefused = status >= 400 && status < 500;
  return method === "tools/call" && !isRefused
    ? "it may have run; check its effect before you repeat it"
    : "try again later";
}
