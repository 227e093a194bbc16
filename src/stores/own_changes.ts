/**
 * The resource changes that this instance has announced, until the store has returned their notifications.
 *
 * A client may subscribe on one instance, and then cause a change on a second instance that has not been notified of
 * the subscription yet. The second instance announces the change only to the subscribers that it knows. The
 * notification of the subscription arrives before the notification of the change, so the second instance can then
 * announce the change again.
 *
 * @module
 */
import type { SharedChange } from "../core/store.ts";

/** The changes of one instance whose notifications the store has not returned yet. */
export class OwnChanges {
  /** Number of changes, by resource URI. */
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

  /** Removes changes, because the store has returned or rejected their notifications. */
  remove(changes: readonly SharedChange[]): void {
    for (const change of changes) {
      if (change.kind !== "resource") continue;
      const left = (this.#counts.get(change.uri) ?? 0) - 1;
      if (left > 0) this.#counts.set(change.uri, left);
      else this.#counts.delete(change.uri);
    }
  }

  /** Removes all changes, because notifications were lost. */
  clear(): void {
    this.#counts.clear();
  }
}

/** Maximum number of resources. A handler may announce any number of changes while the store is slow. */
const MAX_URIS = 10_000;
