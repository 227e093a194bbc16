/**
 * Changes that clients may want to hear of.
 *
 * @module
 */
import type { Handler } from "./feature.ts";
import type { Ticker } from "./timers.ts";

/** Something that clients may want to hear of. */
export type Change =
  | {
    readonly kind: "list";
    readonly feature: string;
    /** Those that came or left, if that is known: a caller that may see none of them does not hear of it. */
    readonly handlers?: readonly Handler[];
  }
  | { readonly kind: "resource"; readonly uri: string }
  | { readonly kind: "close" };

/** Is called for each change. */
export type Listener = (change: Change) => void;

/** Who hears of changes. Changes that come in a burst are announced once. */
export class Changes {
  readonly listeners: Set<Listener> = new Set();
  readonly #ticker: Ticker;
  readonly #burst = new Map<string, Change>();

  /** No changes yet. */
  constructor(ticker: Ticker) {
    this.#ticker = ticker;
  }

  /** Announces a change soon. */
  emit(change: Change): void {
    if (!this.listeners.size) return;
    if (!this.#burst.size) this.#ticker.alarm(BURST_MS, () => this.flush());
    const key = toKey(change);
    this.#burst.set(key, merge(this.#burst.get(key), change));
  }

  /** Announces at once what has changed. */
  flush(): void {
    const changes = [...this.#burst.values()];
    this.#burst.clear();
    for (const change of changes) this.#announce(change);
  }

  /** Announces what is left, and that the server closes. */
  close(): void {
    this.flush();
    this.#announce({ kind: "close" });
  }

  #announce(change: Change): void {
    for (const listener of [...this.listeners]) listener(change);
  }
}

/** How long changes are gathered before they are announced. */
const BURST_MS = 10;

function toKey(change: Change): string {
  return change.kind === "list" ? change.feature : change.kind === "resource" ? `uri ${change.uri}` : "";
}

// A caller that may see any of what changed hears of it.
function merge(before: Change | undefined, change: Change): Change {
  if (before?.kind !== "list" || change.kind !== "list" || !change.handlers) return change;
  return { ...change, handlers: before.handlers && [...before.handlers, ...change.handlers] };
}
