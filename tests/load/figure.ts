// What a measure gives.
import type { Runtime } from "./processes.ts";

/** One figure of one runtime. */
export interface Figure {
  readonly what: string;
  readonly aim: string;
  readonly value: string;
  /** Whether the aim is met; nothing where there is none. */
  readonly holds?: boolean;
}

/** Takes figures of a runtime; in a hurry, fewer or shorter. */
export type Measure = (runtime: Runtime, isQuick: boolean) => Promise<readonly Figure[]>;

/** A figure with an upper bound. */
export function atMost(what: string, value: number, most: number, unit: string, digits = 0): Figure {
  return { what, aim: `≤ ${most} ${unit}`, value: `${value.toFixed(digits)} ${unit}`, holds: value <= most };
}

/** A figure that counts how many of all are well. */
export function all(what: string, good: number, total: number): Figure {
  return { what, aim: "all", value: `${good} of ${total}`, holds: good === total };
}
