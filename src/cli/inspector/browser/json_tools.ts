/**
 * Functions for JSON values, and formatting of numbers.
 *
 * @module
 */

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** The result of parsing JSON. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** Functions for JSON. */
export interface JsonTools {
  isObject(value: unknown): value is Json;
  /** The objects in a list. Returns an empty list for other values. */
  objects(value: unknown): readonly Json[];
  /** A non-empty string. Returns `undefined` for other values. */
  text(value: unknown): string | undefined;
  parse(text: string): Parsed;
  /** Formats with indentation, unless the value is nested too deeply. */
  pretty(value: unknown): string;
  /** Formats on one line. Never throws. */
  compact(value: unknown): string;
  /** Formats milliseconds, such as `1.2 ms` or `3.4 s`. */
  time(ms: number): string;
  /** Formats a number of characters, such as `640` or `1.2 k`. */
  size(length: number): string;
}

/** Creates the functions. */
export function createJsonTools(): JsonTools {
  function isObject(value: unknown): value is Json {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }

  function parse(text: string): Parsed {
    try {
      return { value: JSON.parse(text) };
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) };
    }
  }

  function compact(value: unknown): string {
    try {
      return JSON.stringify(value) ?? "undefined";
    } catch {
      // Thousands of levels exceed the stack of the browser.
      return "(nested too deeply to show)";
    }
  }

  function pretty(value: unknown): string {
    return nestsDeeply(value) ? compact(value) : JSON.stringify(value, null, 2) ?? "undefined";
  }

  function nestsDeeply(value: unknown): boolean {
    let level: unknown[] = [value];
    for (let depth = 0; depth < 100; depth++) {
      level = level.flatMap((one) => typeof one === "object" && one !== null ? Object.values(one) : []);
      if (!level.length) return false;
    }
    return true;
  }

  function time(ms: number): string {
    if (ms < 10) return `${ms.toFixed(1)} ms`;
    return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  }

  function size(length: number): string {
    return length < 1000
      ? `${length}`
      : length < 1e6
      ? `${(length / 1000).toFixed(1)} k`
      : `${(length / 1e6).toFixed(1)} M`;
  }

  return {
    isObject,
    objects: (value) => Array.isArray(value) ? value.filter(isObject) : [],
    text: (value) => typeof value === "string" && value ? value : undefined,
    parse,
    pretty,
    compact,
    time,
    size,
  };
}
