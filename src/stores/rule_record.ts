/**
 * The rules of `enable` and `disable` that all instances share.
 */
import { shorten } from "../core/kit/shorten.ts";
import { toBusy } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { INTERNALS } from "../core/internals.ts";
import { CHANGED, update } from "../server/engine/update.ts";
import type { Ruled } from "../server/engine/store.ts";
import type { Handler } from "../server/visibility/feature.ts";
import {
  applyRules,
  groupByKey,
  type PlacedRule,
  type SharedRule,
  type SharedRules,
} from "../server/visibility/visibility.ts";
import type { InformedRules, InstanceState } from "./instance_state.ts";
import { Repeated } from "./repeated.ts";

interface StoredRules {
  /** Timestamp of the latest change. It grows even if a clock goes back, and shows which set of rules is newer. */
  readonly at: number;
  /** The rules, oldest first, with at most one rule per key. */
  readonly rules: readonly PlacedRule[];
}

const NOTHING: StoredRules = { at: 0, rules: [] };

/** The rules of one server in a store. All handlers of the server are hidden until the rules are read. */
export class RuleRecord implements InformedRules {
  readonly #instances: InstanceState;
  readonly #ruled: Ruled;
  readonly #trunk?: SharedRules;
  readonly #unwatch?: () => void;
  // Bound: one per path, see `endpoints.open`.
  readonly #watchers = new Set<() => void>();
  #handlers: readonly Handler[] = [];
  #list?: readonly PlacedRule[];
  /** The rules that this process last read or wrote. The rules in the store may be newer. */
  #known?: StoredRules;
  /** Changes that this process has not written yet, oldest first. Each key has at most one change. */
  #pending: readonly SharedRule[] = [];
  /** The times of the newest rules that show and that hide a handler, among the rules for single paths. */
  readonly #noticed = { shown: 0, hidden: 0 };
  /** Monotonic time at which the rules must be written and announced again although they have not changed. */
  #due = -Infinity;
  /** Whether a request may have failed because the rules were not known. */
  #isLate = false;
  readonly #exchanges: Repeated;

  constructor(instances: InstanceState, ruled: Ruled, trunk?: SharedRules) {
    this.#instances = instances;
    this.#ruled = ruled;
    this.#trunk = trunk;
    this.#exchanges = new Repeated(instances.clock, () => this.#exchange(), { renewMs: RENEW_MS });
    this.#unwatch = trunk?.watch(() => {
      try {
        this.#applyAll();
      } catch {
        // Read the rules again. If the handlers still cannot be compiled, the read reports the error.
        this.refresh();
      }
    });
    const { registry } = ruled;
    const { rule } = registry;
    registry.rule = (handlers, isFound) => {
      if (!isFound) this.#handlers = handlers;
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
      throw new RangeError(`${toRefusal(key, isShown)}: too many changes are not stored yet; try again later`);
    }
    const before = this.#pending;
    this.#pending = pending;
    try {
      this.#update();
    } catch (error) {
      this.#pending = before;
      throw error;
    }
    this.refresh();
  }

  open(method: string, isBrought = false): Promise<void> | undefined {
    if (!this.#list && (isBrought || RULED.test(method))) return this.#open(method, isBrought);
  }

  async #open(method: string, isBrought: boolean): Promise<void> {
    await Promise.all([this.load(), this.#trunk?.open(method, isBrought)]);
    if (this.#list) return;
    this.#isLate = true;
    throw toBusy("serve the request: the store does not report which handlers are disabled");
  }

  load(): Promise<unknown> | undefined {
    // After a failure, the timer starts the next attempt, because the caller would wait for the store again here.
    if (!this.#known && !this.#exchanges.isWaiting) return this.#exchanges.again();
  }

  refresh(): void {
    this.#exchanges.again();
  }

  async close(): Promise<number> {
    this.#unwatch?.();
    await this.#exchanges.close();
    if (this.#pending.length || this.#known && this.#isDue) await this.#store();
    return this.#pending.length;
  }

  get #isDue(): boolean {
    return this.#due <= this.#instances.clock.now();
  }

  async #exchange(): Promise<boolean> {
    // Start listening before reading the rules. Otherwise a change between the two steps would be missed.
    const isDone = await this.#instances.listen() && await this.#store();
    this.#isLate ||= !isDone;
    return isDone;
  }

  async #store(): Promise<boolean> {
    const key = await this.#instances.hash("rules", "");
    return await this.#instances.queue(key, () => this.#instances.succeeds("set", () => this.#write(key)));
  }

  async #write(key: string): Promise<void> {
    await this.#trunk?.load();
    // Fail until the trunk's rules, which apply to all paths, are known. Otherwise a rule that shows a handler on this
    // path could be dropped as if it had no effect, although the trunk's rules hide the handler.
    if (this.#trunk && !this.#trunk.list) throw new Error(NO_TRUNK);
    const isWritten = await update("store which handlers are disabled", async () => {
      const found = await this.#instances.own.get(key);
      const stored = found ? toStored(found.value) : NOTHING;
      if (!stored) throw new RangeError(UNREADABLE);
      // If the stored rules are older, the store was emptied or restored from a backup. Keep the known rules, so that
      // no disabled handler becomes visible.
      const before = this.#known && this.#known.at > stored.at ? this.#known : stored;
      // Apply the rules that were read, even if the pending changes cannot be written.
      this.#known = before;
      this.#applyAll();
      const pending = this.#pending;
      const next = this.#merge(before, pending);
      if (isTooLarge(next, stored)) throw new RangeError(this.#toTooLarge("handlers", false));
      const isChanged = next !== stored || this.#isDue && !!found;
      if (isChanged) {
        // Set the time before the write, because the write may succeed even if its response is lost.
        this.#due = -Infinity;
        const value = { at: next.at, rules: next.rules.map(({ key, isShown, at }) => [key, isShown, at]) };
        const options = { ttlMs: LIFE_MS, version: found?.version ?? null };
        if (await this.#instances.own.set(key, value, options) === undefined) return CHANGED;
      }
      this.#known = next;
      this.#pending = this.#pending.filter((rule) => !pending.includes(rule));
      if (pending.length) this.#applyAll();
      return isChanged;
    });
    if (isWritten) await this.#instances.publishOrThrow(this.#instances.own, { rules: true });
    this.#due = this.#instances.clock.now() + RENEW_MS;
  }

  /** Returns `stored` with the changes applied. Returns `stored` itself if the changes have no effect. */
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
      // Skip a change that has no effect. With a new timestamp, it could override a newer change by another instance.
      if (known?.isShown === isShown && known.at > (isShown ? last.hidden : last.shown)) continue;
      at = Math.max(at + 1, this.#instances.clock.date());
      last[isShown ? "shown" : "hidden"] = at;
      // Delete the old rule first, because set() would keep its position, but the newest rule must be the last.
      rules.delete(key);
      rules.set(key, { key, isShown, at });
    }
    const needed = dropIdle([...rules.values()], ofTrunk);
    const isSame = needed.length === stored.rules.length && needed.every((rule, at) => rule === stored.rules[at]);
    return isSame ? stored : { at, rules: needed };
  }

  /** Throws if the handlers cannot be compiled. Requests are then rejected until the handlers can be compiled. */
  #applyAll(): void {
    try {
      this.#update();
    } catch (error) {
      this.#list = undefined;
      this.#isLate = true;
      throw error;
    }
  }

  /** Throws, and changes nothing, if the handlers cannot be compiled with the known rules and the pending changes. */
  #update(): void {
    const before = this.#list;
    const ofTrunk = this.#trunk ? this.#trunk.list : [];
    const own = this.#known && this.#merge(this.#known, this.#pending).rules;
    if (own) this.#trunk?.noticed(own);
    this.#list = own && ofTrunk && [...ofTrunk, ...own].sort((a, b) => a.at - b.at);
    const { registry, visibility } = this.#ruled;
    const find = (handlers: readonly Handler[]) => {
      // Without rules, it is unknown with which rules the handlers are compiled.
      if (!before) return handlers;
      const [was, is] = [findHidden(handlers, before), findHidden(handlers, this.#list)];
      return handlers.filter((handler) => was.has(handler) !== is.has(handler));
    };
    try {
      // Announce a change only if a client may have received a list or an error: no client gets a list before the rules
      // are known.
      if (before || this.#isLate) visibility.apply(find);
      else registry.toggle(find);
    } catch (error) {
      this.#list = before;
      throw error;
    }
    for (const onChange of this.#watchers) onChange();
  }

  #toTooLarge(key: string, isShown: boolean): string {
    const known = groupByKey(this.#handlers);
    const unused = this.#list?.find((rule) => !known.has(rule.key));
    const remedy = unused
      ? `enable ${unused.key}, which this server no longer has`
      : "enable some handlers, or disable a tag instead of single handlers";
    return `${toRefusal(key, isShown)}: the rules would take more than ${MAX_BYTES} bytes; ${remedy}`;
  }
}

/**
 * Maximum size in bytes, as JSON, of all rules, and also of all pending changes. After sealing, rules of this size
 * still fit into one value in Deno KV (64 KiB).
 */
const MAX_BYTES = 32_768;

/** Time to live of the rules in the store: a year, in milliseconds. Running instances renew the rules. */
const LIFE_MS = 31_536_000_000;

/**
 * Milliseconds after which an instance writes the rules again and notifies the other instances. This write keeps the
 * rules from expiring and seals them with the newest secret. The notification keeps the topic from expiring, because
 * without the topic no instance would notice that the store was emptied.
 */
const RENEW_MS = 1_800_000;

const HIDDEN: SharedRule = { key: "", isShown: false };

const NO_TRUNK =
  "Cannot store which handlers of a path are disabled: the rules for all paths could not be loaded from the store; check the store";

const UNREADABLE =
  "Cannot read which handlers are disabled: the rules were sealed with another secret, or written by another version of the " +
  "library; use the same secret and library version on all instances";

/** Matches the methods whose handlers can be disabled. */
const RULED = /^(tools|resources|prompts|completion|subscriptions)\//;

/** Returns the handlers that the rules hide. If the rules are not known, returns all handlers that can be disabled. */
function findHidden(handlers: readonly Handler[], rules: readonly PlacedRule[] | undefined): ReadonlySet<Handler> {
  // Extensions cannot be disabled, but the handlers that bring them can.
  if (!rules) return new Set(handlers.filter((handler) => handler[INTERNALS].feature.name !== "extensions"));
  const hidden = new Set<Handler>();
  if (!rules.length) return hidden;
  const groups = groupByKey(handlers);
  for (const { key, isShown } of rules) {
    for (const handler of groups.get(key) ?? []) {
      if (isShown) hidden.delete(handler);
      else hidden.add(handler);
    }
  }
  return hidden;
}

/**
 * Drops rules that show handlers, because handlers without a rule are shown anyway. Keeps such a rule if an older rule
 * may hide the same handlers. An older rule with another key can do so only if one of the two keys is a group or a tag.
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

/** Returns the time of the newest rule whose `isShown` has this value. Returns 0 if there is no such rule. */
function findNewest(rules: readonly PlacedRule[], isShown: boolean): number {
  return Math.max(0, ...rules.filter((rule) => rule.isShown === isShown).map(({ at }) => at));
}

/** Allows rules that are not larger than `before`, so that a record that is too large can shrink step by step. */
function isTooLarge({ rules }: StoredRules, before: StoredRules): boolean {
  const bytes = toBytes(rules);
  return bytes > MAX_BYTES && bytes > toBytes(before.rules);
}

function toBytes(rules: readonly (SharedRule & Partial<PlacedRule>)[]): number {
  return new TextEncoder().encode(JSON.stringify(rules.map(({ key, isShown, at }) => [key, isShown, at]))).length;
}

function toRefusal(key: string, isShown: boolean): string {
  return `Cannot ${isShown ? "enable" : "disable"} ${shorten(key, 100)} on all instances`;
}

/** Reads the rules from a stored value. Returns `undefined` if the value is invalid. */
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
