/**
 * The options of a proxy, and what they imply.
 */
import { INTERNALS } from "../core/internals.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Client } from "../client/calls.ts";
import { AUTH, type ClientAuth } from "../client/client_auth.ts";
import { findServer, type Locked } from "../client/lock_file.ts";
import { checkTarget, type Target } from "../client/target.ts";
import type { ClientCapabilities, Context, Params, ToolProviderOptions, TransformOptions } from "../library.ts";

/** Options of {@linkcode proxy}. All options are optional. */
export interface ProxyOptions extends Pick<ToolProviderOptions, "use" | "tags" | "allow"> {
  /**
   * Name of the other server in questions, errors and reports. Proxies of one server need different names. Defaults to the
   * prefix without its last `_`, and otherwise to the host of the URL, the name of the command, or `upstream`.
   */
  readonly name?: string;
  /**
   * Text with which the names of tools and prompts begin, such as `github_`. URIs of resources stay the same. Without a
   * prefix, a tool of a later proxy can get a call that is meant for this server, until this server has been reached once.
   * Defaults to no prefix.
   */
  readonly prefix?: string;
  /**
   * Headers of all requests over HTTP, such as the proxy's own credentials. A function returns the headers for a caller,
   * such as a token exchanged for the caller; it implies `share: "caller"`. The caller's own token is never passed on.
   */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((ctx: Context) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
  /** Supplies tokens for HTTP requests, as in `connect`. */
  readonly auth?: ClientAuth;
  /** Replaces the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /**
   * Whether all callers share one connection and its lists, or each caller has a connection and lists of its own. Callers
   * are told apart by `ctx.caller`; with `"caller"`, a request that nothing identifies is refused. Defaults to `"caller"`
   * if `headers` is a function, or if the other server runs as a command or in this process and has sessions. Otherwise
   * defaults to `"all"`. On a connection that callers share, or of a connected client, a log message that does not say
   * to which request it belongs is dropped, and such a question is refused.
   */
  readonly share?: "all" | "caller";
  /**
   * Which tools of the other server are served, and how. Names are those of the other server, without the prefix. Defaults
   * to all tools, unchanged.
   */
  readonly tools?: {
    /** Patterns of names, in which `*` stands for any text. Defaults to all tools. */
    readonly include?: readonly string[];
    /** Patterns of names to leave out, also if `include` selects them. Defaults to no tools. */
    readonly exclude?: readonly string[];
    /**
     * Changes tools as `transform` does, by their name. The prefix precedes a new name too. A tool that cannot be changed
     * as described is not served, and `observer.fault` gets the reason. Defaults to no changes.
     */
    readonly change?: Readonly<Record<string, TransformOptions<string, Params, never, unknown>>>;
  };
  /**
   * Prefixes of URIs that the other server serves without listing them, such as `result:` for links in results of tools.
   * Other providers that list such a URI take precedence. By default, the proxy serves only URIs that the other server
   * lists, and URIs that match a template of the other server.
   */
  readonly uris?: readonly string[];
  /** Scopes that a caller must have for everything of the other server. Defaults to no scopes. */
  readonly scopes?: readonly string[];
  /**
   * Milliseconds that the other server may take for a request, not counting the time in which it waits for the caller's
   * answer. By default, only your server's own timeout applies to calls, and connecting and lists take at most 10 seconds.
   */
  readonly timeoutMs?: number;
  /**
   * The lock file of `mcp lock`, as a path or as its parsed content. Tools, prompts, resources, templates, pages of tools
   * and instructions that are not in the file, or have changed, are not served, and `observer.fault` gets the reason. The
   * key in the file is `name` or the prefix without its last `_`, or else the only server of the file. Defaults to no lock.
   */
  readonly lock?: string | URL | Params;
  /** What the other server must not use of the caller. Each defaults to `true`. */
  readonly forward?: {
    /** Whether the other server may ask the user. */
    readonly elicitation?: boolean;
    /** Whether the other server may use the caller's model. */
    readonly sampling?: boolean;
    /** Whether the other server may read the caller's roots. */
    readonly roots?: boolean;
    /** Whether log messages of the other server are passed on. */
    readonly log?: boolean;
  };
  /**
   * Whether to add the instructions of the other server to those of this server, for all callers. Clients that
   * connected before the other server was reached do not get them. Not possible with `allow`, `scopes`, or a connection
   * per caller. Defaults to `false`.
   */
  readonly instructions?: boolean;
  /**
   * Milliseconds after which a list of several sources leaves out the entries of this proxy. Defaults to no limit: the
   * list waits for the proxy, which takes at most 10 seconds if `timeoutMs` is not set.
   */
  readonly listMs?: number;
  /**
   * Whether `server.ready()` fails if the other server cannot be reached. Not possible with a connection per caller.
   * Defaults to `false`: the server starts, and has the tools of the other server as soon as it is reached.
   */
  readonly required?: boolean;
}

const OPTIONS: KnownOptions<keyof ProxyOptions> = {
  names: {
    name: "text",
    prefix: "text",
    headers: true,
    auth: AUTH,
    fetch: "function",
    share: ["all", "caller"],
    tools: { names: { include: "texts", exclude: "texts", change: true } },
    uris: "texts",
    use: "functions",
    tags: "texts",
    allow: "function",
    scopes: "texts",
    timeoutMs: {
      test: (ms) => typeof ms === "number" && ms > 0,
      remedy: "it must be a positive number of milliseconds",
    },
    forward: { names: { elicitation: "boolean", sampling: "boolean", roots: "boolean", log: "boolean" } },
    listMs: true,
    lock: true,
    instructions: "boolean",
    required: "boolean",
  },
  hints: { token: "auth", middleware: "use", namespace: "prefix", credentials: "headers", timeout: "timeoutMs" },
};

/** What a proxy connects to: a target of `connect`, or a connected client. */
export type ProxyTarget = Target | Client;

export interface Settings extends Omit<ProxyOptions, "name" | "prefix" | "lock"> {
  /** The server's key in the lock file, and what the file says of the server. */
  readonly lock?: readonly [name: string, locked: Locked];
  readonly target: ProxyTarget;
  readonly name: string;
  readonly prefix: string;
}

/** @throws {TypeError} if the target is invalid, or if an option is unknown, invalid, or contradicts another option. */
export function readSettings(target: ProxyTarget, options: ProxyOptions): Settings {
  if (!isClient(target)) checkTarget(target);
  checkOptions("make a proxy", options, OPTIONS);
  const { prefix = "", headers, share, auth, fetch, required, lock: file } = options;
  const given = options.name ?? (withoutSeparators(prefix) || undefined);
  const name = given ?? toHost(target);
  const refuse = (state: string) => new TypeError(`Cannot make proxy ${JSON.stringify(name)}: ${state}`);
  if (!/^[\w.-]{0,32}$/.test(prefix)) {
    throw refuse('prefix must have at most 32 letters, digits, "_", "-" and "."');
  }
  if (!name || /[\r\n]/.test(name)) throw refuse("its name is not a line of text; use a name such as github");
  const isPerCaller = share === "caller" || typeof headers === "function";
  if (isPerCaller && share === "all") {
    throw refuse('headers is a function of the caller, but share is "all"; remove share, or use fixed headers');
  }
  if (isPerCaller && required) {
    throw refuse("required needs a connection that all callers share; remove required");
  }
  if (options.instructions && (isPerCaller || options.allow || options.scopes)) {
    throw refuse("instructions are for all callers; remove instructions, or allow, scopes and share");
  }
  if (isClient(target) && (isPerCaller || headers || auth || fetch)) {
    throw refuse("its target is connected, so it has no headers, auth, fetch and share; pass them to connect()");
  }
  if (isClient(target) && file !== undefined) throw refuse("its target is connected; pass lock() to connect(), in use");
  if (isLines(target) && (headers || auth || fetch)) {
    throw refuse("headers, auth and fetch need a URL as the target; pass credentials in env of the command");
  }
  const lock = file === undefined ? undefined : findServer(file, given);
  return { ...options, lock, target, name, prefix, ...isPerCaller && { share: "caller" } };
}

/** Returns a prefix without the separators at its end, such as `github` for `github_`. */
function withoutSeparators(prefix: string): string {
  let end = prefix.length;
  while ("_.-".includes(prefix.charAt(end - 1)) && end) end--;
  return prefix.slice(0, end);
}

function toHost(target: ProxyTarget): string {
  // Questions begin with the name. With a name that the other server chooses, it could pose as a different server.
  if (isClient(target)) return "upstream";
  if (typeof target === "string" || target instanceof URL) return new URL(target).host;
  return "command" in target ? target.command.split(/[\\/]/).at(-1) ?? "" : "upstream";
}

/** Returns the change of a tool. The other server chooses the name of the tool. */
export function findChange(
  { tools }: Settings,
  name: string,
): TransformOptions<string, Params, never, unknown> | undefined {
  const change = tools?.change ?? {};
  return Object.hasOwn(change, name) ? change[name] : undefined;
}

export function isClient(target: ProxyTarget): target is Client {
  return "callTool" in Object(target) && "subscribe" in Object(target);
}

/** Whether all messages of a connection share one stream. */
export function isLines(target: ProxyTarget): boolean {
  return typeof target === "object" && !(target instanceof URL) && ("command" in target || INTERNALS in target);
}

/** Returns the capabilities that the other server may use. */
export function toAllowed(
  { elicitation, sampling, roots }: ClientCapabilities,
  { forward = {} }: Pick<Settings, "forward">,
): ClientCapabilities {
  return {
    ...elicitation && forward.elicitation !== false && { elicitation },
    ...sampling && forward.sampling !== false && { sampling },
    ...roots && forward.roots !== false && { roots },
  };
}
