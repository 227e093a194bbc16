/**
 * Names tools and arguments. All clients can pass these names to their models.
 */
import { isObject } from "../../core/kit/json.ts";

/** Maximum length of a name, in characters. */
const MAX_NAME = 64;

/** Converts a text to a name of at most 64 letters, digits, `_` and `-`. Returns "" if the text has no letter or digit. */
function toPlainName(text: string): string {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^A-Za-z0-9_-]+/g, "_");
  return trimUnderscores(plain);
}

/** Removes `_` at the start and the end, in linear time: the search for `_+$` would try each `_` of a text. */
function trimUnderscores(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && text[start] === "_") start++;
  while (end > start && text[end - 1] === "_") end--;
  return text.slice(start, end);
}

export class Names {
  readonly #taken = new Set<string>();

  /**
   * Returns the name of an operation: its id, or its method and path. A name that is too long or taken ends with a hash
   * of the method and the path, so that it does not depend on the other operations.
   */
  add(operation: { readonly id?: string; readonly method: string; readonly path: string }): string {
    const { id, method, path } = operation;
    const plain = toPlainName(id ?? "") ||
      toPlainName(`${method.toLowerCase()} ${path.replace(/[^\p{L}\p{M}\p{N}]+/gu, " ")}`);
    const key = `${method} ${path}`;
    let name = plain;
    for (let i = 0; name.length > MAX_NAME || this.#taken.has(name); i++) {
      const hash = toHash(i ? `${key} ${i}` : key);
      name = `${trimUnderscores(plain.slice(0, MAX_NAME - hash.length - 1))}_${hash}`;
    }
    this.#taken.add(name);
    return name;
  }
}

/** Returns eight letters and digits that depend on a text. Not for secrets. */
function toHash(text: string): string {
  // FNV-1a with two seeds.
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x811c9dc5);
  }
  return [a, b].map((part) => (part >>> 0).toString(36).padStart(7, "0").slice(-4)).join("");
}

/**
 * Parameters of the same name get their place as a suffix, such as `id_path`. `reserved` are names of other arguments.
 */
export function nameArguments(
  parameters: readonly { readonly name: string; readonly place: string }[],
  reserved: readonly string[],
): readonly string[] {
  const plain = parameters.map(({ name }) => toArgumentName(name));
  const counts = new Map<string, number>();
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1);
  const taken = new Set(reserved);
  /** The next number for each name. */
  const numbers = new Map<string, number>();
  return plain.map((name, i) => {
    const isDouble = taken.has(name) || counts.get(name) !== 1;
    const base = isDouble ? `${name.slice(0, MAX_NAME - 14)}_${parameters[i].place}` : name;
    let free = base;
    let next = numbers.get(base) ?? 2;
    while (taken.has(free)) free = `${base.slice(0, MAX_NAME - 8)}_${next++}`;
    numbers.set(base, next);
    taken.add(free);
    return free;
  });
}

/** Converts the name of a parameter, such as `filter[name]`, to the name of an argument. */
export function toArgumentName(name: string): string {
  return toPlainName(name.replace(/\]$/, "")).slice(0, MAX_NAME) || "value";
}

/** Whether each property of an object can be an argument. */
export function areArgumentNames(properties: unknown): boolean {
  return isObject(properties) && Object.keys(properties).every((name) => /^[\w.-]{1,64}$/.test(name));
}
