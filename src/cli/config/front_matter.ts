/**
 * YAML front matter: the block between two `---` lines at the top of a Markdown file.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLError } from "yaml";
import { platform } from "../platform.ts";

/** A value and its line number, starting at 1. */
export type Value =
  & { readonly line: number }
  & (
    | { readonly text: string }
    | { readonly list: readonly Value[] }
    | { readonly map: ReadonlyMap<string, Value> }
  );

export interface Document {
  readonly frontMatter: ReadonlyMap<string, Value>;
  readonly body: string;
  /** The line number at which the body begins. */
  readonly bodyLine: number;
}

export class FrontMatterError extends Error {
  override readonly name = "FrontMatterError";
  /** The line number in the file, starting at 1. */
  readonly line: number;

  constructor(line: number, state: string) {
    super(state);
    this.line = line;
  }
}

/**
 * Splits a Markdown file into front matter and body. Every scalar is a string, so that `version: 1.0` stays `1.0`.
 *
 * @throws {FrontMatterError} if the front matter is not a YAML map.
 */
export function parseMarkdown(text: string): Document {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") return { frontMatter: new Map(), body: lines.join("\n"), bodyLine: 1 };
  const end = lines.findIndex((line, i) => i > 0 && line.trimEnd() === "---");
  if (end < 0) {
    throw new FrontMatterError(1, "the front matter is not closed; write a second --- line below the last key");
  }
  const frontMatter = parseFrontMatter(lines.slice(1, end).join("\n"));
  return { frontMatter, body: lines.slice(end + 1).join("\n"), bodyLine: end + 2 };
}

function parseFrontMatter(text: string): ReadonlyMap<string, Value> {
  const counter = new LineCounter();
  // Add 1, because the first line of the file is `---`.
  const toLine = (offset: number) => counter.linePos(offset).line + 1;
  const options = { schema: "failsafe", lineCounter: counter, prettyErrors: false } as const;
  const document = platform.withoutEnv(() => parseDocument(text, options));
  const [error] = document.errors;
  if (error) throw new FrontMatterError(toLine(error.pos[0]), explainError(error, text));
  let count = 0;

  function convert(node: unknown, line: number): Value {
    // Count values, because nested aliases can expand exponentially.
    if (++count > MAX_VALUES) {
      throw new FrontMatterError(line, `the front matter has more than ${MAX_VALUES} values; remove some of them`);
    }
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (!target) {
        throw new FrontMatterError(
          line,
          `the alias *${node.source} has no anchor before it; define &${node.source} above the alias`,
        );
      }
      return convert(target, line);
    }
    if (isMap(node)) {
      return {
        line,
        map: new Map(node.items.map(({ key, value }) => {
          const keyLine = isNode(key) ? toLine(key.range[0]) : line;
          if (!isScalar(key)) {
            throw new FrontMatterError(keyLine, "a key is not a string; write each entry as key: value");
          }
          return [String(key.value), convert(value, keyLine)];
        })),
      };
    }
    if (isSeq(node)) {
      return { line, list: node.items.map((item) => convert(item, isNode(item) ? toLine(item.range[0]) : line)) };
    }
    return { line, text: isScalar(node) ? String(node.value ?? "").trimEnd() : "" };
  }

  if (document.contents === null) return new Map();
  const root = convert(document.contents, toLine(document.contents.range[0]));
  if ("map" in root) return root.map;
  const state = "text" in root
    ? `the front matter is the text ${JSON.stringify(root.text)}`
    : "the front matter is a list";
  throw new FrontMatterError(root.line, `${state}; write lines such as key: value`);
}

const MAX_VALUES = 10_000;

function isNode(value: unknown): value is Node & { readonly range: readonly [number, number, number] } {
  return (isScalar(value) || isMap(value) || isSeq(value) || isAlias(value)) && !!value.range;
}

function explainError({ code, message, pos }: YAMLError, text: string): string {
  if (code === "TAB_AS_INDENT") return "the line is indented with a tab; use spaces";
  if (code === "DUPLICATE_KEY") {
    const key = /^[^\s:]*/.exec(text.slice(pos[0]))?.[0];
    return `the key ${key} is repeated; remove the repetition`;
  }
  if (code === "MISSING_CHAR" && /quote/.test(message)) {
    return "a quoted string is not closed; add the closing quotation mark";
  }
  const state = message.replace(/\.$/, "");
  return `the front matter is not valid YAML (${state[0].toLowerCase()}${
    state.slice(1)
  }); correct the YAML, or put the value in quotes`;
}
