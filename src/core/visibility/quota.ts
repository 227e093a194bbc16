/**
 * The interface of a handler's quota. `quota()` from `@x/mcp/quota` creates quotas.
 *
 * @module
 */
import type { FeatureParts } from "./feature_parts.ts";
import type { Handler, Runner } from "./feature.ts";
import type { Allow } from "../call/context.ts";
import { INTERNALS } from "../call/internals.ts";

/**
 * Quota of a handler, created by `quota()` from `@x/mcp/quota`. Handlers with the same quota object share the quota's
 * counters.
 */
export interface Quota {
  /**
   * Internal state that the handler uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: {
    /** Binds the quota to a handler. Throws if the handler does not support an option of the quota. */
    bind(handler: LimitedHandler): BoundQuota;
  };
}

/**
 * The facts about a handler that are needed to bind a quota.
 *
 * @internal
 */
export interface LimitedHandler {
  /** Kind and name of the handler for error messages, such as `tool "search"`. */
  readonly place: string;
  readonly kind: "tool" | "prompt" | "resource" | "completion" | "method";
  /** Unique name or URI of the handler. */
  readonly key: string;
  /** Whether the handler's results must match a schema. */
  readonly hasOutput?: boolean;
  readonly allow?: Allow;
  readonly scopes?: readonly string[];
}

/** A quota that is bound to one handler. */
export interface BoundQuota {
  /** Handlers that are added and removed together with the limited handler. */
  readonly also?: readonly Handler[];
  /** Returns a runner that enforces the quota. */
  apply<R extends Runner>(runner: R, core: FeatureParts): R;
}

/** Binds a handler's quota, if any. Throws if `quota` is not a quota. */
export function bindQuota(quota: Quota | undefined, handler: LimitedHandler): BoundQuota | undefined {
  if (quota !== undefined && !Object(quota)[INTERNALS]) {
    throw new TypeError(`Cannot make ${handler.place}: quota is not a quota; create it with quota() from @x/mcp/quota`);
  }
  return quota?.[INTERNALS].bind(handler);
}
