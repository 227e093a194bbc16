// The result of a measurement.
import type { Runtime } from "./processes.ts";

/** One figure of one runtime. */
export interface Figure {
  readonly what: string;
  readonly aim: string;
  readonly value: string;
  /** Whether the target is met; `undefined` if there is no target. */
  readonly holds?: boolean;
}

/** Measures figures on a runtime. With `quick`, measures fewer figures or for a shorter time. */
export type Measure = (runtime: Runtime, isQuick: boolean) => Promise<readonly Figure[]>;

/** A figure with an upper bound. */
export function atMost(what: string, value: number, most: number, unit: string, digits = 0): Figure {
  return { what, aim: `≤ ${most} ${unit}`, value: `${value.toFixed(digits)} ${unit}`, holds: value <= most };
}

/** A figure that counts successes out of a total. */
export function all(what: string, good: number, total: number): Figure {
  return { what, aim: "all", value: `${good} of ${total}`, holds: good === total };
}
