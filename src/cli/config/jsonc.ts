/**
 * JSON with comments, and where in the text each part of it stands.
 *
 * @module
 */
import { Problem } from "../problem.ts";
import { parse } from "./packages.ts";

/** Keys and indexes that lead to a part of a value. */
export type Path = readonly (string | number)[];

/** Where a part stands in its text. Offsets count from 0. */
export interface Spot {
  /** Where its key begins, or the part itself if it has none. */
  readonly at: number;
  readonly start: number;
  readonly end: number;
  /** Its own parts, by key or index. */
  readonly parts: ReadonlyMap<string, Spot>;
  /** Where a key stands a second time. */
  readonly again?: number;
}

/** A text that has been read. */
export interface Jsonc {
  readonly text: string;
  readonly value: unknown;
  readonly root: Spot;
}

/**
 * Reads JSON with comments and trailing commas.
 *
 * @throws {Problem} with file, line and column, for a text that is none, and for a key that is written twice.
 */
export function readJsonc(given: string, file: string): Jsonc {
  // The mark that some editors put first is no part of the text.
  const text = given.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw new Problem(`Cannot read ${file}: it is too deeply nested`);
    const [, token, at] = /token "(.*)" in JSONC at position (\d+)$/s.exec(error.message) ?? [];
    const state = token
      ? `unexpected ${token}; look for a missing comma, colon or quote before it`
      : "the text ends too early; look for a bracket or a quote that is not closed";
    throw new Problem(`Cannot read ${toPlace(file, text, Number(at ?? text.length))}: ${state}`);
  }
  const root = new Scanner(text).scan();
  const twice = findAgain(root);
  if (twice !== undefined) {
    throw new Problem(`Cannot read ${toPlace(file, text, twice)}: this key is there already; keep one of the two`);
  }
  return { text, value, root };
}

/** Where an offset is, such as `mcp.jsonc:3:14`. Lines and columns count from 1. */
export function toPlace(file: string, text: string, offset: number): string {
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `${file}:${lines.length}:${[...lines[lines.length - 1]].length + 1}`;
}

/** The nearest part of a text on the way to one that may not be there. */
export function findSpot(root: Spot, path: Path): Spot {
  const next = path.length ? root.parts.get(String(path[0])) : undefined;
  return next ? findSpot(next, path.slice(1)) : root;
}

/** A path as people write it: `tools.log.run[1]`. */
export function toKey(path: Path): string {
  return path.map((key, i) =>
    typeof key === "number" ? `[${key}]` : !/^[\w$-]+$/.test(key) ? `[${JSON.stringify(key)}]` : i ? `.${key}` : key
  ).join("");
}

function findAgain({ again, parts }: Spot): number | undefined {
  if (again !== undefined) return again;
  for (const part of parts.values()) {
    const found = findAgain(part);
    if (found !== undefined) return found;
  }
}

// Finds places in a text that the parser has accepted; nothing is checked again.
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  scan(at?: number): Spot {
    this.#skip();
    const start = this.#at;
    const parts = new Map<string, Spot>();
    let again: number | undefined;
    const first = this.#text[start];
    if (first === "{" || first === "[") {
      this.#at++;
      for (this.#skip(); !"}]".includes(this.#text[this.#at]); this.#skip(",")) {
        const begin = this.#at;
        const key = first === "{" ? String(JSON.parse(this.#word())) : String(parts.size);
        if (first === "{") this.#skip(":");
        if (parts.has(key)) again ??= begin;
        parts.set(key, this.scan(begin));
      }
      this.#at++;
    } else this.#word();
    return { at: at ?? start, start, end: this.#at, parts, again };
  }

  /** The string, number or name that begins here. */
  #word(): string {
    const word = /"(?:[^"\\]|\\.)*"|[^\s,:/[\]{}]+/sy;
    word.lastIndex = this.#at;
    const [found] = word.exec(this.#text) ?? [""];
    this.#at += found.length;
    return found;
  }

  /** Goes over white space, comments and one mark. */
  #skip(mark = ""): void {
    const space = /(?:\s+|\/\/[^\r\n]*|\/\*.*?\*\/)*/sy;
    for (const each of ["", mark]) {
      if (each && this.#text[this.#at] === each) this.#at++;
      space.lastIndex = this.#at;
      this.#at += space.exec(this.#text)?.[0].length ?? 0;
    }
  }
}
