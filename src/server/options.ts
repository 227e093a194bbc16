/**
 * The options of a server.
 *
 * @module
 */
import type { Icon } from "../protocol/types.ts";
import type { Infer, Schema, StandardSchema } from "../schema/schema.ts";
import type { Admit } from "../core/admission.ts";
import type { Authenticate, Authentication } from "../core/auth.ts";
import type { CapabilityOptions } from "../core/call/capabilities.ts";
import type { Context } from "../core/call/context.ts";
import type { MapError, PublishSchema } from "../core/visibility/feature_parts.ts";
import type { Handler } from "../core/visibility/feature.ts";
import type { Encoder, Guards } from "../core/visibility/guards.ts";
import type { LimitOptions } from "../core/capacity/limits.ts";
import type { Middleware } from "../core/call/middleware.ts";
import type { Observer } from "../core/call/observer.ts";
import type { Store } from "../core/store.ts";
import type { Clock } from "../core/capacity/timers.ts";
import type { Revision } from "../eras/revisions.ts";
import type { RouteList } from "./routes.ts";
import type { Cors } from "../transports/http/cors.ts";

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
export interface RouteServerOptions<P extends Schema = TextParams, H extends readonly Handler[] = readonly Handler[]>
  extends Omit<ServerOptions, "handlers"> {
  /**
   * The tools, resources and prompts. If the path has parameters, a function may return those of one concrete path. It
   * runs when the path is first used, and again if it was dropped in the meantime.
   */
  readonly handlers?: H | RouteHandlers<P>;
  /**
   * Schema of the path's parameters, which converts and checks them. Other paths do not exist: HTTP 404. Handlers and
   * services read the values with `ctx.route(params)`. It runs before the caller is authenticated. An asynchronous schema
   * has 10 seconds. Defaults to any text.
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
   * `@x/mcp/auth`. In a list, the form of a credential picks the scheme, as in `[oauth(…), apiKey(…)]`. Defaults to none:
   * then every caller may use the server. Does not apply to stdio.
   */
  readonly auth?: Authentication | Authenticate | readonly Authentication[];
  /**
   * Decides whether a request may enter, before its handler is looked up: `true`, or a refusal made by `refuseRequest()` of
   * `@x/mcp/auth`. It sees every request, also those that open a session. Defaults to `true`.
   */
  readonly admit?: Admit;
  /**
   * What the server declares and does. The switches `listChanged`, `subscribe`, `completions` and `logging` default to
   * `true`. `tools: true`, `resources: true` and `prompts: true` declare a list while it is empty, for servers that add
   * their first handler later.
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
  /**
   * Dates of the protocol revisions that the server serves. The code of older revisions
   * loads only if one of them is listed. A client of another revision gets error -32022 with this list, or in
   * `initialize` the newest of the list with a handshake. Defaults to all five.
   */
  readonly revisions?: readonly Revision[];
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
   * Whether `server.handlers.disable` and `enable` without a function of callers hold at all instances that share the
   * store, and after a restart. Defaults to `false`: they hold in the process that calls them. If the store does not answer
   * a new instance, its requests for handlers fail with code -31503 until it does.
   *
   * Throws a `TypeError` at the start if the server has no `store`.
   */
  readonly sharedDisable?: boolean;
  /**
   * Whether arguments of tools may be JSON text where the input wants an object, an array, a number or a boolean. A tool
   * may say otherwise. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /** The text that results of tools have beside their structured content. Defaults to `"full"`. See `text` of a tool. */
  readonly text?: "full" | "summary" | "none";
  /**
   * Computes a small JSON value about the client, which handlers read with `ctx.session(session)`. For clients with a
   * session it runs during `initialize`, and over HTTP the value is sealed into the session id. For others it runs for
   * each request in which it is read. It is synchronous, and its JSON has at most 2048 characters.
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
   * Endpoints beside that of MCP, such as `[health()]` of `@x/mcp/observe`, or `[{ path: "/version", fetch }]`. Everybody
   * reaches them: neither the Host header nor the caller is checked. Defaults to none.
   */
  readonly routes?: RouteList;
  /**
   * Describes an unexpected error of a handler. The model reads the text for an error of a tool. Other clients get it as
   * the message of error -32603, or the `McpError` that it returns. If it returns `undefined`, they get "Internal error"
   * and an id. `observer.fault` is called in either case.
   */
  readonly mapError?: MapError;
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
