/**
 * Rules that enable and disable handlers while the server is running.
 */
import type { Changes, Toggled } from "./changes.ts";
import type { Allow, Context } from "../call/context.ts";
import type { BoundAllow, Handler } from "./feature.ts";
import { INTERNALS } from "../../core/internals.ts";
import { type Registry, toName, withAlso } from "./registry.ts";
import { readVerdict } from "../call/verdict.ts";

export interface SharedRule {
  /** Kind and name of a handler, or a tag. */
  readonly key: string;
  readonly isShown: boolean;
}

/** A rule that enables or disables handlers for some callers. */
interface Rule extends SharedRule {
  /** Selects the callers to which the rule applies. Defaults to all callers. */
  readonly callers?: Allow;
}

/** A shared rule, with the time that determines its position among the rules. */
export interface PlacedRule extends SharedRule {
  /** Time at which the rule was added, in milliseconds since 1970. Each later rule has a greater value. */
  readonly at: number;
}

export interface SharedRules {
  /** The rules, oldest first. `undefined` until the rules were read. */
  readonly list: readonly PlacedRule[] | undefined;
  /** Calls `onChange` whenever the rules have changed. Returns a function that stops these calls. */
  watch(onChange: () => void): () => void;
  /** Registers the rules for one path, so that a later rule for all paths is newer, and takes precedence. */
  noticed(rules: readonly PlacedRule[]): void;
  /**
   * Adds a rule on all instances. On this instance, the rule applies immediately.
   *
   * @throws {RangeError} if the rules are too large. In that case, no rule is added.
   */
  add(rule: SharedRule): void;
  /**
   * Waits until the rules were read. Called before a request with this method. `isBrought` states whether handlers
   * bring the method. Returns `undefined` if the rules were already read, or if the method has no handlers. Rejects
   * with the error that the client receives if the store does not respond.
   */
  open(method: string, isBrought?: boolean): Promise<void> | undefined;
  /** Retries until the rules were read. Returns `undefined` if the rules were already read. Never rejects. */
  load(): Promise<unknown> | undefined;
}

export class Visibility {
  readonly #registry: Registry;
  readonly #changes: Changes;
  #rules: readonly Rule[];

  /** Created before the registry has handlers. `trunk` contains the rules for all paths, which are older. */
  constructor(registry: Registry, changes: Changes, trunk?: Visibility) {
    this.#registry = registry;
    this.#changes = changes;
    this.#rules = trunk ? trunk.#rules : [];
    registry.rule = (handlers) => this.#rule(handlers);
  }

  toggle(rule: Rule): void {
    const { key, callers } = rule;
    // A new rule replaces the older rule for the same handlers and callers. A rule for all callers replaces all rules
    // for the same handlers.
    const rules = this.#rules;
    const rest = rules.filter((rule) => rule.key !== key || callers && rule.callers !== callers);
    this.#rules = [...rest, rule];
    try {
      this.apply((handlers) => {
        const selected = groupByKey(handlers).get(key);
        return handlers.filter((handler) => selected?.has(handler));
      });
    } catch (error) {
      this.#rules = rules;
      throw error;
    }
  }

  /** Compiles handlers again after their rules have changed, and notifies the clients whose lists have changed. */
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
    if (!this.#rules.length) return new Map();
    const groups = groupByKey(handlers);
    for (const rule of this.#rules) {
      for (const handler of groups.get(rule.key) ?? []) rules.set(handler, [...rules.get(handler) ?? [], rule]);
    }
    return new Map([...rules].map(([handler, rules]) => [handler, applyRules(handler, rules)]));
  }
}

export type Find = (handlers: readonly Handler[]) => readonly Handler[];

/** Groups handlers, and the handlers that were added together with them, by the keys with which rules can select them. */
export function groupByKey(handlers: readonly Handler[]): ReadonlyMap<string, ReadonlySet<Handler>> {
  const groups = new Map<string, Set<Handler>>();
  for (const handler of handlers) {
    for (const key of [toName(handler), ...handler.tags?.map((tag) => `tag ${JSON.stringify(tag)}`) ?? []]) {
      const group = groups.get(key) ?? new Set();
      for (const each of withAlso(handler)) groups.set(key, group.add(each));
    }
  }
  return groups;
}

/** The rules are sorted from oldest to newest. */
export function applyRules(handler: Handler, rules: readonly Rule[]): Handler {
  const newest = rules.at(-1);
  if (newest?.isShown && !newest.callers) return handler;
  const { [INTERNALS]: internals } = handler;
  // A resource's `allow` also decides about single resources, passed as `subject`.
  const { allow: own }: { readonly allow?: BoundAllow } = handler;
  const decideAlone = (call: Context, subject: unknown) => own ? readVerdict(own(call, subject), "allow") : true;
  const decide = (call: Context, subject: unknown, at: number): boolean | Promise<boolean> => {
    const rule = rules[at];
    if (!rule) return decideAlone(call, subject);
    const { isShown, callers } = rule;
    const apply = (applies: boolean) => applies ? isShown && decideAlone(call, subject) : decide(call, subject, at - 1);
    // If `callers` throws, the error hides the handler, even if the rule enables the handler.
    const applies = callers
      ? readVerdict(callers(call), isShown ? "callers in enable()" : "callers in disable()")
      : true;
    return typeof applies === "boolean" ? apply(applies) : applies.then(apply);
  };
  const allow: BoundAllow = (call, subject) => decide(call, subject, rules.length - 1);
  // Set the cache scope to `private`, because a shared cache must not contain results that only some callers may see.
  const definition = { ...Object(internals.definition), allow, scope: "private" };
  return { ...handler, allow, [INTERNALS]: { ...internals, definition } };
}
