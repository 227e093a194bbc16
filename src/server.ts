/**
 * Creates servers: checks the options and connects the parts.
 *
 * @module
 */
import { INTERNAL_ERROR, McpError, type ToolError } from "./protocol/errors.ts";
import type { Icon } from "./protocol/types.ts";
import { Accounts } from "./core/account.ts";
import { Changes } from "./core/changes.ts";
import type { CallHost } from "./core/call.ts";
import type { ChangeNotifier, Context } from "./core/context.ts";
import type { Core, Fault } from "./core/core.ts";
import type { CreateEra, Engine } from "./core/era.ts";
import type { Handler } from "./core/feature.ts";
import { INTERNALS } from "./core/internals.ts";
import { type LimitOptions, readLimits } from "./core/limits.ts";
import type { Middleware } from "./core/middleware.ts";
import { Registry } from "./core/registry.ts";
import { Scheduler } from "./core/scheduler.ts";
import { Sealer } from "./core/sealer.ts";
import { type Clock, systemClock, Ticker } from "./core/timers.ts";
import { type OpenPipe, pipeOpener } from "./transports/channel.ts";
import { readHosts, readOrigins, readPath, readProxies } from "./transports/http/access.ts";
import { type Cors, corsRule, type Grant } from "./transports/http/cors.ts";
import { Endpoint, type Fetch } from "./transports/http/fetch.ts";
import type { HttpParts } from "./transports/http/upgrades.ts";

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
  /** Path of the HTTP endpoint. Defaults to `/mcp`. */
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
   * Whether arguments of tools may be JSON text where the input wants an object, an array, a number or a boolean. A tool
   * may say otherwise. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /** Limits that differ from the defaults. */
  readonly limits?: LimitOptions;
  /** Milliseconds for which clients may cache lists and resources without a `ttlMs` of their own. Defaults to 0. */
  readonly ttlMs?: number;
  /**
   * Cache scope of lists: shared by all callers (`"public"`) or bound to one (`"private"`).
   *
   * Defaults to `"private"` for authenticated callers and for servers with `use`, because both may change a list, and
   * to `"public"` otherwise. A list with an `allow` is always private. Resources are private unless they have a
   * `cacheScope`.
   */
  readonly cacheScope?: "public" | "private";
  /** Called for each unexpected error. Clients only receive `fault.id`. Defaults to printing with `console.error`. */
  readonly onError?: (error: unknown, fault: Fault) => void;
  /**
   * Describes an unexpected error of a tool to the model. If it returns `undefined`, the model gets "Internal error"
   * and an id. `onError` is called in either case.
   */
  readonly describeError?: (error: unknown, ctx: Context) => string | ToolError | undefined;
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
  readonly handlers: {
    /** Adds handlers, and notifies clients of the changed lists. */
    add(...handlers: readonly Handler[]): void;
    /**
     * Removes handlers, and notifies clients of the changed lists. A handler is known by its kind and its name, or its
     * URI. One that is not there is ignored.
     */
    remove(...handlers: readonly Handler[]): void;
    /** Returns the handlers in the order in which they were added. */
    list(): readonly Handler[];
  };
  /**
   * Stops accepting calls, waits up to `calls.closeMs` milliseconds for running ones, and ends all streams. Settles
   * when everything has ended.
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
  /** Opens a channel to the server. */
  readonly openPipe: OpenPipe;
  /** Parts that other HTTP transports share with the endpoint. */
  readonly http: HttpParts;
  /** Turns `development` on, unless the options set it to `false`. Settles when it is on. */
  develop(): Promise<void>;
}

/** Creates a server for the era that `createEra` creates. */
export function buildServer(options: ServerOptions, createEra: CreateEra): Server {
  checkOptions(options);
  const { name, version, title, description, websiteUrl, icons, instructions, path = "/mcp", ttlMs = 0 } = options;
  const limits = readLimits(options.limits);
  const ticker = new Ticker(options.clock ?? systemClock);
  const report = createReport(name, options.onError);
  const core: Core = {
    identity: { name, version, title, description, websiteUrl, icons },
    info: { name, version },
    instructions,
    limits,
    ticker,
    ttlMs,
    cacheScope: options.cacheScope ?? (options.use?.length ? "private" : "anonymous"),
    hasMiddleware: !!options.use?.length,
    requiresSession: options.sessions === "required",
    describeError: options.describeError,
    lenientArguments: options.lenientArguments,
    sealer: new Sealer({ secret: options.secret, realm: JSON.stringify([name, path]) }),
    report,
  };
  const changes = new Changes(ticker);
  const registry = new Registry(core, changes);
  const accounts = new Accounts(limits);
  const scheduler = new Scheduler(core, accounts, options.use);
  registry.add(options.handlers ?? []);
  let closed: Promise<void> | undefined;
  const host: CallHost = {
    server: {
      resourceUpdated(uri) {
        if (!closed) changes.emit({ kind: "resource", uri });
      },
      listChanged(list, { to: allow } = {}) {
        if (closed || !registry.hasList(list)) return;
        changes.emit({ kind: "list", feature: list, handlers: allow && [{ allow }] });
      },
    },
  };
  const engine: Engine = { core, registry, scheduler, changes, accounts, host };
  const era = createEra(engine);
  const allows = corsRule(options.cors, report);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const endpoint = new Endpoint(engine, era, {
    path: readPath(path),
    hosts: readHosts(options.hosts),
    origins: readOrigins(options.origins),
    proxies: readProxies(options.proxies),
    allows,
  });
  const { fetch, parts } = endpoint;

  // Loaded only in development.
  async function develop(): Promise<void> {
    if (options.development === false) return;
    const { RerunWatch, toWarning } = await import("./core/rerun_watch.ts");
    host.reruns ??= new RerunWatch(ticker.clock, (repeated) => console.warn(toWarning(repeated)));
  }
  if (options.development) develop();

  async function close(): Promise<void> {
    endpoint.close();
    scheduler.stop();
    changes.close();
    const { promise, resolve } = Promise.withResolvers<void>();
    ticker.startTimeout(limits.calls.closeMs, resolve);
    await Promise.race([scheduler.idle(), promise]);
    scheduler.cancelAll();
    // Outcomes reach their streams some microtasks later, so wait for one turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve));
    parts.streams.end();
    end();
    ticker.close();
  }

  return {
    fetch: options.cors ? withCors(allows, fetch) : fetch,
    handlers: {
      add: (...handlers) => registry.add(handlers),
      remove: (...handlers) => registry.remove(handlers),
      list: () => registry.handlers,
    },
    ...host.server,
    close: () => closed ??= close(),
    [INTERNALS]: { openPipe: pipeOpener(engine, era), http: { ...parts, ended }, develop },
  };
}

/** Loads CORS support with the first request, because most servers do not need it. */
function withCors(allows: (origin: string) => Grant | undefined, fetch: Fetch): Fetch {
  const loading = async () => (await import("./transports/http/cors_headers.ts")).withCors(allows, fetch);
  let wrapped: Promise<Fetch> | undefined;
  return async (request, info) => await (await (wrapped ??= loading()))(request, info);
}

function checkOptions({ name, version, ttlMs = 0, sessions = "optional" }: ServerOptions): void {
  const refuse = (state: string) => new TypeError(`Cannot create a server: ${state}`);
  if (!name || !version) throw refuse("it needs a name and a version");
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) {
    throw refuse(`ttlMs is ${ttlMs}; it must be a whole number of milliseconds, 0 or more`);
  }
  if (sessions !== "optional" && sessions !== "required") {
    throw refuse(`sessions is ${JSON.stringify(sessions)}; it must be "optional" or "required"`);
  }
}

/** Creates the function that reports unexpected errors and returns the error for the client. */
function createReport(name: string, onError: ServerOptions["onError"]): Core["report"] {
  return (error, about = {}) => {
    const id = crypto.randomUUID().slice(0, 8);
    try {
      const fault = { id, method: about.method, subject: about.subject };
      const returned: unknown = onError?.(error, fault);
      if (returned instanceof Promise) returned.catch(() => {});
      if (!onError) {
        import("./protocol/printable.ts").then(({ printFault }) =>
          printFault(`${id} in ${about.method ?? name}`, error)
        );
      }
    } catch {
      // A failing `onError`, or an error that cannot be printed, must not cause another error.
    }
    return new McpError(INTERNAL_ERROR, "Internal error", { errorId: id });
  };
}
