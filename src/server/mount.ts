/**
 * Serves several servers on one port.
 */
import { createServerLog } from "./call/log.ts";
import type { Container, ContainerHost } from "./call/container.ts";
import type { Handler } from "./visibility/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { Ticker } from "../core/timers.ts";
import { INVALID_REQUEST } from "../core/protocol/errors.ts";
import { toFailure } from "../core/protocol/jsonrpc.ts";
import { LazyModule } from "../core/protocol/lazy_module.ts";
import type { Fetch } from "./transports/http/fetch.ts";
import { serveBy, withContext } from "./transports/http/lazy_endpoint.ts";
import { toRequestPath } from "./transports/http/address.ts";
import { fetchFrom } from "./transports/http/request_copy.ts";
import type { Server, ServerInternals } from "./server.ts";
import type { RouteList, Routes } from "./routes.ts";
import { addStats } from "./stats.ts";

/** Options of {@linkcode mount}. */
export interface MountOptions {
  /** Handlers to add to several servers. */
  readonly handlers?: readonly {
    /** The tools, resources and prompts to add. */
    readonly handlers: readonly Handler[];
    /** Names of the servers to which the handlers are added. Defaults to all servers. */
    readonly to?: readonly string[];
  }[];
  /**
   * Endpoints next to the MCP endpoints, such as `[health()]` from `@x/mcp/observe`. If omitted, each server serves its
   * own routes.
   */
  readonly routes?: RouteList;
}

const EACH = "give it to each server";

const OPTIONS: KnownOptions<keyof MountOptions> = {
  names: { handlers: { each: { names: { handlers: "list", to: "texts" } } }, routes: "list" },
  elsewhere: { auth: EACH, hosts: EACH, origins: EACH, cors: EACH, limits: EACH, use: EACH, admit: EACH },
};

/**
 * Several servers on one port. The methods apply to all servers. To serve another transport, such as stdio, use one of
 * the `servers`.
 */
export interface Mount extends Server {
  /** The servers, in the order of the first argument. */
  readonly servers: readonly Server[];
}

/**
 * Serves several servers on one port, each at its own `path`. Each server keeps its name, callers, sessions and limits.
 * The servers share server-wide services: a service that two servers use is created once.
 *
 * ```ts
 * import { createServer, mount, tool } from "@x/mcp";
 *
 * const ping = tool({ name: "ping", run: () => "pong" });
 * const notes = createServer({ name: "notes", version: "1.0.0", path: "/notes/mcp" });
 * const admin = createServer({ name: "admin", version: "1.0.0", path: "/admin/mcp" });
 *
 * export default mount([notes, admin], { handlers: [{ handlers: [ping], to: ["admin"] }] });
 * ```
 *
 * @throws {TypeError} if two servers have the same path, a server is already mounted, or a server name or option is
 * unknown.
 */
export function mount(servers: readonly Server[], options: MountOptions = {}): Mount {
  checkOptions("mount", options, OPTIONS);
  if (!Array.isArray(servers)) {
    throw new TypeError("Cannot mount: the servers must be a list; write mount([server, …])");
  }
  const { handlers = [] } = options;
  const find = createRouter(servers);
  checkUnmounted(servers);
  const shared = handlers.map(({ handlers, to }) => ({ handlers, of: pick(servers, to) }));
  const container = new SharedContainer(servers, () => front?.loaded?.stop());
  for (const { handlers, of } of shared) for (const server of of) server.handlers.add(...handlers);
  let closed: Promise<void> | undefined;
  const close = () => closed ??= container.close();
  const route: Fetch = async (request, info) => {
    const server = find(request.url);
    return server ? await fetchFrom(server, { request, info }) : refusePath();
  };
  const { core } = servers[0][INTERNALS].engine;
  const front: LazyModule<Routes> | undefined = options.routes &&
    openRoutes(options.routes, servers, { fetch: route, server: () => mounted });
  const fetch = withContext(front ? serveBy(core, front) : route);
  const mounted: Mount = {
    servers,
    fetch,
    handlers: {
      add: (...added) => addToAll(servers, added),
      remove: (...removed) => servers.forEach((server) => server.handlers.remove(...removed)),
      list: () => [...new Set(servers.flatMap((server) => server.handlers.list()))],
      get: (kind, name) => servers.map((server) => server.handlers.get(kind, name)).find((found) => found),
      enable: (selected, callers) => servers.forEach((server) => server.handlers.enable(selected, callers)),
      disable: (selected, callers) => servers.forEach((server) => server.handlers.disable(selected, callers)),
    },
    resourceUpdated: (uri, options) => servers.forEach((server) => server.resourceUpdated(uri, options)),
    listChanged: (list, options) => servers.forEach((server) => server.listChanged(list, options)),
    log: createServerLog((level, data, options) => servers.forEach((server) => server.log[level](data, options))),
    ready: async () => {
      await Promise.all([front?.load().then((front) => front.ready()), ...servers.map((server) => server.ready())]);
    },
    end: (select) => servers.forEach((server) => server.end(select)),
    stats: () => servers.map((server) => server.stats()).reduce(addStats),
    close,
    [Symbol.asyncDispose]: close,
    [INTERNALS]: toInternals(servers, fetch),
  };
  return mounted;
}

/** The code that handles routes loads with the first request. */
function openRoutes(
  list: RouteList,
  servers: readonly Server[],
  { fetch, server }: { readonly fetch: Fetch; readonly server: () => Server },
): LazyModule<Routes> {
  const { engine } = servers[0][INTERNALS];
  const paths = servers.map((server) => server[INTERNALS].http.path);
  const access = servers.map((server) => server[INTERNALS].http.endpoint.options);
  return new LazyModule(async () => {
    const { Routes } = await import("./routes.ts");
    const { proxies } = access[0];
    return new Routes(list, { engine, server: server(), paths, access, proxies, fetch });
  });
}

const NOT_FOUND = { code: INVALID_REQUEST, message: "Cannot serve the request: there is no endpoint at this path" };

/** Throws if two servers have the same path. */
function createRouter(servers: readonly Server[]): (url: string) => Server | undefined {
  if (!servers.length) throw new TypeError("Cannot mount: the list of servers is empty; add a server");
  const byPath = new Map<string, Server>();
  const patterns: { readonly pattern: RegExp; readonly server: Server }[] = [];
  const routes: typeof patterns = [];
  const shapes = new Map<string, Server>();
  for (const server of servers) {
    const { http: { path }, name, auth, routes: own } = server[INTERNALS];
    const shape = path.replace(/:\w+/g, ":");
    const other = shapes.get(shape);
    if (other) {
      const { name: owner, http } = other[INTERNALS];
      const state =
        `its path ${path} conflicts with the path ${http.path} of server ${owner}; give each server a different path`;
      throw new TypeError(`Cannot mount ${name}: ${state}`);
    }
    shapes.set(shape, server);
    if (shape === path) byPath.set(path, server);
    else patterns.push({ server, pattern: toPattern(path) });
    const authRoutes = typeof auth?.routes === "function" ? auth.routes(path) : auth?.routes ?? [];
    for (const route of [...(own ?? []).flat(), ...authRoutes]) {
      if (route.path.includes("/:")) routes.push({ server, pattern: toPattern(route.path) });
      else if (!byPath.has(route.path)) byPath.set(route.path, server);
    }
  }
  return (url) => {
    const path = normalize(toRequestPath(url));
    return byPath.get(path) ?? [...routes, ...patterns].find(({ pattern }) => pattern.test(path))?.server;
  };
}

function toPattern(template: string): RegExp {
  const segments = template.split("/").map((segment) => segment.startsWith(":") ? "[^/]+" : escape(segment));
  return new RegExp(`^${segments.join("/")}$`);
}

// Normalize the path as the servers do, because a runtime may leave dot segments and backslashes in a URL. Otherwise
// another spelling of a path could reach another server, which may have weaker rules.
function normalize(path: string): string {
  if (!/[%\\]|\/\./.test(path)) return path;
  const resolved = URL.parse(`http://x${path}`)?.pathname ?? path;
  return resolved.replace(/%([2-7][0-9a-f])/gi, (code, hex) => {
    const character = String.fromCharCode(parseInt(hex, 16));
    return /[\w.~-]/.test(character) ? character : code;
  });
}

function refusePath(): Response {
  const headers = { "content-type": "application/json" };
  return new Response(toFailure(undefined, NOT_FOUND), { status: 404, headers });
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

// Check all servers before changing a server, so that the servers can still be mounted after an error.
function checkUnmounted(servers: readonly Server[]): void {
  for (const { [INTERNALS]: { host, name } } of servers) {
    if (host.root) throw new TypeError(`Cannot mount ${name}: this server is already mounted; create a second server`);
  }
}

/** The container of a mount, which its servers share. */
class SharedContainer {
  readonly #servers: readonly Server[];
  readonly #root: ContainerHost;
  readonly #ticker: Ticker;
  readonly #replaced: readonly (Container | undefined)[];
  /** The servers that still have calls. */
  readonly #using: Set<Server>;
  readonly #allLeft = Promise.withResolvers<void>();
  /** Settles when the services were disposed. */
  readonly #disposed: Promise<void>;
  #isClosing = false;

  constructor(servers: readonly Server[], stopRoutes: () => Promise<void> | undefined) {
    const { engine } = servers[0][INTERNALS];
    const { report, observer, ticker: { clock } } = engine.core;
    this.#servers = servers;
    this.#using = new Set(servers);
    this.#ticker = new Ticker(clock);
    this.#root = { parts: { report, observer, ticker: this.#ticker }, engine };
    this.#replaced = servers.map((server) => this.#share(server));
    this.#disposed = this.#allLeft.promise.then(async () => {
      await Promise.all([stopRoutes(), this.#root.container?.close()]);
    });
  }

  /** Returns the container that the server had before. */
  #share(server: Server): Container | undefined {
    const { host } = server[INTERNALS];
    const { container } = host;
    const root = this.#root;
    host.root = root;
    host.container = {
      ready: async () => await root.container?.ready(),
      start: () => root.container?.start(),
      disposeUnlessStarted: async () => await root.container?.disposeUnlessStarted(),
      close: async () => await this.#leave(server),
    };
    for (const handler of server.handlers.list()) handler[INTERNALS].services?.open(host);
    return container;
  }

  /**
   * Called when a server has ended its calls, and before it closes its store. If the mount closes, waits for all servers,
   * because services use the store of the first server, and disposes the services.
   */
  async #leave(server: Server): Promise<void> {
    this.#using.delete(server);
    if (!this.#isClosing) return;
    if (!this.#using.size) this.#allLeft.resolve();
    await this.#disposed;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    // A server that has already closed, or cannot close, must not block the others.
    await Promise.all(this.#servers.map((server) => server.close().finally(() => this.#leave(server))));
    await Promise.all(this.#replaced.map((container) => container?.close()));
    this.#ticker.close();
  }
}

function pick(servers: readonly Server[], names: readonly string[] | undefined): readonly Server[] {
  const known = servers.map((server) => server[INTERNALS].name);
  const wrong = names?.find((name) => !known.includes(name));
  if (wrong !== undefined) {
    const state = `there is no server ${JSON.stringify(wrong)}; use one of ${known.join(", ")}`;
    throw new TypeError(`Cannot mount handlers: ${state}`);
  }
  return names ? servers.filter((server) => names.includes(server[INTERNALS].name)) : servers;
}

/** Adds handlers to all servers. If a server rejects the handlers, throws and leaves all servers unchanged. */
function addToAll(servers: readonly Server[], handlers: readonly Handler[]): void {
  const done: Server[] = [];
  try {
    for (const server of servers) {
      server.handlers.add(...handlers);
      done.push(server);
    }
  } catch (error) {
    for (const server of done) server.handlers.remove(...handlers);
    throw error;
  }
}

function toInternals(servers: readonly Server[], fetch: Fetch): ServerInternals {
  const refuse = (verb: string): never => {
    const names = servers.map((server) => server[INTERNALS].name).join(", ");
    throw new TypeError(
      `Cannot ${verb} a mount: the mount contains the servers ${names}; use one of its servers`,
    );
  };
  return {
    ...servers[0][INTERNALS],
    fetch,
    name: servers.map((server) => server[INTERNALS].name).join(", "),
    openPipe: () => refuse("open a channel to"),
    enter: async () => await refuse("open a channel to"),
    get http() {
      return refuse("serve this transport for");
    },
    load: async () => void await Promise.all(servers.map((server) => server[INTERNALS].load())),
    develop: (listener) => {
      const stops = servers.map((server) => server[INTERNALS].develop(listener));
      return () => stops.forEach((stop) => stop());
    },
    observe: (observer) => servers.forEach((server) => server[INTERNALS].observe(observer)),
    servers,
  };
}
