/**
 * Health checks of a server: whether it is alive, and whether it is ready for requests.
 */
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions, type OptionRule } from "../core/known_options.ts";
import { deadline } from "../core/kit/deadline.ts";
import type { Route, RouteInfo } from "../server/routes.ts";
import { findUpstreams } from "../server/engine/upstreams.ts";
import type { Server } from "../server/server.ts";
import type { ServerStats } from "../server/stats.ts";
import { checkCaller, toChecked } from "../server/transports/http/access.ts";
import { Caller } from "../server/transports/http/caller.ts";

/** Options of {@linkcode health}. */
export interface HealthOptions {
  /** Path of the liveness check, which shows whether the process responds. Defaults to `/health`. */
  readonly alivePath?: string;
  /** Path of the readiness check, which shows whether the server is ready for requests. Defaults to `/ready`. */
  readonly readyPath?: string;
  /**
   * Whether the server can be ready while its store does not respond. With `"optional"`, the details contain the state
   * of the store, but the status does not depend on the store. Defaults to `"required"`.
   */
  readonly store?: "required" | "optional";
  /**
   * The callers that get the details in the body of `/ready`: callers with credentials that the server accepts, or all
   * callers. A web page of another origin never gets them. Defaults to `"authenticated"`.
   */
  readonly details?: "authenticated" | "all";
  /** Milliseconds for the check of services and store, after which the server is not ready. Defaults to 2000. */
  readonly timeoutMs?: number;
}

/**
 * The state of one part of a server. `pending` means that the check of the part took longer than `timeoutMs`. `none`
 * means that the server has no such part, or is closing.
 */
export type HealthState = "ok" | "failed" | "pending" | "none";

/** The details about one server in the body of `/ready`, see {@linkcode HealthOptions.details}. */
export interface HealthDetails {
  /** Name of the server. */
  readonly name: string;
  /** Whether this server is ready. */
  readonly ready: boolean;
  /** State of the services that live as long as the server, of extensions, authentication and routes. */
  readonly services: HealthState;
  /** The store. */
  readonly store: HealthState;
  /**
   * State of the servers behind proxies, by name. The server can be ready while they are not. `none` means that a server
   * has not been needed yet.
   */
  readonly upstreams: Readonly<Record<string, HealthState>>;
  /** The current sessions, streams and other resources of the server. */
  readonly stats: ServerStats;
}

const PATH: OptionRule = {
  test: (path) => typeof path === "string" && URL.parse(path, "http://x")?.pathname === path,
  remedy: "use a path such as /health",
};

const OPTIONS: KnownOptions<keyof HealthOptions> = {
  names: {
    alivePath: PATH,
    readyPath: PATH,
    store: ["required", "optional"],
    details: ["authenticated", "all"],
    timeoutMs: { test: isTime, remedy: "it must be a whole number of milliseconds from 1 to 60000" },
  },
  hints: { path: "alivePath", livenessPath: "alivePath", readinessPath: "readyPath" },
};

/** Milliseconds for which the result of a check is cached, so that frequent requests cannot overload a store. */
const REMEMBER_MS = 1000;

/**
 * Creates the routes of health checks, for `routes` of `createServer` or `mount`:
 *
 * - `/health`: status 200 as long as the process responds. This route checks nothing else.
 * - `/ready`: status 200 if the services of the server are created and its store responds. Otherwise, and while the
 *   server is closing, status 503. The result is cached for one second.
 *
 * Both routes respond to GET and HEAD requests from any caller with `{}`. A request to `/ready` with credentials that
 * `auth` accepts, or with `details: "all"` any request, gets {@linkcode HealthDetails}:
 * `{ servers: [{ name, ready, services, store, upstreams, stats }] }`. A request with invalid credentials gets `{}`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { health } from "@x/mcp/observe";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "greeter", version: "1.0.0", handlers: [hello], routes: [health()] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function health(options: HealthOptions = {}): readonly Route[] {
  checkOptions("create health checks", options, OPTIONS);
  const { alivePath = "/health", readyPath = "/ready", store = "required", details, timeoutMs = 2000 } = options;
  const isOpen = details === "all";
  const probe: ProbeOptions = { isStoreOptional: store === "optional", timeoutMs };
  const open = (server: Server) => server[INTERNALS].engine.core.state.slot(probe, () => new Probe(server, probe));
  return [
    // Orchestrators use the address of the process as the host, and the details need credentials.
    { path: alivePath, public: true, fetch: (request) => respond(request, 200, {}) },
    {
      path: readyPath,
      public: true,
      async fetch(request, info) {
        if (!isRead(request)) return respond(request, 405, {});
        // The cast is safe, because only servers that `createServer` or `mount` created call routes, and each server
        // passes itself as `info.server`.
        const whole = info.server as Server;
        const servers = whole[INTERNALS].servers ?? [whole];
        const states = await Promise.all(servers.map((server) => open(server).read()));
        const known = await Promise.all(servers.map((server) => mayKnow(server, request, { info, isOpen })));
        const shown = states.filter((_state, at) => known[at]);
        return respond(request, states.every(({ ready }) => ready) ? 200 : 503, shown.length ? { servers: shown } : {});
      },
    },
  ];
}

interface ProbeOptions {
  readonly isStoreOptional: boolean;
  readonly timeoutMs: number;
}

type Parts = Pick<HealthDetails, "services" | "store">;

/** Checks the services and the store of one server, at most once per {@linkcode REMEMBER_MS}. */
class Probe {
  readonly #server: Server;
  readonly #options: ProbeOptions;
  #parts?: Promise<Parts>;
  readonly #closed = new AbortController();
  /** Time until which the cached state is used, in milliseconds of the monotonic clock. */
  #until = 0;

  constructor(server: Server, options: ProbeOptions) {
    this.#server = server;
    this.#options = options;
    // Stop waiting when the server has closed, because the timeouts for waiting no longer fire after the server's
    // ticker has stopped.
    server[INTERNALS].http.ended.then(() => this.#closed.abort());
  }

  async read(): Promise<HealthDetails> {
    const { [INTERNALS]: { name } } = this.#server;
    // Do not check the parts of a closing server, because it no longer creates services, and has closed its store.
    const isClosing = () => this.#server.stats().isClosing;
    const { services, store }: Parts = isClosing() ? { services: "none", store: "none" } : await this.#ask();
    const isReady = (state: HealthState) => state === "ok" || state === "none";
    const ready = !isClosing() && isReady(services) && (isReady(store) || this.#options.isStoreOptional);
    const { state } = this.#server[INTERNALS].engine.core;
    const known = findUpstreams({ slot: (key, make) => state.slot(key, make) }).values();
    const upstreams = Object.fromEntries([...known].map(({ name, read }) => [name, read()]));
    return { name, ready, services, store, upstreams, stats: this.#server.stats() };
  }

  // Returns the result of the running check, if any, or the cached result. Otherwise starts a check.
  #ask(): Promise<Parts> {
    const { clock } = this.#server[INTERNALS].engine.core.ticker;
    if (this.#parts && clock.now() < this.#until) return this.#parts;
    this.#until = Infinity;
    return this.#parts = this.#askNow().finally(() => this.#until = clock.now() + REMEMBER_MS);
  }

  async #askNow(): Promise<Parts> {
    const { engine: { core: { shared } } } = this.#server[INTERNALS];
    const [services, store] = await Promise.all([
      this.#wait(() => this.#server.ready()),
      shared && this.#wait(() => shared.check()),
    ]);
    return { services, store: store ?? "none" };
  }

  async #wait(run: () => unknown): Promise<HealthState> {
    const { ticker } = this.#server[INTERNALS].engine.core;
    // Ignore the error here, because the services and the store report their errors themselves.
    const ended = (async () => await run())().then(() => "ok" as const, () => "failed" as const);
    const giveUp = () => "pending" as const;
    const limit = { ms: this.#options.timeoutMs, onTimeout: giveUp, signal: this.#closed.signal, clock: ticker };
    return await deadline(ended, limit).catch(giveUp);
  }
}

/**
 * Whether a caller gets the details. Does not call the authenticator for a request without credentials. Checks the Host
 * and Origin headers in the same way as for MCP requests, because otherwise a web page could read the details through DNS
 * rebinding.
 */
async function mayKnow(
  server: Server,
  request: Request,
  { info: { info }, isOpen }: { readonly info: RouteInfo; readonly isOpen: boolean },
): Promise<boolean> {
  const { options } = server[INTERNALS].http.endpoint;
  if (checkCaller(request, info, options, { isSimple: true })) return false;
  if (isOpen || !options.authenticator) return isOpen;
  try {
    const authenticator = await options.authenticator.load();
    if (!authenticator.hasCredentials(request)) return false;
    const checked = toChecked({ request, info });
    return await authenticator.authenticate(checked.request, checked.info, { transport: "http" }) instanceof Caller;
  } catch {
    // The authenticator could not be loaded. `server.ready()` rejects with the error.
    return false;
  }
}

function isRead({ method }: Request): boolean {
  return method === "GET" || method === "HEAD";
}

function respond(request: Request, status: number, body: object): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  if (!isRead(request)) return new Response("{}", { status: 405, headers: { ...headers, allow: "GET, HEAD" } });
  return new Response(request.method === "HEAD" ? null : JSON.stringify(body), { status, headers });
}

function isTime(ms: unknown): boolean {
  return typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 1 && ms <= 60_000;
}
