/**
 * Refuses names that an argument brings, such as the members of an object, if servers could take them for other parts
 * of the request. Otherwise a caller could add a second value next to a value that the author has fixed.
 */
import { ToolError } from "../../library.ts";
import { decodePercent } from "../../core/kit/url_text.ts";
import { toShown } from "../../core/kit/shown.ts";

/** The names in one place of a request, such as the query, that other arguments must not bring. */
export class TakenNames {
  readonly #place: string;
  readonly #names: readonly string[];
  /** Created for the first name to check, because a document can have many operations. */
  #read?: readonly (readonly [name: string, read: ReadName])[];

  constructor(place: string, names: readonly string[]) {
    this.#place = place;
    this.#names = names;
  }

  /**
   * Checks the names that the value of `argument` brings. `own` is the name of its parameter, which the value may use.
   *
   * @throws {ToolError} if a server could read one of them as a taken name.
   */
  check(names: readonly string[], { argument, own }: { readonly argument: string; readonly own?: string }): void {
    for (const name of names) {
      if (name === own) continue;
      this.#read ??= [...new Set(this.#names)].map((name) => [name, readName(name)]);
      const read = readName(name);
      if (!this.#read.some(([taken, other]) => taken !== own && isSame(other, read))) continue;
      throw new ToolError(
        `Cannot send the request: ${argument} would set ${
          JSON.stringify(toShown(name))
        }, which is another part of the ` +
          `${this.#place}; remove this name`,
      );
    }
  }
}

/**
 * The names that the arguments of one call bring. Two objects could otherwise bring the same name, of which the author
 * may have fixed one.
 */
export class BroughtNames {
  // Bound: the names of one request.
  readonly #arguments = new Map<string, string>();

  /**
   * Adds the names that the value of `argument` brings. `own` is the name of its parameter.
   *
   * @throws {ToolError} if a server could read one of them as a name of another argument.
   */
  add(names: readonly string[], { argument, own }: { readonly argument: string; readonly own?: string }): void {
    for (const name of names) {
      if (name === own) continue;
      const { path, flat } = readName(name);
      for (const key of new Set([path[0] ?? flat, flat])) {
        const other = this.#arguments.get(key) ?? argument;
        if (other === argument) this.#arguments.set(key, argument);
        else {
          throw new ToolError(
            `Cannot send the request: ${argument} and ${other} would both set ${
              JSON.stringify(toShown(name))
            }; remove ` +
              "it from one of them",
          );
        }
      }
    }
  }
}

/** A name as servers read it. */
interface ReadName {
  /** The name and its members: `a` and `b` of `a[b]`. */
  readonly path: readonly string[];
  /** The name as PHP reads it: `a_b` for `a.b` and for `a b`. */
  readonly flat: string;
}

/** Whether a server could read two names as the same name, or one of them as a member of the other. */
export function areSameNames(a: string, b: string): boolean {
  return isSame(readName(a), readName(b));
}

function readName(name: string): ReadName {
  // Some servers decode names twice. PHP ends a name at a null character.
  const plain = foldName(decode(name)).split("\0", 1)[0].trim();
  return { path: plain.split(/[[\].]+/).filter(Boolean), flat: plain.replace(/[\s.[]/g, "_") };
}

/** Returns a name without the difference between cases, because some servers ignore it. */
export function foldName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Whether two names are equal, or one of them names a member of the other. */
function isSame(a: ReadName, b: ReadName): boolean {
  if (a.flat === b.flat) return true;
  const length = Math.min(a.path.length, b.path.length);
  return length > 0 && a.path.slice(0, length).every((part, i) => part === b.path[i]);
}

function decode(text: string): string {
  return decodePercent(text.replaceAll("+", " ")) ?? text;
}

/** Returns the decoded names of pairs such as `a=1`. */
export function listNames(pairs: readonly string[]): readonly string[] {
  return [...new Set(pairs.map((pair) => pair.split("=", 1)[0]))].map(decode);
}
