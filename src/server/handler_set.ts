/**
 * The handlers of a running server.
 *
 * @module
 */
import type { HandlerSet } from "../core/call/context.ts";
import type { Engine } from "../core/era.ts";
import type { Handler } from "../core/visibility/feature.ts";
import { INTERNALS } from "../core/call/internals.ts";
import { toSelectionKey } from "../core/visibility/registry.ts";
import { type Toggle, Visibility } from "../core/visibility/visibility.ts";

/** The servers of concrete paths, which follow the changes of the server with the parameters. */
export interface Followers {
  list(): readonly { readonly handlers: HandlerSet<Handler> }[];
  add(handlers: readonly Handler[]): void;
  remove(handlers: readonly Handler[]): void;
}

/** Where the handlers of a server are used. */
export interface HandlerPlace {
  /** Whether the path has parameters, so that each concrete path gets a server of its own. */
  readonly hasParams: boolean;
  /** The calls of `enable` and `disable` that hold at all concrete paths. */
  readonly toggles: Toggle[];
  /** The servers of the concrete paths, once they are loaded. */
  readonly router?: Followers;
}

/** Creates the handlers of a running server. Those of a path with parameters belong to all of its concrete paths. */
export function createHandlerSet(
  { registry, changes }: Omit<Engine, "host">,
  site: HandlerPlace,
  open: (added: readonly Handler[]) => void,
): HandlerSet<Handler> {
  let visibility: Visibility | undefined;
  function toggle(toggled: Toggle): void {
    const { callers } = toggled;
    // Anything else would mean all callers.
    if (callers !== undefined && typeof callers !== "function") {
      throw new TypeError("Cannot enable or disable handlers: callers is not a function; leave it out for all callers");
    }
    toSelectionKey(toggled.selected, registry);
    if (site.hasParams) {
      const rest = site.toggles.filter((each) => !isReplaced(each, toggled));
      site.toggles.splice(0, site.toggles.length, ...rest, toggled);
      for (const { handlers } of site.router?.list() ?? []) applyToggle(handlers, toggled);
    }
    visibility ??= new Visibility(registry, changes);
    visibility.toggle(toggled);
  }
  return {
    add(...added) {
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
      const known = removed.filter((each) => each !== undefined);
      registry.remove(known);
      site.router?.remove(known);
    },
    list: () => registry.handlers,
    get: (kind, name) => registry.find(kind, name),
    enable: (selected, callers) => toggle({ selected, isShown: true, callers }),
    disable: (selected, callers) => toggle({ selected, isShown: false, callers }),
  };
}

/** Enables or disables handlers. */
export function applyToggle(handlers: HandlerSet<Handler>, { selected, isShown, callers }: Toggle): void {
  handlers[isShown ? "enable" : "disable"](selected, callers);
}

// Each new path applies all toggles, so those without an effect must not pile up.
function isReplaced({ selected, callers }: Toggle, by: Toggle): boolean {
  if (by.callers && by.callers !== callers) return false;
  if (INTERNALS in selected || INTERNALS in by.selected) return selected === by.selected;
  return JSON.stringify(selected) === JSON.stringify(by.selected);
}
