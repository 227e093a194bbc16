/**
 * Objects that start and stop with a server: extensions, layers, and internal handlers.
 */
import type { Engine } from "../engine/era.ts";
import type { Life } from "../engine/extension.ts";
import type { StartPart } from "../engine/server_handle.ts";
import type { Feature, Handler } from "../visibility/feature.ts";
import { INTERNALS } from "../../core/internals.ts";
import { ServerLives } from "./extension_lives.ts";

const create = (engine: Engine): ServerLives => new ServerLives(engine);

/**
 * Creates the object with which servers start and stop an extension or a layer.
 *
 * @internal
 */
export function createLife(parts: Pick<Life, "id" | "name" | "part" | "start" | "owner" | "keys">): Life {
  let origin: string | undefined;
  return {
    ...parts,
    servers: new Set(),
    create,
    // Create the id when it is first needed, because Workers do not allow random values while a module loads.
    get origin() {
      return origin ??= crypto.randomUUID();
    },
  };
}

/**
 * Creates an internal handler that clients do not see. A visible handler, such as a folder, registers it. A server
 * calls `start` in the same way as it calls the `start` function of an extension.
 *
 * @internal
 */
export function watcher(id: string, start: StartPart): Handler {
  return toWatcher(id, createLife({ id, name: id, start, keys: new Map() }));
}

/**
 * Creates an internal handler that clients do not see. The server starts and stops `life` while it has a handler with
 * this object.
 *
 * @internal
 */
export function toWatcher(key: string, life: Life): Handler {
  return { name: key, [INTERNALS]: { feature: watchers, key, definition: undefined, life } };
}

/** The feature of the handlers that {@linkcode watcher} creates. It adds no methods or capabilities to the server. */
const watchers: Feature = {
  name: "watchers",
  compile(handlers) {
    const known = new Map<string, object>();
    for (const { [INTERNALS]: { life } } of handlers) {
      const { id } = life as Life; // The cast is safe, because `toWatcher` created each of these handlers.
      if ((known.get(id) ?? life) !== life) {
        throw new TypeError(`Cannot start ${id}: another layer of the server has this name; choose another name`);
      }
      if (life) known.set(id, life);
    }
    return { capabilities: {}, methods: {} };
  },
};
