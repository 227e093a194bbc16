/**
 * The rules of `enable` and `disable` that all instances share.
 *
 * @module
 */
import { toBusy } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { INTERNALS } from "../core/call/internals.ts";
import { systemClock } from "../core/capacity/timers.ts";
import type { Ruled } from "../core/store.ts";
import type { Handler } from "../core/visibility/feature.ts";
import { toName, withAlso } from "../core/visibility/registry.ts";
import { applyRules, type PlacedRule, type SharedRule, type SharedRules } from "../core/visibility/visibility.ts";
import type { InformedRules, InstanceState } from "./instance_state.ts";

/** The rules in the store. */
interface StoredRules {
  /** Number that grows with each change, so that newer rules can be distinguished from older rules. */
  readonly at: number;
  /** The rules, oldest first. Each key has at most one rule. */
  readonly rules: readonly PlacedRule[];
}

const NOTHING: StoredRules = { at: 0, rules: [] };

/** The rules of one server in a store. Until they have been read, all handlers of the server are hidden. */
export class RuleRecord implements InformedRules {
  readonly #instances: InstanceState;
  readonly #ruled: Ruled;
  readonly #trunk?: SharedRules;
  readonly #unwatch?: () => void;
  readonly #watchers = new Set<() => void>();
  /** The handlers of the server. */
  #handlers: readonly Handler[] = [];
  #list?: readonly PlacedRule[];
  /** The rules in the store, as last read or written by this process. Another instance may have changed them since. */
  #known?: StoredRules;
  /** Changes that this process has made and not yet written, in order. Each key has at most one change. */
  #pending: readonly SharedRule[] = [];
  /**
   * Times of two rules of single paths: the newest rule that shows a handler, and the newest rule that hides a handler.
   */
  readonly #noticed = { shown: 0, hidden: 0 };
  /** Whether the other instances must still be notified of a write. */
  #isUntold = false;
  /** Whether the rules are due to be written again. */
  #isDue = true;
  /** Whether a request has failed because the rules were not known yet. */
  #isLate = false;
  /** Whether the last attempt to compile the handlers with the current rules failed. */
  #isSpoiled = false;
  #isWanted = false;
  #isClosed = false;
  #running?: Promise<void>;
  /** Stops the timer. Set while no exchange with the store is in progress. */
  #stop?: () => void;

  constructor(instances: InstanceState, ruled: Ruled, trunk?: SharedRules) {
    this.#instances = instances;
    this.#ruled = ruled;
    this.#trunk = trunk;
    this.#unwatch = trunk?.watch(() => {
      try {
        this.#applyAll();
      } catch {
        // The retry also reports the error.
        this.refresh();
      }
    });
    const { registry } = ruled;
    const { rule } = registry;
    registry.rule = (handlers) => {
      this.#handlers = handlers;
      const ruled = new Map(rule?.(handlers));
      for (const handler of findHidden(handlers, this.#list)) ruled.set(handler, applyRules(handler, [HIDDEN]));
      return ruled;
    };
  }

  get list(): readonly PlacedRule[] | undefined {
    return this.#list;
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  noticed(rules: readonly PlacedRule[]): void {
    this.#noticed.shown = Math.max(this.#noticed.shown, findNewest(rules, true));
    this.#noticed.hidden = Math.max(this.#noticed.hidden, findNewest(rules, false));
  }

  add({ key, isShown }: SharedRule): void {
    const pending = [...this.#pending.filter((rule) => rule.key !== key), { key, isShown }];
    const known = this.#known ?? NOTHING;
    if (isTooLarge(this.#merge(known, pending), this.#merge(known, this.#pending))) {
      throw new RangeError(this.#toTooLarge(key, isShown));
    }
    if (toBytes(pending) > MAX_BYTES) {
      throw new RangeError(`${toRefusal(key, isShown)}: too many changes wait for the store; try again later`);
    }
    const before = this.#pending;
    this.#pending = pending;
    try {
      this.#update();
    } catch (error) {
      this.#pending = before;
      throw error;
    }
    if (!this.#isClosed) this.refresh();
  }

  open(method: string): Promise<void> | undefined {
    if (!this.#list && RULED.test(method)) return this.#open(method);
  }

  async #open(method: string): Promise<void> {
    await Promise.all([this.load(), this.#trunk?.open(method)]);
    if (this.#list) return;
    this.#isLate = true;
    throw toBusy("serve the request: the store does not report which handlers are disabled");
  }

  load(): Promise<void> | undefined {
    // After a failure, do not make the caller wait; the timer tries again.
    if (!this.#known && !this.#stop) return this.#run();
  }

  refresh(): void {
    this.#run();
  }

  async close(): Promise<number> {
    this.#isClosed = true;
    this.#unwatch?.();
    this.#stop?.();
    await this.#running;
    if (this.#pending.length || this.#isUntold) await this.#exchange();
    return this.#pending.length;
  }

  /** Exchanges rules with the store. If called during an exchange, starts another exchange afterwards. */
  #run(): Promise<void> {
    this.#isWanted = true;
    return this.#running ??= this.#exchangeAll();
  }

  async #exchangeAll(): Promise<void> {
    this.#stop?.();
    this.#stop = undefined;
    let isDone = true;
    while (this.#isWanted && isDone && !this.#isClosed) {
      this.#isWanted = false;
      // Start to listen before the rules are read; otherwise a change made between the two steps would be missed.
      isDone = await this.#instances.listen() && await this.#exchange();
    }
    this.#running = undefined;
    if (this.#isClosed) return;
    this.#isLate ||= !isDone;
    const retry = () => {
      this.#isDue ||= isDone;
      this.#run();
    };
    this.#stop = systemClock.start(retry, isDone ? RENEW_MS : RETRY_MS, { background: true });
  }

  async #exchange(): Promise<boolean> {
    const key = await this.#instances.hash("rules", "");
    const isDone = await this.#instances.queue(key, () =>
      this.#instances.attempt("set", async () => {
        await this.#write(key);
        if (this.#isUntold) await this.#instances.tell({ rules: true });
        this.#isUntold = false;
        return true;
      }));
    return isDone ?? false;
  }

  async #write(key: string): Promise<void> {
    await this.#trunk?.load();
    // Wait for the rules of the trunk. Without these rules, a rule that shows a handler hidden by the trunk would seem
    // to have no effect, and would be dropped.
    if (this.#trunk && !this.#trunk.list) throw new Error(NO_TRUNK);
    for (let left = ATTEMPTS; left; left--) {
      const found = await this.#instances.get(key);
      const stored = found ? toStored(found.value) : NOTHING;
      if (!stored) throw new RangeError(UNREADABLE);
      // If the store has older rules, it was emptied or restored. Keep the known rules, so that no disabled handler
      // becomes visible.
      const before = this.#known && this.#known.at > stored.at ? this.#known : stored;
      // Apply the rules that were read, even if the pending changes cannot be written.
      this.#known = before;
      this.#applyAll();
      const pending = this.#pending;
      const next = this.#merge(before, pending);
      if (isTooLarge(next, stored)) throw new RangeError(this.#toTooLarge("handlers", false));
      if (next !== stored || this.#isDue && next.rules.length) {
        // Set this flag before the write, because the write may succeed although its response is lost.
        this.#isUntold = true;
        const value = { at: next.at, rules: next.rules.map(({ key, isShown, at }) => [key, isShown, at]) };
        const options = { ttlMs: LIFE_MS, version: found?.version ?? null };
        if (await this.#instances.set(key, value, options) === undefined) continue;
      }
      this.#isDue = false;
      this.#known = next;
      this.#pending = this.#pending.filter((rule) => !pending.includes(rule));
      return pending.length ? this.#applyAll() : undefined;
    }
    throw new Error(`Cannot share the rules of enable and disable: ${ATTEMPTS} other changes came first`);
  }

  /** Returns the rules after changes. Returns the same object if the changes have no effect. */
  #merge(stored: StoredRules, changes: readonly SharedRule[]): StoredRules {
    const ofTrunk = this.#trunk?.list ?? [];
    const rules = new Map(stored.rules.map((rule) => [rule.key, rule]));
    const all = [...stored.rules, ...ofTrunk];
    const last = {
      shown: Math.max(findNewest(all, true), this.#noticed.shown),
      hidden: Math.max(findNewest(all, false), this.#noticed.hidden),
    };
    let at = Math.max(stored.at, last.shown, last.hidden);
    for (const { key, isShown } of changes) {
      const known = rules.get(key);
      // Skip a change without effect, because it would override a newer change of another instance.
      if (known?.isShown === isShown && known.at > (isShown ? last.hidden : last.shown)) continue;
      at = Math.max(at + 1, systemClock.date());
      last[isShown ? "shown" : "hidden"] = at;
      // Delete the rule first, so that the newest rule is the last one in the map.
      rules.delete(key);
      rules.set(key, { key, isShown, at });
    }
    const needed = dropIdle([...rules.values()], ofTrunk);
    const isSame = needed.length === stored.rules.length && needed.every((rule, at) => rule === stored.rules[at]);
    return isSame ? stored : { at, rules: needed };
  }

  /**
   * Applies rules that were read from the store. If the handlers cannot be compiled with them, requests are rejected
   * until they can.
   */
  #applyAll(): void {
    try {
      this.#update();
    } catch (error) {
      this.#list = undefined;
      this.#isSpoiled = true;
      throw error;
    }
  }

  /**
   * Applies the known rules and the pending changes. If the handlers cannot be compiled with them, throws and changes
   * nothing.
   */
  #update(): void {
    const before = this.#list;
    const ofTrunk = this.#trunk ? this.#trunk.list : [];
    const own = this.#known && this.#merge(this.#known, this.#pending).rules;
    if (own) this.#trunk?.noticed(own);
    this.#list = own && ofTrunk && [...ofTrunk, ...own].sort((a, b) => a.at - b.at);
    const { registry, visibility } = this.#ruled;
    const find = (handlers: readonly Handler[]) => {
      if (this.#isSpoiled) return handlers;
      const [was, is] = [findHidden(handlers, before), findHidden(handlers, this.#list)];
      return handlers.filter((handler) => was.has(handler) !== is.has(handler));
    };
    try {
      // Announce a change only if a client may have seen a list, which is not the case before the rules are known.
      if (before || this.#isLate || this.#isSpoiled) visibility.apply(find);
      else registry.toggle(find);
    } catch (error) {
      this.#list = before;
      throw error;
    }
    this.#isSpoiled = false;
    for (const onChange of this.#watchers) onChange();
  }

  #toTooLarge(key: string, isShown: boolean): string {
    const known = groupByKey(this.#handlers);
    const unused = this.#list?.find((rule) => !known.has(rule.key));
    const remedy = unused ? `enable ${unused.key}, which this server does not have` : "enable some, or use a tag";
    return `${toRefusal(key, isShown)}: the rules would weigh more than ${MAX_BYTES} bytes; ${remedy}`;
  }
}

/**
 * Maximum size in bytes of all rules as JSON, and of the pending changes. After sealing, the rules fit into one value
 * of Deno KV, which has at most 64 KiB.
 */
const MAX_BYTES = 32_768;

/** Number of attempts to write the rules while other instances change them at the same time. */
const ATTEMPTS = 20;

const RETRY_MS = 1000;

/** Milliseconds after which the store may forget rules that no instance has used: a year. */
const LIFE_MS = 31_536_000_000;

/**
 * Milliseconds after which the rules are written again, and the other instances are notified. The rules then do not
 * expire, and are sealed with the newest secret. The topic of the notifications does not expire either; without it, no
 * instance would notice that the store was emptied.
 */
const RENEW_MS = 1_800_000;

const HIDDEN: SharedRule = { key: "", isShown: false };

const NO_TRUNK = "Cannot read the rules of enable and disable for a path: the rules for all paths are not known";

const UNREADABLE =
  "Cannot read which handlers are disabled: another secret has sealed it, or another version of the library has " +
  "written it; give this server the secret and the version of the other instances";

/** Matches the methods whose handlers can be disabled. */
const RULED = /^(tools|resources|prompts|completion|subscriptions)\//;

/** Returns the handlers that the rules hide. If the rules are not known, returns all handlers that can be disabled. */
function findHidden(handlers: readonly Handler[], rules: readonly PlacedRule[] | undefined): ReadonlySet<Handler> {
  // Extensions cannot be disabled, so they stay visible.
  if (!rules) return new Set(handlers.filter((handler) => handler[INTERNALS].feature.name !== "extensions"));
  const hidden = new Set<Handler>();
  if (!rules.length) return hidden;
  const known = groupByKey(handlers);
  for (const { key, isShown } of rules) {
    for (const handler of known.get(key)?.flatMap(withAlso) ?? []) {
      if (isShown) hidden.delete(handler);
      else hidden.add(handler);
    }
  }
  return hidden;
}

/** Returns handlers by the keys of the rules that select them. */
function groupByKey(handlers: readonly Handler[]): ReadonlyMap<string, readonly Handler[]> {
  const groups = new Map<string, Handler[]>();
  for (const handler of handlers) {
    for (const key of [toName(handler), ...handler.tags?.map((tag) => `tag ${JSON.stringify(tag)}`) ?? []]) {
      const known = groups.get(key);
      if (known) known.push(handler);
      else groups.set(key, [handler]);
    }
  }
  return groups;
}

/**
 * Drops rules that show handlers, unless an older rule may hide them: without a rule, handlers are shown anyway. An
 * older rule with another key can hide the same handler only if one of the two keys is a group or a tag.
 */
function dropIdle(rules: readonly PlacedRule[], ofTrunk: readonly PlacedRule[]): readonly PlacedRule[] {
  const hiding = [...rules, ...ofTrunk].filter((rule) => !rule.isShown);
  const isOfSeveral = ({ key }: SharedRule) => /^(group|tag) /.test(key);
  const toFirst = (rules: readonly PlacedRule[]) => Math.min(...rules.map(({ at }) => at));
  const [first, firstOfSeveral] = [toFirst(hiding), toFirst(hiding.filter(isOfSeveral))];
  const places = new Map(hiding.map(({ key, at }) => [key, at]));
  return rules.filter((rule) =>
    !rule.isShown || rule.at > Math.min(isOfSeveral(rule) ? first : firstOfSeveral, places.get(rule.key) ?? Infinity)
  );
}

/** Returns the time of the newest rule that shows a handler, or of the newest rule that hides a handler. */
function findNewest(rules: readonly PlacedRule[], isShown: boolean): number {
  return Math.max(0, ...rules.filter((rule) => rule.isShown === isShown).map(({ at }) => at));
}

/**
 * Whether rules are too large. Rules that are no larger than the rules they replace are allowed, so that a record that
 * is too large can shrink step by step.
 */
function isTooLarge({ rules }: StoredRules, before: StoredRules): boolean {
  const bytes = toBytes(rules);
  return bytes > MAX_BYTES && bytes > toBytes(before.rules);
}

function toBytes(rules: readonly (SharedRule & Partial<PlacedRule>)[]): number {
  return new TextEncoder().encode(JSON.stringify(rules.map(({ key, isShown, at }) => [key, isShown, at]))).length;
}

function toRefusal(key: string, isShown: boolean): string {
  const name = key.length > 100 ? `${key.slice(0, 100)}…` : key;
  return `Cannot ${isShown ? "enable" : "disable"} ${name} on all instances`;
}

/** Returns the rules in a value, or `undefined` if no instance can have written the value. */
function toStored(value: unknown): StoredRules | undefined {
  if (!isObject(value) || typeof value.at !== "number" || !Array.isArray(value.rules)) return;
  const rules = value.rules.flatMap((rule: unknown) => toPlaced(rule) ?? []);
  if (rules.length === value.rules.length) return { at: value.at, rules };
}

function toPlaced(rule: unknown): PlacedRule | undefined {
  if (!Array.isArray(rule)) return;
  const [key, isShown, at]: readonly unknown[] = rule;
  if (typeof key === "string" && typeof isShown === "boolean" && typeof at === "number") return { key, isShown, at };
}
