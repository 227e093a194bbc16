/**
 * Writes integers with 64 bits, which clients send as digits in a text, as numbers.
 */
import { toRawNumber } from "../../core/kit/exact_json.ts";
import { isObject } from "../../core/kit/json.ts";
import { listInner, listParts } from "../../core/schema/walker.ts";
import type { JsonSchema } from "../../library.ts";
import { DIGITS } from "./schemas.ts";

/** Converts a value at a path of a body: texts become numbers of which `JSON.stringify` writes all digits. */
export type ToExact = (value: unknown, path: readonly (string | number)[]) => unknown;

/** `root` contains the definitions of the schema. */
export function createToExact(root: JsonSchema, body: unknown): ToExact {
  // Most schemas have no integers with 64 bits.
  if (!JSON.stringify(root).includes(JSON.stringify(DIGITS))) return (value) => value;
  return (value, path) => {
    const parts = path.reduce((parts, key) => listInner(root, parts, key), listParts(root, body));
    return convert(root, parts, value);
  };
}

function convert(root: JsonSchema, parts: readonly JsonSchema[], value: unknown): unknown {
  if (typeof value === "string") {
    const texts = parts.filter(({ type }) => [type].flat().includes("string"));
    const isNumber = texts.length > 0 && texts.every(({ pattern }) => pattern === DIGITS);
    // Not with `BigInt`, which needs seconds for millions of digits. JSON has no leading zeros.
    return isNumber && /^-?\d+$/.test(value) ? toRawNumber(value.replace(/^(-?)0+(?=\d)/, "$1")) : value;
  }
  if (Array.isArray(value)) return value.map((item, i) => convert(root, listInner(root, parts, i), item));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, convert(root, listInner(root, parts, key), item)]),
  );
}
