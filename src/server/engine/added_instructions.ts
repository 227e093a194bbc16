/**
 * Instructions for models that parts of a server add to those of its author.
 */
import type { Core } from "./core.ts";
import type { ServerHandle } from "./server_handle.ts";

const ADDED = {};

/** Returns the added instructions, by the part that adds them. */
export function findAddedInstructions({ slot }: Pick<ServerHandle, "slot">): Map<object, string> {
  // Bound: the handlers of the server.
  return slot(ADDED, () => new Map<object, string>());
}

/** Returns the instructions of a server for clients. */
export function toInstructions({ instructions, state }: Core): string | undefined {
  const added = findAddedInstructions({ slot: (key, make) => state.slot(key, make) });
  return added.size ? [...instructions ? [instructions] : [], ...added.values()].join("\n\n") : instructions;
}
