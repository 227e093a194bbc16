/**
 * The parts of the server that features use.
 */
import type { McpError, ToolError } from "../../core/protocol/errors.ts";
import type { Implementation } from "../../core/protocol/types.ts";
import type { TextCopy } from "../../core/protocol/text_option.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import type { ReadCapabilities } from "../call/capabilities.ts";
import type { Context } from "../call/context.ts";
import type { Reporter } from "../call/observer.ts";
import type { ScopeRules } from "../call/scopes.ts";
import type { Sealer } from "../call/sealer.ts";
import type { SharedStore } from "../call/shared_values.ts";
import type { NoServices } from "../call/service.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Ticker } from "../../core/timers.ts";
import type { ServerState } from "../capacity/server_state.ts";
import type { Encoder } from "./guards.ts";

/**
 * Converts an unexpected error to a string, `ToolError` or `McpError` for the client. In a tool call, the model reads
 * the string or the `ToolError`. If the function returns `undefined`, the client receives "Internal error" and an error
 * id.
 */
export type MapError<S = NoServices> = (
  error: unknown,
  ctx: Context<S>,
) => string | ToolError | McpError | undefined;

/** Returns the JSON Schema that clients receive for a tool. May change and return `schema`, which is a copy. */
export type PublishSchema = (schema: { [key: string]: unknown }, about: PublishedTool) => JsonSchema;

/** The tool to which a published schema belongs. */
export interface PublishedTool {
  /** Name of the tool. */
  readonly tool: string;
  /** Whether this is the schema of the tool's input or of its output. */
  readonly use: "input" | "output";
}

export interface FeatureParts extends Reporter, ScopeRules {
  /** Name and version of the server. Results may contain this information. */
  readonly info: Implementation;
  readonly limits: Bounds;
  readonly ticker: Ticker;
  /** The values that belong to the server, and that all its paths share. */
  readonly state: ServerState;
  readonly sealer: Sealer;
  /** Milliseconds for which clients may cache a result that does not set a `ttlMs`. */
  readonly ttlMs: number;
  /** Cache scope of lists that are the same for every caller. */
  readonly cacheScope: "public" | "private" | "anonymous";
  /** Whether the server has middleware, which may change results. */
  readonly hasMiddleware: boolean;
  readonly mapError?: MapError;
  readonly encoders?: readonly Encoder[];
  readonly publishSchema?: PublishSchema;
  /** Whether an argument may be JSON text if the schema expects a type other than a string. */
  readonly lenientArguments?: boolean;
  /** The format of the text copy of structured content. */
  readonly text?: TextCopy;
  readonly can: ReadCapabilities;
  /** The store, with the values and logs that all instances share. `undefined` if the server has no store. */
  readonly shared?: SharedStore;
}
