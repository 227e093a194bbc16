/**
 * Checks options that are numbers.
 *
 * @module
 */

/** Throws if a number is not above 0, or if it counts something and is not whole. */
export function checkNumbers(action: string, numbers: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (typeof value !== "number" || !(value > 0) || !(value < Infinity)) {
      throw new TypeError(`Cannot ${action}: ${name} is ${value}; it must be a number above 0`);
    }
    if (COUNTS.includes(name) && !Number.isInteger(value)) {
      throw new TypeError(`Cannot ${action}: ${name} is ${value}; it must be a whole number`);
    }
  }
}

const COUNTS: readonly string[] = ["attempts", "failures", "entries", "bytes"];
