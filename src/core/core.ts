/**
 * What the rooms of one server share.
 *
 * @module
 */
import type { McpError, ToolError } from "../protocol/errors.ts";
import type { Incoming, Result } from "../protocol/jsonrpc.ts";
import type { Implementation } from "../protocol/types.ts";
import type { Call, Link, Reply } from "./call.ts";
import type { Ticker } from "./timers.ts";
import type { Handler, Runner } from "./feature.ts";
import type { Limits } from "./limits.ts";
import type { Registry } from "./registry.ts";
import type { Sealer } from "./sealer.ts";

/** What went wrong, for `onError`. */
export interface Fault {
  /** The id that the client was told, to find the one by the other. */
  readonly id: string;
  /** The method that was being answered, if it was one. */
  readonly method?: string;
  /** The tool, prompt or resource, if it was one. */
  readonly subject?: string;
}

/** Something that clients may want to hear of. */
export type Change =
  | {
    readonly kind: "list";
    readonly feature: string;
    /** Those that came or left, if that is known: who may see none of them does not hear of it. */
    readonly handlers?: readonly Handler[];
  }
  | { readonly kind: "resource"; readonly uri: string }
  | { readonly kind: "close" };

/** What the rooms of one server share. */
export interface Core {
  readonly identity: Implementation;
  readonly instructions?: string;
  readonly limits: Limits;
  readonly ticker: Ticker;
  readonly registry: Registry;
  readonly sealer: Sealer;
  /** Milliseconds for which clients may keep what says nothing else. */
  readonly ttlMs: number;
  /** Who may keep lists that are the same for everybody. */
  readonly cacheScope: "public" | "private";
  /** Words for the model about an unexpected error of a tool. */
  readonly toToolError?: (error: unknown, call: Call) => string | ToolError | undefined;
  /** Tells listeners of a change; bursts are told once. */
  emit(change: Change): void;
  /** Who hears of changes. */
  readonly listeners: Set<(change: Change) => void>;
  /** Whether the server takes no new calls. */
  closing: boolean;
  /** Runs a call to its one outcome. Nothing comes back when the call was cancelled first. */
  run(call: Call, runner: Runner): Outcome | undefined | Promise<Outcome | undefined>;
  /** Tells `onError` the truth; what the client may know of it. */
  report(error: unknown, about?: { readonly method?: string; readonly subject?: string }): McpError;
}

/** How a call ended. */
export type Outcome =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: McpError; readonly result?: undefined };

/** A generation of the protocol: turns a message into a call, and its outcome into a reply. */
export interface Era {
  accept(message: Incoming, link: Link): Reply | Promise<Reply>;
  /** Opens a stream that no request asked for; the reply ends it. */
  attach?(link: Link): Reply | Promise<Reply>;
  /** Ends what `attach` and its like hold. */
  detach?(link: Link): Reply | Promise<Reply>;
}
