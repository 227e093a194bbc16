/**
 * Checks options that are numbers.
 */
import { show } from "../core/known_options.ts";

/**
 * Checks that numbers are positive, and that counts are whole numbers.
 *
 * @throws {TypeError} if a number is invalid.
 */
export function checkNumbers(action: string, numbers: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (typeof value !== "number" || !(value > 0) || !(value < Infinity)) {
      throw new TypeError(`Cannot ${action}: ${name} is ${show(value)}; it must be a finite number above 0`);
    }
    if (COUNTS.includes(name) && !Number.isInteger(value)) {
      throw new TypeError(`Cannot ${action}: ${name} is ${value}; it must be a whole number`);
    }
  }
}

const COUNTS: readonly string[] = ["attempts", "failures", "entries", "bytes"];
