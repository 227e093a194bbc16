/**
 * Counts the steps of a validation, and ends a validation that takes too many.
 *
 * The limit grows with the schema and with the value, so that a short message never takes long. Most validations take
 * few steps, so schema and value are weighed only after {@linkcode BASE} steps.
 *
 * @module
 */

/** Steps that every validation may take. A step takes about 10 nanoseconds. */
const BASE = 200_000;
/** Additional steps for each keyword or value in the schema. */
const PER_KEYWORD = 20;
/** Additional steps for each unit of the value's weight, which is about its length as JSON text. */
const PER_WEIGHT = 200;
/** Steps that no validation may exceed. Together they take less than 250 milliseconds. */
const MAX = 12_000_000;
/**
 * The number of keywords of a schema that are counted. Further keywords could not raise the limit above the maximum.
 */
const MAX_KEYWORDS = MAX / PER_KEYWORD;
/** Weight of a value that is not text. */
const VALUE = 4;

// The state of the current validation. Validations are synchronous, so they never overlap. The numbers are small
// integers, because V8 would allocate any other number again with each change.
let steps = 0;
let limit = BASE;
let currentSchema: unknown;
let currentValue: unknown;
let isRaised = false;

/** The problem of a value that takes too many steps. */
export const TOO_MANY_STEPS: string = "cannot be checked: it takes too many steps; send less, or nest it less deeply";

/** The error of a validation that takes too many steps. */
export class TooManySteps extends Error {}

/** Starts to count the steps of a validation. */
export function startSteps(schema: unknown, value: unknown): void {
  steps = 0;
  limit = BASE;
  isRaised = false;
  currentSchema = schema;
  currentValue = value;
}

/** Ends the count, and releases the value. Returns the number of steps. */
export function endSteps(): number {
  currentSchema = currentValue = undefined;
  return steps;
}

/**
 * Counts steps.
 *
 * @throws {TooManySteps} if the limit is exceeded.
 */
export function spend(count: number): void {
  steps += count;
  if (steps > limit) raiseLimit();
}

/** Whether the validation has taken so many steps that remembering outcomes saves time. */
export function areMany(): boolean {
  return steps > MANY;
}
const MANY = 20_000;

/** Runs work without counting its steps, such as work that is done once for a schema. */
export function uncounted<T>(work: () => T): T {
  const before = steps;
  steps = -1_000_000_000;
  try {
    return work();
  } finally {
    steps = before;
  }
}

function raiseLimit(): void {
  if (!isRaised) {
    isRaised = true;
    const ofSchema = PER_KEYWORD * weigh(currentSchema, MAX_KEYWORDS, false);
    const ofValue = PER_WEIGHT * weigh(currentValue, MAX / PER_WEIGHT, true);
    limit = Math.min(MAX, BASE + ofSchema + ofValue);
  }
  if (steps > limit) throw new TooManySteps();
}

/**
 * Returns the weight of a value: the number of values within it, and with `countsText` also the characters of its texts
 * and names. Stops above `max`.
 */
export function weigh(whole: unknown, max: number, countsText: boolean): number {
  const each = countsText ? VALUE : 1;
  const open: unknown[] = [whole];
  let weight = 0;
  while (open.length && weight <= max) {
    const value = open.pop();
    weight += each;
    if (countsText && typeof value === "string") weight += value.length;
    if (typeof value !== "object" || !value) continue;
    if (Array.isArray(value)) {
      // Stop at `max`, because the rest of a long list cannot change the result, and listing it would take memory.
      for (let i = 0; i < value.length && open.length <= max; i++) open.push(value[i]);
      continue;
    }
    for (const name in value) {
      if (!Object.hasOwn(value, name)) continue;
      if (countsText) weight += name.length;
      open.push(Reflect.get(value, name));
      if (open.length > max) break;
    }
  }
  return weight;
}
