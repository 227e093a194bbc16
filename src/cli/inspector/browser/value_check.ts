/**
 * Checks single values against the keywords of their schema.
 */
import { type Json, toCompact } from "./json.ts";
import { matchesPattern } from "./pattern.ts";

/** Returns the problem of a value, as a sentence. Returns `undefined` if the page finds no problem. */
export function findProblem(value: unknown, schema: Json): string | undefined {
  if (typeof value === "number") return findNumberProblem(value, schema);
  if (typeof value === "string") return findTextProblem(value, schema);
  if (Array.isArray(value)) return findListProblem(value, schema);
}

/** Whether a value violates a limit of the schema. `false` if the limit is not a number. */
function breaks(limit: unknown, holds: (limit: number) => boolean): boolean {
  return typeof limit === "number" && !holds(limit);
}

function findNumberProblem(value: number, schema: Json): string | undefined {
  const { type, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  if (type === "integer" && !Number.isInteger(value)) return "Enter a whole number.";
  if (breaks(minimum, (limit) => value >= limit)) return `Enter a number of at least ${minimum}.`;
  if (breaks(maximum, (limit) => value <= limit)) return `Enter a number of at most ${maximum}.`;
  if (breaks(exclusiveMinimum, (limit) => value > limit)) return `Enter a number greater than ${exclusiveMinimum}.`;
  if (breaks(exclusiveMaximum, (limit) => value < limit)) return `Enter a number less than ${exclusiveMaximum}.`;
}

function findTextProblem(value: string, { minLength, maxLength, pattern }: Json): string | undefined {
  // Count code points instead of UTF-16 code units, as JSON Schema requires.
  const { length } = minLength === undefined && maxLength === undefined ? "" : [...value];
  if (breaks(minLength, (limit) => length >= limit)) return `Enter at least ${minLength} characters.`;
  if (breaks(maxLength, (limit) => length <= limit)) return `Enter at most ${maxLength} characters.`;
  if (typeof pattern === "string" && matchesPattern(pattern, value) === false) {
    return `Enter text that matches ${pattern.slice(0, 200)}.`;
  }
}

function findListProblem(value: readonly unknown[], { minItems, maxItems, uniqueItems }: Json): string | undefined {
  if (breaks(minItems, (limit) => value.length >= limit)) return `Add at least ${minItems} items.`;
  if (breaks(maxItems, (limit) => value.length <= limit)) return `Keep at most ${maxItems} items.`;
  if (uniqueItems === true && new Set(value.map(toCompact)).size < value.length) {
    return "Two items are equal, but all items must differ.";
  }
}
