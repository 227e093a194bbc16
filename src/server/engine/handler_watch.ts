/**
 * Notifies the parts of a server that handlers were added or removed.
 */
import type { ServerState } from "../capacity/server_state.ts";
import type { Registry } from "../visibility/registry.ts";

export interface Watched {
  readonly registry: Registry;
  readonly core: { readonly state: ServerState };
}

/**
 * Calls `notify` after handlers were added or removed. Returns a function that stops these calls.
 */
export function watchHandlers({ registry, core: { state } }: Watched, notify: () => void): () => void {
  const { watchers } = state.slot(registry, () => new HandlerWatch(registry));
  watchers.add(notify);
  return () => void watchers.delete(notify);
}

class HandlerWatch {
  // Bound: one per part of the server.
  readonly watchers = new Set<() => void>();
  /** Whether the functions will be called. */
  #isChanging = false;

  constructor(registry: Registry) {
    const { onChange } = registry;
    registry.onChange = () => {
      onChange?.();
      this.#notify();
    };
  }

  // Wait for a microtask, because a handler that is replaced is first removed, and then added.
  #notify(): void {
    if (this.#isChanging) return;
    this.#isChanging = true;
    queueMicrotask(() => {
      this.#isChanging = false;
      for (const notify of [...this.watchers]) notify();
    });
  }
}
