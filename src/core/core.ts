/**
 * What the parts of one server share.
 *
 * @module
 */
import type { McpError, ToolError } from "../protocol/errors.ts";
import type { Implementation } from "../protocol/types.ts";
import type { Call } from "./call.ts";
import type { Limits } from "./limits.ts";
import type { Sealer } from "./sealer.ts";
import type { Ticker } from "./timers.ts";

/** What went wrong, for `onError`. */
export interface Fault {
  /** The id that the client was sent, to find the one by the other. */
  readonly id: string;
  /** The method that was being answered, if it was one. */
  readonly method?: string;
  /** The tool, prompt or resource, if it was one. */
  readonly subject?: string;
}

/** What the parts of one server share. */
export interface Core {
  readonly identity: Implementation;
  /** Its name and version, which every result may carry. */
  readonly info: Implementation;
  readonly instructions?: string;
  readonly limits: Limits;
  readonly ticker: Ticker;
  readonly sealer: Sealer;
  /** How long clients may keep what has no time of its own, in milliseconds. */
  readonly ttlMs: number;
  /** Who may keep lists that are the same for everybody. */
  readonly cacheScope: "public" | "private" | "anonymous";
  /** Whether code around all calls may see and change what they return. */
  readonly hasMiddleware: boolean;
  /** Whether requests of revisions with sessions need a session id. */
  readonly requiresSession: boolean;
  /** Describes an unexpected error of a tool to the model. */
  readonly describeError?: (error: unknown, call: Call) => string | ToolError | undefined;
  /** Whether arguments may be JSON text where their schema expects another type. */
  readonly lenientArguments?: boolean;
  /** Passes an unexpected error to `onError`, and returns what the client may know of it. */
  report(error: unknown, about?: { readonly method?: string; readonly subject?: string }): McpError;
}
