/**
 * Counts the resources that each tenant uses on all instances.
 *
 * An instance with running calls or charged bytes of tenants appends its sums per tenant to a log: every second if the
 * sums have changed, otherwise at the interval at which a lease is renewed. The other instances use the last sums of
 * each instance until these sums expire, so an instance that has ended is no longer counted. While the store does not
 * respond, each instance applies the limits separately.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { SharedLogs } from "../core/call/shared_values.ts";
import type { Account, Accounts, Limit, Pot } from "../core/capacity/account.ts";
import { systemClock } from "../core/capacity/timers.ts";
import { RENEWALS } from "./process_lease.ts";
import type { SealedStore } from "./sealed_store.ts";

/** The parts of {@linkcode InstanceState} that {@linkcode TenantSums} needs. */
export interface SumsHost extends Pick<SharedLogs, "attempt" | "hash"> {
  /** A random id of this instance. */
  readonly instance: string;
  readonly leaseMs: number;
  /** The store, with the operations of this instance. */
  readonly own: Pick<SealedStore, "append" | "follow">;
}

/**
 * The amount that a tenant holds of one pot on one instance. `isShort` is 1 if the instance has rejected a request for
 * more, otherwise 0.
 */
type Share = readonly [held: number, isShort: number];

/** A tenant, followed by its share of each pot in the order of {@linkcode listPots}. */
type Sum = readonly [tenant: string, ...shares: Share[]];

/** The last sums that another instance has published. */
interface Known {
  /** Sequence number of the entry, which increases with each entry from the instance. */
  readonly turn: number;
  readonly until: number;
  readonly sums: ReadonlyMap<string, readonly Share[]>;
}

/** Returns the pots that have limits per tenant. */
function listPots({ ofTenants, memory }: Accounts): readonly Pot[] {
  return [ofTenants, memory];
}

/** Applies the limits per tenant on one instance, if the instances share these limits. */
export class TenantSums {
  readonly #state: SumsHost;
  readonly #accounts: Accounts;
  /** The last sums from each other instance, keyed by the id of the instance. */
  readonly #others = new Map<string, Known>();
  /** For each tenant, the pots for which this instance has rejected requests since it last published its sums. */
  readonly #short = new Map<string, Set<Pot>>();
  /** The sums that this instance last published, as JSON text. */
  #published = NOTHING;
  #publishedAt = -Infinity;
  #turn = 0;
  #following?: Promise<void>;
  #unfollow?: () => void;
  #stop?: () => void;
  #publishing?: Promise<void>;
  #isClosed = false;

  constructor(state: SumsHost, accounts: Accounts) {
    this.#state = state;
    this.#accounts = accounts;
  }

  /** Returns the maximum amount of a pot that a tenant may hold on this instance. */
  readonly limit: Limit = (pot, account, amount) => {
    this.#start();
    if (pot.perTenant === Infinity) return Infinity;
    const limit = this.#toLimit(pot, account, amount);
    if (account.amount(pot) + amount > limit && amount <= pot.perTenant) this.#addShort(pot, account);
    return limit;
  };

  /** Publishes empty sums, because this instance no longer holds anything. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop?.();
    await Promise.all([this.#publishing, this.#following]);
    this.#unfollow?.();
    if (this.#published !== NOTHING) await this.#append([]);
  }

  // If several instances reject requests of a tenant at the same time, each of them sees the same free amount a second
  // later, and together they would admit too much. Therefore, while another instance reports a rejected request, each
  // instance admits at most an equal part of the limit. Two cases are exempt:
  // - An instance that holds nothing may take any amount for which there is room. Otherwise a large body might fit on
  //   no instance.
  // - Small amounts are taken as long as there is room. Otherwise a client whose large bodies are rejected on one
  //   instance would stop the calls of its tenant on another instance.
  #toLimit(pot: Pot, account: Account, amount: number): number {
    const { key = "" } = account;
    const now = systemClock.now();
    const index = listPots(this.#accounts).indexOf(pot);
    let elsewhere = 0;
    let instances = 1;
    let isWanted = false;
    for (const { until, sums } of this.#others.values()) {
      const share = until > now && sums.get(key)?.[index];
      if (!share) continue;
      const [held, isShort] = share;
      if (held || isShort) instances++;
      elsewhere += held;
      isWanted ||= isShort > 0;
    }
    const free = pot.perTenant - elsewhere;
    const isEven = isWanted && account.amount(pot) > 0 && amount > (pot.small ?? 0);
    return isEven ? Math.min(free, pot.perTenant / instances) : free;
  }

  #addShort(pot: Pot, { key = "" }: Account): void {
    const pots = this.#short.get(key) ?? new Set();
    if (this.#short.size < MAX_SHORT) this.#short.set(key, pots.add(pot));
  }

  #start(): void {
    if (this.#stop || this.#publishing || this.#isClosed) return;
    this.#follow();
    this.#publishLater();
  }

  #publishLater(): void {
    const publish = async () => {
      await this.#publish();
      this.#publishing = undefined;
      const isOver = this.#published === NOTHING && !this.#holdsAny();
      if (!isOver && !this.#isClosed) this.#publishLater();
    };
    // Publish the sums again before other instances let the last sums expire.
    const ms = Math.min(PUBLISH_MS, this.#state.leaseMs / RENEWALS);
    const begin = () => {
      this.#stop = undefined;
      this.#publishing = publish();
    };
    this.#stop = systemClock.start(begin, ms, { background: true });
  }

  // Publishes the sums if they have changed or are due for renewal. A call that ends before the next publication causes
  // no store operation.
  async #publish(): Promise<void> {
    this.#follow();
    const sums = this.#takeSums();
    const text = JSON.stringify(sums);
    const renewAt = this.#publishedAt + this.#state.leaseMs / RENEWALS;
    const isDue = sums.length > 0 && systemClock.now() >= renewAt;
    if ((isDue || text !== this.#published) && await this.#append(sums)) {
      this.#published = text;
      this.#publishedAt = systemClock.now();
    }
  }

  #holdsAny(): boolean {
    return this.#short.size > 0 || this.#accounts.known.values().some(({ isTenant }) => isTenant);
  }

  // Returns the sums to publish. The length of an entry is limited, so the tenants closest to their limits come first.
  #takeSums(): readonly Sum[] {
    const pots = listPots(this.#accounts).map((pot) => pot.perTenant < Infinity ? pot : undefined);
    const tenants = new Set(this.#short.keys());
    for (const { key = "", isTenant } of this.#accounts.known.values()) if (isTenant) tenants.add(key);
    const rows = [...tenants].map((tenant) => {
      const account = this.#accounts.known.get(tenant);
      const short = this.#short.get(tenant);
      const shares = pots.map((pot): Share =>
        pot ? [account?.amount(pot) ?? 0, Number(short?.has(pot) ?? false)] : NONE
      );
      const parts = pots.map((pot, index) => pot ? shares[index][1] || shares[index][0] / pot.perTenant : 0);
      return { sum: [tenant, ...shares] satisfies Sum, part: Math.max(...parts) };
    });
    this.#short.clear();
    let characters = 0;
    return rows.filter(({ part }) => part > 0)
      .sort((one, other) => other.part - one.part)
      .map(({ sum }) => sum)
      .filter((sum) => (characters += JSON.stringify(sum).length) <= MAX_CHARACTERS);
  }

  async #append(sums: readonly Sum[]): Promise<boolean> {
    const { instance, leaseMs: ms } = this.#state;
    const entry = { from: instance, turn: ++this.#turn, ms, sums };
    const id = await this.#state.attempt("append", async () => {
      return await this.#state.own.append(await this.#toLog(), entry, { ttlMs: 2 * ms, max: MAX_ENTRIES });
    });
    return id !== undefined;
  }

  #follow(): void {
    if (this.#unfollow || this.#isClosed) return;
    this.#following ??= this.#startFollowing();
  }

  async #startFollowing(): Promise<void> {
    this.#unfollow = await this.#state.attempt("subscribe", async () => {
      // Ignore gaps in the log, because each instance soon publishes its sums again.
      return await this.#state.own.follow(await this.#toLog(), (value) => this.#take(value), { after: 0, onGap() {} });
    });
    this.#following = undefined;
  }

  #toLog(): Promise<string> {
    return this.#state.hash("tenants", "sums");
  }

  #take(value: unknown): void {
    const now = systemClock.now();
    for (const [from, { until }] of this.#others) if (until <= now) this.#others.delete(from);
    if (!isObject(value) || value.from === this.#state.instance) return;
    const { from, turn, ms, sums } = value;
    if (typeof from !== "string" || typeof turn !== "number" || typeof ms !== "number" || !Array.isArray(sums)) return;
    // Ignore an older entry, because a write that seemed to fail can appear in the log after a newer write.
    if (turn <= (this.#others.get(from)?.turn ?? 0)) return;
    const known = sums.filter(isSum).map(([tenant, ...shares]) => [tenant, shares] as const);
    this.#others.set(from, { turn, until: now + ms, sums: new Map(known) });
  }
}

/**
 * Milliseconds between two publications. Within this time, a tenant can exceed its limit by using several instances.
 * docs/guides/tenants.md states the same value.
 */
const PUBLISH_MS = 1000;
/**
 * Maximum length of the sums in an entry, in characters. If the sums are longer, the tenants furthest from their limits
 * are omitted.
 */
const MAX_CHARACTERS = 65_536;
/** Maximum number of tenants whose rejected requests are published. */
const MAX_SHORT = 1000;
/** Maximum number of entries in the log, so that the log takes only a few megabytes. */
const MAX_ENTRIES = 64;

const NOTHING = "[]";
const NONE: Share = [0, 0];

function isSum(sum: unknown): sum is Sum {
  return Array.isArray(sum) && typeof sum[0] === "string" && sum.slice(1).every(isShare);
}

function isShare(share: unknown): share is Share {
  return Array.isArray(share) && share.length === 2 && share.every((each) => Number.isFinite(each) && each >= 0);
}
