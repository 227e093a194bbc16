/**
 * Finds the endpoint of a concrete path, such as `/tenants/acme/mcp` for a server at `/tenants/:tenant/mcp`. Loaded
 * with the first request to such a server.
 */
import { BoundedMap } from "../../../core/kit/bounded_map.ts";
import { toBusy, withLimits } from "../../../core/protocol/errors.ts";
import type { Checked, CompiledSchema, Schema } from "../../../core/schema/schema.ts";
import { readTextValues } from "../../../core/schema/text_values.ts";
import type { Change } from "../../visibility/changes.ts";
import type { HandlerSet, ReadPathParams } from "../../call/context.ts";
import { type ContainerHost, findRoot } from "../../call/container.ts";
import { type Account, type Holding, type Pot, type PotOptions, REQUEST_BYTES } from "../../capacity/account.ts";
import type { Engine } from "../../engine/era.ts";
import type { Handler } from "../../visibility/feature.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { type OpenPipe, openPipe, type Served } from "../channel.ts";
import { type ConnectionInfo, readPeer } from "./access.ts";
import { AuthenticationLimits, CLOSED, type Entering, toAuthPot, TOO_SLOW } from "./authentication_limits.ts";
import type { Caller, Place } from "./caller.ts";
import type { WayIn } from "./callers.ts";
import { isCanonical } from "./canonical_params.ts";
import type { Endpoint, Fetch } from "./fetch.ts";
import { PathTemplate, type PathValues } from "./path_template.ts";
import { findRefusal, refuse, toFault, toOverload } from "./refusals.ts";
import type { RequestBodies } from "./request_body.ts";
import type { Spot, Wanted } from "./upgrades.ts";
import type { HttpEntry } from "./lazy_endpoint.ts";

/** Path parameters by name. If the server has a `pathSchema`, the values have the output types of the schema. */
export type PathParams = Readonly<Record<string, unknown>>;

/** The parts that the server of a concrete path receives from the server whose path has parameters (the trunk). */
export interface Branch {
  readonly trunk: Engine;
  /** Reads the request bodies for all concrete paths. */
  readonly bodies: RequestBodies;
  readonly path: string;
  readonly secret: string | readonly string[];
  readonly handlers: readonly Handler[];
  readonly pathParams: ReadPathParams;
  /** Wraps the handler set of the path, so that the router notices when a handler changes the set. */
  readonly watch: (handlers: HandlerSet<Handler>) => HandlerSet<Handler>;
}

export interface BranchServer extends Served {
  readonly handlers: HandlerSet<Handler>;
  readonly [INTERNALS]: Served[typeof INTERNALS] & {
    readonly engine: Engine;
    readonly host: ContainerHost;
    readonly http: HttpEntry;
    stop(): void;
    end(): Promise<void>;
    evictIdle(): void;
  };
}

/** Returns the handlers of a concrete path, or `undefined` if the path does not exist. */
export type MakeHandlers = (params: never) => MadeHandlers | Promise<MadeHandlers>;

type MadeHandlers = readonly Handler[] | undefined;

export interface PathRouterOptions {
  readonly engine: Engine;
  readonly endpoint: Endpoint;
  readonly path: string;
  readonly proxies: readonly string[];
  readonly secret?: string | readonly string[];
  /** The server's option `pathSchema`. `schema` is the same schema, compiled. */
  readonly pathSchema?: Schema;
  readonly schema?: CompiledSchema;
  readonly makeHandlers?: MakeHandlers;
  readonly grow: (branch: Branch) => BranchServer;
}

interface FullPlace extends Place {
  readonly params: PathParams;
}

/** A concrete path whose server is being created or is in memory. */
interface Entry {
  readonly making: Promise<BranchServer | undefined>;
  /** The charge for the path in the pot of open paths. Set when the path's server is created. */
  place?: Holding;
  server?: BranchServer;
  /** Whether a handler changed this path's handlers. The path is then never evicted, because it would lose them. */
  isChanged?: boolean;
  /** Number of pending requests and open channels. */
  users: number;
}

/** At the limit, the client with the most paths loses its least recently used path. */
export class PathRouter {
  readonly #options: PathRouterOptions;
  readonly #template: PathTemplate;
  readonly #way: WayIn<FullPlace>;
  readonly #limits: AuthenticationLimits;
  /** Limits calls of `handlers`, apart from `#limits`, so that slow calls do not block the checks of other paths. */
  readonly #makingLimits: AuthenticationLimits;
  readonly #secret: string | readonly string[];
  // Bound: `endpoints.open` and `endpoints.making`.
  readonly #entries = new Map<string, Entry>();
  /** The places of recent URLs without a query. Empty if a schema checks the parameters, which may decide anew. */
  // Bound: `endpoints.open`.
  readonly #places: BoundedMap<string, FullPlace>;
  readonly #made: Pot;
  readonly #connected?: Promise<unknown>;
  #isClosed = false;
  readonly fetch: Fetch;

  constructor(options: PathRouterOptions) {
    const { path, secret, engine: { changes } } = options;
    this.#options = options;
    this.#template = new PathTemplate(path);
    this.#way = {
      transport: "http",
      path,
      find: (request, info) => this.#findPlace(request, info),
      open: (request, info) => async (values) =>
        (await this.#locate(values, this.#toEntering({ request, info })))?.pathParams,
      refusePath: () => options.endpoint.refusePath(),
    };
    const { core, accounts } = options.engine;
    const { open } = core.limits.endpoints;
    this.#places = new BoundedMap({ full: "evict", max: open });
    this.#limits = new AuthenticationLimits(core, accounts, toAuthPot(core, "endpoints.checked"));
    const share = Math.ceil(open / 4);
    const making: PotOptions = { name: "endpoints.making", total: open, share, limitName: "endpoints.open" };
    this.#makingLimits = new AuthenticationLimits(core, accounts, making);
    this.#made = accounts.pot({ name: "endpoints.open", total: open, isCache: true });
    // Create a secret if the server has no secret. Otherwise the new server of an evicted path could not open values
    // that the previous server has sealed.
    this.#secret = secret ?? crypto.randomUUID() + crypto.randomUUID();
    changes.listeners.add((change) => this.#announce(change));
    this.#connected = changes.connect?.();
    this.fetch = options.endpoint.withCors(this.#fetch);
  }

  readonly #fetch: Fetch = async (request, info) => {
    const { core } = this.#options.engine;
    try {
      const caller = await this.#options.endpoint.parts.callers.identify(request, info, this.#way);
      return caller instanceof Response ? caller : await this.#serve(caller);
    } catch (error) {
      const refusal = findRefusal(error);
      return refusal ? refuse(core, refusal) : toFault(core, error);
    }
  };

  async #serve(caller: Caller<FullPlace>): Promise<Response> {
    const { engine, endpoint } = this.#options;
    const { place, request: { method } } = caller;
    // Create the server of a path only for methods that the endpoint supports.
    if (!place || !METHODS.includes(method)) return await endpoint.serve(caller);
    const account = endpoint.parts.account(caller);
    const entry = this.#open(place, account);
    if (!entry) return refuse(engine.core, toOverload(toBusy(...TOO_MANY)));
    const release = toRelease(entry);
    try {
      const server = entry.server ?? await this.#untilMade(entry, account);
      return server ? await server[INTERNALS].http.endpoint.serve(caller) : endpoint.refusePath();
    } finally {
      release();
    }
  }

  /**
   * @throws {TypeError} if a parameter is missing or invalid.
   * @throws {McpError} if too many paths are in use.
   */
  async enter(params: PathParams): Promise<Served> {
    const { path } = this.#options;
    const values = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
    const pathname = this.#template.build(values);
    const place = pathname.length <= MAX_PATH ? await this.#locate(values, {}) : undefined;
    const server = place && await this.#enter(place, this.#options.engine.accounts.find());
    if (server) return server;
    throw new TypeError(`Cannot open ${path}: there is no endpoint for ${JSON.stringify(values)}; check pathParams`);
  }

  /**
   * Finds the concrete path for a request whose path follows another template, such as the path of a WebSocket
   * endpoint. Both paths have the same parameters.
   *
   * @throws {McpError} if the parameters of too many requests are being checked. `open` of the result throws an
   * `McpError` if too many paths are in use.
   */
  async find({ template, ...from }: Wanted): Promise<Spot | undefined> {
    const place = await this.#match(new PathTemplate(template), from.request, this.#toEntering(from));
    const { account } = this.#options.endpoint.parts;
    return place && { ...place, open: (caller) => this.#enter(place, account(caller)) };
  }

  async #enter(place: FullPlace, account: Account): Promise<Served | undefined> {
    const entry = this.#open(place, account);
    if (!entry) throw toBusy(...TOO_MANY);
    const { ticker } = this.#options.engine.core;
    // Mark the path as in use until the channel opens, because the path could otherwise be evicted while the channel
    // opens.
    const release = toRelease(entry);
    let server: BranchServer | undefined;
    try {
      server = entry.server ?? await this.#untilMade(entry, account);
    } finally {
      if (!server) release();
    }
    if (!server) return;
    const reservation = ticker.startTimeout(RESERVED_MS, release);
    const openCounted: OpenPipe = (options) => {
      const pipe = openPipe(server, options);
      const leave = toRelease(entry);
      ticker.cancel(reservation);
      release();
      const { close } = pipe;
      pipe.close = (error) => {
        leave();
        close.call(pipe, error);
      };
      return pipe;
    };
    return { [INTERNALS]: { ...server[INTERNALS], openPipe: openCounted } };
  }

  list(): readonly BranchServer[] {
    return [...this.#entries.values()].flatMap(({ server }) => server ?? []);
  }

  /** If a server rejects the handlers, removes them from all servers again, and throws. */
  add(handlers: readonly Handler[]): void {
    const done: Engine[] = [];
    try {
      for (const { [INTERNALS]: { engine } } of this.list()) {
        engine.registry.add(handlers);
        done.push(engine);
      }
    } catch (error) {
      for (const { registry } of done) registry.remove(handlers);
      throw error;
    }
  }

  remove(handlers: readonly Handler[]): void {
    for (const { [INTERNALS]: { engine } } of this.list()) engine.registry.remove(handlers);
  }

  stop(): void {
    this.#isClosed = true;
    this.#limits.close();
    this.#makingLimits.close();
    for (const server of this.list()) server[INTERNALS].stop();
  }

  async end(): Promise<void> {
    await Promise.all(this.list().map((server) => server[INTERNALS].end()));
    for (const { place } of this.#entries.values()) place?.end();
    this.#entries.clear();
  }

  #toEntering({ request, info }: Pick<Wanted, "request" | "info">): Entering {
    const { proxies } = this.#options;
    return {
      get peer() {
        return readPeer(request, info, proxies);
      },
    };
  }

  #findPlace(request: Request, info: ConnectionInfo | undefined): FullPlace | Promise<FullPlace | undefined> {
    const { url } = request;
    const end = url.indexOf("?");
    const target = end < 0 ? url : url.slice(0, end);
    return this.#places.get(target) ?? this.#matchNew(target, request, this.#toEntering({ request, info }));
  }

  async #matchNew(target: string, request: Request, entering: Entering): Promise<FullPlace | undefined> {
    const place = await this.#match(this.#template, request, entering);
    if (place && !this.#options.schema && target.length <= 2 * MAX_PATH) this.#places.set(target, place);
    return place;
  }

  async #match(template: PathTemplate, { url }: Request, entering: Entering): Promise<FullPlace | undefined> {
    const pathname = URL.parse(url)?.pathname ?? "";
    const values = pathname.length <= MAX_PATH ? template.match(pathname) : undefined;
    return values && await this.#locate(values, entering);
  }

  // Validates the parameters of a path. Runs before the authentication, because the authentication may depend on the
  // parameters.
  async #locate(values: PathValues, entering: Entering): Promise<FullPlace | undefined> {
    const { schema, pathSchema: source } = this.#options;
    // Build the path from the decoded parameters, so that all encodings of a path lead to the same endpoint.
    const path = this.#template.build(values);
    const checked = schema ? await this.#check(schema, values, entering) : { value: values };
    if (checked.problem !== undefined) return;
    const convert = async (values: PathValues) => schema ? await this.#check(schema, values, entering) : checked;
    if (schema && !await isCanonical(values, checked.value, convert)) return;
    // A schema may return any value. The cast is safe, because the router only passes the value on to handlers.
    const params = checked.value as PathParams;
    const read = (wanted?: Schema) => {
      if (wanted === undefined || wanted === source) return params;
      throw new TypeError(
        "Cannot read path parameters: the schema passed to ctx.pathParams() is not the server's `pathSchema`; pass the value of `pathSchema`",
      );
    };
    // The cast is safe, because the values have the output type of the server's schema.
    return { path, values, params, pathParams: read as ReadPathParams };
  }

  // Any client can start an asynchronous check, so the `auth` limits apply to the number and duration of these checks.
  async #check(schema: CompiledSchema, values: PathValues, entering: Entering): Promise<Checked> {
    if (this.#limits.isFull(entering)) throw toBusy(...TOO_MANY_CHECKS);
    const checked = readTextValues(schema, values);
    if (!(checked instanceof Promise)) return checked;
    try {
      return await this.#limits.wait(checked, entering);
    } catch (error) {
      throw this.#toClientError(error, { verb: "check", part: "pathSchema", late: CHECK_TOO_SLOW });
    }
  }

  /**
   * If work for a path took too long or the server is closing, returns the error for the client. Returns all other
   * errors unchanged.
   */
  #toClientError(error: unknown, { verb, part, late }: Slow): unknown {
    if (error === CLOSED) return toBusy(CLOSING);
    if (error !== TOO_SLOW) return error;
    const { path, engine: { core } } = this.#options;
    const { timeoutMs } = core.limits.auth;
    const limit = "auth.timeoutMs";
    const text = `Cannot ${verb} path ${path}: its ${part} took longer than ${timeoutMs} ms (${limit})`;
    core.report(withLimits(new Error(text), limit));
    return toBusy(late, limit);
  }

  // A path that several clients use is charged to the client with the fewest paths, so that a client cannot use up
  // another client's share by opening paths.
  #open(place: FullPlace, account: Account): Entry | undefined {
    const { path } = place;
    const known = this.#entries.get(path);
    if (known) known.place?.use(account);
    if (known || this.#makingLimits.isFull({ account })) return known;
    const entry = this.#make(place, account);
    this.#entries.set(path, entry);
    return entry;
  }

  #make(place: FullPlace, account: Account): Entry {
    const entry: Entry = { making: this.#limit(() => this.#grow(place, entry, account), account), users: 0 };
    const forget = () => {
      if (this.#entries.get(place.path) === entry) this.#entries.delete(place.path);
    };
    entry.making.then((server) => server || forget(), forget);
    return entry;
  }

  // Charges the client for the wait, because any number of requests can wait for one path.
  async #untilMade({ making }: Entry, account: Account): Promise<BranchServer | undefined> {
    const charge = account.memory.keep(account, REQUEST_BYTES);
    if (!charge) throw toBusy(...TOO_MANY_WAITING);
    try {
      return await making;
    } finally {
      charge.end();
    }
  }

  // Sets a timeout for `grow`, because a `handlers` function that never returns would count towards the limits and
  // block its path forever.
  async #limit(grow: () => Promise<BranchServer | undefined>, account: Account): Promise<BranchServer | undefined> {
    // Call `grow` in a microtask, because `#grow` needs the entry, which contains this promise.
    const growing = Promise.resolve().then(grow);
    try {
      return await this.#makingLimits.wait(growing, { account });
    } catch (error) {
      throw this.#toClientError(error, { verb: "open", part: "handlers", late: HANDLERS_TOO_SLOW });
    }
  }

  async #grow(
    { path, params, pathParams }: FullPlace,
    entry: Entry,
    account: Account,
  ): Promise<BranchServer | undefined> {
    // Wait for the connection to other instances. Otherwise a client could subscribe too early, and miss changes on
    // other instances.
    await this.#connected;
    const { engine, endpoint, makeHandlers, grow } = this.#options;
    if (this.#isClosed) return;
    // The cast is safe, because the parameters have the output type of the server's schema.
    const own: MadeHandlers = makeHandlers ? await makeHandlers(params as never) : [];
    // Require a list. Without this check, a string or a set would be spread too, and the path would exist by mistake.
    if (own !== undefined && !Array.isArray(own)) {
      throw new TypeError(
        `Cannot open ${path}: the handlers function did not return a list; return a list, or undefined if the path does not exist`,
      );
    }
    // Discard the handlers if the path does not exist, or if `handlers` returned only after its timeout or after the
    // server was closed.
    if (own === undefined || this.#isClosed || this.#entries.get(path) !== entry) return;
    // Charge the path only after `handlers` has returned a list, so that a nonexistent path does not evict an existing
    // path.
    entry.place = this.#made.keep(account, 1, () => this.#drop(path, entry));
    if (!entry.place) throw toBusy(...TOO_MANY);
    const handlers = [...engine.registry.handlers, ...own];
    const { bodies } = endpoint.parts;
    const watch = (handlers: HandlerSet<Handler>) => watchChanges(handlers, () => entry.isChanged = true);
    entry.server = grow({ trunk: engine, bodies, path, secret: this.#secret, handlers, pathParams, watch });
    const { engine: { host } } = entry.server[INTERNALS];
    findRoot(host).container?.start();
    host.lives?.start();
    return entry.server;
  }

  /** Returns `false` if the path is in use. */
  #drop(path: string, { server, users, isChanged }: Entry): boolean {
    if (!server || users || isChanged) return false;
    const { http, evictIdle, end, engine: { host } } = server[INTERNALS];
    if (http.endpoint.loaded?.parts.streams.size) return false;
    if (this.#options.engine.scheduler.busyServers().has(host.server)) return false;
    this.#entries.delete(path);
    evictIdle();
    end();
    return true;
  }

  // Passes changes that the server announces, or that come from other instances, to the servers of all concrete paths.
  #announce(change: Change): void {
    if (change.kind === "close" || change.kind === "list" && change.handlers) return;
    for (const { [INTERNALS]: { engine: { changes, registry } } } of this.list()) {
      if (change.kind === "list" && !registry.compiled(change.feature)) continue;
      for (const listener of [...changes.listeners]) listener(change);
    }
  }
}

/** Calls `onChange` before each change of the set. */
function watchChanges(handlers: HandlerSet<Handler>, onChange: () => void): HandlerSet<Handler> {
  const watched = <A extends readonly unknown[]>(change: (...args: A) => void) => (...args: A) => {
    onChange();
    change(...args);
  };
  return {
    ...handlers,
    add: watched(handlers.add),
    remove: watched(handlers.remove),
    enable: watched(handlers.enable),
    disable: watched(handlers.disable),
  };
}

/** Returns a function that releases the entry. */
function toRelease(entry: Entry): () => void {
  entry.users++;
  let isUsed = true;
  return () => {
    if (isUsed) entry.users--;
    isUsed = false;
  };
}

interface Slow {
  readonly verb: string;
  readonly part: string;
  /** The message for the client. */
  readonly late: string;
}

/** Milliseconds for which a path stays in memory for a channel that has not opened yet. */
const RESERVED_MS = 1000;
/** The HTTP methods that an MCP endpoint can support. */
const METHODS: readonly string[] = ["GET", "POST", "DELETE"];
/** Maximum length of a concrete path in characters. A limit is needed, because paths are kept in memory. */
const MAX_PATH = 1024;

const TOO_MANY = ["serve the request: too many paths are in use", "endpoints.open"] as const;
const TOO_MANY_WAITING = [
  "serve the request: too many requests wait for their path",
  "memory.bytesPerClient, memory.bytes",
] as const;
const TOO_MANY_CHECKS = [
  "serve the request: too many paths are being checked",
  "auth.running, auth.runningPerPeer",
] as const;
const CLOSING = "serve the request: the server is closing";
const HANDLERS_TOO_SLOW = "serve the request: the handlers of the path were not created in time";
const CHECK_TOO_SLOW = "serve the request: the path could not be checked in time";
