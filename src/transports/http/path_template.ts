/**
 * Paths with parameters, such as `/tenants/:tenant/mcp`. Each parameter is a whole segment.
 *
 * @module
 */

import { readTemplate } from "./access_options.ts";

/** The parameters of a path, decoded, by name. */
export type PathValues = Readonly<Record<string, string>>;

/** A path with parameters. */
export class PathTemplate {
  readonly #path: string;
  /** The segments. A segment that is a parameter starts with a colon. */
  readonly #segments: readonly string[];

  /** Reads a path whose syntax has been checked. */
  constructor(path: string) {
    this.#path = path;
    this.#segments = path.split("/");
  }

  /** Names of the parameters. */
  get names(): readonly string[] {
    return this.#segments.filter((segment) => segment.startsWith(":")).map((segment) => segment.slice(1));
  }

  /**
   * Returns the parameters of a concrete path. Returns `undefined` if the path does not match, or if a value is empty,
   * `.` or `..`, contains a slash, or is not valid UTF-8.
   */
  match(pathname: string): PathValues | undefined {
    // Split into at most one part more than the template has segments, which is enough to detect a path with too many
    // segments.
    const given = pathname.split("/", this.#segments.length + 1);
    if (given.length !== this.#segments.length) return;
    const values: Record<string, string> = {};
    for (const [i, segment] of this.#segments.entries()) {
      if (!segment.startsWith(":")) {
        if (segment !== given[i]) return;
        continue;
      }
      const value = decode(given[i]);
      if (value === undefined || !isSegment(value)) return;
      values[segment.slice(1)] = value;
    }
    return values;
  }

  /**
   * Returns the concrete path for these values. Equal values give an equal path.
   *
   * @throws {TypeError} if a parameter is missing or unknown, or if a value cannot be part of a path.
   */
  build(values: PathValues): string {
    const refuse = (state: string) => new TypeError(`Cannot open ${this.#path}: ${state}`);
    const { names } = this;
    const unknown = Object.keys(values).find((name) => !names.includes(name));
    if (unknown !== undefined) throw refuse(`it has no parameter ${unknown}; give ${names.join(", ")}`);
    return this.#segments.map((segment) => {
      if (!segment.startsWith(":")) return segment;
      const name = segment.slice(1);
      if (!Object.hasOwn(values, name)) throw refuse(`${name} is missing; give ${names.join(", ")}`);
      const value = values[name];
      if (!isSegment(value)) throw refuse(`${name} is ${JSON.stringify(value)}; give the text of one segment`);
      return encodeURIComponent(value);
    }).join("/");
  }
}

/**
 * Checks that a path of another transport has the same parameters as the server's path.
 *
 * @throws {TypeError} if the text has other parameters, or is not a path.
 */
export function checkTemplate(path: string, serverPath: string): void {
  const [own, wanted] = [readTemplate(path), serverPath].map((each) => new PathTemplate(each).names);
  if (own.toSorted().join() === wanted.toSorted().join()) return;
  const state = `the path of the server has the parameters ${wanted.join(", ")}`;
  throw new TypeError(`Cannot serve ${path}: ${state}; write a path with the same ones, like ${serverPath}`);
}

function isSegment(value: string): boolean {
  return value !== "" && value.isWellFormed() && !/^\.\.?$|[/\\\0]/.test(value);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // The text has a % without two hexadecimal digits, or bytes that are not UTF-8.
  }
}
