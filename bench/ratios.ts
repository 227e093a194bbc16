// Statistics of two interleaved series of measurements.
import { toMedian } from "./machine.ts";

/**
 * The quartiles of the ratios of each pair. The measurements of a pair are close in time, so they were made under the
 * same conditions.
 */
export interface Ratios {
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

/** Compares two series. Elements at the same index are pairs. */
export function toRatios(own: readonly number[], base: readonly number[]): Ratios {
  const sorted = own.map((each, i) => each / base[i]).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)];
  return { lower: at(0.25), median: toMedian(sorted), upper: at(0.75) };
}

/** Formats the lower and the upper quartile, such as `0.99–1.02`. */
export function toSpread({ lower, upper }: Ratios): string {
  return `${lower.toFixed(3)}–${upper.toFixed(3)}`;
}
