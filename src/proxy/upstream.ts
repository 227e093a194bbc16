/**
 * The server behind a proxy, as one server of this library uses it: the scopes of its callers, and their limits.
 */
import { delay } from "../core/kit/deadline.ts";
import { nameLimits, ToolError, withLimits } from "../core/protocol/errors.ts";
import { INTERNALS } from "../core/internals.ts";
import type { Context } from "../library.ts";
import type { Call } from "../server/call/call.ts";
import { toCall } from "../server/call/find_call.ts";
import type { Holding } from "../server/capacity/account.ts";
import type { SubscribedClient } from "../server/visibility/subscribers.ts";
import type { ServerHandle, ServerStores } from "../server/engine/server_handle.ts";
import { ParkedCalls } from "./parked_calls.ts";
import { findAddedInstructions } from "../server/engine/added_instructions.ts";
import { findUpstreams, type UpstreamState } from "../server/engine/upstreams.ts";
import { reportedErrors } from "../server/handlers/outages.ts";
import { toCore } from "../server/handlers/bound_layer.ts";
import type { ServerInfo } from "../client/protocol.ts";
import { showInvisible } from "./foreign_text.ts";
import type { Client, Forgettable, Kind, ScopeParts, UpstreamParts } from "./parts.ts";
import { Scope } from "./scope.ts";
import { isClient, isLines, type Settings, toAllowed } from "./settings.ts";

/** Maximum number of connections of one caller. */
const MAX_OF_CALLER = 4;
/** Maximum number of callers whose lists are kept. */
const MAX_CALLERS = 1000;
/** Maximum number of characters of all kept lists. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Maximum number of characters of the instructions of another server. */
const MAX_INSTRUCTIONS = 8192;

/** Key of the state that the proxies of a server share. */
const PROXIES = {};

interface Proxies {
  /** The proxies without a prefix. */
  // Bound: the handlers of the server.
  readonly bare: Set<Upstream>;
  /** The proxy that serves a name, by kind and name. */
  // Bound: the entries of the lists of all proxies.
  readonly owners: Map<string, Upstream>;
  /** The proxies by the names of their pots. */
  // Bound: the handlers of the server.
  readonly pots: Map<string, Upstream>;
}

/** Milliseconds for which the connection stays open that has found out whether the server has sessions. */
const SETTLE_MS = 1000;

export class Upstream implements UpstreamParts {
  readonly settings: Settings;
  readonly parked: ParkedCalls;
  readonly id = crypto.randomUUID();
  /** The handles of the providers that have started. The handle of a failed start is no longer usable. */
  // Bound: one per provider.
  readonly #handles = new Set<ServerHandle>();
  #resources?: ServerHandle;
  /** The handles of the tool provider, by server or concrete path. */
  // Bound: one per concrete path.
  readonly #tools = new WeakMap<object, ServerHandle>();
  readonly #started = Promise.withResolvers<ServerStores | undefined>();
  /** The resources to whose changes callers subscribe. */
  // Bound: `proxy.watched`.
  readonly #subscribed = new Set<string>();
  #share: "all" | "caller" | undefined;
  #detecting?: Promise<void>;
  /** Resolves when the connection that has shown whether the server has sessions is closed. */
  #detected?: Promise<void>;
  #all?: Scope;
  // Bound: `MAX_CALLERS`, and `MAX_OF_CALLER` scopes of each.
  readonly #scopes = new Map<string | object, Scope[]>();
  /** Characters by list. The oldest list comes first. */
  // Bound: the lists of all scopes.
  readonly #kept = new Map<Forgettable, number>();
  #characters = 0;
  #warned = false;
  /** Resolves when the connections that have given way are closed. */
  #givenWay: Promise<unknown> = Promise.resolve();
  #potName?: string;

  constructor(settings: Settings) {
    this.settings = settings;
    this.parked = new ParkedCalls(this);
    const { share, target } = settings;
    this.#share = share ?? (isLines(target) ? undefined : "all");
  }

  /** The handle of the provider that started first. */
  get server(): ServerHandle {
    const [server] = this.#handles;
    if (server) return server;
    throw new Error(`Cannot use ${this.settings.name}: the proxy has not started`);
  }

  /** Called when a provider starts. Returns a function to call when the provider stops. */
  begin(server: ServerHandle, part?: "tools" | "resources"): () => Promise<void> {
    this.#handles.add(server);
    if (!this.settings.prefix) this.#proxies.bare.add(this);
    if (part === "resources") this.#resources = server;
    if (part === "tools") {
      this.#started.resolve(server.store);
      this.#tools.set(server[INTERNALS], server);
    }
    findUpstreams(server).set(this, { name: this.settings.name, read: () => this.#state });
    return async () => {
      if (this.#handles.size > 1) return void this.#handles.delete(server);
      this.#proxies.bare.delete(this);
      if (this.#potName !== undefined) this.#proxies.pots.delete(this.#potName);
      this.#potName = undefined;
      findAddedInstructions(server).delete(this);
      findUpstreams(server).delete(this);
      this.parked.close();
      const scopes = this.#allScopes;
      this.#scopes.clear();
      this.#all = undefined;
      await Promise.all([this.#detected, ...scopes.map((scope) => scope.close())]);
      this.#handles.delete(server);
    };
  }

  /** Whether a name that begins with the prefix can belong to no other proxy. */
  get ownsNames(): boolean {
    return !!this.settings.prefix || this.#proxies.bare.size === 1;
  }

  get #allScopes(): readonly Scope[] {
    return [...this.#all ? [this.#all] : [], ...[...this.#scopes.values()].flat()];
  }

  /** `failed` only if no caller reaches the server. */
  get #state(): UpstreamState {
    const states = this.#allScopes.map(({ state }) => state);
    return states.includes("ok") ? "ok" : states.includes("failed") ? "failed" : "none";
  }

  get #proxies(): Proxies {
    // Bound: the handlers of the server, and the entries of the lists of all proxies.
    return this.server.slot(PROXIES, () => ({ bare: new Set(), owners: new Map(), pots: new Map() }));
  }

  /** Names of proxies are not unique. The names of proxies that have ended are used again, because pots are never removed. */
  get potName(): string {
    const { pots } = this.#proxies;
    for (let number = 1; this.#potName === undefined; number++) {
      const name = `${this.settings.name} ${number}`;
      if (pots.has(name)) continue;
      pots.set(name, this);
      this.#potName = name;
    }
    return this.#potName;
  }

  /** The store of the tool provider. All lists use this store, because each part of a server has its own keys. */
  get store(): Promise<ServerStores | undefined> {
    return this.#started.promise;
  }

  /** Charges a client for a resource to watch. Returns `undefined` if there is no room. */
  keepWatched({ account, limits }: SubscribedClient): Holding | undefined {
    const { watched: total, watchedPerClient: share } = limits.proxy;
    const shareName = "proxy.watchedPerClient";
    return account.pot({ name: "proxy.watched", of: this.potName, total, share, shareName }).keep(account, 1);
  }

  /** Returns the handle of the tool provider of the server, or of the concrete path, that serves a call. */
  findTools({ host }: Call): ServerHandle {
    return this.#tools.get(Object(host.parts)) ?? this.server;
  }

  /** Subscribes to changes of a resource, for all callers or for those whose lists contain it. */
  async watch(uri: string): Promise<void> {
    this.#subscribed.add(uri);
    if (this.#share !== "caller") return await this.shared.watch(uri);
    for (const scope of [...this.#scopes.values()].flat()) this.follow(scope);
  }

  async unwatch(uri: string): Promise<void> {
    this.#subscribed.delete(uri);
    await Promise.all(this.#allScopes.map((scope) => scope.unwatch(uri)));
  }

  follow(scope: ScopeParts): void {
    for (const uri of this.#subscribed) if (scope.serves(uri)) scope.watch(uri).catch(this.server.report);
  }

  updated(uri: string, caller: string | object | undefined): void {
    const to = caller === undefined ? undefined : { to: (ctx: Context) => ctx.caller === caller };
    this.#resources?.resourceUpdated(uri, to);
  }

  /** Returns the scope of a caller. Throws a `ToolError` if the caller cannot have its own connection. */
  async scopeOf(ctx: Context): Promise<Scope> {
    if (this.#share === undefined) {
      await (this.#detecting ??= this.#detect().finally(() => this.#detecting = undefined));
    }
    if (this.#share === "all") return this.shared;
    const { caller, client } = ctx;
    if (caller === undefined) {
      throw new ToolError(
        `Cannot use ${this.settings.name}: each caller has a connection of its own, but nothing identifies this caller; ` +
          'the operator can set auth of the server, or share: "all" of the proxy',
      );
    }
    const capabilities = toAllowed(client.capabilities, this.settings);
    const text = JSON.stringify(capabilities);
    const own = this.#scopes.get(caller) ?? [];
    const known = own.find((scope) => JSON.stringify(scope.capabilities) === text);
    // The most recently used caller comes last.
    this.#scopes.delete(caller);
    this.#scopes.set(caller, own);
    if (known) return known;
    if (own.length >= MAX_OF_CALLER) {
      const idle = own.findIndex((scope) => scope.isIdle);
      if (idle < 0) throw this.#toFull(`all ${MAX_OF_CALLER} connections of this caller are in use`);
      void this.#drop(own.splice(idle, 1));
    }
    const scope = new Scope(this, { caller, client: this.#toClient(ctx), capabilities });
    own.push(scope);
    this.#dropOldest();
    return scope;
  }

  /** The scope that all callers share. */
  get shared(): Scope {
    const all = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: {} };
    const capabilities = toAllowed(all, this.settings);
    return this.#all ??= new Scope(this, { capabilities });
  }

  learn({ instructions }: ServerInfo): void {
    const { settings: { name, instructions: isWanted }, server } = this;
    if (!isWanted || !instructions) return;
    const text = showInvisible(instructions.slice(0, MAX_INSTRUCTIONS));
    findAddedInstructions(server).set(this, `Instructions of ${name}:\n${text}`);
  }

  async reserve({ account, connections }: Client, giveWay: () => Promise<void> | undefined): Promise<Holding> {
    const place = connections.keep(account, 1, () => {
      const closed = giveWay();
      // Otherwise a client could open connections faster than they are closed.
      if (closed) this.#givenWay = Promise.all([this.#givenWay, closed]);
      return closed !== undefined;
    });
    if (!place) {
      throw connections.hasShare(account)
        ? this.#toFull(`all ${connections.total} connections are in use or in reserve`, "proxy.connections")
        : this.#toFull(`all ${connections.share} connections of this client are in use`, "proxy.connectionsPerClient");
    }
    await this.#givenWay;
    return place;
  }

  /** Counts a list. Forgets the oldest lists if there are too many characters. */
  keep(list: Forgettable, characters: number): void {
    this.release(list);
    this.#kept.set(list, characters);
    this.#characters += characters;
    for (const [oldest] of this.#kept) {
      if (this.#characters <= MAX_CHARACTERS || oldest === list) return;
      oldest.forget();
      this.release(oldest);
    }
  }

  release(list: Forgettable): void {
    this.#characters -= this.#kept.get(list) ?? 0;
    this.#kept.delete(list);
  }

  /** Records the names of a list. Reports once if another proxy already has a name, because only the first is used. */
  claim(kind: Kind, keys: readonly string[]): void {
    if (kind !== "tools" && kind !== "prompts") return;
    const names = this.#proxies.owners;
    for (const [name, owner] of names) if (owner === this && name.startsWith(`${kind} `)) names.delete(name);
    for (const key of keys) {
      const name = `${kind} ${key}`;
      const owner = names.get(name);
      if (!owner) names.set(name, this);
      else if (!this.#warned) {
        this.#warned = true;
        this.server.report(
          new Error(
            `Cannot serve ${
              JSON.stringify(key)
            } of both ${owner.settings.name} and ${this.settings.name}: only the first ` +
              "in the list of handlers is served; set prefix",
          ),
        );
      }
    }
  }

  toDown(cause: unknown): ToolError {
    const state = "the server cannot be reached, so this request has not run; try again later, or continue without it";
    const error = withCause(new ToolError(`Cannot reach ${this.settings.name}: ${state}`), cause);
    // The scope reports the first failure to connect.
    reportedErrors.add(error);
    return error;
  }

  toLost(cause: unknown): ToolError {
    const state = "the connection was lost, so it may have run; check its effect before you repeat it";
    return withCause(new ToolError(`Cannot get the result of ${this.settings.name}: ${state}`), cause);
  }

  #toFull(state: string, limit?: string): ToolError {
    const { message } = nameLimits(`Cannot reach ${this.settings.name}: ${state}`, limit, "; try again later");
    return withLimits(new ToolError(message), limit);
  }

  #toClient(ctx: Context): Client {
    const call = toCall(ctx, "call another server");
    const { account } = call.link;
    const { connections: total, connectionsPerClient: share } = toCore(call).limits.proxy;
    const shareName = "proxy.connectionsPerClient";
    const options = { of: this.potName, total, share, shareName, small: 1, isCache: true };
    return { account, connections: account.pot({ name: "proxy.connections", ...options }) };
  }

  /** Connects once to find out whether the server has sessions, which need a connection for each caller. */
  async #detect(): Promise<void> {
    const { hasSession } = await this.shared.connect(undefined);
    const isPerCaller = hasSession && !isClient(this.settings.target);
    this.#share = isPerCaller ? "caller" : "all";
    if (!isPerCaller) return;
    const all = this.#all;
    this.#all = undefined;
    // A command that asks for roots at the start of its session may wait for the answer before it ends, so the
    // connection stays open for a while. The callers do not wait for it.
    const { signal } = this.server;
    this.#detected = delay(SETTLE_MS, { signal, background: true }).catch(() => {}).then(() => all?.close());
  }

  async #drop(scopes: readonly Scope[]): Promise<void> {
    await Promise.all(scopes.map((scope) => scope.close()));
  }

  /** Forgets the least recently used callers whose connections are idle. */
  #dropOldest(): void {
    for (const [caller, scopes] of this.#scopes) {
      if (this.#scopes.size <= MAX_CALLERS) return;
      if (!scopes.every((scope) => scope.isIdle)) continue;
      this.#scopes.delete(caller);
      void this.#drop(scopes);
    }
  }
}

function withCause(error: ToolError, cause: unknown): ToolError {
  error.cause = cause;
  return error;
}
