/**
 * Paths with parameters, such as `/tenants/:tenant/mcp`. Each parameter is a whole segment.
 */
import { decodePercent } from "../../../core/kit/url_text.ts";
import { readTemplate } from "./access_options.ts";

/** Path parameters by name, percent-decoded. */
export type PathValues = Readonly<Record<string, string>>;

export class PathTemplate {
  readonly #path: string;
  /** The segments of the path. A segment that is a parameter starts with a colon. */
  readonly #segments: readonly string[];

  /** Does not check the syntax of `path`, which `readTemplate` checks. */
  constructor(path: string) {
    this.#path = path;
    this.#segments = path.split("/");
  }

  get names(): readonly string[] {
    return this.#segments.filter((segment) => segment.startsWith(":")).map((segment) => segment.slice(1));
  }

  /**
   * Returns `undefined` if the path does not match the template, or if a value is empty, is `.` or `..`, contains a
   * slash, or is not valid UTF-8.
   */
  match(pathname: string): PathValues | undefined {
    // Limit the number of parts. To detect a path with too many segments, one more part than the template has segments
    // is enough.
    const given = pathname.split("/", this.#segments.length + 1);
    if (given.length !== this.#segments.length) return;
    const values: Record<string, string> = {};
    for (const [i, segment] of this.#segments.entries()) {
      if (!segment.startsWith(":")) {
        if (segment !== given[i]) return;
        continue;
      }
      const value = decodePercent(given[i]);
      if (value === undefined || !isSegment(value)) return;
      values[segment.slice(1)] = value;
    }
    return values;
  }

  /**
   * Returns the concrete path for these values, which is the same for equal values.
   *
   * @throws {TypeError} if a parameter is missing or unknown, or if a value cannot be part of a path.
   */
  build(values: PathValues): string {
    const refuse = (state: string) => new TypeError(`Cannot open ${this.#path}: ${state}`);
    const { names } = this;
    const unknown = Object.keys(values).find((name) => !names.includes(name));
    if (unknown !== undefined) {
      throw refuse(`the path has no parameter ${JSON.stringify(unknown)}; pass ${names.join(", ")}`);
    }
    return this.#segments.map((segment) => {
      if (!segment.startsWith(":")) return segment;
      const name = segment.slice(1);
      if (!Object.hasOwn(values, name)) throw refuse(`the parameter ${name} is missing; pass ${names.join(", ")}`);
      const value = values[name];
      if (!isSegment(value)) {
        throw refuse(`the parameter ${name} is ${JSON.stringify(value)}; pass the text of one path segment`);
      }
      return encodeURIComponent(value);
    }).join("/");
  }
}

/**
 * Checks that the path of another transport has the same parameters as the server's path.
 *
 * @throws {TypeError} if the parameters differ, or if `path` is not a path.
 */
export function checkTemplate(path: string, serverPath: string): void {
  const [own, wanted] = [readTemplate(path), serverPath].map((each) => new PathTemplate(each).names);
  if (own.toSorted().join() === wanted.toSorted().join()) return;
  const state = `the path of the server has the parameters ${wanted.join(", ")}`;
  throw new TypeError(`Cannot serve ${path}: ${state}; use the same parameters as in ${serverPath}`);
}

function isSegment(value: string): boolean {
  return value !== "" && value.isWellFormed() && !/^\.\.?$|[/\\\0]/.test(value);
}
