/**
 * Rules that enable and disable handlers while a server runs.
 *
 * @module
 */
import { quote } from "../protocol/errors.ts";
import type { Allow, Handler } from "./feature.ts";
import type { HandlerSelector } from "./context.ts";
import { INTERNALS } from "./internals.ts";

/** Enables or disables handlers. */
export interface Rule {
  /** Kind and name of the handler, or the tag of several. */
  readonly key: string;
  readonly isShown: boolean;
  /** The callers for which the rule holds. Defaults to all. */
  readonly callers?: Allow;
}

/** Returns the kind and the name of a handler, for messages and as a key. */
export function toName(handler: Handler): string {
  const { feature, key } = handler[INTERNALS];
  return `${feature.name.replace(/s$/, "")} ${JSON.stringify(key)}`;
}

/**
 * Returns what a selection has in common with the handlers that it selects.
 *
 * @throws {TypeError} if it does not select by a kind and a name, or by a tag.
 */
export function toKey(selected: Handler | HandlerSelector): string {
  if (INTERNALS in selected) return toName(selected);
  const [[kind, name], ...more] = [...Object.entries<string>(selected), [""]];
  if (/^(tool|resource|prompt|group|tag)$/.test(kind) && more.length === 1) return `${kind} ${JSON.stringify(name)}`;
  throw new TypeError(`Cannot select handlers by ${quote(kind)}: give one tool, resource, prompt, group or tag`);
}

/** Tests whether a handler is selected. What comes along with it is selected too. */
export function isSelected(handler: Handler, key: string): boolean {
  return toName(handler) === key || !!handler.tags?.some((tag) => `tag ${JSON.stringify(tag)}` === key);
}

/** Returns the handler as its rules leave it. The newest rule is the last. */
export function applyRules(handler: Handler, rules: readonly Rule[]): Handler {
  const newest = rules.at(-1);
  if (newest?.isShown && !newest.callers) return handler;
  const { allow: own, [INTERNALS]: internals } = handler;
  const decide = (call: Parameters<Allow>[0], at: number): boolean | Promise<boolean> => {
    const rule = rules[at];
    if (!rule) return own?.(call) ?? true;
    const { isShown, callers } = rule;
    const apply = (applies: boolean) => applies ? isShown && (own?.(call) ?? true) : decide(call, at - 1);
    const applies = callers ? callers(call) : true;
    return typeof applies === "boolean" ? apply(applies) : Promise.resolve(applies).then(apply);
  };
  const allow: Allow = (call) => decide(call, rules.length - 1);
  // A resource that is not for all callers is private to caches.
  const definition = { ...Object(internals.definition), allow, scope: "private" };
  return { ...handler, allow, [INTERNALS]: { ...internals, definition } };
}
