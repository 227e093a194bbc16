/**
 * Creates servers. Checks the options, and connects the parts of a server.
 */
import { deadline } from "../core/kit/deadline.ts";
import { LazyModule } from "../core/protocol/lazy_module.ts";
import type { Schema } from "../core/schema/schema.ts";
import { compileSchema } from "../core/schema/schema_compiler.ts";
import { Accounts } from "./capacity/account.ts";
import type { Authentication } from "./engine/auth.ts";
import { Changes, checkUri } from "./visibility/changes.ts";
import { type ContainerHost, findRoot } from "./call/container.ts";
import type { DevelopmentListener } from "./call/development.ts";
import type { CallHost } from "./call/call.ts";
import type { ChangeNotifier, HandlerSet, RunningServer } from "./call/context.ts";
import type { CreateEra, Engine } from "./engine/era.ts";
import type { Handler } from "./visibility/feature.ts";
import type { Typed } from "../core/typed.ts";
import { INTERNALS } from "../core/internals.ts";
import type { Middleware } from "./call/middleware.ts";
import { checkOptions, show } from "../core/known_options.ts";
import type { Observer } from "./call/observer.ts";
import { createServerLog, type ServerLog, toLoggable, toLogger, toSafeFilter } from "./call/log.ts";
import { Registry, withAlso } from "./visibility/registry.ts";
import { Scheduler } from "./engine/scheduler.ts";
import { Sealer } from "./call/sealer.ts";
import { isGranted } from "./call/scopes.ts";
import { updateLives } from "./engine/extension.ts";
import { Visibility } from "./visibility/visibility.ts";
import { type LayeredHandlers, type Unlayered, withLayers } from "./engine/layers.ts";
import { systemClock, Ticker } from "../core/timers.ts";
import { ServerState } from "./capacity/server_state.ts";
import type { OpenPipe, Served, ServedParts } from "./transports/channel.ts";
import { readHosts, readOrigins, readPath, readProxies, readTemplate } from "./transports/http/access_options.ts";
import { corsRule, type Grant, readCorsHeaders } from "./transports/http/cors.ts";
import type { HttpAuthenticator } from "./transports/http/http_authenticator.ts";
import type { Fetch } from "./transports/http/fetch.ts";
import { type HttpEntry, LazyEndpoint, serveBy, withContext } from "./transports/http/lazy_endpoint.ts";
import type { Branch, PathParams, PathRouter } from "./transports/http/path_router.ts";
import type { FindSpot } from "./transports/http/upgrades.ts";
import { createHandlerSet } from "./handler_set.ts";
import { addObserver, type CommonOptions, createCore, type Share } from "./create_core.ts";
import type { PathServerOptions } from "./options.ts";
import { LIST_CHANGED, LOG, SERVER } from "./option_names.ts";
import type { RoutedParts, RouteList, Routes } from "./routes.ts";
import { readStats, type ServerStats } from "./stats.ts";
import type { Principal } from "./call/context.ts";

/** An MCP server: the default export of a server file. */
export interface Server<Handlers = unknown> extends ChangeNotifier, Typed<Handlers>, AsyncDisposable {
  /** Handles a web-standard request. Called by `deno serve`, Bun, Deno Deploy, Workers and routers such as Hono. */
  readonly fetch: Fetch;
  /** The handlers, which can change while the server runs. */
  readonly handlers: HandlerSet<Handler>;
  /**
   * Sends log messages outside of calls. A message reaches each client with a session whose log level includes the
   * message. Clients without a session receive only log messages from their own calls.
   *
   * @deprecated by the protocol. Write to standard error, or use `@x/mcp/observe`, instead.
   */
  readonly log: ServerLog;
  /**
   * Creates all server-wide services, starts the parts with a `start` function, such as extensions, layers and
   * providers, and begins to connect to the store, without waiting for the connection. Rejects with the error of a
   * service or part that fails. `serve`, `serveStdio` and the CLI call `ready()` before they listen. Otherwise the
   * services and parts start with the first request, and the store connects with its first operation.
   */
  ready(): Promise<void>;
  /**
   * Ends the open streams, subscriptions and connections of some callers, such as a caller whose account was locked:
   * `server.end(({ principal }) => principal?.id === "ada")`. Running HTTP calls continue until their response. The
   * clients can reconnect, and are then authenticated again.
   *
   * @throws {TypeError} if `select` is not a function, or does not return a boolean. In that case, all connections stay
   * open.
   */
  end(select: (caller: { readonly principal?: Principal }) => boolean): void;
  /**
   * Closes the server: stops accepting calls, waits at most `calls.closeMs` milliseconds for running calls, ends all
   * streams, and disposes the services. Settles after all of these steps.
   */
  close(): Promise<void>;
  /**
   * Returns the current numbers of calls, streams, sessions and bytes. The method is cheap, because the server always
   * keeps these numbers.
   */
  stats(): ServerStats;
  /** Closes the server, like `close()`, at the end of a block with `await using server = createServer(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
  /**
   * Internals for transports, the CLI and the test kit.
   *
   * @ignore
   */
  readonly [INTERNALS]: ServerInternals;
}

/**
 * Internals for transports, the CLI and the test kit.
 *
 * @internal
 */
export interface ServerInternals {
  /** The `fetch` that the library has created. The author can replace `fetch` of the server, as in `{ ...server, fetch }`. */
  readonly fetch: Fetch;
  /** Opens a channel. Throws if the server's path has parameters, because each concrete path is a separate endpoint. */
  readonly openPipe?: OpenPipe;
  readonly served: ServedParts;
  /** The parts of the HTTP endpoint that other HTTP transports use. */
  readonly http: HttpEntry;
  /** The host of the service container. The container exists only if a handler uses services. */
  readonly host: ContainerHost;
  readonly name: string;
  readonly use?: readonly Middleware[];
  readonly engine: Engine;
  readonly auth?: Authentication;
  /** Returns the server of a concrete path. `undefined` if this server's path has no parameters. */
  readonly enter?: (params?: PathParams) => Promise<Served>;
  /** Finds the concrete path that has the parameters of another path, such as the path of a WebSocket endpoint. */
  readonly find?: FindSpot;
  /** The servers that `mount` combined. */
  readonly servers?: readonly Server[];
  readonly routes?: RouteList;
  /** Stops accepting calls. */
  stop(): void;
  /** Ends all streams. */
  end(): Promise<void>;
  evictIdle(): void;
  /**
   * Turns `development` on, unless the options set it to `false`. `ready` and `load` wait until the code for
   * development is loaded, and `listener` then receives all reports. Returns a function that removes the listener.
   */
  develop(listener?: DevelopmentListener): () => void;
  /** Call this method before the first request. */
  observe(observer: Observer): void;
  /** Loads the code that the first request would load. */
  load(): Promise<void>;
}

/** `createEra` creates the era that serves the server's messages. */
export function buildServer<P extends Schema>(options: PathServerOptions<P>, createEra: CreateEra): Server {
  checkServerOptions(options);
  return growServer(withLayers(options, { kind: "server", name: options.name }), createEra);
}

/** The path of a server, and the state that changes while the server runs. */
interface Site {
  readonly path: string;
  /** Whether the path has parameters. Each concrete path then has its own server. */
  readonly hasParams: boolean;
  /** Set if this is the server of a concrete path. */
  readonly branch?: Branch;
  readonly layered?: LayeredHandlers;
  /** `undefined` until its code is loaded. */
  router?: PathRouter;
  /** The endpoints next to the MCP endpoint, if any. */
  front?: LazyModule<Routes>;
  /** Settles when the server has closed. Set when the server starts to close. */
  closed?: Promise<void>;
}

/** If `branch` is set, creates the server of a concrete path. */
function growServer<P extends Schema>(
  options: Unlayered<PathServerOptions<P>>,
  createEra: CreateEra,
  branch?: Branch,
): Server {
  const { name, handlers = [], cors, path: ownPath = "/mcp" } = options;
  const { path = ownPath } = branch ?? {};
  const hasParams = !branch && /\/:/.test(path);
  const layered = options[INTERNALS];
  const site: Site = { path, hasParams, branch, layered };
  const parts = createParts(options, site);
  const { core, changes, registry } = parts;
  const set = createHandlerSet(parts, site, (added) => openServices(added, host));
  if (!branch) core.auth?.checkPath?.(path);
  const host = createHost(parts, site, set);
  const given = branch?.handlers ?? (typeof handlers === "function" ? [] : handlers);
  // A concrete path already has the handlers of the server.
  const first = layered ? [...new Set([...layered.first, ...given.map((each) => layered.serve(each))])] : given;
  registry.add(first);
  openServices(first, host);
  const engine: Engine = host.engine = { ...parts, host };
  // If the path has parameters, only the servers of concrete paths run handlers.
  if (!hasParams) {
    registry.onChange = () => updateLives(engine);
    updateLives(engine);
  }
  const era = createEra(engine);
  const allows = corsRule(cors, core.report);
  const endpoint = createEndpoint({ engine, era, allows }, options, site);
  const routers = createRouters({ engine, endpoint, createEra }, options, site);
  const developing = createDevelopment(engine);
  const develop = (listener?: DevelopmentListener) =>
    options.development === false ? () => {} : developing.start(listener);
  if (options.development && !branch) develop();
  const ending = createEnding({ engine, endpoint }, site);
  const routed = serveBy(core, routers);
  const serve = hasParams ? routed : endpoint.fetch;
  const close = () => site.closed ??= closeServer(engine, ending);
  const { routes } = options;
  const plain = withServices(host, serve);
  const front = site.front = routes && !branch
    ? lazyRoutes(routes, () => {
      const { options: access } = endpoint;
      return { engine, server, paths: [path], access: [access], proxies: access.proxies, fetch: plain };
    })
    : undefined;
  const refuse = (): never => {
    throw new TypeError(
      `Cannot open ${path}: the path has parameters; pass their values, as in serveStdio(server, { pathParams })`,
    );
  };
  const refuseUnready = (): never => {
    throw core.unready;
  };
  const fetch = withContext(front ? serveBy(core, front) : plain);
  const server: Server = {
    fetch,
    ...host.server,
    handlers: set,
    log: createServerLog((level, data, options) => {
      checkOptions("log a message", options, LOG);
      if (site.closed || !core.can.logging) return;
      const { logger, to = () => true } = options;
      changes.log({ level, logger: toLogger(logger), data: toLoggable(data) }, toSafeFilter(to, core.report));
    }),
    ready: async () => {
      if (core.unready) throw core.unready;
      options.store?.[INTERNALS].requireOpen("start the server");
      core.shared?.connect();
      if (front) await (await front.load()).ready();
      await core.startAuth?.();
      await Promise.all([findRoot(host).container?.ready(), host.lives?.ready(), developing.ready()]);
    },
    end: (select) => core.callers.end(select),
    stats: () => readStats(engine),
    close,
    [Symbol.asyncDispose]: close,
    [INTERNALS]: {
      fetch,
      openPipe: core.unready ? refuseUnready : hasParams ? refuse : undefined,
      served: { engine, era },
      http: { path, core, endpoint, ended: ending.ended },
      enter: hasParams ? async (params = refuse()) => await (await routers.load()).enter(params) : undefined,
      find: hasParams ? async (wanted) => await (await routers.load()).find(wanted) : undefined,
      name,
      use: options.use,
      engine,
      auth: core.auth,
      stop: ending.stop,
      end: ending.end,
      evictIdle: () => era.evictIdle?.(),
      develop,
      observe: (added) => addObserver(core, options, added),
      load: async () => {
        await Promise.all([endpoint.load(), era.load?.(), developing.ready()]);
      },
      host,
      routes,
    },
  };
  return server;
}

/** `toParts` is called when the first request or the start of the server needs the routes. */
function lazyRoutes(list: RouteList, toParts: () => RoutedParts): LazyModule<Routes> {
  return new LazyModule(async () => new (await import("./routes.ts")).Routes(list, toParts()));
}

/** The servers of concrete paths share every part that does not depend on the path. */
function createParts(options: CommonOptions, { path, branch }: Site): Omit<Engine, "host"> {
  const { trunk, secret = options.secret === "" ? undefined : options.secret } = branch ?? {};
  const ticker = trunk?.core.ticker ?? new Ticker(options.clock ?? systemClock);
  const state = trunk?.core.state ?? new ServerState();
  const sealer = new Sealer({ secret, realm: JSON.stringify([options.name, path]) });
  const changes = new Changes(ticker);
  const share: Share = ({ limits, observer }) =>
    options.store?.[INTERNALS].share({ sealer, state, ticker, changes, limits, observer });
  const core = trunk
    ? {
      ...trunk.core,
      sealer,
      shared: trunk.core.unready ? undefined : share(trunk.core),
      pathParams: branch?.pathParams,
    }
    : createCore(options, { ticker, state, sealer, share });
  const registry = new Registry(core, changes);
  const visibility = new Visibility(registry, changes, trunk?.visibility);
  if (options.sharedDisable) core.shared?.shareRules({ registry, visibility }, trunk?.core.shared?.rules);
  const accounts = trunk?.accounts ?? new Accounts(core);
  const scheduler = trunk?.scheduler ?? new Scheduler(core, accounts, options.use);
  const { running, bytes } = core.limits.perTenant;
  const tenant = branch && Math.min(running, bytes) < Infinity ? path : undefined;
  return { core, registry, visibility, scheduler, changes, accounts, tenant };
}

function createHost(parts: Omit<Engine, "host">, site: Site, handlers: HandlerSet<Handler>): CallHost {
  const { core, registry, scheduler, changes } = parts;
  const { path, hasParams, branch } = site;
  return {
    server: {
      // The cast is safe, because only the library's factories can create handlers.
      handlers: (branch?.watch(handlers) ?? handlers) as RunningServer["handlers"],
      resourceUpdated(uri, options = {}) {
        checkUri(uri);
        checkOptions("announce a changed resource", options, LIST_CHANGED);
        const { to } = options;
        if (!site.closed) changes.emit({ kind: "resource", uri, ...to && { to: new Set([to]) } });
      },
      listChanged(list, options = {}) {
        checkOptions(`announce that ${list} have changed`, options, LIST_CHANGED);
        const { to: allow } = options;
        if (site.closed || !registry.hasList(list) && !hasParams) return;
        changes.emit({ kind: "list", feature: list, handlers: allow && [{ allow }] });
      },
    },
    parts: core,
    root: branch?.trunk.host,
    pathParams: branch?.pathParams,
    reruns: branch?.trunk.host.reruns,
    endpoint: path,
    defer: (call, run) => scheduler.defer(call, run),
    isGranted: (link, scopes) => isGranted(core, link, scopes),
    recheck(call) {
      if (!registry.methods.has(call.method)) return;
      return async () => void await (await lazyGrant.load()).grant(call, parts, "recheck");
    },
    callInner: async (call, use) =>
      await (lazyInnerCalls.loaded ?? await lazyInnerCalls.load()).callInner(call, use, parts),
  };
}

/** Loaded on demand, because few handlers call other handlers. */
const lazyGrant = new LazyModule(() => import("./engine/grant.ts"));
const lazyInnerCalls = new LazyModule(() => import("./engine/inner_methods.ts"));

function openServices(handlers: readonly Handler[], host: CallHost): void {
  for (const handler of handlers) {
    for (const { [INTERNALS]: { services } } of withAlso(handler)) services?.open(host);
  }
}

interface EndpointParts extends ServedParts {
  readonly allows: (origin: string) => Grant | undefined;
}

function createEndpoint({ engine, era, allows }: EndpointParts, options: CommonOptions, site: Site): LazyEndpoint {
  const { path, hasParams, branch } = site;
  const proxies = readProxies(options.proxies);
  const { core } = engine;
  const { auth } = core;
  // For concrete paths, the router authenticates the caller before it selects the server.
  const access = { hosts: readHosts(options.hosts), origins: readOrigins(options.origins), allows };
  const authenticator = branch || !auth ? undefined : new LazyModule<HttpAuthenticator>(async () => {
    const { HttpAuthenticator } = await import("./transports/http/http_authenticator.ts");
    return new HttpAuthenticator(auth, { engine, path, proxies, access });
  });
  if (authenticator) core.startAuth = async () => await (await authenticator.load()).ready();
  return new LazyEndpoint(engine, era, {
    path: branch ? path : hasParams ? readTemplate(path) : readPath(path),
    bodies: branch?.bodies,
    ...access,
    proxies,
    corsHeaders: options.cors && !branch
      ? [...readCorsHeaders(options.cors), ...auth?.credentials?.headers ?? []]
      : undefined,
    authenticator,
  });
}

/** The parts of a server that its router needs to create the servers of concrete paths. */
interface TrunkParts {
  readonly engine: Engine;
  readonly endpoint: LazyEndpoint;
  readonly createEra: CreateEra;
}

/** The code of the router loads when the router is first used. */
function createRouters<P extends Schema>(
  { engine, endpoint, createEra }: TrunkParts,
  options: Unlayered<PathServerOptions<P>>,
  site: Site,
): LazyModule<PathRouter> {
  const { path } = site;
  const { pathSchema, handlers, secret } = options;
  const schema = pathSchema === undefined
    ? undefined
    : compileSchema(pathSchema, { use: "input", place: `path ${path}` });
  const makeHandlers = typeof handlers === "function" ? handlers : undefined;
  const grow = (branch: Branch) => growServer(options, createEra, branch);
  return new LazyModule(async () => {
    const { PathRouter } = await import("./transports/http/path_router.ts");
    const { proxies } = endpoint.options;
    const parts = { engine, endpoint: await endpoint.load(), proxies };
    return site.router = new PathRouter({ ...parts, path, secret, pathSchema, schema, makeHandlers, grow });
  });
}

interface ServerDevelopment {
  /** Turns the warnings on. Returns a function that removes the listener. */
  readonly start: (listener?: DevelopmentListener) => () => void;
  /** Settles when the warnings are active. `undefined` if `start` was not called. */
  readonly ready: () => Promise<void> | undefined;
}

function createDevelopment({ core, host, scheduler }: Engine): ServerDevelopment {
  // Bound: one per development tool.
  const listeners = new Set<DevelopmentListener>();
  let loading: Promise<void> | undefined;
  const load = async () => {
    const { Development } = await import("./call/development.ts");
    core.development = new Development(core.ticker.clock, listeners);
    host.reruns = core.development.reruns;
    scheduler.watch(core.development.runs);
  };
  return {
    ready: () => loading,
    start(listener = {}) {
      listeners.add(listener);
      // If the code cannot be loaded, the server runs without warnings.
      loading ??= load().catch((error) => void core.report(error));
      return () => void listeners.delete(listener);
    },
  };
}

/** The functions that stop the parts of a server, which `closeServer` calls. */
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
      engine.host.lives?.stop();
      endpoint.close();
      site.router?.stop();
      engine.changes.close();
    },
    async end() {
      await site.router?.end();
      const { host } = engine;
      await Promise.all([
        host.lives?.close(),
        endpoint.options.authenticator?.loaded?.stop(),
        site.front?.loaded?.stop(),
      ]);
      endpoint.loaded?.parts.streams.end();
      // Before the store closes, because services may use it.
      await host.container?.close();
      await engine.core.shared?.close();
      resolve();
    },
  };
}

async function closeServer({ core, scheduler }: Engine, { stop, end }: Ending): Promise<void> {
  const { ticker, limits, observer } = core;
  const since = ticker.clock.now();
  stop();
  scheduler.stop();
  const onTimeout = () => core.observing?.reach("calls.closeMs");
  await deadline(scheduler.idle(), { ms: limits.calls.closeMs, onTimeout, clock: ticker });
  scheduler.cancelAll();
  // Wait for one turn of the event loop, because the results of the cancelled calls reach their streams only after a few
  // microtasks.
  await new Promise((resolve) => setTimeout(resolve));
  await end();
  ticker.close();
  observer.close?.({ durationMs: ticker.clock.now() - since });
}

/** Starts services and extensions with the first request. Returns `fetch` unchanged if there are none. */
function withServices(host: CallHost, fetch: Fetch): Fetch {
  if (!findRoot(host).container && !host.lives) return fetch;
  // Declare both parameters, because Deno passes arguments only if the function declares parameters.
  return (request, info) => {
    // A server that only forwards requests runs no handlers.
    if (typeof info?.forward !== "function") {
      // Look up the container for each request, because `mount` replaces the container.
      findRoot(host).container?.start();
      host.lives?.start();
    }
    return fetch(request, info);
  };
}

function checkServerOptions<P extends Schema>(options: PathServerOptions<P>): void {
  checkOptions("create a server", options, SERVER);
  const { name, version, ttlMs = 0, store, sharedDisable, path = "/mcp", pathSchema, handlers, limits } = options;
  const refuse = (state: string) => new TypeError(`Cannot create a server: ${state}`);
  if (handlers !== undefined && typeof handlers !== "function" && !Array.isArray(handlers)) {
    throw refuse("handlers is not a list; write handlers: [tool, …]");
  }
  if (!name || !version) throw refuse("name or version is missing; set both options");
  if (store !== undefined && !(INTERNALS in Object(store))) {
    throw refuse("store is not a store; create a store with a function from @x/mcp/stores");
  }
  store?.[INTERNALS].requireOpen("create a server");
  if (sharedDisable && !store) throw refuse("sharedDisable requires a store; set store too");
  if (!/\/:/.test(path) && (pathSchema !== undefined || typeof handlers === "function" || limits?.perTenant)) {
    throw refuse(
      `pathSchema, limits.perTenant and a handlers function require path parameters; use a path such as /tenants/:tenant/mcp instead of ${path}`,
    );
  }
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) {
    throw refuse(`ttlMs is ${show(ttlMs)}; it must be an integer of at least 0`);
  }
}
