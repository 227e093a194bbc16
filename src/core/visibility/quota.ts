/**
 * The interface of the quota of a handler. `quota()` of `@x/mcp/quota` creates it.
 *
 * @module
 */
import type { FeatureParts } from "./feature_parts.ts";
import type { Handler, Runner } from "./feature.ts";
import type { Allow } from "../call/context.ts";
import { INTERNALS } from "../call/internals.ts";

/** Quota of a handler, created by `quota()` of `@x/mcp/quota`. Handlers with the same quota object share its counts. */
export interface Quota {
  /**
   * Internal state for the handler.
   *
   * @ignore
   */
  readonly [INTERNALS]: {
    /** Binds the quota to a handler. Throws if the quota does not suit the handler. */
    bind(handler: LimitedHandler): BoundQuota;
  };
}

/**
 * A handler that receives a quota.
 *
 * @internal
 */
export interface LimitedHandler {
  /** Kind and name for messages, such as `tool "search"`. */
  readonly place: string;
  readonly kind: "tool" | "prompt" | "resource" | "completion" | "method";
  /** Unique name or URI of the handler. */
  readonly key: string;
  /** Whether the results of the handler must match a schema. */
  readonly hasOutput?: boolean;
  readonly allow?: Allow;
  readonly scopes?: readonly string[];
}

/** Limits that are bound to one handler. */
export interface BoundQuota {
  /** Handlers that are added and removed together with the limited handler. */
  readonly also?: readonly Handler[];
  /** Returns a runner that runs within the quota. */
  apply<R extends Runner>(runner: R, core: FeatureParts): R;
}

/** Binds the quota of a handler, if it has one. Throws if the value is not a quota. */
export function bindQuota(quota: Quota | undefined, handler: LimitedHandler): BoundQuota | undefined {
  if (quota !== undefined && !Object(quota)[INTERNALS]) {
    throw new TypeError(`Cannot make ${handler.place}: its quota was not made by quota() of @x/mcp/quota`);
  }
  return quota?.[INTERNALS].bind(handler);
}
