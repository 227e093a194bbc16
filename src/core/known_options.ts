/**
 * Finds options that would be ignored because of their names. A type checker rejects them, but JavaScript files have
 * none.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { findSuggestion } from "./suggestions.ts";

/** The options of one kind. `K` are their names. */
export interface KnownOptions<K extends string = string> {
  /** All names. The value of an option may be an object with options of its own. */
  readonly names: Readonly<Record<K, true | KnownOptions>>;
  /** Names that other libraries use, and the options that mean the same. */
  readonly hints?: Readonly<Record<string, K | `${K}.${string}`>>;
  /** Other names, such as options of related kinds, and the remedies. */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

/** An option that no kind has. */
export interface Unknown {
  /** Path of the option, such as `annotations.readOnly`. */
  readonly option: string;
  readonly remedy: string;
  /** Whether the option seems to be another name of a known one. */
  readonly hasSuggestion: boolean;
}

/** Finds unknown options in an object. `path` comes before their names. */
export function findUnknown(given: unknown, known: KnownOptions, path = ""): readonly Unknown[] {
  const { names } = known;
  return toEntries(given).flatMap(([name, value]) => {
    // An option that was computed, and is not set.
    if (value === undefined) return [];
    if (!Object.hasOwn(names, name)) return [{ option: path + name, ...explain(name, known, path) }];
    const nested = names[name];
    return nested === true ? [] : findUnknown(value, nested, `${path}${name}.`);
  });
}

/**
 * Rejects unknown options where ignoring one could let in callers that should be refused.
 *
 * @throws {TypeError} with the function, such as `oauth()`, the option and the remedy.
 */
export function rejectUnknown(place: string, given: unknown, known: KnownOptions): void {
  const [unknown] = findUnknown(given, known);
  if (!unknown) return;
  throw new TypeError(`Cannot use ${place}: there is no option ${unknown.option}; ${unknown.remedy}`);
}

function explain(name: string, { names, hints = {}, elsewhere = {} }: KnownOptions, path: string) {
  if (Object.hasOwn(hints, name)) return { remedy: `write ${path}${hints[name]} instead`, hasSuggestion: true };
  if (Object.hasOwn(elsewhere, name)) return { remedy: elsewhere[name], hasSuggestion: true };
  const suggestion = findSuggestion(name, Object.keys(names));
  return suggestion === undefined
    ? { remedy: "remove it", hasSuggestion: false }
    : { remedy: `did you mean ${path}${suggestion}?`, hasSuggestion: true };
}

/** The entries of an object; none of another value. */
export function toEntries(value: unknown): readonly [name: string, value: unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
