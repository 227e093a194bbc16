import {
  type BoundOptions,
  type Bounds,
  OTHER_BOUNDS,
  readLimits,
  type TestLimits,
} from "../../src/server/capacity/limits.ts";

/** All limits, with their defaults. */
export const BOUNDS: Bounds = readLimits();

/**
 * Limits for tests of the HTTP status of errors. By default, the response to a call that takes longer than 25 ms, as any
 * call can on a busy machine, becomes an event stream, which has status 200.
 */
export const LATE_STREAMS: BoundOptions = { streams: { openAfterMs: 60_000 } };

/** Returns limits for a test. Unlike the `limits` option, they can also contain limits that users cannot change. */
export function testLimits({ perTenant, ...bounds }: BoundOptions): TestLimits {
  return { ...(perTenant && { perTenant }), [OTHER_BOUNDS]: bounds };
}
