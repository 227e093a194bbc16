// Compares two interleaved series of measurements.
import { toMedian } from "./machine.ts";

/**
 * The quartiles of the ratios of all pairs. The two measurements of a pair are close in time, so their conditions are
 * the same.
 */
export interface Ratios {
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

/** Returns the quartiles of `own / base`. Elements at the same index form a pair. */
export function toRatios(own: readonly number[], base: readonly number[]): Ratios {
  const sorted = own.map((each, i) => each / base[i]).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)];
  return { lower: at(0.25), median: toMedian(sorted), upper: at(0.75) };
}

/** Formats the lower and the upper quartile, such as `0.99–1.02`. */
export function toSpread({ lower, upper }: Ratios): string {
  return `${lower.toFixed(3)}–${upper.toFixed(3)}`;
}
