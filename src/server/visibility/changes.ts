/**
 * Collects changes to lists and resources, and passes the changes to subscriptions.
 */
import { type Params, toNotification } from "../../core/protocol/jsonrpc.ts";
import type { LogLevel } from "../../core/protocol/types.ts";
import type { Allow } from "../call/context.ts";
import type { LogFilter } from "../call/log.ts";
import type { Published } from "../call/lives.ts";
import type { Ticker } from "../../core/timers.ts";

/** An event for subscriptions: a change of a list or a resource, a log message, or the closing of the server. */
export type Change =
  | {
    readonly kind: "list";
    readonly feature: string;
    /** The added or removed handlers, or a filter. Callers are notified only if an `allow` returns `true`. */
    readonly handlers?: readonly { readonly allow?: Allow }[];
    /** Handlers that were enabled or disabled, each with `allow` before and after the change. */
    readonly toggled?: ReadonlyMap<string, Toggled>;
  }
  | {
    readonly kind: "resource";
    readonly uri: string;
    /** Key of the provider that announces the change, if it has no scheme. */
    readonly owner?: string;
    /** Functions that select subscribers. A subscriber is notified if at least one of them selects it. */
    readonly to?: ReadonlySet<Allow>;
  }
  | {
    readonly kind: "log";
    readonly level: LogLevel;
    readonly text: string;
    /** Selects the clients that receive the message. */
    readonly to: LogFilter;
  }
  | { readonly kind: "close" };

/** A notification from an extension for the subscribers on all instances. */
export interface ExtensionNews {
  readonly kind: "extension";
  readonly extension: string;
  readonly key: string;
  readonly published: Published;
  /** The {@linkcode Life.origin} of the extension object that has published the notification. */
  readonly origin?: string;
}

export type Toggled = readonly [before: Allow | undefined, after: Allow | undefined];

/**
 * Checks the URI of a changed resource. A common mistake is to pass the `uri` function of a resource with parameters.
 *
 * @throws {TypeError} if `uri` is not a string.
 */
export function checkUri(uri: unknown): asserts uri is string {
  if (typeof uri === "string") return;
  throw new TypeError(
    "Cannot announce a changed resource: its URI is not a string; pass a string, or the result of uri()",
  );
}

export type Listener = (change: Change) => void;

/** Equal changes within {@linkcode BURST_MS} are announced once. */
export class Changes {
  readonly listeners: Set<Listener> = new Set();
  /** Sends a change to other instances. */
  publish?: (change: Change | ExtensionNews) => void;
  /** Called with each notification that an extension on another instance publishes. */
  onNews?: (news: ExtensionNews) => void;
  /** Called when notifications of extensions on other instances may have been lost. */
  onMissed?: () => void;
  /** Called before a listener is added. Once the promise has settled, changes from other instances arrive. */
  connect?: () => Promise<unknown> | undefined;
  readonly #ticker: Ticker;
  // Bound: `MAX_BURST`.
  readonly #burst = new Map<string, Change>();

  constructor(ticker: Ticker) {
    this.#ticker = ticker;
  }

  /** Announces a change on all instances, after at most {@linkcode BURST_MS}. */
  emit(change: Change): void {
    // A function cannot be sent to another instance, and without it the change would reach other callers.
    if (change.kind !== "resource" || !change.to) this.publish?.(change);
    this.emitLocal(change);
  }

  /** Announces a change only to clients of this process, after at most {@linkcode BURST_MS}. */
  emitLocal(change: Change): void {
    if (!this.listeners.size) return;
    if (!this.#burst.size) this.#ticker.startTimeout(BURST_MS, () => this.flush());
    const key = toKey(change);
    const merged = merge(this.#burst.get(key), change);
    this.#burst.set(key, merged);
    const selecting = merged.kind === "resource" ? merged.to?.size ?? 0 : 0;
    if (this.#burst.size >= MAX_BURST || selecting >= MAX_SELECTING) this.flush();
  }

  /** Announces all pending changes immediately. */
  flush(): void {
    const changes = [...this.#burst.values()];
    this.#burst.clear();
    for (const change of changes) this.#announce(change);
  }

  /** Announces all pending changes, and then the closing of the server. */
  close(): void {
    this.flush();
    this.#announce({ kind: "close" });
  }

  /** Announces a log message immediately, and only to clients of this process. */
  log(params: Params & { readonly level: LogLevel }, to: LogFilter): void {
    if (!this.listeners.size) return;
    const method = "notifications/message";
    let text;
    try {
      text = toNotification(method, params);
    } catch {
      text = toNotification(method, { level: params.level, data: "[a value that JSON cannot represent]" });
    }
    this.#announce({ kind: "log", level: params.level, text, to });
  }

  #announce(change: Change): void {
    for (const listener of [...this.listeners]) listener(change);
  }
}

/** Milliseconds for which changes are collected before they are announced. */
const BURST_MS = 10;

/** Maximum number of changes that are collected. A handler can announce any number of resources in a loop. */
const MAX_BURST = 1000;

/** Maximum number of functions that are collected for one change. */
const MAX_SELECTING = 100;

function toKey(change: Change): string {
  return change.kind === "list"
    ? change.feature
    : change.kind === "resource"
    ? `uri ${change.uri}\n${change.owner}`
    : "";
}

// A caller is notified if the caller may see a changed handler, or if one of the two changes selects the caller.
function merge(before: Change | undefined, change: Change): Change {
  if (before?.kind === "resource" && change.kind === "resource" && change.to) {
    return { ...change, to: before.to && new Set([...before.to, ...change.to]) };
  }
  if (before?.kind !== "list" || change.kind !== "list" || !change.handlers) return change;
  const toggled = new Map(before.toggled);
  for (const [name, [was, is]] of change.toggled ?? []) toggled.set(name, [(toggled.get(name) ?? [was])[0], is]);
  return { ...change, handlers: before.handlers && [...before.handlers, ...change.handlers], toggled };
}
