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
  /** Grows with each change, so that older rules can be told from newer ones. */
  readonly at: number;
  /** One for each key, the oldest first. */
  readonly rules: readonly PlacedRule[];
}

const NOTHING: StoredRules = { at: 0, rules: [] };

/** The rules of one server in a store. Until they are known, all of its handlers are hidden. */
export class RuleRecord implements InformedRules {
  readonly #instances: InstanceState;
  readonly #ruled: Ruled;
  readonly #trunk?: SharedRules;
  readonly #unwatch?: () => void;
  readonly #watchers = new Set<() => void>();
  /** The handlers of the server. */
  #handlers: readonly Handler[] = [];
  #list?: readonly PlacedRule[];
  /** The rules in the store, as this process knows them. Another instance may have changed them since. */
  #known?: StoredRules;
  /** What this process has changed and not written yet, in order. One for each key. */
  #pending: readonly SharedRule[] = [];
  /** The newest rules at single paths: of those that show a handler, and of those that hide one. */
  readonly #noticed = { shown: 0, hidden: 0 };
  /** Whether the other instances have to read what this one has written. */
  #isUntold = false;
  /** Whether the rules are due to be written again. */
  #isDue = true;
  /** Whether clients have been waiting for the rules in vain. */
  #isLate = false;
  /** Whether the handlers are compiled with other rules than those that this process knows. */
  #isSpoiled = false;
  #isWanted = false;
  #isClosed = false;
  #running?: Promise<void>;
  /** Stops the timer. Set while nothing runs. */
  #stop?: () => void;

  constructor(instances: InstanceState, ruled: Ruled, trunk?: SharedRules) {
    this.#instances = instances;
    this.#ruled = ruled;
    this.#trunk = trunk;
    this.#unwatch = trunk?.watch(() => {
      try {
        this.#applyAll();
      } catch {
        // Tries again, and reports it.
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
    throw toBusy("serve the request: the store does not tell which handlers are disabled");
  }

  load(): Promise<void> | undefined {
    // After a failure nobody waits, and the timer tries again.
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

  /** Reads and writes, once more if it is asked to meanwhile. */
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
      // Before the rules are read, so that no change falls between the two.
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
    // Rules that show what those of the trunk hide would seem idle.
    if (this.#trunk && !this.#trunk.list) throw new Error(NO_TRUNK);
    for (let left = ATTEMPTS; left; left--) {
      const found = await this.#instances.get(key);
      const stored = found ? toStored(found.value) : NOTHING;
      if (!stored) throw new RangeError(UNREADABLE);
      // A store that was emptied or restored must not show what is disabled.
      const before = this.#known && this.#known.at > stored.at ? this.#known : stored;
      // Holds also if what is pending cannot be written.
      this.#known = before;
      this.#applyAll();
      const pending = this.#pending;
      const next = this.#merge(before, pending);
      if (isTooLarge(next, stored)) throw new RangeError(this.#toTooLarge("handlers", false));
      if (next !== stored || this.#isDue && next.rules.length) {
        // Before the write, because its answer may be lost.
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

  /** Returns the rules after changes. Returns the same object if nothing has changed. */
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
      // What changes nothing must not replace what other instances know.
      if (known?.isShown === isShown && known.at > (isShown ? last.hidden : last.shown)) continue;
      at = Math.max(at + 1, systemClock.date());
      last[isShown ? "shown" : "hidden"] = at;
      // The newest is the last.
      rules.delete(key);
      rules.set(key, { key, isShown, at });
    }
    const needed = dropIdle([...rules.values()], ofTrunk);
    const isSame = needed.length === stored.rules.length && needed.every((rule, at) => rule === stored.rules[at]);
    return isSame ? stored : { at, rules: needed };
  }

  /** Applies the rules that have arrived. If they cannot be compiled, requests are refused until they can. */
  #applyAll(): void {
    try {
      this.#update();
    } catch (error) {
      this.#list = undefined;
      this.#isSpoiled = true;
      throw error;
    }
  }

  /** Applies the rules as this process knows them. If they cannot be compiled, throws and changes nothing. */
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
      // No client has seen a list before the rules were known.
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
 * Bytes of all rules as JSON, and of the changes that wait for the store. Sealed, they fit into a value of Deno KV, which
 * has at most 64 KiB.
 */
const MAX_BYTES = 32_768;

/** Number of attempts to change the rules while other instances change them. */
const ATTEMPTS = 20;

const RETRY_MS = 1000;

/** The store forgets rules that no instance has used for a year. */
const LIFE_MS = 31_536_000_000;

/**
 * Milliseconds after which the rules are written again and the other instances are told. The rules then do not expire and
 * have the newest secret. The topic of the news does not expire either, without which nobody notices an emptied store.
 */
const RENEW_MS = 1_800_000;

const HIDDEN: SharedRule = { key: "", isShown: false };

const NO_TRUNK = "Cannot read the rules of enable and disable for a path: those for all paths are not known";

const UNREADABLE =
  "Cannot read which handlers are disabled: another secret has sealed it, or another version of the library has " +
  "written it; give this server the secret and the version of the other instances";

/** The methods that concern handlers which can be disabled. */
const RULED = /^(tools|resources|prompts|completion|subscriptions)\//;

/** Returns the handlers that the rules hide: all if they are not known. */
function findHidden(handlers: readonly Handler[], rules: readonly PlacedRule[] | undefined): ReadonlySet<Handler> {
  // Extensions cannot be disabled.
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
 * Drops rules that show handlers which no older rule hides, because handlers are shown without a rule. Only a group or a
 * tag may select what a rule with another key selects too.
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

/** Returns when the newest rule was made that shows a handler, or hides one. */
function findNewest(rules: readonly PlacedRule[], isShown: boolean): number {
  return Math.max(0, ...rules.filter((rule) => rule.isShown === isShown).map(({ at }) => at));
}

/** Whether rules weigh too much. Those that they replace may have, and must not keep it from getting better. */
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

/** Returns the rules in a value, or `undefined` for a value that no instance has written. */
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
