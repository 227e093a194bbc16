/**
 * The resource changes that this instance has announced, but whose notifications it has not read back from the store
 * yet.
 *
 * A client may subscribe on one instance, and then cause a change on a second instance that does not know of the
 * subscription yet. The second instance announces the change only to the subscribers that it knows. The store then
 * returns the notification of the subscription before the notification of the change. While this list contains the
 * change, the second instance can announce the change again to the new subscriber.
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import type { SharedChange } from "../server/engine/store.ts";

export class OwnChanges {
  /** The number of listed changes for each resource URI, by the provider that has announced the changes. */
  // Bound: one per provider without a scheme.
  readonly #counts = new BoundedMap<string, Map<string | undefined, number>>({ full: "refuse", max: MAX_URIS });

  /** Adds a change that this instance announces. Ignores changes of lists. */
  add(change: SharedChange): void {
    if (change.kind !== "resource") return;
    const { uri, owner } = change;
    const counts = this.#counts.get(uri) ?? new Map<string | undefined, number>();
    this.#counts.set(uri, counts.set(owner, (counts.get(owner) ?? 0) + 1));
  }

  /** Returns the listed changes of a resource. */
  of(uri: string): readonly Extract<SharedChange, { readonly kind: "resource" }>[] {
    return [...this.#counts.get(uri)?.keys() ?? []].map((owner) => ({ kind: "resource", uri, owner }));
  }

  /** Removes changes, because the store has returned or rejected their notifications. */
  remove(changes: readonly SharedChange[]): void {
    for (const change of changes) {
      if (change.kind !== "resource") continue;
      const { uri, owner } = change;
      const counts = this.#counts.get(uri);
      const left = (counts?.get(owner) ?? 0) - 1;
      if (left > 0) counts?.set(owner, left);
      else counts?.delete(owner);
      if (!counts?.size) this.#counts.delete(uri);
    }
  }

  /** Removes all changes, because notifications were lost. */
  clear(): void {
    this.#counts.clear();
  }
}

/**
 * Maximum number of resources. A limit is needed, because a handler can announce any number of changes while the store
 * is slow.
 */
const MAX_URIS = 10_000;
