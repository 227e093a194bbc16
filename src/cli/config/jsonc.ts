/**
 * JSON with comments, and where in the text each part of it stands.
 *
 * @module
 */
import { parse } from "@std/jsonc";
import { type Node, parseTree } from "jsonc-parser";
import { Problem } from "../problem.ts";

/** Keys and indexes that lead to a part of a value. */
export type Path = readonly (string | number)[];

/** A text that has been read. */
export interface Jsonc {
  readonly text: string;
  readonly value: unknown;
  readonly root: Node;
}

const parseValue: (text: string) => unknown = parse;

/**
 * Reads JSON with comments and trailing commas.
 *
 * @throws {Problem} with file, line and column if the text cannot be parsed, or has a key twice in one object.
 */
export function readJsonc(given: string, file: string): Jsonc {
  // Some editors put a byte order mark first, which is not part of the text.
  const text = given.replace(/^\uFEFF/, "");
  let value: unknown;
  let root: Node | undefined;
  try {
    value = parseValue(text);
    root = parseTree(text, undefined, { allowTrailingComma: true });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw new Problem(`Cannot read ${file}: it is too deeply nested`);
    const [, token, at] = /token "(.*)" in JSONC at position (\d+)$/s.exec(error.message) ?? [];
    const state = token
      ? `unexpected ${token}; look for a missing comma, colon or quote before it`
      : "the text ends too early; look for a bracket or a quote that is not closed";
    throw new Problem(`Cannot read ${toPlace(file, text, Number(at ?? text.length))}: ${state}`);
  }
  if (!root) throw new Problem(`Cannot read ${file}: it is empty`);
  const twice = findRepeated(root);
  if (twice) {
    throw new Problem(
      `Cannot read ${toPlace(file, text, twice.offset)}: this key is there already; keep one of the two`,
    );
  }
  return { text, value, root };
}

/** Where an offset is, such as `mcp.jsonc:3:14`. Lines and columns count from 1. */
export function toPlace(file: string, text: string, offset: number): string {
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `${file}:${lines.length}:${[...lines[lines.length - 1]].length + 1}`;
}

/** Where a part begins, its key first; for a part that is not there, where the nearest one around it begins. */
export function findOffset(root: Node, path: Path): number {
  let offset = root.offset;
  let node: Node | undefined = root;
  for (const key of path) {
    const part: Node | undefined = typeof key === "number" ? node.children?.[key] : findProperty(node, key);
    node = part?.type === "property" ? part.children?.[1] : part;
    if (!part || !node) return offset;
    offset = part.offset;
  }
  return offset;
}

/** A property of an object: its key and its value. */
export function findProperty(node: Node, key: string): Node | undefined {
  return node.type === "object" ? node.children?.find((each) => toPropertyName(each) === key) : undefined;
}

/** A path as people write it: `tools.log.run[1]`. */
export function toKey(path: Path): string {
  return path.map((key, i) =>
    typeof key === "number" ? `[${key}]` : !/^[\w$-]+$/.test(key) ? `[${JSON.stringify(key)}]` : i ? `.${key}` : key
  ).join("");
}

/** The first property, in any object, that `test` is true of. */
export function findNode(node: Node, test: (property: Node, among: readonly Node[]) => boolean): Node | undefined {
  for (const each of node.children ?? []) {
    const found = each.type === "property" && test(each, node.children ?? []) ? each : findNode(each, test);
    if (found) return found;
  }
}

/** The key of a property. */
export function toPropertyName({ children }: Node): string {
  return String(children?.[0].value);
}

function findRepeated(root: Node): Node | undefined {
  const names = new Map<readonly Node[], Set<string>>();
  return findNode(root, (property, among) => {
    const known = names.get(among) ?? new Set();
    names.set(among, known);
    const name = toPropertyName(property);
    return known.size === known.add(name).size;
  });
}
