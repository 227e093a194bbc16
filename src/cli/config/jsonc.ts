/**
 * Parses JSON with comments, and finds the positions of its values in the text.
 */
import { getNodeValue, type Node, type ParseError, parseTree } from "jsonc-parser";
import type { KeyPath } from "../../ready/problem.ts";
import { CliError } from "../cli_error.ts";

export interface Jsonc {
  readonly text: string;
  readonly value: unknown;
  readonly root: Node;
}

/**
 * Parses JSON with comments and trailing commas.
 *
 * @throws {CliError} with file, line and column if the text cannot be parsed or an object repeats a key.
 */
export function readJsonc(content: string, file: string): Jsonc {
  // Remove the byte order mark, which some editors write, because it is not part of the JSON.
  const text = content.replace(/^\uFEFF/, "");
  const errors: ParseError[] = [];
  let root: Node | undefined;
  try {
    root = parseTree(text, errors, { allowTrailingComma: true });
  } catch {
    throw new CliError(`Cannot read ${file}: it is nested too deeply; use fewer levels`);
  }
  const [error] = errors;
  if (error || !root) {
    const { offset, length } = error ?? { offset: text.length, length: 0 };
    const token = text.slice(offset, offset + length);
    const state = token
      ? `unexpected ${token}; look for a missing comma, colon or quotation mark before it`
      : "the file ends unexpectedly; look for an unclosed bracket or quotation mark";
    throw new CliError(`Cannot read ${formatPosition(file, text, offset)}: ${state}`);
  }
  const repeated = findRepeatedKey(root);
  if (!repeated) return { text, value: getNodeValue(root), root };
  throw new CliError(
    `Cannot read ${formatPosition(file, text, repeated.offset)}: this key is repeated; remove one of the two`,
  );
}

/** Formats an offset as a position such as `mcp.jsonc:3:14`. Lines and columns count from 1. */
export function formatPosition(file: string, text: string, offset: number): string {
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
  return `${file}:${lines.length}:${[...lines[lines.length - 1]].length + 1}`;
}

/**
 * Returns the offset of a property's key, or of a value without a key. If the value does not exist, returns the offset
 * of the closest ancestor that does.
 */
export function findOffset(root: Node, path: KeyPath): number {
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

/** Returns the node of a property. The node contains the key and the value. */
export function findProperty(node: Node, key: string): Node | undefined {
  return node.type === "object" ? node.children?.find((each) => toPropertyName(each) === key) : undefined;
}

/** Formats a key path such as `tools.log.run[1]`. */
export function formatKeyPath(path: KeyPath): string {
  return path.map((key, i) =>
    typeof key === "number" ? `[${key}]` : !/^[\w$-]+$/.test(key) ? `[${JSON.stringify(key)}]` : i ? `.${key}` : key
  ).join("");
}

/** Finds the first property in any object for which `test` returns `true`. */
export function findAnyProperty(
  node: Node,
  test: (property: Node, siblings: readonly Node[]) => boolean,
): Node | undefined {
  for (const each of node.children ?? []) {
    const found = each.type === "property" && test(each, node.children ?? []) ? each : findAnyProperty(each, test);
    if (found) return found;
  }
}

export function toPropertyName({ children }: Node): string {
  return String(children?.[0].value);
}

function findRepeatedKey(root: Node): Node | undefined {
  const names = new Map<readonly Node[], Set<string>>();
  return findAnyProperty(root, (property, siblings) => {
    const known = names.get(siblings) ?? new Set();
    names.set(siblings, known);
    const name = toPropertyName(property);
    return known.size === known.add(name).size;
  });
}
