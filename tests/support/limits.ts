import {
  type BoundOptions,
  type Bounds,
  OTHER_BOUNDS,
  readLimits,
  type TestLimits,
} from "../../src/core/capacity/limits.ts";

/** All limits, with their defaults. */
export const BOUNDS: Bounds = readLimits();

/** Returns limits for a test. Unlike the `limits` option, they can also contain limits that users cannot change. */
export function testLimits({ perTenant, ...bounds }: BoundOptions): TestLimits {
  return { ...(perTenant && { perTenant }), [OTHER_BOUNDS]: bounds };
}
