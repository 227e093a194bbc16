/**
 * Rules that enable and disable handlers while a server runs. Loaded with the first of them.
 *
 * @module
 */
import type { Changes, Toggled } from "./changes.ts";
import type { Allow, Context, HandlerSelector } from "../call/context.ts";
import type { BoundAllow, Handler } from "./feature.ts";
import { INTERNALS } from "../call/internals.ts";
import { type Registry, toName, toSelectionKey, withAlso } from "./registry.ts";
import { readVerdict } from "../call/verdict.ts";

/** Enables or disables handlers. */
interface Rule {
  /** Kind and name of the handler, or the tag of several. */
  readonly key: string;
  readonly isShown: boolean;
  /** The callers for which the rule holds. Defaults to all. */
  readonly callers?: Allow;
}

/** One call of `enable` or `disable`. */
export interface Toggle {
  readonly selected: Handler | HandlerSelector;
  readonly isShown: boolean;
  readonly callers?: Allow;
}

/** The rules of a server, the oldest first. */
export class Visibility {
  readonly #registry: Registry;
  readonly #changes: Changes;
  #rules: readonly Rule[] = [];

  /** Adds rules to a registry. */
  constructor(registry: Registry, changes: Changes) {
    this.#registry = registry;
    this.#changes = changes;
    registry.rule = (handlers) => this.#apply(handlers);
  }

  /**
   * Enables or disables handlers, and notifies the clients of which a list has changed.
   *
   * @throws {TypeError} if the selection is wrong. Nothing has changed then.
   */
  toggle({ selected, isShown, callers }: Toggle): void {
    const registry = this.#registry;
    const key = toSelectionKey(selected, registry);
    let changed: readonly Handler[] = [];
    const before = new Map<Handler, Allow | undefined>();
    // A new rule of the same handlers and callers replaces the older one.
    const rules = this.#rules;
    const rest = rules.filter((rule) => rule.key !== key || callers && rule.callers !== callers);
    this.#rules = [...rest, { key, isShown, callers }];
    try {
      registry.toggle((handlers) => {
        changed = select(handlers, key);
        for (const handler of changed) before.set(handler, registry.toRuled(handler).allow);
        return changed;
      });
    } catch (error) {
      this.#rules = rules;
      throw error;
    }
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

  #apply(handlers: readonly Handler[]): ReadonlyMap<Handler, Handler> {
    const rules = new Map<Handler, Rule[]>();
    for (const rule of this.#rules) {
      for (const handler of select(handlers, rule.key)) rules.set(handler, [...rules.get(handler) ?? [], rule]);
    }
    return new Map([...rules].map(([handler, rules]) => [handler, applyRules(handler, rules)]));
  }
}

/** Returns the selected handlers, and those that come along with them. */
function select(handlers: readonly Handler[], key: string): readonly Handler[] {
  const isSelected = (handler: Handler) =>
    toName(handler) === key || handler.tags?.some((tag) => `tag ${JSON.stringify(tag)}` === key);
  const selected = new Set(handlers.filter(isSelected).flatMap(withAlso));
  return handlers.filter((handler) => selected.has(handler));
}

/** Returns the handler as its rules leave it. The newest rule is the last. */
function applyRules(handler: Handler, rules: readonly Rule[]): Handler {
  const newest = rules.at(-1);
  if (newest?.isShown && !newest.callers) return handler;
  const { [INTERNALS]: internals } = handler;
  // An `allow` of resources also decides on a single one.
  const { allow: own }: { readonly allow?: BoundAllow } = handler;
  const decideAlone = (call: Context, subject: unknown) => own ? readVerdict(own(call, subject), "allow") : true;
  const decide = (call: Context, subject: unknown, at: number): boolean | Promise<boolean> => {
    const rule = rules[at];
    if (!rule) return decideAlone(call, subject);
    const { isShown, callers } = rule;
    const apply = (applies: boolean) => applies ? isShown && decideAlone(call, subject) : decide(call, subject, at - 1);
    // A failure hides the handler, whether the rule enables or disables it.
    const applies = callers ? readVerdict(callers(call), isShown ? "enable" : "disable") : true;
    return typeof applies === "boolean" ? apply(applies) : applies.then(apply);
  };
  const allow: BoundAllow = (call, subject) => decide(call, subject, rules.length - 1);
  // A resource that is not for all callers is private to caches.
  const definition = { ...Object(internals.definition), allow, scope: "private" };
  return { ...handler, allow, [INTERNALS]: { ...internals, definition } };
}
