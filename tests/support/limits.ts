import {
  type BoundOptions,
  type Bounds,
  OTHER_BOUNDS,
  readLimits,
  type TestLimits,
} from "../../src/core/capacity/limits.ts";

/** All bounds, with their defaults. */
export const BOUNDS: Bounds = readLimits();

/** Limits for a test, which may also change bounds that no option changes. */
export function testLimits({ perTenant, ...bounds }: BoundOptions): TestLimits {
  return { ...(perTenant && { perTenant }), [OTHER_BOUNDS]: bounds };
}
