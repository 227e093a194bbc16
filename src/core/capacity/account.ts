/**
 * Counts what the server holds for its clients: per client, per network, per tenant and in total.
 *
 * Everything that grows with requests of callers is charged to a {@linkcode Pot}, which has a name and a total. To add
 * a pot:
 *
 * 1. Add its name to {@linkcode PotName}, and a row to `tests/load/pots.ts`: who pays, its share, and what happens when
 *    it is full. Tests compare both with the pots that a server creates.
 * 2. `const pot = accounts.pot({ name: "things.open", total: 1000, share: 100 })`. The same name returns the same pot.
 *    `account.pot` does the same.
 * 3. For a resource that a client cannot lose, such as a running call: `pot.take(account, amount)`, which returns
 *    whether there is room, and `pot.give(account, amount)`.
 * 4. For a resource that a client can lose: `const holding = pot.keep(account, amount, drop)`, which returns
 *    `undefined` if there is no room. `holding.touch()` marks it as used, and `holding.end()` gives it back.
 *
 * Rules of every pot:
 *
 * - A client may hold at most `share`. An IPv6 /64 network counts as one client, and its /56 network has at most twice
 * the share.
 * - The last quarter of a total is a reserve. Only clients that hold little may use it: at most 256 KiB of memory, one
 * stream and one call, see {@linkcode PotOptions.small}. If the reserve is full, the client in the reserve that was
 * idle longest loses a holding.
 * - In a cache, the client that holds the most loses its least recently used holding. A client never loses a holding to
 * a client that holds more.
 * - All clients without a principal or a known address together count as one client in the reserve.
 *
 * @module
 */
import type { Bounds } from "./limits.ts";

/** The name of a pot. Most pots are named after the limit on their total. */
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
  | "handler.cacheBytes"
  | "handler.keepBytes"
  | "handler.waiting"
  | "idempotency.bytes"
  | "extensions.bytes"
  | "connections.sessions"
  | "sessions.ending"
  | "store.bytes"
  | "store.operations"
  | "store.relays";

/** Options of a pot. */
export interface PotOptions {
  readonly name: PotName;
  /** Distinguishes several pots of the same name, such as the pots of single tools. */
  readonly of?: string;
  /** Maximum amount of all clients together. */
  readonly total: number;
  /** Maximum amount of one client. Defaults to the whole free amount. */
  readonly share?: number;
  /** Name of the limit on the total, for the observer. Defaults to the name of the pot. */
  readonly limitName?: string;
  /** Name of the limit on the share, for the observer. Defaults to the name of the pot. */
  readonly shareName?: string;
  /** Maximum amount of all clients of one tenant together, and the name of this limit for the observer. */
  readonly perTenant?: number;
  readonly tenantName?: string;
  /** Maximum amount of this pot that a client may hold if it wants to use the reserve of any pot. */
  readonly small?: number;
  /**
   * Whether clients lose holdings as soon as the pot or a share is full, as in a cache. Otherwise only a client that
   * uses the reserve can make another client lose a holding.
   */
  readonly isCache?: boolean;
  /** Whether a client loses its largest holding first, instead of the least recently used one. */
  readonly losesLargest?: boolean;
}

/** Starts a call that waited for a slot. */
export type Start = () => void;

/** Gives up a holding that a client can lose. Returns `false` if the holding is in use. */
export type Drop = () => boolean;

/** A resource with a total that clients share. */
export class Pot {
  readonly name: PotName;
  readonly total: number;
  readonly share: number;
  readonly small?: number;
  readonly perTenant: number;
  /** Index of this pot in the amounts of each account. */
  readonly index: number;
  /** The amount that all clients hold together. */
  used = 0;
  /** The part of the total that every client may use. */
  readonly common: number;
  readonly #accounts: Accounts;
  readonly #limitName: string;
  readonly #shareName: string;
  readonly #tenantName: string;
  readonly #isCache: boolean;
  readonly #losesLargest: boolean;
  /**
   * The holdings that clients can lose, by root account. In the map, the least recently used account comes first; in
   * each set, the least recently used holding.
   */
  readonly #losable = new Map<Account, Set<Holding>>();

  /** Creates an empty pot. Use {@linkcode Accounts.pot}. */
  constructor(accounts: Accounts, index: number, { name, total, small, isCache = false, ...options }: PotOptions) {
    this.name = name;
    this.total = total;
    this.small = small;
    this.share = options.share ?? total;
    this.perTenant = options.perTenant ?? Infinity;
    this.index = index;
    this.common = isCache ? total : Math.ceil(total * 0.75);
    this.#accounts = accounts;
    this.#limitName = options.limitName ?? name;
    this.#shareName = options.shareName ?? this.#limitName;
    this.#tenantName = options.tenantName ?? this.#limitName;
    this.#isCache = isCache;
    this.#losesLargest = options.losesLargest ?? false;
  }

  /** Takes an amount. Returns `false` if there is no room. */
  take(account: Account, amount = 1): boolean {
    if (!this.makeRoom(account, amount)) return false;
    this.add(account, amount);
    return true;
  }

  /**
   * Takes an amount that the client may lose; `drop` then releases the resource. Returns `undefined` if there is no
   * room.
   */
  keep(account: Account, amount: number, drop: Drop): Holding | undefined {
    if (!this.take(account, amount)) return;
    return new Holding(this, account, { amount, drop });
  }

  /** Takes an amount without checking limits, because it is already in use. */
  add(account: Account, amount = 1): void {
    this.used += amount;
    account.change(this, amount);
  }

  /** Gives an amount back. */
  give(account: Account, amount = 1): void {
    this.used -= amount;
    account.change(this, -amount);
  }

  /** Tests whether the shares of the client, its network and its tenant have room. */
  hasShare(account: Account, amount = 1): boolean {
    return !account.findExceeded(this, amount);
  }

  /** Tests whether the total has room for a client that takes this amount. */
  hasRoom(account: Account, amount = 1, used: number = this.used + amount): boolean {
    return used <= this.common || used <= this.total && account.isSmall(this, amount);
  }

  /** Makes room for an amount. If that is impossible, reports it to the observer and returns `false`. */
  makeRoom(account: Account, amount: number): boolean {
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

  /** Informs the observer that this pot or a share is full. */
  reach(account: Account, limitName: string = this.#limitName): void {
    this.#accounts.server.observing?.reach(limitName, account.key);
  }

  /** Adds a holding that can be lost, as the most recently used one. */
  insert(holding: Holding): void {
    const { root } = holding;
    const own = this.#losable.get(root) ?? new Set();
    this.#losable.delete(root);
    this.#losable.set(root, own.add(holding));
  }

  /** Removes a holding that can be lost. */
  remove(holding: Holding): void {
    const own = this.#losable.get(holding.root);
    if (own?.delete(holding) && !own.size) this.#losable.delete(holding.root);
  }

  // Drop a holding to make room for a client that takes an amount.
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

  // Drops a holding of an account. If a client exceeds its own share, only its own holdings are dropped, and not the
  // holdings of other clients in its network.
  #dropOf(root: Account, part: Account = root): boolean {
    const own = this.#losable.get(root) ?? new Set();
    let left = Math.min(own.size, MAX_HOLDINGS);
    let largest: Holding | undefined;
    for (const holding of own) {
      if (part !== root && !holding.account.isPartOf(part)) continue;
      if (this.#losesLargest) {
        if (!largest || holding.amount > largest.amount) largest = holding;
        continue;
      }
      if (!left--) break;
      if (holding.lose()) return true;
      // Move a holding that is in use to the end, so that it is not tried again soon.
      holding.touch();
    }
    return largest?.lose() ?? false;
  }
}

/** An amount that a client holds and may lose. */
export class Holding {
  /** The account of the client, or of its network. */
  root: Account;
  account: Account;
  #amount: number;
  readonly #pot: Pot;
  readonly #drop: Drop;
  #isOpen = true;

  /** Creates a holding. Use {@linkcode Pot.keep} instead. */
  constructor(pot: Pot, account: Account, { amount, drop }: { readonly amount: number; readonly drop: Drop }) {
    this.#pot = pot;
    this.account = account;
    this.root = account.root;
    this.#amount = amount;
    this.#drop = drop;
    pot.insert(this);
  }

  /** The amount of the holding. */
  get amount(): number {
    return this.#amount;
  }

  /** Marks the holding as used now. */
  touch(): void {
    if (!this.#isOpen) return;
    this.#pot.remove(this);
    this.#pot.insert(this);
  }

  /**
   * Marks the holding as used now by a client. If several clients use a holding, it is charged to the client that held
   * the least when it used the holding.
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
    this.#pot.insert(this);
  }

  /** Increases the amount. Returns `false` if there is no room, or if the holding was lost in the meantime. */
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

  /** Ends the holding, and gives its amount back. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#pot.remove(this);
    this.#pot.give(this.account, this.#amount);
  }

  /** Gives up the holding, or a part of its amount, for other clients. Returns `false` if it is in use. */
  lose(): boolean {
    const before = this.#amount;
    if (!this.#drop()) return false;
    if (this.#amount >= before) this.end();
    return true;
  }
}

/**
 * Everything that one client holds. A client is identified by its principal, otherwise by its address, otherwise by its
 * connection.
 */
export class Account {
  /** Key of the client, such as its principal. `undefined` for a connection without a known client. */
  readonly key?: string;
  /** The tenant to which the client's amounts also count. Set for a server whose path has parameters. */
  readonly tenant?: string;
  readonly #all: Accounts;
  readonly #limit: Limit;
  #waiting?: Map<Start, Account>;
  #amounts?: number[];
  /** The sum of the amounts in all pots. */
  #sum = 0;
  /** This account, and the accounts that include it. Set while the account holds something. */
  #nodes?: readonly Account[];
  #room?: PromiseWithResolvers<void>;

  /** Creates an account. Use {@linkcode Accounts.find} instead. */
  constructor(all: Accounts, key?: string, { tenant, limit = ofClient }: AccountOptions = {}) {
    this.#all = all;
    this.key = key;
    this.tenant = tenant;
    this.#limit = limit;
  }

  /** Whether this is the account of a tenant. */
  get isTenant(): boolean {
    return this.#limit === this.#all.tenantLimit;
  }

  /**
   * The account that represents the client in comparisons with other clients: the account of its network, of the client
   * itself, or of all unknown clients.
   */
  get root(): Account {
    return this.#all.toRoot(this.#listNodes());
  }

  /** Key of the client, or of its network, in a queue in which clients take turns. */
  get turnKey(): unknown {
    const { root } = this;
    return root.key ?? root;
  }

  /** Calls of this client that wait for a slot, oldest first. Each value is the call's account within its tenant. */
  get waiting(): Map<Start, Account> {
    return this.#toClient().#waiting ??= new Map();
  }

  /** Whether all slots of this client are in use. */
  get isFull(): boolean {
    return !this.#all.running.hasShare(this);
  }

  /** Takes a slot. */
  start(): void {
    this.#all.running.add(this);
  }

  /** Releases a slot. */
  finish(): void {
    this.#all.running.give(this);
    this.settle();
  }

  /** Charges a new call. Returns `false` if its tenant or the memory has no room for the call. */
  enter(bytes: number): boolean {
    const { ofTenants } = this.#all;
    if (this.tenant !== undefined && !ofTenants.take(this)) return false;
    if (this.hold(bytes)) return true;
    if (this.tenant !== undefined) ofTenants.give(this);
    return false;
  }

  /** Charges a call that is already running, without checking limits. */
  charge(bytes: number): void {
    if (this.tenant !== undefined) this.#all.ofTenants.add(this);
    this.#all.memory.add(this, bytes);
  }

  /** Releases the charge of a call. */
  leave(bytes: number): void {
    if (this.tenant !== undefined) this.#all.ofTenants.give(this);
    this.free(bytes);
  }

  /** Charges bytes. Returns `false` if there is no room. */
  hold(bytes: number): boolean {
    return this.#all.memory.take(this, bytes);
  }

  /** Charges bytes that the client may lose; `drop` then frees the bytes. Returns `undefined` if there is no room. */
  keep(bytes: number, drop: Drop): Holding | undefined {
    return this.#all.memory.keep(this, bytes, drop);
  }

  /** Returns the pot with this name. See {@linkcode Accounts.pot}. */
  pot(options: PotOptions): Pot {
    return this.#all.pot(options);
  }

  /** Charges bytes that are already in memory, without checking limits. */
  add(bytes: number): void {
    this.#all.memory.add(this, bytes);
  }

  /** Releases bytes that were charged. */
  free(bytes: number): void {
    this.#all.memory.give(this, bytes);
    this.settle();
  }

  /** Counts a new stream, socket or subscription, until the returned holding ends. Returns `undefined` at the limit. */
  openStream(drop: Drop): Holding | undefined {
    return this.#all.streams.keep(this, 1, drop);
  }

  /** Returns a promise that settles when fewer calls of this client wait. */
  untilRoom(): Promise<void> {
    return (this.#toClient().#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Wakes callers of {@linkcode untilRoom}. Call it when a call or another resource of this client has ended. */
  settle(): void {
    const client = this.#toClient();
    client.#room?.resolve();
    client.#room = undefined;
  }

  /** Returns the amount that this account holds of a pot. */
  amount(pot: Pot): number {
    return this.#counting().#amounts?.[pot.index] ?? 0;
  }

  /** Returns the account whose share would be exceeded: this account, or an account that includes it. */
  findExceeded(pot: Pot, amount: number): Account | undefined {
    for (const node of this.#listNodes()) {
      if (node.amount(pot) + amount > node.#limit(pot, node, amount)) return node;
    }
  }

  /** Tests whether the client, together with its network, holds so little that it may use the reserve of a pot. */
  isSmall(pot: Pot, amount: number): boolean {
    const { root } = this;
    if (root.amount(pot) + amount > (pot.small ?? 1)) return false;
    const { memory, streams, running } = this.#all;
    return [memory, streams, running].every((each) => root.amount(each) <= (each.small ?? 1));
  }

  /** Whether this account is the given account, or is included in it. */
  isPartOf(account: Account): boolean {
    return this.#listNodes().includes(account);
  }

  /** Changes the amount that this account holds of a pot, and the amounts of the accounts that include it. */
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

  // Keep the list only while the account holds something, because a listed account that holds nothing may be replaced
  // by a new object.
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

  // Returns the stored account of the client. Further objects may exist for a client that held nothing, but only the
  // stored account counts.
  #counting(): Account {
    return this.key === undefined ? this : this.#all.known.get(toId(this.key, this.tenant)) ?? this;
  }
}

/** Returns the maximum that an account may hold of a pot when it takes an amount. */
export type Limit = (pot: Pot, account: Account, amount: number) => number;

const ofClient: Limit = (pot) => pot.share;
const ofNetwork: Limit = (pot) => 2 * pot.share;
const ofTenant: Limit = (pot) => pot.perTenant;
const unlimited: Limit = () => Infinity;

interface AccountOptions {
  readonly tenant?: string;
  readonly limit?: Limit;
}

/** The parts of a server that accounts use. */
export interface AccountHost {
  readonly limits: Bounds;
  /** Reports that a client has reached a limit. */
  readonly observing?: { reach(limit: string, client?: string): void };
  /** State that all instances share. `undefined` if the server has no store. */
  readonly shared?: {
    /**
     * Returns the function that limits tenants. `undefined` unless the limits of tenants apply to all instances
     * together.
     */
    limitTenants(accounts: Accounts): Limit | undefined;
  };
}

/** All accounts and pots of a server. */
export class Accounts {
  readonly server: AccountHost;
  /** The pots, by their name and their `of`. */
  readonly pots: Map<string, Pot> = new Map();
  /** The bytes that the server holds. */
  readonly memory: Pot;
  /** Open streams, sockets and subscriptions. */
  readonly streams: Pot;
  /** Running calls, including calls that have a slot of their client and wait for a slot of the process. */
  readonly running: Pot;
  /** Calls that run or wait. Counted only for tenants. */
  readonly ofTenants: Pot;
  /** The accounts that hold something, by id. */
  readonly known: Map<string, Account> = new Map();
  /** The maximum that the clients of a tenant may hold together. */
  readonly tenantLimit: Limit;
  readonly #unknown: Account;

  /** Creates an empty set of accounts. */
  constructor(server: AccountHost) {
    const { memory, connections, calls, perTenant } = server.limits;
    this.server = server;
    this.tenantLimit = server.shared?.limitTenants(this) ?? ofTenant;
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

  /** Returns the pot with this name. Creates the pot if necessary. */
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
   * Finds the account of a client by its key, within a tenant if the path has parameters. Returns a new account for an
   * unknown client, or for a connection without a key. An account that holds nothing is not stored.
   */
  find(key?: string, tenant?: string): Account {
    const known = key === undefined ? undefined : this.known.get(toId(key, tenant));
    return known ?? new Account(this, key, { tenant, limit: tenant === undefined ? ofClient : unlimited });
  }

  /**
   * Lists an account and the accounts that include it. The last account in the list, except the tenant, is the root.
   */
  listNodes(account: Account): readonly Account[] {
    const { key, tenant } = account;
    const nodes = [account];
    if (key === undefined) nodes.push(this.#unknown);
    else {
      if (tenant !== undefined) nodes.push(this.find(key));
      const network = toNetwork(key);
      if (network !== undefined) nodes.push(this.#findGroup(network, ofNetwork));
    }
    if (tenant !== undefined) nodes.push(this.#findGroup(`tenant ${tenant}`, this.tenantLimit));
    return nodes;
  }

  /** Returns the root from the list that {@linkcode listNodes} returns. */
  toRoot(nodes: readonly Account[]): Account {
    return nodes[nodes.length - (nodes[0].tenant === undefined ? 1 : 2)];
  }

  /** Stores an account that holds something. */
  remember(account: Account): void {
    if (account.key !== undefined) this.known.set(toId(account.key, account.tenant), account);
  }

  /** Removes an account that holds nothing. */
  forget({ key, tenant }: Account): void {
    if (key !== undefined) this.known.delete(toId(key, tenant));
  }

  #findGroup(key: string, limit: Limit): Account {
    return this.known.get(key) ?? new Account(this, key, { limit });
  }
}

/** Maximum number of clients, and of holdings of each client, that are tried to find a holding that is not in use. */
const MAX_TRIES = 64;
const MAX_HOLDINGS = 256;

function toId(key: string, tenant: string | undefined): string {
  return tenant === undefined ? key : `at ${tenant} ${key}`;
}

/** Returns the key of the /56 network for an IPv6 address. The key of the address itself contains its /64 network. */
function toNetwork(key: string): string | undefined {
  const [, start, last] = /^peer ((?:[0-9a-f]+:){3})([0-9a-f]+)$/.exec(key) ?? [];
  return start && `network ${start}${(parseInt(last, 16) >> 8).toString(16)}00`;
}
