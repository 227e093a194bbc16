/**
 * Creates servers: checks the options and connects the parts.
 *
 * @module
 */
import { INTERNAL_ERROR, McpError } from "./protocol/errors.ts";
import type { Icon } from "./protocol/types.ts";
import { Accounts } from "./core/account.ts";
import type { Authenticate, Authentication } from "./core/auth.ts";
import type { Admit } from "./core/admission.ts";
import { type CapabilityOptions, readCapabilities } from "./core/capabilities.ts";
import { Changes } from "./core/changes.ts";
import { type ContainerHost, findRoot } from "./core/container.ts";
import type { CallHost } from "./core/call.ts";
import type { ChangeNotifier, Context, HandlerSet, RunningServer } from "./core/context.ts";
import type { Core, DescribeError, PublishSchema } from "./core/core.ts";
import type { CreateEra, Engine } from "./core/era.ts";
import type { Handler } from "./core/feature.ts";
import { type Encoder, type Filters, type Guards, readGuards } from "./core/guards.ts";
import { INTERNALS } from "./core/internals.ts";
import { type LimitOptions, readLimits } from "./core/limits.ts";
import { createServerLog, type ServerLog, toLoggable } from "./core/log.ts";
import { type Middleware, seesLists } from "./core/middleware.ts";
import { combineObservers, type Observer } from "./core/observer.ts";
import { Registry } from "./core/registry.ts";
import { Scheduler } from "./core/scheduler.ts";
import { Sealer } from "./core/sealer.ts";
import type { SharedState, Store } from "./core/store.ts";
import type { Toggle, Visibility } from "./core/visibility.ts";
import { type Clock, systemClock, Ticker } from "./core/timers.ts";
import type { OpenPipe, PipeServer, Served } from "./transports/channel.ts";
import { readHosts, readOrigins, readPath, readProxies, readTemplate } from "./transports/http/access_options.ts";
import { type Cors, corsRule, type Grant } from "./transports/http/cors.ts";
import type { LoadGate } from "./transports/http/entrance.ts";
import type { Fetch } from "./transports/http/fetch.ts";
import { LazyEndpoint } from "./transports/http/lazy_endpoint.ts";
import type { Branch, PathRouter, RouteParams } from "./transports/http/path_router.ts";
import type { HttpEntry } from "./transports/http/upgrades.ts";
import { compileSchema, type Infer, type Schema, type StandardSchema } from "./schema/schema.ts";

/** Schema of path parameters that are not checked further. */
export type TextParams = StandardSchema<Readonly<Record<string, string>>>;

/** Returns the handlers for the parameters of a path. Returns `undefined` if there is nothing at the path. */
export type RouteHandlers<P extends Schema> = (
  params: Infer<P>,
) => readonly Handler[] | undefined | Promise<readonly Handler[] | undefined>;

/**
 * Options of a server whose path may have parameters. Only `name` and `version` are required. `P` is the schema of the
 * parameters.
 */
export interface RouteServerOptions<P extends Schema = TextParams> extends Omit<ServerOptions, "handlers"> {
  /**
   * The tools, resources and prompts. If the path has parameters, a function may return those of one concrete path. It
   * runs when the path is first used, and again if it was dropped in the meantime.
   */
  readonly handlers?: readonly Handler[] | RouteHandlers<P>;
  /**
   * Schema of the path's parameters, which converts and checks them. Other paths do not exist: HTTP 404. Handlers and
   * services read the values with `ctx.route(params)`. Defaults to any text.
   */
  readonly params?: P;
}

/** Options of a server. Only `name` and `version` are required. */
export interface ServerOptions {
  /** Name for programs, such as `weather`. */
  readonly name: string;
  /** Version of the server, such as `1.0.0`. */
  readonly version: string;
  /** Name for people. */
  readonly title?: string;
  /** Description of the server in a sentence. */
  readonly description?: string;
  /** Page with more information. */
  readonly websiteUrl?: string;
  /** Icons of the server. */
  readonly icons?: readonly Icon[];
  /** Instructions for models on how to use the server. */
  readonly instructions?: string;
  /** The tools, resources and prompts. */
  readonly handlers?: readonly Handler[];
  /** Middleware that wraps every call. The first one is the outermost. */
  readonly use?: readonly Middleware[];
  /**
   * Authenticates the caller of every HTTP request before its body is read, such as `apiKey({ keys })` of
   * `@x/mcp/auth`. Defaults to none: then every caller may use the server. Does not apply to stdio.
   */
  readonly auth?: Authentication | Authenticate;
  /**
   * Decides whether a request may enter, before its handler is looked up: `true`, or a refusal made by `refuse()` of
   * `@x/mcp/auth`. It sees every request, also those that open a session. Defaults to `true`.
   */
  readonly admit?: Admit;
  /**
   * Switches for what the server declares and does. Each defaults to `true`: `listChanged`, `subscribe`, `completions`
   * and `logging`.
   */
  readonly capabilities?: CapabilityOptions;
  /**
   * Path of the HTTP endpoint, such as `/tenants/:tenant/mcp`. Each concrete path is an endpoint of its own: nothing that
   * one of them has issued is valid at another. Defaults to `/mcp`.
   */
  readonly path?: string;
  /** Hosts that clients may use, such as `mcp.example.com`. If set, other Host headers except loopback are rejected. */
  readonly hosts?: readonly string[];
  /**
   * IP addresses of reverse proxies in front of the server, such as `127.0.0.1`. The server then reads client addresses
   * from their `X-Forwarded-For`. Without it, all clients behind a proxy share the limits of one.
   */
  readonly proxies?: readonly string[];
  /**
   * Whether requests of revisions with sessions must have a session id. Defaults to `"optional"`: a request without one
   * is served by itself. It can neither send requests to the client nor resume a stream.
   */
  readonly sessions?: "optional" | "required";
  /** Origins of web pages that may call the server besides its own, such as `https://app.example.com`. */
  readonly origins?: readonly string[];
  /** Cross-origin access for browsers. Defaults to `"none"`. */
  readonly cors?: Cors;
  /**
   * Secret of at least 32 characters that all instances of this server share. A list rotates it, newest first. Without
   * it, sessions and pending questions do not survive a restart.
   */
  readonly secret?: string | readonly string[];
  /**
   * State that all instances share: ended sessions, subscriptions, events to resume, and changes. `@x/mcp/stores` makes
   * one. Without it, each process keeps this in its memory.
   */
  readonly store?: Store;
  /**
   * Whether arguments of tools may be JSON text where the input wants an object, an array, a number or a boolean. A tool
   * may say otherwise. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /**
   * Computes a small JSON value about the client, which handlers read as `ctx.session`. For clients with a session it
   * runs during `initialize`, and over HTTP the value is sealed into the session id. For others it runs for each request
   * in which `ctx.session` is read. It is synchronous, and its JSON has at most 2048 characters.
   */
  readonly session?: (ctx: Context) => unknown;
  /** Limits that differ from the defaults. */
  readonly limits?: LimitOptions;
  /** Milliseconds for which clients may cache lists and resources without a `ttlMs` of their own. Defaults to 0. */
  readonly ttlMs?: number;
  /**
   * Cache scope of lists: shared by all callers (`"public"`) or bound to one (`"private"`).
   *
   * Defaults to `"private"` for authenticated callers, for servers with `auth`, and if the middleware of `use` sees
   * lists, because it may change them. Otherwise defaults to `"public"`. A list with an `allow` is always private.
   * Resources are private unless they have a `cacheScope`.
   */
  readonly cacheScope?: "public" | "private";
  /**
   * Receives events for metrics, logs and traces. One object or a list. Clients only receive the id of an unexpected
   * error, and `observer.fault` the error itself. Without a `fault`, unexpected errors are printed with `console.error`.
   */
  readonly observer?: Observer | readonly Observer[];
  /**
   * Describes an unexpected error of a handler. The model reads the text for an error of a tool. Other clients get it as
   * the message of error -32603, or the `McpError` that it returns. If it returns `undefined`, they get "Internal error"
   * and an id. `observer.fault` is called in either case.
   */
  readonly describeError?: DescribeError;
  /**
   * Guards of the input and output of all handlers. They are around the guards of each handler, and use services with
   * `ctx.get`.
   */
  readonly guards?: Guards;
  /** Encoders of your own types. The first that fits converts a value. They run before the built-in conversions. */
  readonly encoders?: readonly Encoder[];
  /** Changes the JSON Schema of the input and output of tools that clients see. Validation does not change. */
  readonly publishSchema?: PublishSchema;
  /**
   * Whether to print warnings with `console.warn` about work before a question, which some clients make the handler
   * repeat. Defaults to `false`. `mcp --watch`, `mcp --inspect` and `connect` from `@x/mcp/testing` turn it on.
   */
  readonly development?: boolean;
  /** Source of the time, for tests. */
  readonly clock?: Clock;
}

/** An MCP server: the default export of a server file. */
export interface Server extends ChangeNotifier {
  /** Handles web-standard requests. Called by `deno serve`, Bun, Deno Deploy, Workers and routers. */
  readonly fetch: Fetch;
  /** The handlers, which can change while the server runs. */
  readonly handlers: HandlerSet<Handler>;
  /**
   * Sends log messages outside of a call, to clients with a session that want their level. Other clients get only the
   * log messages of their calls.
   */
  readonly log: ServerLog;
  /**
   * Makes all services that live as long as the server, and rejects if one fails. `serveStdio` and the command line call
   * it before they listen. Otherwise the first request makes them.
   */
  ready(): Promise<void>;
  /**
   * Stops accepting calls, waits up to `calls.closeMs` milliseconds for running ones, ends all streams, and
   * disposes the services. Settles when everything has ended.
   */
  close(): Promise<void>;
  /**
   * Internals for transports, the command line and the test kit.
   *
   * @ignore
   */
  readonly [INTERNALS]: ServerInternals;
}

/**
 * Internals for transports, the command line and the test kit.
 *
 * @internal
 */
export interface ServerInternals {
  /** Rejects channels, if the server has no single endpoint. */
  readonly openPipe?: OpenPipe;
  /** The parts that a channel serves. */
  readonly served: Served;
  /** The HTTP endpoint, for other HTTP transports. */
  readonly http: HttpEntry;
  /** The place of the container of the services, if a handler has any. */
  readonly host: ContainerHost;
  /** Name of the server. */
  readonly name: string;
  /** Parts of the server. */
  readonly engine: Engine;
  /** Authenticates callers. */
  readonly auth?: Authentication;
  /** Returns the server of a concrete path. `undefined` if the path has no parameters. */
  readonly enter?: (params?: RouteParams) => Promise<PipeServer>;
  /** Returns the server whose parameters are in a path of another template. */
  readonly find?: (template: string, pathname: string) => Promise<PipeServer | undefined>;
  /** The servers of `mount`. */
  readonly servers?: readonly Server[];
  /** Stops accepting calls. */
  stop(): void;
  /** Ends all streams. */
  end(): Promise<void>;
  /** Drops what is kept in memory for idle clients. */
  rest(): void;
  /** Turns `development` on, unless the options set it to `false`. Settles when it is on. */
  develop(): Promise<void>;
}

/** Creates a server for the era that `createEra` creates. */
export function buildServer<P extends Schema>(options: RouteServerOptions<P>, createEra: CreateEra): Server {
  checkOptions(options);
  return growServer(options, createEra);
}

/** The options that servers of any path have. */
type CommonOptions = Omit<ServerOptions, "handlers">;

/** The place of a server, with the state that changes while it runs. */
interface Site {
  readonly path: string;
  /** Whether the path has parameters, so that each concrete path gets a server of its own. */
  readonly hasParams: boolean;
  /** Set for the server of one concrete path. */
  readonly branch?: Branch;
  /** The calls of `enable` and `disable` that hold at all concrete paths. */
  readonly toggles: Toggle[];
  /** The servers of the concrete paths, once they are loaded. */
  router?: PathRouter;
  /** Settles when the server has closed. Set when it begins to close. */
  closed?: Promise<void>;
}

/** Creates a server, or with `branch` that of one concrete path. */
function growServer<P extends Schema>(options: RouteServerOptions<P>, createEra: CreateEra, branch?: Branch): Server {
  const { name, handlers = [], cors, path: ownPath = "/mcp" } = options;
  const { path = ownPath } = branch ?? {};
  const hasParams = !branch && /\/:/.test(path);
  const site: Site = { path, hasParams, branch, toggles: [] };
  const parts = createParts(options, site);
  const { core, changes, registry } = parts;
  const set = createHandlerSet(parts, site, (added) => openServices(added, host));
  const host = createHost(parts, site, set);
  const first = branch?.handlers ?? (typeof handlers === "function" ? [] : handlers);
  registry.add(first);
  openServices(first, host);
  const engine: Engine = { ...parts, host };
  const era = createEra(engine);
  const allows = corsRule(cors, core.report);
  const endpoint = createEndpoint({ engine, era, allows }, options, site);
  const openRouter = routerOpener({ engine, endpoint, createEra }, options, site);
  branch?.toggles?.forEach((toggled) => applyToggle(set, toggled));
  const develop = async () => {
    if (options.development !== false) await watchReruns(engine);
  };
  if (options.development && !branch) develop();
  const ending = createEnding({ engine, endpoint }, site);
  const routed: Fetch = async (request, info) => await (site.router ?? await openRouter()).fetch(request, info);
  const serve = hasParams ? routed : endpoint.fetch;
  const refuse = (): never => {
    throw new TypeError(`Cannot open ${path}: it has parameters; give params, as in serveStdio(server, { params })`);
  };
  return {
    fetch: withServices(host, cors && !branch ? withCors(allows, serve) : serve),
    ...host.server,
    handlers: set,
    log: createServerLog((level, data, { logger, to = () => true }) => {
      if (!site.closed && core.can.logging) changes.log({ level, logger, data: toLoggable(data) }, to);
    }),
    ready: async () => {
      await endpoint.options.loadGate?.();
      await findRoot(host).container?.ready();
    },
    close: () => site.closed ??= closeServer(engine, ending),
    [INTERNALS]: {
      openPipe: hasParams ? refuse : undefined,
      served: { engine, era },
      http: { path, core, endpoint, ended: ending.ended },
      enter: hasParams ? async (params = refuse()) => await (await openRouter()).enter(params) : undefined,
      find: hasParams ? async (template, pathname) => await (await openRouter()).find(template, pathname) : undefined,
      name,
      engine,
      auth: core.auth,
      stop: ending.stop,
      end: ending.end,
      rest: () => era.rest?.(),
      develop,
      host,
    },
  };
}

/** Creates the parts of a server. Concrete paths share them, except what must differ between paths. */
function createParts(options: CommonOptions, { path, branch }: Site): Omit<Engine, "host"> {
  const { trunk, secret = options.secret } = branch ?? {};
  const ticker = trunk?.core.ticker ?? new Ticker(options.clock ?? systemClock);
  const sealer = new Sealer({ secret, realm: JSON.stringify([options.name, path]) });
  const changes = new Changes(ticker);
  const share: Share = ({ limits, observer }) =>
    options.store?.[INTERNALS].share({ sealer, changes, limits, observer });
  const core = trunk
    ? { ...trunk.core, sealer, shared: share(trunk.core) }
    : createCore(options, { ticker, sealer, share });
  const registry = new Registry(core, changes);
  const accounts = trunk?.accounts ?? new Accounts(core);
  const scheduler = trunk?.scheduler ?? new Scheduler(core, accounts, options.use);
  return { core, registry, scheduler, changes, accounts };
}

/** Connects a server to its store, if it has one. */
type Share = (core: Pick<Core, "limits" | "observer">) => SharedState | undefined;

function createCore(
  options: CommonOptions,
  { share, ...own }: Pick<Core, "ticker" | "sealer"> & { readonly share: Share },
): Core {
  const { name, version, title, description, websiteUrl, icons, instructions, ttlMs = 0, admit: decide } = options;
  const limits = readLimits(options.limits);
  const observer = combineObservers(options.observer);
  const auth = readAuth(options.auth);
  const core: Core = {
    ...own,
    identity: { name, version, title, description, websiteUrl, icons },
    info: { name, version },
    instructions,
    limits,
    ttlMs,
    cacheScope: options.cacheScope ?? (auth || options.use?.some(seesLists) ? "private" : "anonymous"),
    hasMiddleware: !!options.use?.length,
    requiresSession: options.sessions === "required",
    describeError: options.describeError,
    filters: readFilters(options),
    publishSchema: options.publishSchema,
    session: options.session,
    lenientArguments: options.lenientArguments,
    auth,
    observer,
    shared: share({ limits, observer }),
    can: readCapabilities(options.capabilities),
    admit: decide && (async (request) => (await import("./core/admission.ts")).admit(core, decide, request)),
    report: (error, about) => report(core, error, about),
  };
  if (options.observer) {
    prepareWith(core, async () => {
      const { createObserving } = await import("./core/observing.ts");
      core.observing = createObserving(core);
    });
  }
  return core;
}

/** Creates what the calls of a server share. */
function createHost(parts: Omit<Engine, "host">, site: Site, handlers: HandlerSet<Handler>): CallHost {
  const { core, registry, scheduler, changes } = parts;
  const { path, hasParams, branch } = site;
  return {
    server: {
      // Factories make all handlers, so what a handler has is a Handler.
      handlers: handlers as RunningServer["handlers"],
      resourceUpdated(uri) {
        if (!site.closed) changes.emit({ kind: "resource", uri });
      },
      listChanged(list, { to: allow } = {}) {
        if (site.closed || !registry.hasList(list) && !hasParams) return;
        changes.emit({ kind: "list", feature: list, handlers: allow && [{ allow }] });
      },
    },
    parts: core,
    root: branch?.trunk.host,
    route: branch?.route,
    reruns: branch?.trunk.host.reruns,
    endpoint: path,
    defer: (call, run) => scheduler.defer(call, run),
    async readResource(call, uri) {
      const { readInner } = await import("./core/inner_read.ts");
      return await readInner(call, uri, { core, scheduler, method: registry.methods.get("resources/read") });
    },
  };
}

/** Creates the handlers of a running server. Those of a path with parameters belong to all of its concrete paths. */
function createHandlerSet(
  { core, registry, changes }: Omit<Engine, "host">,
  site: Site,
  open: (added: readonly Handler[]) => void,
): HandlerSet<Handler> {
  // Loaded on demand. Messages wait for it, so that no caller sees what is disabled.
  let visibility: Visibility | undefined;
  function toggle(toggled: Toggle): void {
    if (site.hasParams) {
      const rest = site.toggles.filter((each) => !isReplaced(each, toggled));
      site.toggles.splice(0, site.toggles.length, ...rest, toggled);
      for (const { handlers } of site.router?.list() ?? []) applyToggle(handlers, toggled);
    }
    if (visibility) return visibility.toggle(toggled);
    prepareWith(core, async () => {
      const { Visibility } = await import("./core/visibility.ts");
      visibility ??= new Visibility(registry, changes);
      visibility.toggle(toggled);
    });
    core.prepare?.();
  }
  return {
    add(...added) {
      registry.add(added, true);
      open(added);
      try {
        site.router?.add(added);
      } catch (error) {
        registry.remove(added);
        throw error;
      }
    },
    remove(...removed) {
      const known = removed.filter((each) => each !== undefined);
      registry.remove(known);
      site.router?.remove(known);
    },
    list: () => registry.handlers,
    get: (kind, name) => registry.find(kind, name),
    enable: (selected, callers) => toggle({ selected, isShown: true, callers }),
    disable: (selected, callers) => toggle({ selected, isShown: false, callers }),
  };
}

function applyToggle(handlers: HandlerSet<Handler>, { selected, isShown, callers }: Toggle): void {
  handlers[isShown ? "enable" : "disable"](selected, callers);
}

/** Opens the container of a host for the services of handlers. */
function openServices(handlers: readonly Handler[], host: CallHost): void {
  for (const handler of handlers) {
    for (const { [INTERNALS]: { services } } of [handler, ...handler[INTERNALS].also ?? []]) services?.open(host);
  }
}

/** The parts of an endpoint. */
interface EndpointParts extends Served {
  readonly allows: (origin: string) => Grant | undefined;
}

function createEndpoint({ engine, era, allows }: EndpointParts, options: CommonOptions, site: Site): LazyEndpoint {
  const { core } = engine;
  const { path, hasParams, branch } = site;
  const proxies = readProxies(options.proxies);
  const { auth } = core;
  let gate: ReturnType<LoadGate> | undefined;
  const openGate = async (auth: Authentication) => {
    const { HttpGate } = await import("./transports/http/gate.ts");
    return new HttpGate(auth, core, proxies);
  };
  return new LazyEndpoint(engine, era, {
    path: branch ? path : hasParams ? readTemplate(path) : readPath(path),
    isRouted: !!branch || hasParams,
    hosts: readHosts(options.hosts),
    origins: readOrigins(options.origins),
    proxies,
    allows,
    loadGate: branch ? branch.loadGate : auth && (() => gate ??= openGate(auth)),
  });
}

/** The parts of a server from which those of its concrete paths are made. */
interface TrunkParts {
  readonly engine: Engine;
  readonly endpoint: LazyEndpoint;
  readonly createEra: CreateEra;
}

/** Returns a function that loads the servers of the concrete paths, once. */
function routerOpener<P extends Schema>(
  { engine, endpoint, createEra }: TrunkParts,
  options: RouteServerOptions<P>,
  site: Site,
): () => Promise<PathRouter> {
  const { path, toggles } = site;
  const { params, handlers, secret } = options;
  const schema = params && compileSchema(params, { use: "input", place: `path ${path}` });
  const makeHandlers = typeof handlers === "function" ? handlers : undefined;
  const grow = (branch: Branch) => growServer(options, createEra, { ...branch, toggles });
  const load = async () => {
    const { PathRouter } = await import("./transports/http/path_router.ts");
    const parts = { engine, endpoint: await endpoint.load(), loadGate: endpoint.options.loadGate };
    return site.router = new PathRouter({ ...parts, path, secret, params, schema, makeHandlers, grow });
  };
  let loading: Promise<PathRouter> | undefined;
  return () => loading ??= load();
}

/** Starts to warn of work that a handler repeats. Loaded only in development. */
async function watchReruns({ core, host }: Engine): Promise<void> {
  const { RerunWatch, toWarning } = await import("./core/rerun_watch.ts");
  host.reruns ??= new RerunWatch(core.ticker.clock, (repeated) => console.warn(toWarning(repeated)));
}

/** The steps in which a server ends. */
interface Ending {
  /** Settles when all streams have ended. */
  readonly ended: Promise<void>;
  readonly stop: () => void;
  readonly end: () => Promise<void>;
}

function createEnding({ engine, endpoint }: Pick<TrunkParts, "engine" | "endpoint">, site: Site): Ending {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  return {
    ended,
    stop() {
      endpoint.close();
      site.router?.stop();
      engine.changes.close();
    },
    async end() {
      await site.router?.end();
      endpoint.loaded?.parts.streams.end();
      await engine.core.shared?.close();
      resolve();
    },
  };
}

/** Stops a server, waits for running calls, and releases everything. */
async function closeServer({ core, scheduler, host }: Engine, { stop, end }: Ending): Promise<void> {
  const { ticker, limits, auth, observer } = core;
  const since = ticker.clock.now();
  stop();
  scheduler.stop();
  const { promise, resolve } = Promise.withResolvers<void>();
  ticker.startTimeout(limits.calls.closeMs, () => {
    core.observing?.reach("calls.closeMs");
    resolve();
  });
  await Promise.race([scheduler.idle(), promise]);
  scheduler.cancelAll();
  // Outcomes reach their streams some microtasks later, so wait for one turn of the event loop.
  await new Promise((resolve) => setTimeout(resolve));
  await end();
  // Services that several servers share are disposed with the last one.
  if (!host.root) await host.container?.close();
  ticker.close();
  try {
    await auth?.close?.();
  } catch (error) {
    core.report(error);
  }
  observer.close?.({ durationMs: ticker.clock.now() - since });
}

/** Makes the services with the first request. A server without services gets its function unchanged. */
function withServices(host: CallHost, fetch: Fetch): Fetch {
  if (!findRoot(host).container) return fetch;
  // Deno passes the request only to a function that names its parameters.
  return (request, info) => {
    findRoot(host).container?.start();
    return fetch(request, info);
  };
}

function readFilters({ guards, encoders }: Pick<ServerOptions, "guards" | "encoders">): Filters | undefined {
  if (guards || encoders) return { guards: readGuards(guards, "the server"), encoders };
}

/** Reads the option `auth`. Throws if it cannot authenticate. The gate checks its other parts. */
function readAuth(auth: ServerOptions["auth"]): Authentication | undefined {
  const read = typeof auth === "function" ? { authenticate: auth } : auth;
  if (read === undefined || typeof read?.authenticate === "function") return read;
  throw new TypeError("Cannot create a server: auth has no authenticate(); use a function, apiKey() or such");
}

/** Loads CORS support with the first request, because most servers do not need it. */
function withCors(allows: (origin: string) => Grant | undefined, fetch: Fetch): Fetch {
  const loading = async () => (await import("./transports/http/cors_headers.ts")).withCors(allows, fetch);
  let wrapped: Promise<Fetch> | undefined;
  return async (request, info) => await (await (wrapped ??= loading()))(request, info);
}

function checkOptions<P extends Schema>(options: RouteServerOptions<P>): void {
  const { name, version, ttlMs = 0, sessions = "optional", store, path = "/mcp", params, handlers } = options;
  const refuse = (state: string) => new TypeError(`Cannot create a server: ${state}`);
  if (!name || !version) throw refuse("it needs a name and a version");
  if (store && !(INTERNALS in store)) throw refuse("its store is not a store; make one with customStore()");
  if (!/\/:/.test(path) && (params || typeof handlers === "function")) {
    throw refuse(`its path ${path} has no parameters; write one like /tenants/:tenant/mcp`);
  }
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) {
    throw refuse(`ttlMs is ${ttlMs}; it must be a whole number of milliseconds, 0 or more`);
  }
  if (sessions !== "optional" && sessions !== "required") {
    throw refuse(`sessions is ${JSON.stringify(sessions)}; it must be "optional" or "required"`);
  }
}

// Each new path applies all toggles, so those without an effect must not pile up.
function isReplaced({ selected, callers }: Toggle, by: Toggle): boolean {
  if (by.callers && by.callers !== callers) return false;
  if (INTERNALS in selected || INTERNALS in by.selected) return selected === by.selected;
  return JSON.stringify(selected) === JSON.stringify(by.selected);
}

/** Makes messages wait until something is loaded. A server that cannot load it still serves. */
function prepareWith(core: Core, load: () => Promise<void>): void {
  const before = core.prepare;
  let loading: Promise<void> | undefined;
  const run = async () => {
    try {
      await before?.();
      await load();
    } catch (error) {
      core.report(error);
    }
    if (core.prepare === prepare) core.prepare = undefined;
  };
  const prepare = () => loading ??= run();
  core.prepare = prepare;
}

/** Reports an unexpected error, and returns the error for the client. */
function report(core: Core, error: unknown, { method, subject }: Parameters<Core["report"]>[1] = {}): McpError {
  const id = crypto.randomUUID().slice(0, 8);
  core.observer.fault?.({ id, error, server: core.info.name, method, subject });
  core.observing?.reachNamed(toMessage(error));
  return new McpError(INTERNAL_ERROR, "Internal error", { errorId: id });
}

function toMessage(error: unknown): string {
  try {
    return error instanceof Error ? `${error.message}` : "";
  } catch {
    // A handler may throw anything, such as a proxy.
    return "";
  }
}
