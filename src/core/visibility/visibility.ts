/**
 * Rules that enable and disable handlers while a server runs.
 *
 * @module
 */
import type { Changes, Toggled } from "./changes.ts";
import type { Allow, Context } from "../call/context.ts";
import type { BoundAllow, Handler } from "./feature.ts";
import { INTERNALS } from "../call/internals.ts";
import { type Registry, toName, withAlso } from "./registry.ts";
import { readVerdict } from "../call/verdict.ts";

/** Enables or disables handlers for all callers. */
export interface SharedRule {
  /** Kind and name of a handler, or a tag of several handlers. */
  readonly key: string;
  readonly isShown: boolean;
}

/** Enables or disables handlers. */
interface Rule extends SharedRule {
  /** The callers for which the rule applies. Defaults to all callers. */
  readonly callers?: Allow;
}

/** A shared rule with its position among all rules. */
export interface PlacedRule extends SharedRule {
  /** Time at which the rule was added, in milliseconds since 1970. Later rules have greater values. */
  readonly at: number;
}

/** Rules that apply to all instances of a server. */
export interface SharedRules {
  /** The rules, the oldest first. `undefined` until they are known. */
  readonly list: readonly PlacedRule[] | undefined;
  /** Calls `onChange` after the rules have changed. Returns a function that stops this. */
  watch(onChange: () => void): () => void;
  /**
   * Registers the rules of one path with the rules of all paths, so that a later rule for all paths replaces the rules
   * of the one path.
   */
  noticed(rules: readonly PlacedRule[]): void;
  /**
   * Adds a rule on all instances. The rule applies to this instance at once.
   *
   * @throws {RangeError} if the rules are too large. In that case nothing has changed.
   */
  add(rule: SharedRule): void;
  /**
   * Waits, before a request of this method, until the rules are known. Returns `undefined` if they are known, or if the
   * method involves no handler. Rejects with the error for the client if the store does not respond.
   */
  open(method: string): Promise<void> | undefined;
  /**
   * Tries to read the rules until they are known. Returns `undefined` if the rules are already known. Never rejects.
   */
  load(): Promise<void> | undefined;
}

/** The rules of a server, the oldest first. */
export class Visibility {
  readonly #registry: Registry;
  readonly #changes: Changes;
  #rules: readonly Rule[];

  /** Creates the rules for a registry without handlers. The rules of `trunk`, the server of all paths, apply first. */
  constructor(registry: Registry, changes: Changes, trunk?: Visibility) {
    this.#registry = registry;
    this.#changes = changes;
    this.#rules = trunk ? trunk.#rules : [];
    registry.rule = (handlers) => this.#rule(handlers);
  }

  /** Enables or disables handlers, and notifies the clients whose lists have changed. */
  toggle(rule: Rule): void {
    const { key, callers } = rule;
    // A new rule replaces an older rule for the same handlers and callers.
    const rules = this.#rules;
    const rest = rules.filter((rule) => rule.key !== key || callers && rule.callers !== callers);
    this.#rules = [...rest, rule];
    try {
      this.apply((handlers) => select(handlers, key));
    } catch (error) {
      this.#rules = rules;
      throw error;
    }
  }

  /** Compiles changed handlers again, and notifies the clients whose lists have changed. */
  apply(find: Find): void {
    const registry = this.#registry;
    let changed: readonly Handler[] = [];
    const before = new Map<Handler, Allow | undefined>();
    registry.toggle((handlers) => {
      changed = find(handlers);
      for (const handler of changed) before.set(handler, registry.toRuled(handler).allow);
      return changed;
    });
    for (const feature of new Set(changed.map((handler) => handler[INTERNALS].feature.name))) {
      if (!registry.compiled(feature)?.capabilities[feature]?.listChanged) continue;
      const ofList = changed.filter((handler) => handler[INTERNALS].feature.name === feature);
      const toToggled = (handler: Handler): [string, Toggled] => [
        toName(handler),
        [before.get(handler), registry.toRuled(handler).allow],
      ];
      this.#changes.emit({ kind: "list", feature, handlers: [], toggled: new Map(ofList.map(toToggled)) });
    }
  }

  #rule(handlers: readonly Handler[]): ReadonlyMap<Handler, Handler> {
    const rules = new Map<Handler, Rule[]>();
    for (const rule of this.#rules) {
      for (const handler of select(handlers, rule.key)) rules.set(handler, [...rules.get(handler) ?? [], rule]);
    }
    return new Map([...rules].map(([handler, rules]) => [handler, applyRules(handler, rules)]));
  }
}

/** Returns the handlers to which a change applies. */
export type Find = (handlers: readonly Handler[]) => readonly Handler[];

/** Returns the selected handlers, and the handlers that were added together with them. */
function select(handlers: readonly Handler[], key: string): readonly Handler[] {
  const isSelected = (handler: Handler) =>
    toName(handler) === key || handler.tags?.some((tag) => `tag ${JSON.stringify(tag)}` === key);
  const selected = new Set(handlers.filter(isSelected).flatMap(withAlso));
  return handlers.filter((handler) => selected.has(handler));
}

/** Returns the handler with its rules applied. The newest rule is the last one. */
export function applyRules(handler: Handler, rules: readonly Rule[]): Handler {
  const newest = rules.at(-1);
  if (newest?.isShown && !newest.callers) return handler;
  const { [INTERNALS]: internals } = handler;
  // The `allow` of a resource also decides about single resources.
  const { allow: own }: { readonly allow?: BoundAllow } = handler;
  const decideAlone = (call: Context, subject: unknown) => own ? readVerdict(own(call, subject), "allow") : true;
  const decide = (call: Context, subject: unknown, at: number): boolean | Promise<boolean> => {
    const rule = rules[at];
    if (!rule) return decideAlone(call, subject);
    const { isShown, callers } = rule;
    const apply = (applies: boolean) => applies ? isShown && decideAlone(call, subject) : decide(call, subject, at - 1);
    // If `callers` fails, the handler is hidden, whether the rule enables or disables it.
    const applies = callers ? readVerdict(callers(call), isShown ? "enable" : "disable") : true;
    return typeof applies === "boolean" ? apply(applies) : applies.then(apply);
  };
  const allow: BoundAllow = (call, subject) => decide(call, subject, rules.length - 1);
  // Results of a resource that not all callers may see must not be in shared caches.
  const definition = { ...Object(internals.definition), allow, scope: "private" };
  return { ...handler, allow, [INTERNALS]: { ...internals, definition } };
}
