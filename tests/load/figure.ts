// Figures: the results of measurements.
import type { Runtime } from "./processes.ts";

/** One figure, measured on one runtime. */
export interface Figure {
  readonly what: string;
  readonly aim: string;
  readonly value: string;
  /** Whether the figure meets its target; `undefined` if there is no target. */
  readonly holds?: boolean;
}

/** Measures figures on a runtime. With `isQuick`, measures fewer figures or measures for a shorter time. */
export type Measure = (runtime: Runtime, isQuick: boolean) => Promise<readonly Figure[]>;

/** Creates a figure with an upper bound. */
export function atMost(what: string, value: number, most: number, unit: string, digits = 0): Figure {
  return { what, aim: `≤ ${most} ${unit}`, value: `${value.toFixed(digits)} ${unit}`, holds: value <= most };
}

/** Creates a figure that counts successes. The target is that all attempts succeed. */
export function all(what: string, good: number, total: number): Figure {
  return { what, aim: "all", value: `${good} of ${total}`, holds: good === total };
}
