/**
 * Counts the steps of a validation, and aborts a validation that takes too many steps.
 *
 * The limit grows with the schema and the value, so that a short message cannot cause a long validation. Most
 * validations take few steps, so the schema and the value are weighed only after {@linkcode BASE} steps.
 */

/** Steps that every validation may take, regardless of schema and value. A step takes about 10 nanoseconds. */
const BASE = 200_000;
/** Additional steps for each keyword or value in the schema. */
const PER_KEYWORD = 20;
/** Additional steps for each unit of the value's weight. The weight is about the length of the value as JSON text. */
const PER_WEIGHT = 200;
/** Maximum number of steps of any validation. This number of steps takes less than 250 milliseconds. */
const MAX = 12_000_000;
/** Maximum number of keywords to count, because more keywords would not raise the limit above {@linkcode MAX}. */
const MAX_KEYWORDS = MAX / PER_KEYWORD;
/** Weight of each value if the characters of texts and names are counted too. */
const VALUE = 4;

// The state of the current validation. Validations are synchronous, so they never overlap. The numbers are small
// integers, because V8 would allocate memory for each change of any other number.
let steps = 0;
let limit = BASE;
let currentSchema: unknown;
let currentValue: unknown;
let isRaised = false;

/** The problem that is reported if a validation takes too many steps. */
export const TOO_MANY_STEPS: string =
  "the value takes too many steps to check; send a smaller value, or a value with fewer levels";

export class TooManySteps extends Error {}

export function startSteps(schema: unknown, value: unknown): void {
  steps = 0;
  limit = BASE;
  isRaised = false;
  currentSchema = schema;
  currentValue = value;
}

/** Stops counting, and releases the schema and the value. Returns the number of steps. */
export function endSteps(): number {
  currentSchema = currentValue = undefined;
  return steps;
}

/** Adds `count` steps to the current validation. @throws {TooManySteps} if the limit is exceeded. */
export function countSteps(count: number): void {
  steps += count;
  if (steps > limit) raiseLimit();
}

/** Whether the validation has taken so many steps that remembering outcomes saves time. */
export function areMany(): boolean {
  return steps > MANY;
}
const MANY = 20_000;

/** Runs `work` without counting its steps, for work that is done only once per schema. */
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
 * Returns the weight of a value: the number of values that it contains. With `countsText`, each value counts as
 * {@linkcode VALUE}, and the characters of texts and names are added. Stops counting above `max`.
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
      // Stop at `max`, because these items alone exceed the maximum weight. More items would only take memory.
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
