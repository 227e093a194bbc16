/**
 * Tests whether values are equal as JSON, regardless of the order of properties.
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { countSteps } from "./steps.ts";

/** Steps for each value. */
const STEP = 20;
/** Steps for each name. Names take more steps than values, because names are sorted. */
const NAME = 24;

/** Returns a text that is the same for all values that are equal as JSON. */
export function toKey(value: unknown): string {
  countSteps(STEP);
  if (Array.isArray(value)) {
    let text = "[";
    for (const item of value) text += toKey(item) + ",";
    return text + "]";
  }
  if (!isObject(value)) {
    if (typeof value === "string") countSteps(value.length);
    return `${Number.isFinite(value) ? value : JSON.stringify(value)}`;
  }
  if (typeof value.toJSON === "function") return toKey(value.toJSON());
  const names = Object.keys(value);
  if (names.length > 1) names.sort();
  countSteps(NAME * names.length);
  let text = "{";
  for (const name of names) {
    // Write the length before each name, so that names need no quotes. The comma separates the value from the length of
    // the next name.
    if (value[name] !== undefined) text += `${name.length}:${name}${toKey(value[name])},`;
  }
  return text + "}";
}

/**
 * Whether a list contains two items that are equal as JSON. Sorts the items instead of adding them to a set, because
 * engines hash numbers and strings of digits without a secret, so a client could send items whose hashes all collide.
 * Sorting is also faster.
 */
export function hasEqual(list: readonly unknown[]): boolean {
  const numbers: number[] = [];
  const keys: string[] = [];
  for (const given of list) {
    countSteps(STEP);
    const item = isObject(given) && typeof given.toJSON === "function" ? given.toJSON() : given;
    if (typeof item === "number" && Number.isFinite(item)) numbers.push(item);
    else if (typeof item === "string") {
      countSteps(item.length >> 2);
      // The quotation mark distinguishes texts from other values, whose keys never begin with a quotation mark.
      keys.push('"' + item);
    } else keys.push(toKey(item));
  }
  return hasNeighbors(Float64Array.from(numbers).sort()) || hasNeighbors(keys.sort());
}

function hasNeighbors(sorted: Float64Array | readonly string[]): boolean {
  for (let i = 1; i < sorted.length; i++) if (sorted[i] === sorted[i - 1]) return true;
  return false;
}
