import { type BoundOptions, type Bounds, readLimits, type TestLimits } from "../../src/core/capacity/limits.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";

/** All bounds by default. */
export const BOUNDS: Bounds = readLimits();

/** Limits for a test, which may also change what no option changes. */
export function testLimits({ perTenant, ...bounds }: BoundOptions): TestLimits {
  return { ...(perTenant && { perTenant }), [INTERNALS]: bounds };
}
