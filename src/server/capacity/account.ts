/**
 * Counts the resources that clients use, such as memory and streams: per client, per network, per tenant and in total.
 *
 * Every resource whose use grows with clients' requests is charged to a {@linkcode Pot}, which has a name and a total.
 * To add a pot:
 *
 * 1. Add the pot's name to {@linkcode PotName}, and a row to `tests/load/pots.ts`: which client is charged, the share,
 *    and what happens when the pot is full. Tests compare the names and rows with the pots that a server creates.
 * 2. Create the pot: `const pot = accounts.pot({ name: "things.open", total: 1000, share: 100 })`. A second call with
 *    the same name returns the same pot. `account.pot` works like `accounts.pot`.
 * 3. For a resource that cannot be evicted, such as a running call, use `pot.charge(account, amount)`, which returns
 *    whether there is room, and `pot.give(account, amount)`.
 * 4. For a resource that can be evicted, use `const holding = pot.keep(account, amount, drop)`, which returns
 *    `undefined` if there is no room. `holding.touch()` marks the holding as used, and `holding.end()` releases the
 *    amount.
 *
 * Rules for every pot:
 *
 * - A client may use at most `share`. An IPv6 /64 network counts as one client, and all clients in a /56 network
 *   together may use at most twice the share.
 * - The last quarter of a total is a reserve for clients that use few resources: at most 256 KiB of memory, one stream
 *   and one call (see {@linkcode PotOptions.small}). If the reserve is full, one of these clients loses a holding: the
 *   client whose last use was longest ago.
 * - A full cache evicts the least recently used holding of the client that uses the most. A client never loses a
 *   holding to a client that uses more.
 * - All clients without a principal or a known address together count as one client in the reserve.
 */
import type { Bounds } from "./limits.ts";

/** The name of a pot. Most pots have the name of the limit on their total. */
export type PotName =
  | "memory.bytes"
  | "connections.streams"
  | "calls.running"
  | "calls.waiting"
  | "calls.detached"
  | "perTenant.running"
  | "request.allBodiesBytes"
  | "replay.bytes"
  | "endpoints.open"
  | "endpoints.making"
  | "endpoints.checked"
  | "auth.running"
  | "auth.refused"
  | "auth.delayed"
  | "handler.cacheBytes"
  | "handler.keepBytes"
  | "handler.waiting"
  | "idempotency.bytes"
  | "search.bytes"
  | "code.programs"
  | "code.running"
  | "code.bytes"
  | "proxy.connections"
  | "proxy.parked"
  | "proxy.bytes"
  | "proxy.watched"
  | "extensions.bytes"
  | "connections.sessions"
  | "sessions.ending"
  | "sessions.ended"
  | "sessions.sealed"
  | "store.bytes"
  | "store.operations"
  | "store.waiting"
  | "store.subscriptions"
  | "store.relays"
  | "services.values";

export interface PotOptions {
  readonly name: PotName;
  /** Distinguishes several pots with the same name, such as a pot per tool. */
  readonly of?: string;
  /** Maximum amount for all clients together. */
  readonly total: number;
  /** Maximum amount for one client. Defaults to `total`. */
  readonly share?: number;
  /** Limit that observer events name when the total is reached. Defaults to the pot's name. */
  readonly limitName?: string;
  /** Limit that observer events name when a client's share is reached. Defaults to `limitName`. */
  readonly shareName?: string;
  /** Maximum amount for all clients of one tenant together. */
  readonly perTenant?: number;
  /** Limit that observer events name when `perTenant` is reached. Defaults to `limitName`. */
  readonly tenantName?: string;
  /**
   * A client can use the reserve of a pot only if the client uses at most this amount of this pot. A cache has a reserve
   * only if this is set, because all of its holdings can be in use. Clients whose address is unknown may use the reserve
   * of such a cache, because the only client of a process would lose it.
   */
  readonly small?: number;
  /**
   * Whether holdings are evicted as soon as the pot or a share is full, as in a cache. Otherwise a holding is evicted
   * only if a client needs the reserve.
   */
  readonly isCache?: boolean;
  /** Whether a client loses its largest holding first, instead of its least recently used holding. */
  readonly evictsLargest?: boolean;
}

export type Start = () => void;

/** Releases the resource of a holding that is evicted. Returns `false` if the resource is in use. */
export type Drop = () => boolean;

/** A resource with a total that clients share. */
export class Pot {
  readonly name: PotName;
  readonly total: number;
  readonly share: number;
  readonly small?: number;
  readonly perTenant: number;
  /** Index of this pot in each account's list of amounts. */
  readonly index: number;
  used = 0;
  /** The part of the total without the reserve. Every client may use this part. */
  readonly common: number;
  readonly #accounts: Accounts;
  readonly #limitName: string;
  readonly #shareName: string;
  readonly #tenantName: string;
  readonly #isCache: boolean;
  readonly #evictsLargest: boolean;
  /**
   * The holdings that can be evicted, by root account. The map begins with the least recently used account, and each
   * set with the least recently used holding.
   */
  // Bound: what the pot counts.
  readonly #losable = new Map<Account, Set<Holding>>();

  /** Called only by {@linkcode Accounts.pot}. */
  constructor(accounts: Accounts, index: number, { name, total, small, isCache = false, ...options }: PotOptions) {
    this.name = name;
    this.total = total;
    this.small = small;
    this.share = options.share ?? total;
    this.perTenant = options.perTenant ?? Infinity;
    this.index = index;
    this.common = isCache && !small ? total : Math.ceil(total * 0.75);
    this.#accounts = accounts;
    this.#limitName = options.limitName ?? name;
    this.#shareName = options.shareName ?? this.#limitName;
    this.#tenantName = options.tenantName ?? this.#limitName;
    this.#isCache = isCache;
    this.#evictsLargest = options.evictsLargest ?? false;
  }

  /** Returns `false` if there is no room. */
  charge(account: Account, amount = 1): boolean {
    if (!this.makeRoom(account, amount)) return false;
    this.add(account, amount);
    return true;
  }

  /**
   * Charges an amount until the returned holding ends. Without `drop`, the amount cannot be evicted. Returns
   * `undefined` if there is no room.
   */
  keep(account: Account, amount: number, drop?: Drop): Holding | undefined {
    if (!this.charge(account, amount)) return;
    return new Holding(this, account, { amount, drop });
  }

  /** Charges an amount that is already in use, without checking limits. */
  add(account: Account, amount = 1): void {
    this.used += amount;
    account.change(this, amount);
  }

  give(account: Account, amount = 1): void {
    this.used -= amount;
    account.change(this, -amount);
  }

  hasShare(account: Account, amount = 1): boolean {
    return !account.findExceeded(this, amount);
  }

  /** Only a small client may use the reserve. */
  hasRoom(account: Account, amount = 1, used: number = this.used + amount): boolean {
    return used <= this.common ||
      used <= this.total && (account.isSmall(this, amount) || this.#isCache && account.key === undefined);
  }

  /** Evicts holdings until there is room. If there is still no room, reports the limit and returns `false`. */
  makeRoom(account: Account, amount: number): boolean {
    // No client can exceed its own limits while all clients together use less than these limits.
    if (this.used + amount <= Math.min(this.share, this.common, this.perTenant)) return true;
    for (let isFirst = true;; isFirst = false) {
      const exceeded = account.findExceeded(this, amount);
      if (!exceeded && this.hasRoom(account, amount)) return true;
      if (this.#isCache && isFirst) this.reach(account, exceeded && this.#shareName);
      if (exceeded ? this.#isCache && this.#dropOf(account.root, exceeded) : this.#dropFor(account, amount)) continue;
      if (this.#isCache) return false;
      this.reach(exceeded ?? account, exceeded && (exceeded.isTenant ? this.#tenantName : this.#shareName));
      return false;
    }
  }

  reach(account: Account, limitName: string = this.#limitName): void {
    this.#accounts.server.observing?.reach(limitName, account.key);
  }

  /** Adds a holding as the most recently used holding of its client. */
  insert(holding: Holding): void {
    const { root } = holding;
    const own = this.#losable.get(root) ?? new Set();
    this.#losable.delete(root);
    this.#losable.set(root, own.add(holding));
  }

  /** Removes a holding, which can then no longer be evicted. */
  remove(holding: Holding): void {
    const own = this.#losable.get(holding.root);
    if (own?.delete(holding) && !own.size) this.#losable.delete(holding.root);
  }

  // Evicts a holding to make room in the total. Returns whether a holding was evicted.
  #dropFor(account: Account, amount: number): boolean {
    const { root } = account;
    const wanted = root.amount(this) + amount;
    const isFair = (other: Account) => this.#isCache ? other.amount(this) >= wanted : other.isSmall(this, 0);
    if (!this.#isCache && !account.isSmall(this, amount)) return false;
    const tried = new Set([root]);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      let found: Account | undefined;
      for (const other of this.#losable.keys()) {
        if (tried.has(other) || !isFair(other)) continue;
        if (found && other.amount(this) <= found.amount(this)) continue;
        found = other;
        if (!this.#isCache) break;
      }
      if (!found) break;
      if (this.#dropOf(found)) return true;
      tried.add(found);
    }
    return this.#dropOf(root);
  }

  // Evicts a holding of an account. If a client exceeds its own share, `part` is the client's account, so that holdings
  // of other clients in the same network are not evicted.
  #dropOf(root: Account, part: Account = root): boolean {
    const own = this.#losable.get(root) ?? new Set();
    let left = Math.min(own.size, MAX_HOLDINGS);
    let largest: Holding | undefined;
    for (const holding of own) {
      if (part !== root && !holding.account.isPartOf(part)) continue;
      if (this.#evictsLargest) {
        if (!largest || holding.amount > largest.amount) largest = holding;
        continue;
      }
      if (!left--) break;
      if (holding.evict()) return true;
      // Move a holding that is in use to the end, so that the next evictions try other holdings first.
      holding.touch();
    }
    return largest?.evict() ?? false;
  }
}

/** An amount that is charged to a client. */
export class Holding {
  root: Account;
  account: Account;
  #amount: number;
  readonly #pot: Pot;
  readonly #drop?: Drop;
  #isOpen = true;

  /** Called only by {@linkcode Pot.keep}. */
  constructor(pot: Pot, account: Account, { amount, drop }: { readonly amount: number; readonly drop?: Drop }) {
    this.#pot = pot;
    this.account = account;
    this.root = account.root;
    this.#amount = amount;
    this.#drop = drop;
    this.#insert();
  }

  get amount(): number {
    return this.#amount;
  }

  touch(): void {
    if (!this.#isOpen) return;
    this.#pot.remove(this);
    this.#insert();
  }

  /**
   * Marks the holding as used by the client with `account`. If this client uses less of the pot than the client to
   * which the holding is charged, charges the holding to `account` instead.
   */
  use(account: Account): void {
    const { root } = account;
    if (!this.#isOpen || root === this.root || root.amount(this.#pot) >= this.root.amount(this.#pot)) {
      return this.touch();
    }
    this.#pot.remove(this);
    this.#pot.give(this.account, this.#amount);
    this.account = account;
    this.root = root;
    this.#pot.add(account, this.#amount);
    this.#insert();
  }

  /** Returns `false` if there is no room, or if the holding has ended or was evicted. */
  grow(amount: number): boolean {
    if (!this.#isOpen || !this.#pot.makeRoom(this.account, amount) || !this.#isOpen) return false;
    this.add(amount);
    return true;
  }

  /** Increases or decreases the amount, without checking limits. */
  add(amount: number): void {
    if (!this.#isOpen) return;
    this.#amount += amount;
    this.#pot.add(this.account, amount);
  }

  /** Ends the holding, and releases its amount. Does nothing if the holding has already ended. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#pot.remove(this);
    this.#pot.give(this.account, this.#amount);
  }

  /** Evicts the holding, or a part of its amount. Returns `false` if the holding is in use. */
  evict(): boolean {
    const before = this.#amount;
    if (!this.#drop?.()) return false;
    if (this.#amount >= before) this.end();
    return true;
  }

  #insert(): void {
    if (this.#drop) this.#pot.insert(this);
  }
}

/**
 * The amounts that are charged to one client, network or tenant. A client is identified by its principal, by its
 * address if it has no principal, or otherwise by its connection.
 */
export class Account {
  /** Such as `principal ada`. `undefined` if the client has neither a principal nor a known address. */
  readonly key?: string;
  /** The tenant whose limits also apply to the client. Set if the server's path has parameters. */
  readonly tenant?: string;
  readonly #all: Accounts;
  readonly #limit: Limit;
  #waiting?: Map<Start, Account>;
  // Bound: one per pot.
  #amounts?: number[];
  #sum = 0;
  /** This account, and the accounts that include it. Set while an amount is charged. */
  #nodes?: readonly Account[];
  #room?: PromiseWithResolvers<void>;

  /** Called only by {@linkcode Accounts}. */
  constructor(all: Accounts, key?: string, { tenant, limit = ofClient }: AccountOptions = {}) {
    this.#all = all;
    this.key = key;
    this.tenant = tenant;
    this.#limit = limit;
  }

  get isTenant(): boolean {
    return this.#limit === ofTenant;
  }

  /** The account that is compared: of the client's network, of the client, or of all unknown clients. */
  get root(): Account {
    return this.#all.toRoot(this.#listNodes());
  }

  /** Key of the root account in a round-robin queue. */
  get turnKey(): unknown {
    const { root } = this;
    return root.key ?? root;
  }

  /** The calls that wait, oldest first. The value of each entry is the account to which the call is charged. */
  get waiting(): Map<Start, Account> {
    return this.#toClient().#waiting ??= new Map();
  }

  /** Whether this client has no free slot for another call. */
  get isFull(): boolean {
    return !this.#all.running.hasShare(this);
  }

  start(): void {
    this.#all.running.add(this);
  }

  finish(): void {
    this.#all.running.give(this);
    this.signalRoom();
  }

  /** Returns `false` if the tenant's calls or the memory have reached a limit. */
  enter(bytes: number): boolean {
    const { ofTenants } = this.#all;
    if (this.tenant !== undefined && !ofTenants.charge(this)) return false;
    if (this.hold(bytes)) return true;
    if (this.tenant !== undefined) ofTenants.give(this);
    return false;
  }

  /** Does not check limits. */
  charge(bytes: number): void {
    if (this.tenant !== undefined) this.#all.ofTenants.add(this);
    this.#all.memory.add(this, bytes);
  }

  leave(bytes: number): void {
    if (this.tenant !== undefined) this.#all.ofTenants.give(this);
    this.free(bytes);
  }

  get memory(): Pot {
    return this.#all.memory;
  }

  /** Returns `false` if there is no room. */
  hold(bytes: number): boolean {
    return this.#all.memory.charge(this, bytes);
  }

  /** Charges bytes of memory that can be evicted. Returns `undefined` if there is no room. */
  keep(bytes: number, drop: Drop): Holding | undefined {
    return this.#all.memory.keep(this, bytes, drop);
  }

  pot(options: PotOptions): Pot {
    return this.#all.pot(options);
  }

  /** Charges bytes that are already in memory, without checking limits. */
  add(bytes: number): void {
    this.#all.memory.add(this, bytes);
  }

  /** Releases charged bytes, and wakes callers of {@linkcode untilRoom}. */
  free(bytes: number): void {
    this.#all.memory.give(this, bytes);
    this.signalRoom();
  }

  /** Charges a stream, socket or subscription until the returned holding ends. Returns `undefined` at a limit. */
  openStream(drop: Drop): Holding | undefined {
    return this.#all.streams.keep(this, 1, drop);
  }

  /** Returns a promise that resolves when a call or another resource of this client has ended. */
  untilRoom(): Promise<void> {
    return (this.#toClient().#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Resolves the promise of {@linkcode untilRoom}. Call when a call or another resource of this client has ended. */
  signalRoom(): void {
    const client = this.#toClient();
    client.#room?.resolve();
    client.#room = undefined;
  }

  amount(pot: Pot): number {
    return this.#counting().#amounts?.[pot.index] ?? 0;
  }

  /** Returns this account, or an account that includes it, whose limit another amount would exceed, if any. */
  findExceeded(pot: Pot, amount: number): Account | undefined {
    for (const node of this.#listNodes()) {
      if ((node.#amounts?.[pot.index] ?? 0) + amount > node.#limit(pot, node, amount)) return node;
    }
  }

  /** Tests whether the client, together with its network, uses few enough resources to use the reserve of a pot. */
  isSmall(pot: Pot, amount: number): boolean {
    const { root } = this;
    if (root.amount(pot) + amount > (pot.small ?? 1)) return false;
    const { memory, streams, running } = this.#all;
    return [memory, streams, running].every((each) => root.amount(each) <= (each.small ?? 1));
  }

  isPartOf(account: Account): boolean {
    return this.#listNodes().includes(account);
  }

  change(pot: Pot, amount: number): void {
    for (const node of this.#listNodes(true)) node.#add(pot.index, amount);
  }

  #add(index: number, amount: number): void {
    const amounts = this.#amounts ??= [];
    while (amounts.length <= index) amounts.push(0);
    amounts[index] += amount;
    this.#sum += amount;
    if (this.#sum) return;
    this.#nodes = undefined;
    this.#all.forget(this);
  }

  // Stores the list only while the account uses a resource. An unused account may be replaced by a new object, which a
  // stored list would not contain.
  #listNodes(isKept = false): readonly Account[] {
    const own = this.#counting();
    if (own.#nodes) return own.#nodes;
    const nodes = this.#all.listNodes(own);
    if (!isKept) return nodes;
    for (const node of nodes) this.#all.remember(node);
    return own.#nodes = nodes;
  }

  #toClient(): Account {
    return this.tenant === undefined || this.key === undefined
      ? this.#counting()
      : this.#all.find(this.key).#counting();
  }

  // Returns the stored account of the client. Other `Account` objects for the same client may have been created before
  // the account was stored, but only the stored account contains the amounts.
  #counting(): Account {
    return this.key === undefined ? this : this.#all.known.get(toId(this.key, this.tenant)) ?? this;
  }
}

/** Returns the maximum amount that an account may use of a pot, if it is about to take `amount`. */
type Limit = (pot: Pot, account: Account, amount: number) => number;

/**
 * Number of bytes of memory to charge for an HTTP request that waits, and for which no other pot has a place. The request
 * and its connection take about this much memory.
 */
export const REQUEST_BYTES = 16_384;

const ofClient: Limit = (pot) => pot.share;
const ofNetwork: Limit = (pot) => 2 * pot.share;
const ofTenant: Limit = (pot) => pot.perTenant;
const unlimited: Limit = () => Infinity;

interface AccountOptions {
  readonly tenant?: string;
  readonly limit?: Limit;
}

export interface AccountHost {
  readonly limits: Bounds;
  readonly observing?: { reach(limit: string, client?: string): void };
}

/** All accounts and pots on a server. */
// Bound: one pot per limit and handler, and one account per holding in a pot.
export class Accounts {
  readonly server: AccountHost;
  /** The pots, keyed by `name` and `of`. */
  readonly pots: Map<string, Pot> = new Map();
  /** Bytes of memory that the server uses for clients. */
  readonly memory: Pot;
  /** Open streams, sockets and subscriptions. */
  readonly streams: Pot;
  /** Calls that have one of the client's slots, and wait for one of the process's slots, are included. */
  readonly running: Pot;
  /** Running and waiting calls. Counted only if the server's path has parameters. */
  readonly ofTenants: Pot;
  /** The accounts that use a resource, by id. */
  readonly known: Map<string, Account> = new Map();
  readonly #unknown: Account;

  constructor(server: AccountHost) {
    const { memory, connections, calls, perTenant } = server.limits;
    this.server = server;
    this.#unknown = new Account(this, undefined, { limit: unlimited });
    this.memory = this.pot({
      name: "memory.bytes",
      total: memory.bytes,
      share: memory.bytesPerClient,
      shareName: "memory.bytesPerClient",
      perTenant: perTenant.bytes,
      tenantName: "perTenant.bytes",
      small: 262_144,
    });
    this.streams = this.pot({
      name: "connections.streams",
      total: connections.streams,
      share: connections.streamsPerClient,
      shareName: "connections.streamsPerClient",
      small: 1,
    });
    this.running = this.pot({
      name: "calls.running",
      total: calls.running,
      share: calls.runningPerClient,
      shareName: "calls.runningPerClient",
      small: 1,
    });
    this.ofTenants = this.pot({ name: "perTenant.running", total: Infinity, perTenant: perTenant.running });
  }

  /** Creates the pot if necessary. */
  pot(options: PotOptions): Pot {
    const { name, of } = options;
    const key = of === undefined ? name : `${name} ${of}`;
    const known = this.pots.get(key);
    if (known) return known;
    const pot = new Pot(this, this.pots.size, options);
    this.pots.set(key, pot);
    return pot;
  }

  /**
   * Returns the account with a client's key. If the server's path has parameters, each tenant has separate accounts.
   * Returns a new account if no account is stored, or for a connection without a key. The new account is stored only
   * when an amount is charged.
   */
  find(key?: string, tenant?: string): Account {
    const known = key === undefined ? undefined : this.known.get(toId(key, tenant));
    return known ?? new Account(this, key, { tenant, limit: tenant === undefined ? ofClient : unlimited });
  }

  /** The root is the last account in the list before the tenant's account. */
  listNodes(account: Account): readonly Account[] {
    const { key, tenant } = account;
    const nodes = [account];
    if (key === undefined) nodes.push(this.#unknown);
    else {
      if (tenant !== undefined) nodes.push(this.find(key));
      const network = toNetwork(key);
      if (network !== undefined) nodes.push(this.#findGroup(network, ofNetwork));
    }
    if (tenant !== undefined) nodes.push(this.#findGroup(`tenant ${tenant}`, ofTenant));
    return nodes;
  }

  /** Returns the root from the list that {@linkcode listNodes} returns. */
  toRoot(nodes: readonly Account[]): Account {
    return nodes[nodes.length - (nodes[0].tenant === undefined ? 1 : 2)];
  }

  remember(account: Account): void {
    if (account.key !== undefined) this.known.set(toId(account.key, account.tenant), account);
  }

  forget({ key, tenant }: Account): void {
    if (key !== undefined) this.known.delete(toId(key, tenant));
  }

  #findGroup(key: string, limit: Limit): Account {
    return this.known.get(key) ?? new Account(this, key, { limit });
  }
}

/** Maximum number of clients whose holdings one eviction tries. */
const MAX_TRIES = 64;

/** Maximum number of holdings of each client that one eviction tries. */
const MAX_HOLDINGS = 256;

function toId(key: string, tenant: string | undefined): string {
  return tenant === undefined ? key : `at ${tenant} ${key}`;
}

/** Returns the key of the /56 network of an IPv6 address, or `undefined` for any other key. */
export function toNetwork(key: string): string | undefined {
  const [, start, last] = /^peer ((?:[0-9a-f]+:){3})([0-9a-f]+)$/.exec(key) ?? [];
  return start && `network ${start}${(parseInt(last, 16) >> 8).toString(16)}00`;
}
