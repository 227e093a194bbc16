/**
 * The changes of resources that this instance has announced, until the store has returned their news.
 *
 * A client may subscribe at one instance, and then cause a change at another instance that has not received the news of
 * the subscription yet. The second instance announces its change to the clients that it knows. The news of the
 * subscription arrives before the news of the change, so the instance can then announce the change once more.
 *
 * @module
 */
import type { SharedChange } from "../core/store.ts";

/** The changes of one instance whose news the store has not returned yet. */
export class OwnChanges {
  /** The number of changes of each resource. */
  readonly #counts = new Map<string, number>();

  /** Adds a change that this instance announces. */
  add(change: SharedChange): void {
    if (change.kind !== "resource" || this.#counts.size >= MAX_URIS && !this.has(change.uri)) return;
    this.#counts.set(change.uri, (this.#counts.get(change.uri) ?? 0) + 1);
  }

  /** Whether the instance has announced a change of a resource. */
  has(uri: string): boolean {
    return this.#counts.has(uri);
  }

  /** Removes changes, because the store has returned their news, or has not accepted it. */
  remove(changes: readonly SharedChange[]): void {
    for (const change of changes) {
      if (change.kind !== "resource") continue;
      const left = (this.#counts.get(change.uri) ?? 0) - 1;
      if (left > 0) this.#counts.set(change.uri, left);
      else this.#counts.delete(change.uri);
    }
  }

  /** Removes all changes, because news was lost. */
  clear(): void {
    this.#counts.clear();
  }
}

/** Maximum number of resources. A handler may announce any number of them while the store is slow. */
const MAX_URIS = 10_000;
