/**
 * Options and services that all parts of one server share.
 *
 * @module
 */
import type { McpError, ToolError } from "../protocol/errors.ts";
import type { Implementation } from "../protocol/types.ts";
import type { JsonSchema } from "../schema/schema.ts";
import type { Authentication } from "./auth.ts";
import type { Call } from "./call.ts";
import type { ReadCapabilities } from "./capabilities.ts";
import type { ClientFacts, Context, ReadRoute } from "./context.ts";
import type { Filters } from "./guards.ts";
import type { Link } from "./link.ts";
import type { Limits } from "./limits.ts";
import type { Observer, Observing, RequestReport } from "./observer.ts";
import type { Sealer } from "./sealer.ts";
import type { NoServices } from "./service.ts";
import type { SharedState } from "./store.ts";
import type { Ticker } from "./timers.ts";

/**
 * Describes an unexpected error. The model or the client gets the text, the content of a `ToolError`, or the protocol
 * error. Returns `undefined` for "Internal error" and an id.
 */
export type DescribeError<S = NoServices> = (
  error: unknown,
  ctx: Context<S>,
) => string | ToolError | McpError | undefined;

/** Returns the JSON Schema that clients see of a tool. It gets a copy of the schema, which it may change. */
export type PublishSchema = (schema: PublishedSchema, about: PublishedTool) => JsonSchema;

/** A copy of a JSON Schema. */
export type PublishedSchema = { [key: string]: unknown };

/** The tool whose schema is published. */
export interface PublishedTool {
  /** Name of the tool. */
  readonly tool: string;
  /** Whether it is the schema of the input or of the output. */
  readonly use: "input" | "output";
}

/** A request before its handler is looked up, such as a call. */
export interface Entering {
  readonly method: string;
  readonly link: Link;
  readonly client: ClientFacts;
  readonly observed?: RequestReport;
}

/** Options and services that all parts of one server share. */
export interface Core {
  readonly identity: Implementation;
  /** Name and version of the server, which every result may carry. */
  readonly info: Implementation;
  readonly instructions?: string;
  readonly limits: Limits;
  readonly ticker: Ticker;
  readonly sealer: Sealer;
  /** Authenticates callers over HTTP. */
  readonly auth?: Authentication;
  /** Returns the parameters of the concrete path. `undefined` if the path has none. */
  readonly route?: ReadRoute;
  /** Milliseconds for which clients may cache results without a `ttlMs` of their own. */
  readonly ttlMs: number;
  /** Cache scope of lists that are the same for every caller. */
  readonly cacheScope: "public" | "private" | "anonymous";
  /** Whether middleware runs around every call, and may change results. */
  readonly hasMiddleware: boolean;
  /** Whether requests of revisions with sessions must have a session id. */
  readonly requiresSession: boolean;
  /** Computes what the server knows of a client's session. */
  readonly session?: (call: Call) => unknown;
  /** Describes an unexpected error of a handler. */
  readonly describeError?: DescribeError;
  /** Guards and encoders of all handlers. */
  readonly filters?: Filters;
  /** Changes the JSON Schema that clients see. */
  readonly publishSchema?: PublishSchema;
  /** Whether arguments may be JSON text where their schema expects another type. */
  readonly lenientArguments?: boolean;
  /** The optional capabilities of the server. */
  readonly can: ReadCapabilities;
  /** Decides whether a request may enter. Throws the error for the client. */
  readonly admit?: (request: Entering) => Promise<void>;
  /** Receives events. It has a method only for events that an observer handles, so write `observer.call?.({ … })`. */
  readonly observer: Observer;
  /** Builds events. `undefined` until it is loaded, and without an observer. */
  observing?: Observing;
  /**
   * Loads `observing` and the rules of `enable` and `disable`. Messages wait for it. If it rejects, they are refused.
   * `undefined` once all is loaded, and if there is nothing to load.
   */
  prepare?: () => Promise<void>;
  /** State that all instances share, if the server has a store. */
  readonly shared?: SharedState;
  /** Passes an unexpected error to the observer, and returns what the client may know of it. */
  report(error: unknown, about?: { readonly method?: string; readonly subject?: string }): McpError;
}
