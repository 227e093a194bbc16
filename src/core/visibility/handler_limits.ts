/**
 * The contract of limits that belong to single handlers. `@x/mcp/limits` makes them.
 *
 * @module
 */
import type { FeatureParts } from "./feature_parts.ts";
import type { Handler, Runner } from "./feature.ts";
import type { Allow } from "../call/context.ts";
import { INTERNALS } from "../call/internals.ts";

/** Limits of a handler, made by `limits()` of `@x/mcp/limits`. Handlers with the same object share its counts. */
export interface HandlerLimits {
  /**
   * Internal state for the handler.
   *
   * @ignore
   */
  readonly [INTERNALS]: {
    /** Binds the limits to a handler. Throws if they do not fit it. */
    bind(handler: LimitedHandler): BoundLimits;
  };
}

/**
 * A handler that gets limits.
 *
 * @internal
 */
export interface LimitedHandler {
  /** Kind and name for messages, such as `tool "search"`. */
  readonly place: string;
  readonly kind: "tool" | "prompt" | "resource" | "completion" | "method";
  /** Unique name or URI of the handler. */
  readonly key: string;
  /** Whether its results must match a schema. */
  readonly hasOutput?: boolean;
  readonly allow?: Allow;
  readonly scopes?: readonly string[];
}

/** Limits that are bound to one handler. */
export interface BoundLimits {
  /** Handlers that come and go with the limited one. */
  readonly also?: readonly Handler[];
  /** Returns a runner that runs within the limits. */
  apply<R extends Runner>(runner: R, core: FeatureParts): R;
}

/** Binds the limits of a handler, if it has any. Throws if they are not limits. */
export function bindLimits(limits: HandlerLimits | undefined, handler: LimitedHandler): BoundLimits | undefined {
  if (limits !== undefined && !Object(limits)[INTERNALS]) {
    throw new TypeError(`Cannot make ${handler.place}: its limits were not made by limits() of @x/mcp/limits`);
  }
  return limits?.[INTERNALS].bind(handler);
}
