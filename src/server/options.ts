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

/** Schema of path parameters that may be any text. */
export type TextParams = StandardSchema<Readonly<Record<string, string>>>;

/**
 * Returns the handlers for the parameters of a path. Returns `undefined` if the path does not exist, so that clients
 * get HTTP 404.
 */
export type RouteHandlers<P extends Schema> = (
  params: Infer<P>,
) => readonly Handler[] | undefined | Promise<readonly Handler[] | undefined>;

/**
 * Options of a server whose path may have parameters. All options except `name` and `version` are optional. `P` is the
 * schema of the parameters.
 */
export interface RouteServerOptions<P extends Schema = TextParams, H extends readonly Handler[] = readonly Handler[]>
  extends Omit<ServerOptions, "handlers"> {
  /**
   * The tools, resources and prompts. If the path has parameters, a function may return the handlers of one concrete
   * path. The function runs when the path is first used. It runs again if the path is used after the server has dropped
   * the path from memory.
   */
  readonly handlers?: H | RouteHandlers<P>;
  /**
   * Schema that validates and converts the parameters of the path. A path whose parameters are invalid does not exist:
   * HTTP 404. Handlers and services read the values with `ctx.route(params)`. The schema runs before the caller is
   * authenticated. An asynchronous schema times out after 10 seconds. Defaults to a schema that accepts any text.
   */
  readonly params?: P;
}

/** Options of a server. Only `name` and `version` are required. */
export interface ServerOptions {
  /** Name for programs, such as `weather`. */
  readonly name: string;
  /** Version of the server, such as `1.0.0`. */
  readonly version: string;
  /** Display name for people. */
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
  /** Middleware that wraps every call. The first middleware is the outermost. */
  readonly use?: readonly Middleware[];
  /**
   * Authenticates the caller of every HTTP request before its body is read, such as `apiKey({ keys })` of
   * `@x/mcp/auth`. In a list such as `[oauth(…), apiKey(…)]`, the server picks the scheme by the form of the
   * credential. Defaults to no authentication: every caller may use the server. Does not apply to stdio.
   */
  readonly auth?: Authentication | Authenticate | readonly Authentication[];
  /**
   * Decides whether a request may enter, before the server looks up its handler. Returns `true`, or a refusal created
   * by `refuseRequest()` of `@x/mcp/auth`. The function runs for every request, including requests that open a session.
   * Defaults to a function that returns `true`.
   */
  readonly admit?: Admit;
  /**
   * The capabilities that the server declares and supports. The switches `listChanged`, `subscribe`, `completions` and
   * `logging` default to `true`. `tools: true`, `resources: true` and `prompts: true` declare a list even while it is
   * empty, for servers that add their first handler later.
   */
  readonly capabilities?: CapabilityOptions;
  /**
   * Path of the HTTP endpoint, such as `/tenants/:tenant/mcp`. Each concrete path is a separate endpoint: session ids,
   * cursors and states that were issued on one path are not valid on another path. Defaults to `/mcp`.
   */
  readonly path?: string;
  /**
   * Hosts that clients may use, such as `mcp.example.com`. If set, requests with any other Host header are rejected,
   * except loopback hosts. Defaults to any host.
   */
  readonly hosts?: readonly string[];
  /**
   * IP addresses of reverse proxies in front of the server, such as `127.0.0.1`. The server then reads client addresses
   * from the `X-Forwarded-For` header that these proxies send. Without this option, all clients behind a proxy share
   * the limits of one client.
   */
  readonly proxies?: readonly string[];
  /**
   * Whether requests of revisions with sessions must have a session id. Defaults to `"optional"`: the server handles a
   * request without a session id as a separate session, so its handler cannot send requests to the client, and its
   * stream cannot be resumed.
   */
  readonly sessions?: "optional" | "required";
  /**
   * Dates of the protocol revisions that the server serves. The code of older revisions loads only if one of them is
   * listed. A client with another revision gets error -32022 with this list. A client that sends `initialize` is
   * offered the newest listed revision with a handshake. Defaults to all five revisions.
   */
  readonly revisions?: readonly Revision[];
  /**
   * Origins of web pages that may call the server, in addition to the server's own origin, such as
   * `https://app.example.com`.
   */
  readonly origins?: readonly string[];
  /** Cross-origin access for browsers. Defaults to `"none"`. */
  readonly cors?: Cors;
  /**
   * Secret of at least 32 characters that all instances of this server share. To rotate the secret, pass a list with
   * the newest secret first. Without a secret, sessions and pending questions do not survive a restart.
   */
  readonly secret?: string | readonly string[];
  /**
   * Store for the state that all instances share: ended sessions, subscriptions, events for resuming streams, and
   * changes. Create a store with the functions of `@x/mcp/stores`. Without a store, each process keeps this state in
   * its memory.
   */
  readonly store?: Store;
  /**
   * Whether `server.handlers.disable` and `enable`, called without a function of callers, apply to all instances that
   * share the store, and after a restart. Defaults to `false`: the calls apply only to the process that makes them. If
   * the store does not respond to a new instance, requests for its handlers fail with code -31503 until the store
   * responds.
   *
   * Throws a `TypeError` when the server is created without a `store`.
   */
  readonly sharedDisable?: boolean;
  /**
   * Whether arguments of tools may be JSON text where the input schema expects an object, an array, a number or a
   * boolean. A tool can override this with its own option. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /**
   * The text copy that results of tools have in addition to their structured content. Defaults to `"full"`. See the
   * option `text` of a tool.
   */
  readonly text?: "full" | "summary" | "none";
  /**
   * Computes a small JSON value about the client, which handlers read with `ctx.session(session)`. For clients with a
   * session, the function runs during `initialize`, and over HTTP the server seals the value into the session id. For
   * other clients, it runs for each request in which a handler reads the value. The function must be synchronous, and
   * its return value may have at most 2048 characters as JSON.
   */
  readonly session?: (ctx: Context) => unknown;
  /** Limits that differ from the defaults. */
  readonly limits?: LimitOptions;
  /** Milliseconds for which clients may cache lists and resources that do not set a `ttlMs`. Defaults to 0. */
  readonly ttlMs?: number;
  /**
   * Cache scope of lists: shared by all callers (`"public"`) or bound to one caller (`"private"`).
   *
   * Defaults to `"private"` for authenticated callers, for servers with `auth`, and if middleware in `use` runs for
   * lists, because the middleware may change the lists. Otherwise defaults to `"public"`. A list with an `allow` is
   * always private. Resources are private unless they have a `cacheScope`.
   */
  readonly cacheScope?: "public" | "private";
  /**
   * Receives events for metrics, logs and traces: an object, or a list of objects. For an unexpected error,
   * `observer.fault` receives the error, and clients receive only its id. Without a `fault`, unexpected errors are
   * printed with `console.error`.
   */
  readonly observer?: Observer | readonly Observer[];
  /**
   * Endpoints beside the MCP endpoint, such as `[health()]` of `@x/mcp/observe`, or `[{ path: "/version", fetch }]`.
   * These endpoints are public: the server checks neither the Host header nor the caller. Defaults to no routes.
   */
  readonly routes?: RouteList;
  /**
   * Describes an unexpected error of a handler to clients. For a tool, the returned text becomes the text of the error
   * result, which the model reads. For any other handler, the text becomes the message of error -32603. A returned
   * `McpError` is sent unchanged. If the function returns `undefined`, the client receives "Internal error" and an id.
   * `observer.fault` is called in either case.
   */
  readonly mapError?: MapError;
  /**
   * Guards of the input and output of all handlers. These guards wrap the guards of each handler. They can read
   * services with `ctx.get`.
   */
  readonly guards?: Guards;
  /**
   * Encoders of your own types. The first encoder that matches converts a value. Encoders run before the built-in
   * conversions.
   */
  readonly encoders?: readonly Encoder[];
  /**
   * Changes the JSON Schemas of the input and output of tools, as clients see them. Validation still uses the original
   * schemas.
   */
  readonly publishSchema?: PublishSchema;
  /**
   * Whether to print warnings for the author with `console.warn`: about questions that are not awaited, work before a
   * question, which is repeated in revisions without sessions, and handlers that block all other calls. Defaults to
   * `false`. `mcp --watch`, `mcp --inspect` and `connectTest` of `@x/mcp/testing` turn it on.
   */
  readonly development?: boolean;
  /** Source of the time, for tests. */
  readonly clock?: Clock;
}
