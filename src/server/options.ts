/**
 * The options of a server.
 */
import type { Icon } from "../core/protocol/types.ts";
import type { Infer, Schema, StandardSchema } from "../core/schema/schema.ts";
import type { Admit } from "./engine/admission.ts";
import type { Authenticate, Authentication } from "./engine/auth.ts";
import type { CapabilityOptions } from "./call/capabilities.ts";
import type { Context } from "./call/context.ts";
import type { MapError, PublishSchema } from "./visibility/feature_parts.ts";
import type { Handler } from "./visibility/feature.ts";
import type { Encoder } from "./visibility/guards.ts";
import type { LimitOptions } from "./capacity/limits.ts";
import type { UseItem } from "./engine/layers.ts";
import type { Observer } from "./call/observer.ts";
import type { Store } from "./engine/store.ts";
import type { Clock } from "../core/timers.ts";
import type { Revision } from "./eras/revisions.ts";
import type { RouteList } from "./routes.ts";
import type { Cors } from "./transports/http/cors.ts";

/** A schema that accepts any text as the value of each path parameter. */
export type TextParams = StandardSchema<Readonly<Record<string, string>>>;

/**
 * Options of a server whose path can have parameters. Only `name` and `version` are required. `P` is the schema of the
 * path parameters.
 */
export interface PathServerOptions<P extends Schema = TextParams, H extends readonly Handler[] = readonly Handler[]>
  extends Omit<ServerOptions, "handlers"> {
  /**
   * The tools, resources and prompts. If the path has parameters, `handlers` can be a function that returns the
   * handlers of one concrete path. The function runs on the first request to a concrete path, and on the next request
   * after the server has evicted the path from memory. If the function returns `undefined`, the path does not exist, and
   * clients get HTTP 404.
   */
  readonly handlers?:
    | H
    | ((params: Infer<P>) => readonly Handler[] | undefined | Promise<readonly Handler[] | undefined>);
  /**
   * Schema that validates and converts the path parameters. Requests with invalid parameters get HTTP 404. Handlers and
   * services read the converted values with `ctx.pathParams(pathSchema)`. The schema runs before the caller is
   * authenticated. An asynchronous schema times out after 10 seconds. Defaults to a schema that accepts any text.
   */
  readonly pathSchema?: P;
}

/** Options of a server. Only `name` and `version` are required. */
export interface ServerOptions {
  /** Name of the server for programs, such as `weather`. */
  readonly name: string;
  /** The server's version, such as `1.0.0`. */
  readonly version: string;
  /** Name of the server that clients show to people. */
  readonly title?: string;
  /** A sentence that describes the server. */
  readonly description?: string;
  /** URL of a page with more information about the server. */
  readonly websiteUrl?: string;
  /** Icons that clients show for the server. */
  readonly icons?: readonly Icon[];
  /** Instructions for models on how to use the server. */
  readonly instructions?: string;
  /** The tools, resources and prompts. */
  readonly handlers?: readonly Handler[];
  /** Middleware that wraps every call, and layers around the handlers. The first middleware is the outermost. */
  readonly use?: readonly UseItem[];
  /**
   * Authenticates the caller of every HTTP request before the server reads the body, such as `apiKey({ keys })` from
   * `@x/mcp/auth`. With a list such as `[oauth(…), apiKey(…)]`, the server selects the scheme by the form of the
   * credentials. Defaults to no authentication: anyone who can reach the server can use it. Does not apply to stdio.
   */
  readonly auth?: Authentication | Authenticate | readonly Authentication[];
  /**
   * Decides whether the server accepts a request, before the server looks up its handler. Returns `true`, or a refusal
   * from `refuseRequest()` of `@x/mcp/auth`. The function runs for every request, including requests that open a
   * session, stream or WebSocket, and for the client's answers in a session. Defaults to accepting every request.
   */
  readonly admit?: Admit;
  /**
   * The capabilities that the server declares and supports. The options `listChanged`, `subscribe`, `completions` and
   * `logging` default to `true`. `tools: true`, `resources: true` and `prompts: true` declare a list even if it is
   * empty, for servers that add their first handler while they run.
   */
  readonly capabilities?: CapabilityOptions;
  /**
   * Path of the HTTP endpoint, such as `/tenants/:tenant/mcp`. Each concrete path is a separate endpoint: session ids,
   * cursors and request states from one path are not valid on another path. Defaults to `/mcp`.
   */
  readonly path?: string;
  /**
   * Host names under which clients can reach the server, such as `mcp.example.com`. If set, the server rejects requests
   * with any other Host header, except loopback hosts. Defaults to any host.
   */
  readonly hosts?: readonly string[];
  /**
   * IP addresses of reverse proxies in front of the server, such as `127.0.0.1`. The server then reads client addresses
   * from the `X-Forwarded-For` header that these proxies send. Without this option, all clients behind a proxy share
   * the limits of one client.
   */
  readonly proxies?: readonly string[];
  /**
   * Whether requests in revisions with sessions need a session id. Defaults to `false`: the server creates a separate
   * session for each request without a session id. The handler of such a request cannot send requests to the
   * client, and the client cannot resume the stream.
   */
  readonly requireSession?: boolean;
  /**
   * Dates of the protocol revisions that the server serves. The code for revisions with a handshake loads only if the
   * list contains such a revision. A client that uses another revision gets error -32022 with this list. The response
   * to `initialize` offers the newest listed revision with a handshake. Defaults to all five revisions.
   */
  readonly revisions?: readonly Revision[];
  /**
   * Origins of web pages that may call the server, such as `https://app.example.com`. Pages from the server's own
   * origin may always call the server.
   */
  readonly origins?: readonly string[];
  /**
   * Whether HTTP responses can be event streams. Set `false` on platforms that send only complete responses, such as AWS
   * Lambda behind an API gateway. The response to a call is then JSON, without progress and log messages, and clients
   * get no notifications of changes. In revisions with sessions, handlers cannot send requests to the client. The option
   * applies only to the HTTP endpoint, and not to stdio and WebSocket. `httpSse` throws for a server with `false`.
   * Defaults to `true`.
   */
  readonly streams?: boolean;
  /** Cross-origin access for browsers. Defaults to `"none"`. */
  readonly cors?: Cors;
  /**
   * Secret of at least 32 characters that all instances of this server share. To rotate the secret, pass a list with
   * the newest secret first. Without a secret, a restart ends all sessions and invalidates pending questions.
   */
  readonly secret?: string | readonly string[];
  /**
   * Store for the state that all instances share: ended sessions, subscriptions, the events of resumable streams, and
   * change notifications. Create a store with the functions of `@x/mcp/stores`. Without a store, each process keeps
   * this state in its memory.
   */
  readonly store?: Store;
  /**
   * Whether `server.handlers.disable` and `enable`, called without the argument `callers`, apply to all instances that
   * share the store, and still apply after a restart. Defaults to `false`: the calls apply only to the process that
   * makes them. If the store does not respond to a new instance, requests to the instance's handlers fail with code
   * -31503.
   *
   * `createServer` throws a `TypeError` if this option is `true` and there is no `store`.
   */
  readonly sharedDisable?: boolean;
  /**
   * Whether a tool argument can be JSON text where the input schema expects an object, an array, a number or a boolean.
   * A tool can override this option with its own `lenientArguments`. Defaults to `false`.
   */
  readonly lenientArguments?: boolean;
  /**
   * The format of the text copy of a tool result's structured content. Defaults to `"full"`. See the option `text` of
   * `tool()`.
   */
  readonly text?: "full" | "summary" | "none";
  /**
   * Computes a small JSON value about the client, which handlers read with `ctx.session(session)`. For clients with a
   * session, the function runs during `initialize`, and over HTTP the server seals the value into the session id. For
   * other clients, the function runs for each request in which a handler reads the value. The function must be
   * synchronous, and its value can have at most 2048 characters of JSON.
   */
  readonly sessionData?: (ctx: Context) => unknown;
  /** The limits to change. All other limits keep their defaults. */
  readonly limits?: LimitOptions;
  /** Milliseconds for which clients may cache lists, and resources that do not set their own `ttlMs`. Defaults to 0. */
  readonly ttlMs?: number;
  /**
   * Whether caches may share lists between callers (`"public"`) or must keep lists for each caller (`"private"`).
   * Defaults to `"private"` for authenticated callers, for servers with `auth`, and if middleware in `use` runs for
   * lists, because the middleware may change the lists. Otherwise defaults to `"public"`. A list that contains a
   * handler with `allow` is always private. Resources are private unless they have a `cacheScope`.
   */
  readonly cacheScope?: "public" | "private";
  /**
   * Receives events for metrics, logs and traces. Can be a list of observers. `observer.fault` receives each unexpected
   * error, and the client receives only an error id. Without a `fault` method, the server prints unexpected errors with
   * `console.error`.
   */
  readonly observer?: Observer | readonly Observer[];
  /**
   * Endpoints next to the MCP endpoint, such as `[health()]` from `@x/mcp/observe`, or `[{ path: "/version", fetch }]`.
   * These endpoints are public: the server checks neither the Host header nor the caller. Defaults to no routes.
   */
  readonly routes?: RouteList;
  /**
   * Describes an unexpected error in a handler to the client. For a tool, the returned text becomes the error result,
   * which the model reads. For other handlers, the text becomes the message of error -32603. The server sends a
   * returned `McpError` unchanged. If the function returns `undefined`, the client receives "Internal error" and an
   * error id. In all cases, `observer.fault` receives the error.
   */
  readonly mapError?: MapError;
  /**
   * Encoders for your own types. The first matching encoder converts a value. Encoders run before the built-in
   * conversions.
   */
  readonly encoders?: readonly Encoder[];
  /**
   * Changes the JSON Schemas that clients receive for tool input and output. Validation still uses the original
   * schemas.
   */
  readonly publishSchema?: PublishSchema;
  /**
   * Whether to print warnings about likely mistakes with `console.warn`: questions that are not awaited, work that a
   * handler repeats when it runs again after a question, and handlers that block all other calls. Defaults to `false`,
   * but `mcp --watch`, `mcp --inspect` and `connectTest` of `@x/mcp/testing` turn the warnings on. Questions that are
   * not awaited are always reported, without this option to `observer.fault`.
   */
  readonly development?: boolean;
  /** The clock that the server uses. Pass a fake clock in tests. Defaults to the system clock. */
  readonly clock?: Clock;
}
