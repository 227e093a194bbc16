/**
 * JSON values, and numbers as people read them.
 *
 * @module
 */

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** What becomes of a text that should be JSON. */
export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** Work with JSON. */
export interface JsonTools {
  isObject(value: unknown): value is Json;
  /** The objects in what should be a list of objects. */
  objects(value: unknown): readonly Json[];
  /** A text, or nothing if it is none or empty. */
  text(value: unknown): string | undefined;
  parse(text: string): Parsed;
  /** Indented, unless it nests so deeply that the indentation would be most of it. */
  pretty(value: unknown): string;
  /** On one line. Never throws. */
  compact(value: unknown): string;
  /** Milliseconds, such as `1.2 ms` or `3.4 s`. */
  time(ms: number): string;
  /** Characters, such as `640` or `1.2 k`. */
  size(length: number): string;
}

/** Makes the tools. */
export function createJson(): JsonTools {
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
      // The stack of a browser ends before that of a value that nests some thousand times.
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
