/**
 * Functions for reading JSON values and formatting numbers.
 */

import { isObject } from "../../../core/kit/json.ts";

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** A parsed JSON value, or the reason why the text is not JSON. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

export function toObject(value: unknown): Json {
  return isObject(value) ? value : {};
}

export function toObjects(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns the value if it is a non-empty string, or `undefined`. */
export function toText(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

export function parseJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

export function parseObject(text: string): Json {
  const parsed = parseJson(text);
  return "value" in parsed ? toObject(parsed.value) : {};
}

/** Formats a value on one line. Never throws. */
export function toCompact(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "undefined";
  } catch {
    // The value has thousands of nested levels, and its conversion overflows the browser's call stack.
    return "(nested too deeply to show)";
  }
}

/** Formats a value with indentation. A deeply nested value is formatted on one line. */
export function toPretty(value: unknown): string {
  return nestsDeeply(value) ? toCompact(value) : JSON.stringify(value, null, 2) ?? "undefined";
}

function nestsDeeply(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth < 100; depth++) {
    level = level.flatMap((one) => typeof one === "object" && one !== null ? Object.values(one) : []);
    if (!level.length) return false;
  }
  return true;
}

/** Formats milliseconds, such as `1.2 ms` or `3.4 s`. */
export function formatMs(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** Formats a number of characters, such as `640` or `1.2 k`. */
export function formatSize(length: number): string {
  if (length < 1000) return `${length}`;
  return length < 1e6 ? `${(length / 1000).toFixed(1)} k` : `${(length / 1e6).toFixed(1)} M`;
}
