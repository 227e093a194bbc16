/**
 * One connection to the server behind a proxy.
 */
import { deadline } from "../core/kit/deadline.ts";
import { INTERNALS } from "../core/internals.ts";
import { isMcpError, isRemoteError } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { type Client, hasExtension, shareClient } from "../client/calls.ts";
import { connect, type OwnConnectOptions } from "../client/connect.ts";
import { ServerLock } from "../client/lock.ts";
import type { ClientMiddleware } from "../client/request_middleware.ts";
import type { OwnWatch, Subscription, Watch } from "../client/subscription.ts";
import { taskClient } from "../extensions/tasks/client/tasks.ts";
import { ID as TASKS } from "../extensions/tasks/task_methods.ts";
import type { ClientCapabilities } from "../library.ts";
import { isClient, isLines, type Settings } from "./settings.ts";

/** The lists whose changes a server announces. */
export type ChangingList = "tools" | "prompts" | "resources";
const CHANGING: readonly ChangingList[] = ["tools", "prompts", "resources"];

/** Default timeout in milliseconds for connecting and for lists. */
export const LIST_MS = 10_000;
/** Milliseconds for which the first list waits for the subscription to changes, so that no change is missed. */
const WATCH_MS = 1000;
/**
 * Maximum number of open questions on a connection of one caller. A shared connection has no maximum of its own, because
 * the limits of this server apply to each caller.
 */
const MAX_QUESTIONS = 256;
const ACKNOWLEDGED = /\/acknowledged$/;

export interface ConnectionOptions {
  readonly settings: Settings;
  readonly capabilities: ClientCapabilities;
  /** Whether the connection belongs to all callers. */
  readonly isShared: boolean;
  /** Aborts connecting. */
  readonly signal: AbortSignal;
  /** Returns the headers of the next request. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** Called when a list has changed, or may have changed while the connection was interrupted. */
  readonly onChange: (list: ChangingList) => void;
  readonly onUpdated: (uri: string) => void;
  /** Called when the connection has ended. */
  readonly onLost: () => void;
  readonly onWarning: (text: string) => void;
}

export class Connection {
  readonly client: Client;
  /** Whether the server asks questions within a session, in which a run of its handler waits for the answer. */
  readonly hasSession: boolean;
  /** Whether the client can request tasks. A client of the author may lack the extension. */
  readonly hasTasks: boolean;
  /** Hides entries that are not in the lock file, or have changed. */
  readonly lock?: ServerLock;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  /** Whether new requests need another connection. */
  isStale = false;
  readonly #options: ConnectionOptions;
  /** The lists whose changes the server announces on this connection. Empty until the subscription is active. */
  // Bound: `CHANGING`.
  readonly #announced = new Set<ChangingList>();
  readonly #watching: Promise<void>;
  // Bound: `proxy.watched`.
  readonly #watched = new Map<string, Promise<Watch>>();
  #users = 0;
  #closing?: Promise<void>;
  readonly #onClosed: () => void;

  private constructor(client: Client, options: ConnectionOptions, lock?: ServerLock) {
    this.client = client;
    this.lock = lock;
    this.hasSession = client.server.era === "legacy";
    this.hasTasks = hasExtension(client, TASKS);
    this.#options = options;
    ({ promise: this.closed, resolve: this.#onClosed } = Promise.withResolvers<void>());
    this.#watching = this.#watch().catch(() => {});
  }

  /** @throws the error of `connect`. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { settings, capabilities, isShared, signal, headers, onChange, onWarning } = options;
    const { target, auth, fetch, timeoutMs = LIST_MS, forward } = settings;
    if (isClient(target)) {
      shareClient(target);
      return new Connection(target, options);
    }
    let opened = 0;
    const reopened = () => {
      if (opened++) { for (const list of CHANGING) onChange(list); }
    };
    const use: ClientMiddleware = (request, next) => {
      // After an interruption, the client itself begins a new session, or subscribes again.
      if (request.method === "initialize") reopened();
      if (request.method !== "subscriptions/listen" || !isListFilter(request.params.notifications)) return next();
      return next(request, { onNotification: ({ method }) => ACKNOWLEDGED.test(method) && reopened() });
    };
    const lock = settings.lock && new ServerLock(...settings.lock, onWarning);
    const own: OwnConnectOptions = {
      [INTERNALS]: { answering: MAX_QUESTIONS, isShared },
      ...!isLines(target) && { auth, fetch: settings.headers ? withHeaders(headers, fetch) : fetch },
      timeoutMs,
      signal,
      capabilities,
      extensions: [taskClient()],
      use: [use, ...lock ? [lock.middleware] : []],
      onWarning,
    };
    const client = await connect(target, own);
    if (client.server.era === "legacy" && client.server.capabilities.logging && forward?.log !== false) {
      await client.setLogLevel("debug").catch(() => {});
    }
    return new Connection(client, options, lock);
  }

  /** Whether the server announces changes of a list. If so, the list stays valid until the next change. */
  announces(list: ChangingList): boolean {
    return this.#announced.has(list);
  }

  get isUsed(): boolean {
    return this.#users > 0 || this.#watched.size > 0;
  }

  /** Waits for the subscription to changes, for at most `WATCH_MS`. */
  async untilWatched(): Promise<void> {
    await deadline(this.#watching, { ms: WATCH_MS, onTimeout: () => {} });
  }

  /** Runs requests. A stale connection is closed after the last of them. */
  async run<T>(send: (client: Client) => Promise<T>): Promise<T> {
    this.#users++;
    try {
      return await send(this.client);
    } finally {
      this.#users--;
      if (this.isStale && !this.#users) void this.close();
    }
  }

  /** Subscribes to changes of a resource. */
  async watch(uri: string): Promise<void> {
    if (this.#watched.has(uri)) return;
    const opening = this.client.subscribe({ resourceSubscriptions: [uri] });
    this.#watched.set(uri, opening);
    try {
      const subscription = await opening;
      void this.#read(subscription);
    } catch (error) {
      this.#watched.delete(uri);
      throw error;
    }
  }

  async unwatch(uri: string): Promise<void> {
    const opening = this.#watched.get(uri);
    this.#watched.delete(uri);
    await (await opening?.catch(() => undefined))?.close();
  }

  /** Makes new requests use another connection. This connection closes after its running requests. */
  lose(): void {
    if (this.isStale) return;
    this.isStale = true;
    this.#options.onLost();
    if (!this.#users) void this.close();
  }

  /** Closes the connection if it is idle. Otherwise returns `undefined`. */
  giveWay(): Promise<void> | undefined {
    if (this.isUsed) return;
    this.lose();
    return this.closed;
  }

  /** Further calls return the same promise. */
  close(): Promise<void> {
    this.isStale = true;
    return this.#closing ??= this.#end().finally(this.#onClosed);
  }

  async #end(): Promise<void> {
    // The author opened this client, and closes it.
    if (!isClient(this.#options.settings.target)) await this.client.close().catch(() => {});
    else for (const uri of [...this.#watched.keys()]) await this.unwatch(uri).catch(() => {});
  }

  async #watch(): Promise<void> {
    const { capabilities } = this.client.server;
    const declared = CHANGING.filter((list) => isObject(capabilities[list]) && capabilities[list].listChanged === true);
    if (!declared.length) return;
    const filter = Object.fromEntries(declared.map((list) => [`${list}ListChanged`, true]));
    const subscription: Subscription & OwnWatch = await this.client.subscribe(filter);
    const { granted, [INTERNALS]: { hasStream } = { hasStream: true } } = subscription;
    for (const list of declared) if (hasStream && granted[`${list}ListChanged`]) this.#announced.add(list);
    void this.#read(subscription).then(() => this.#announced.clear()).then(() => this.lose());
  }

  async #read(subscription: AsyncIterable<{ readonly method: string; readonly params: object }>): Promise<void> {
    try {
      for await (const { method, params } of subscription) {
        const [, list] = /^notifications\/(\w+)\/list_changed$/.exec(method) ?? [];
        const changed = CHANGING.find((each) => each === list);
        if (changed) this.#options.onChange(changed);
        if (method === "notifications/resources/updated" && "uri" in params) this.#options.onUpdated(`${params.uri}`);
      }
    } catch {
      // Too many unread notifications end a subscription.
    }
  }
}

/** Whether a subscription is about the lists of a server, and not about a resource. */
function isListFilter(filter: unknown): boolean {
  return CHANGING.some((list) => Object.hasOwn(Object(filter), `${list}ListChanged`));
}

/** Marks the request of a caller that has headers of its own. The server does not get the mark. */
export const OWN_HEADERS = "x-mcp-own-headers";

/** Adds headers to all other HTTP requests, including notifications and streams, which middleware does not see. */
function withHeaders(
  headers: ConnectionOptions["headers"],
  fetch: (request: Request) => Promise<Response> = (request) => globalThis.fetch(request),
): (request: Request) => Promise<Response> {
  return async (request) => {
    const added = request.headers.has(OWN_HEADERS) ? {} : headers();
    request.headers.delete(OWN_HEADERS);
    for (const [name, value] of Object.entries(added)) request.headers.set(name, value);
    return await fetch(request);
  };
}

/** Whether an error says that the connection failed, instead of the response of the server, or a refusal of the lock. */
export function isConnectionError(error: unknown): boolean {
  if (isRemoteError(error) || isMcpError(error)) return false;
  return !(error instanceof DOMException && ["AbortError", "TimeoutError"].includes(error.name));
}
