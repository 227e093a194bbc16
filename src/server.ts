/**
 * Puts a server together: options in, a web-standard `fetch` and a pipe opener out.
 *
 * @module
 */
import { INTERNAL_ERROR, McpError, type ToolError } from "./protocol/errors.ts";
import type { Icon } from "./protocol/types.ts";
import { type Clock, systemClock, Ticker } from "./core/timers.ts";
import type { Context } from "./core/context.ts";
import type { Change, Core, Era, Fault } from "./core/core.ts";
import { createRun, type Middleware } from "./core/scheduler.ts";
import type { Handler } from "./core/feature.ts";
import { type Limits, readLimits } from "./core/limits.ts";
import { Registry } from "./core/registry.ts";
import { Sealer } from "./core/sealer.ts";
import { type Cors, corsRule, withCors } from "./transports/http/cors.ts";
import { readHosts, readOrigins } from "./transports/http/access.ts";
import { createFetch, type Fetch, HTTP, type HttpParts } from "./transports/http/fetch.ts";
import { type OpenPipe, PIPE, pipeOpener } from "./transports/channel.ts";

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
  /** Path of the HTTP endpoint; `/mcp` if nothing is said. */
  readonly path?: string;
  /** Hosts that callers on this machine may name beside loopback, such as `box.local`. */
  readonly hosts?: readonly string[];
  /** Origins of web pages that may call beside the server's own, such as `https://app.example.com`. */
  readonly origins?: readonly string[];
  /** Pages of other origins that may call from a browser; `"none"` if nothing is said. */
  readonly cors?: Cors;
  /**
   * At least 32 characters that all instances of this server share; a list rotates it, newest first. Without it,
   * sessions and questions end with the process.
   */
  readonly secret?: string | readonly string[];
  /** Bounds that differ from the defaults. */
  readonly limits?: Partial<Limits>;
  /** Milliseconds for which clients may keep lists and resources, unless a handler says otherwise; 0 if nothing is said. */
  readonly ttlMs?: number;
  /**
   * Who may keep lists: anybody (`"public"`, if nothing is said) or only the caller. Lists with anything that not
   * everybody may see are private in any case, and so is what is read unless its handler says otherwise.
   */
  readonly cacheScope?: "public" | "private";
  /** Told the truth about unexpected errors; clients are told only `fault.id`. Without it, they go to `console.error`. */
  readonly onError?: (error: unknown, fault: Fault) => void;
  /**
   * Words for the model about an unexpected error of a tool, instead of "Internal error"; nothing for those it should
   * not know of. `onError` is told in any case.
   */
  readonly onToolError?: (error: unknown, call: Context) => string | ToolError | undefined;
  /** Time, for tests. */
  readonly clock?: Clock;
}

/** A server: the default export of a server file. */
export interface Server {
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
  /** Tells clients that watch it that a resource has changed. */
  updated(uri: string): void;
  /** Takes no new calls, lets running ones finish for a while (`closeMs`), ends streams, and settles when all is over. */
  close(): Promise<void>;
  /**
   * Opens a pipe; for transports.
   *
   * @internal
   */
  readonly [PIPE]: OpenPipe;
  /**
   * What other transports over HTTP need.
   *
   * @internal
   */
  readonly [HTTP]: HttpParts;
}

/** Builds a server that speaks what `speak` says. */
export function buildServer(options: ServerOptions, speak: (core: Core) => Era): Server {
  const { name, version, title, description, websiteUrl, icons, instructions, onError, path = "/mcp" } = options;
  if (!name || !version) throw new TypeError("Cannot create a server: it needs a name and a version");
  if (!path.startsWith("/")) {
    throw new TypeError(`Cannot create a server: path ${JSON.stringify(path)} must start with /`);
  }
  const { ttlMs = 0 } = options;
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) {
    throw new TypeError(
      `Cannot create a server: ttlMs is ${ttlMs}; it must be a whole number of milliseconds, 0 or more`,
    );
  }
  const limits = readLimits(options.limits);
  const ticker = new Ticker(options.clock ?? systemClock);
  const listeners = new Set<(change: Change) => void>();
  const { run, idle, stop, cancelAll } = createRun({ limits, ticker, report }, options.use ?? []);
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let closed: Promise<void> | undefined;

  const core: Core = {
    identity: { name, version, title, description, websiteUrl, icons },
    instructions,
    limits,
    ticker,
    ttlMs,
    cacheScope: options.cacheScope ?? "public",
    toToolError: options.onToolError,
    sealer: new Sealer({ secret: options.secret, realm: JSON.stringify([name, path]) }),
    listeners,
    closing: false,
    registry: new Registry(() => core),
    emit,
    run,
    report,
  };
  core.registry.add(options.handlers ?? []);
  const era = speak(core);
  const allows = corsRule(options.cors, report);
  const { fetch, parts } = createFetch(core, era, {
    path,
    hosts: readHosts(options.hosts),
    origins: readOrigins(options.origins),
    allows,
  });
  // Changes that come in a burst are told once.
  const burst = new Map<string, Change>();

  function emit(change: Change): void {
    if (!listeners.size || closed) return;
    if (!burst.size) ticker.alarm(BURST_MS, flush);
    const key = change.kind === "list" ? change.feature : change.kind === "resource" ? `uri ${change.uri}` : "";
    const before = burst.get(key);
    burst.set(key, before ? merge(before, change) : change);
  }

  function flush(): void {
    const changes = [...burst.values()];
    burst.clear();
    for (const change of changes) for (const listener of [...listeners]) listener(change);
  }

  function report(error: unknown, about: { readonly method?: string; readonly subject?: string } = {}): McpError {
    const id = crypto.randomUUID().slice(0, 8);
    try {
      const fault = { id, method: about.method, subject: about.subject };
      const telling: unknown = onError?.(error, fault);
      if (telling instanceof Promise) telling.catch(() => {});
      if (!onError) console.error(`Error ${id} in ${fault.method ?? name}:`, error);
    } catch {
      // What cannot be told, or whose telling fails, must not become the next error.
    }
    return new McpError(INTERNAL_ERROR, "Internal error", { errorId: id });
  }

  async function shut(): Promise<void> {
    core.closing = true;
    stop();
    flush();
    for (const listener of [...listeners]) listener({ kind: "close" });
    const { promise, resolve } = Promise.withResolvers<void>();
    ticker.alarm(limits.closeMs, resolve);
    await Promise.race([idle(), promise]);
    cancelAll();
    // The last outcomes are still on their way to their streams, some promises further on; a turn later they are written.
    await new Promise((resolve) => setTimeout(resolve));
    parts.streams.end();
    end();
    ticker.close();
  }

  return {
    fetch: options.cors ? withCors(allows, fetch) : fetch,
    handlers: {
      add: (...handlers) => core.registry.add(handlers),
      remove: (...handlers) => core.registry.remove(handlers),
      list: () => core.registry.handlers,
    },
    updated: (uri) => emit({ kind: "resource", uri }),
    close: () => closed ??= shut(),
    [PIPE]: pipeOpener(core, era),
    [HTTP]: { ...parts, ended },
  };
}

// Who may see any of what changed is told.
function merge(before: Change, change: Change): Change {
  if (before.kind !== "list" || change.kind !== "list" || !change.handlers) return change;
  return { ...change, handlers: before.handlers && [...before.handlers, ...change.handlers] };
}

/** How long changes are gathered before clients are told. */
const BURST_MS = 10;
