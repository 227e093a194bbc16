/**
 * The parts of a server that its features use.
 *
 * @module
 */
import type { McpError, ToolError } from "../../protocol/errors.ts";
import type { Implementation } from "../../protocol/types.ts";
import type { TextCopy } from "../../protocol/text_option.ts";
import type { JsonSchema } from "../../schema/schema.ts";
import type { ReadCapabilities } from "../call/capabilities.ts";
import type { Context } from "../call/context.ts";
import type { Reporter } from "../call/observer.ts";
import type { ScopeRules } from "../call/scopes.ts";
import type { Sealer } from "../call/sealer.ts";
import type { SharedLogs } from "../call/shared_values.ts";
import type { NoServices } from "../call/service.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Ticker } from "../capacity/timers.ts";
import type { Filters } from "./guards.ts";

/**
 * Describes an unexpected error. A returned string, `ToolError` or `McpError` is sent to the client. For a tool, the
 * model reads the string or the `ToolError`. If the function returns `undefined`, the client receives "Internal error"
 * and an id.
 */
export type MapError<S = NoServices> = (
  error: unknown,
  ctx: Context<S>,
) => string | ToolError | McpError | undefined;

/**
 * Returns the JSON Schema of a tool as clients see it. The function receives a copy of the schema, which it may change.
 */
export type PublishSchema = (schema: { [key: string]: unknown }, about: PublishedTool) => JsonSchema;

/** The tool whose schema is published. */
export interface PublishedTool {
  /** Name of the tool. */
  readonly tool: string;
  /** Whether the schema is for the input or the output. */
  readonly use: "input" | "output";
}

/** Options and services of a server that its features use. */
export interface FeatureParts extends Reporter, ScopeRules {
  /** Name and version of the server. Results may include them. */
  readonly info: Implementation;
  readonly limits: Bounds;
  readonly ticker: Ticker;
  readonly sealer: Sealer;
  /** Milliseconds for which clients may cache results that do not set a `ttlMs`. */
  readonly ttlMs: number;
  /** Cache scope of lists that are the same for every caller. */
  readonly cacheScope: "public" | "private" | "anonymous";
  /** Whether middleware wraps every call, and may change results. */
  readonly hasMiddleware: boolean;
  /** Describes an unexpected error of a handler. */
  readonly mapError?: MapError;
  /** Guards and encoders of all handlers. */
  readonly filters?: Filters;
  /** Changes the JSON Schemas that clients see. */
  readonly publishSchema?: PublishSchema;
  /** Whether arguments may be JSON text where their schema expects another type. */
  readonly lenientArguments?: boolean;
  /** The text copy of structured content. */
  readonly text?: TextCopy;
  /** The optional capabilities of the server. */
  readonly can: ReadCapabilities;
  /** Values and logs that all instances share. `undefined` if the server has no store. */
  readonly shared?: SharedLogs;
}
