import {
  type BoundOptions,
  type Bounds,
  OTHER_BOUNDS,
  readLimits,
  type TestLimits,
} from "../../src/core/capacity/limits.ts";

/** All limits, with their defaults. */
export const BOUNDS: Bounds = readLimits();

/** Limits for a test, which may also change limits that no option changes. */
export function testLimits({ perTenant, ...bounds }: BoundOptions): TestLimits {
  return { ...(perTenant && { perTenant }), [OTHER_BOUNDS]: bounds };
}
