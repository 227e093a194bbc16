/**
 * Creates the public handler set of a server.
 */
import type { Allow, HandlerSelector, HandlerSet } from "./call/context.ts";
import type { Engine } from "./engine/era.ts";
import type { Handler } from "./visibility/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import type { LayeredHandlers } from "./engine/layers.ts";
import { toSelectionKey } from "./visibility/registry.ts";

/** The servers of the concrete paths. A handler that is added to the server is added to these servers too. */
export interface Followers {
  list(): readonly { readonly [INTERNALS]: { readonly engine: Engine } }[];
  add(handlers: readonly Handler[]): void;
  remove(handlers: readonly Handler[]): void;
}

export interface HandlerPlace {
  /** Set if the server has layers. */
  readonly layered?: LayeredHandlers;
  /** The router to the servers of concrete paths. `undefined` until its code is loaded. */
  readonly router?: Followers;
}

/** Creates the public handler set of a server. Changes also apply to the servers of all concrete paths. */
export function createHandlerSet(
  { core, registry, visibility }: Omit<Engine, "host">,
  site: HandlerPlace,
  open: (added: readonly Handler[]) => void,
): HandlerSet<Handler> {
  const { layered } = site;
  const { first = [], served, own } = layered ?? {};

  function toggle(selected: Handler | HandlerSelector, isShown: boolean, callers?: Allow): void {
    // Throw for any other type, because ignoring the value would change the handlers for all callers.
    if (callers !== undefined && typeof callers !== "function") {
      throw new TypeError(
        "Cannot enable or disable handlers: callers is not a function; omit callers to select all callers",
      );
    }
    const rule = { key: toSelectionKey(selected, registry), isShown, callers };
    const shared = callers ? undefined : core.shared?.rules;
    if (shared) return shared.add(rule);
    visibility.toggle(rule);
    for (const { [INTERNALS]: { engine } } of site.router?.list() ?? []) engine.visibility.toggle(rule);
  }
  return {
    add(...given) {
      const added = layered ? given.map((handler) => layered.serve(handler)) : given;
      registry.add(added, true);
      open(added);
      try {
        site.router?.add(added);
      } catch (error) {
        registry.remove(added);
        throw error;
      }
    },
    remove(...removed) {
      const known = removed.flatMap((handler) => handler ? served?.get(handler) ?? handler : []);
      registry.remove(known);
      site.router?.remove(known);
    },
    list: () =>
      registry.handlers.filter((handler) => !first.includes(handler)).map((handler) => own?.get(handler) ?? handler),
    get: (kind, name) => {
      const found = registry.find(kind, name);
      return found && (own?.get(found) ?? found);
    },
    enable: (selected, callers) => toggle(selected, true, callers),
    disable: (selected, callers) => toggle(selected, false, callers),
  };
}
