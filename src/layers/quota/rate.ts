/**
 * Limits the rate of calls per client with token buckets.
 */
import { McpError, withLimits } from "../../core/protocol/errors.ts";
import { type ClientKey, isPrincipal } from "../../server/call/client_key.ts";
import { ClientBuckets } from "../../server/capacity/buckets.ts";
import type { LayerCall } from "../../server/engine/layers.ts";

/** Maximum rate of calls per client. */
export interface Rate {
  /** Number of calls per period. */
  readonly calls: number;
  /** The period, in milliseconds. */
  readonly perMs: number;
  /** Maximum number of calls that a client can make at once after a pause. Defaults to `calls`. */
  readonly burst?: number;
}

/** Principals have buckets of their own, so that a caller with many addresses cannot affect them. */
export class Buckets {
  readonly #principals: ClientBuckets;
  readonly #others: ClientBuckets;

  /** `max` is the number of new clients per period that get a separate bucket: `limits.rates.clients`. */
  constructor(rate: Rate, max: number) {
    this.#principals = new ClientBuckets(rate, max);
    this.#others = new ClientBuckets(rate, max);
  }

  /** Number of buckets, for tests. */
  get size(): number {
    return this.#principals.size + this.#others.size;
  }

  /** Takes a token and returns 0. If the bucket is empty, returns the milliseconds until the next token. */
  consume(client: ClientKey, now: number): number {
    return (isPrincipal(client) ? this.#principals : this.#others).consume(client, now);
  }
}

/** Reports a call that exceeds the rate to the observer, and returns the error for the client. */
export function refuseRate(retryAfterMs: number, { reachLimit }: LayerCall): McpError {
  const limit = "handler.rate";
  reachLimit(limit);
  const message = `Cannot run the call: too many calls; try again in ${retryAfterMs} ms (${limit})`;
  return withLimits(McpError.rateLimited(message, { retryAfterMs }), limit);
}
