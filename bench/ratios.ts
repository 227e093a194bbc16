// What two interleaved series of measurements say together.
import { toMedian } from "./machine.ts";

/** The quartiles of the ratios pair by pair: neighbours in time had the same machine. */
export interface Ratios {
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

/** Compares two series, of which each element belongs to the one at the same place in the other. */
export function toRatios(own: readonly number[], base: readonly number[]): Ratios {
  const sorted = own.map((each, i) => each / base[i]).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)];
  return { lower: at(0.25), median: toMedian(sorted), upper: at(0.75) };
}

/** The lower and the upper quartile, as in `0.99–1.02`. */
export function toSpread({ lower, upper }: Ratios): string {
  return `${lower.toFixed(3)}–${upper.toFixed(3)}`;
}
