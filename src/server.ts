/**
 * Puts a server together: options in, a web-standard `fetch` and a pipe opener out.
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

/** What a server is made of. Only `name` and `version` must be said. */
export interface ServerOptions {
  /** The server's name for programs, such as `weather`. */
  readonly name: string;
  /** The server's own version, such as `1.0.0`. */
  readonly version: string;
  /** The server's name for people. */
  readonly title?: string;
  /** What the server is for, in a sentence. */
  readonly description?: string;
  /** Where people read more. */
  readonly websiteUrl?: string;
  /** Images that stand for the server. */
  readonly icons?: readonly Icon[];
  /** What a model should know to use this server well. */
  readonly instructions?: string;
  /** Tools, resources and prompts. */
  readonly handlers?: readonly Handler[];
  /** Code around every call; the first is the outermost. */
  readonly use?: readonly Middleware[];
  /** Path of the HTTP endpoint, without parameters. Defaults to `/mcp`. */
  readonly path?: string;
  /** Hosts that callers on this machine may name beside loopback, such as `box.local`. */
  readonly hosts?: readonly string[];
  /**
   * Addresses of proxies in front of the server, such as `127.0.0.1`. What they forward in `X-Forwarded-For` is the
   * address of the client; without it, all clients behind a proxy count as one.
   */
  readonly proxies?: readonly string[];
  /**
   * Whether requests of revisions with sessions need a session id. Defaults to `"optional"`: a request without one is
   * served on its own, without questions to the client and without streams that can be resumed.
   */
  readonly sessions?: "optional" | "required";
  /** Origins of web pages that may call beside the server's own, such as `https://app.example.com`. */
  readonly origins?: readonly string[];
  /** Pages of other origins that may call from a browser; `"none"` if nothing is said. */
  readonly cors?: Cors;
  /**
   * At least 32 characters that all instances of this server share; a list rotates it, newest first. Without it,
   * sessions and questions end with the process.
   */
  readonly secret?: string | readonly string[];
  /**
   * Whether arguments of tools may be JSON text where the input wants an object, an array, a number or a boolean. A tool
   * may say otherwise. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /** Limits that differ from the defaults. */
  readonly limits?: LimitOptions;
  /** Milliseconds for which clients may keep lists and resources, unless a handler says otherwise; 0 if nothing is said. */
  readonly ttlMs?: number;
  /**
   * Who may keep lists: everybody (`"public"`) or only the caller (`"private"`). Defaults to `"private"` for a caller
   * that is known and for a server with `use`, because these may change what a list holds, and to `"public"` otherwise.
   * Lists with anything that not everybody may see are private in any case, and so is what is read, unless its handler
   * has a `cacheScope`.
   */
  readonly cacheScope?: "public" | "private";
  /** Told the truth about unexpected errors; clients are told only `fault.id`. Without it, they go to `console.error`. */
  readonly onError?: (error: unknown, fault: Fault) => void;
  /**
   * Describes an unexpected error of a tool to the model that called it. Returns `undefined` for errors that the model
   * should not know of: it then reads "Internal error" and an id. `onError` is called in any case.
   */
  readonly describeError?: (error: unknown, ctx: Context) => string | ToolError | undefined;
  /**
   * Whether to warn, with `console.warn`, of mistakes that only show with some clients: work that a handler does before
   * a question and does again when the answer comes. Defaults to `false`, but `mcp --watch`, `mcp --inspect`
   * and `connect` of `@x/mcp/testing` turn it on.
   */
  readonly development?: boolean;
  /** Time, for tests. */
  readonly clock?: Clock;
}

/** A server: the default export of a server file. */
export interface Server extends ChangeNotifier {
  /** Answers web-standard requests; `deno serve`, Bun, Deno Deploy, Workers and routers call it. */
  readonly fetch: Fetch;
  /** The handlers, which may change while the server runs. */
  readonly handlers: {
    /** Adds handlers, and tells clients that lists have changed. */
    add(...handlers: readonly Handler[]): void;
    /** Takes handlers away, and tells clients that lists have changed. */
    remove(...handlers: readonly Handler[]): void;
    /** Those that are there, in the order in which they came. */
    list(): readonly Handler[];
  };
  /**
   * Takes no new calls, lets running ones finish for a while (`calls.closeMs` of the limits), ends streams, and settles
   * when all is over.
   */
  close(): Promise<void>;
  /**
   * What transports, the command line and the test kit need.
   *
   * @ignore
   */
  readonly [INTERNALS]: ServerInternals;
}

/**
 * What transports, the command line and the test kit need of a server.
 *
 * @internal
 */
export interface ServerInternals {
  /** Opens a channel to the server. */
  readonly openPipe: OpenPipe;
  /** What other transports over HTTP share with the endpoint. */
  readonly http: HttpParts;
  /** Turns `development` on, unless the server's options say otherwise. Settles when it is on. */
  develop(): Promise<void>;
}

/** Builds a server of the era that `createEra` makes. */
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
      listChanged(list) {
        if (!closed && registry.hasList(list)) changes.emit({ kind: "list", feature: list });
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

  // Loaded for those who develop alone.
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
    ticker.alarm(limits.calls.closeMs, resolve);
    await Promise.race([scheduler.idle(), promise]);
    scheduler.cancelAll();
    // The last outcomes are still on their way to their streams, some promises further on; a turn later they are written.
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

/** Loads what most servers do not need with the first request. */
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

/** Makes the function that passes unexpected errors on, and returns what the client may know of them. */
function createReport(name: string, onError: ServerOptions["onError"]): Core["report"] {
  return (error, about = {}) => {
    const id = crypto.randomUUID().slice(0, 8);
    try {
      const fault = { id, method: about.method, subject: about.subject };
      const telling: unknown = onError?.(error, fault);
      if (telling instanceof Promise) telling.catch(() => {});
      if (!onError) {
        import("./protocol/printable.ts").then(({ printFault }) =>
          printFault(`${id} in ${about.method ?? name}`, error)
        );
      }
    } catch {
      // An error that cannot be printed, or whose listener fails, must not become the next error.
    }
    return new McpError(INTERNAL_ERROR, "Internal error", { errorId: id });
  };
}
