/**
 * The YAML between two lines of `---` at the head of a Markdown file.
 *
 * @module
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLError } from "yaml";
import { platform } from "../platform.ts";

/** A value, and the line it stands on; lines count from 1. */
export type Value =
  & { readonly line: number }
  & (
    | { readonly text: string }
    | { readonly list: readonly Value[] }
    | { readonly map: ReadonlyMap<string, Value> }
  );

/** A file, taken apart. */
export interface Document {
  readonly head: ReadonlyMap<string, Value>;
  readonly body: string;
  /** The line on which the body begins. */
  readonly bodyLine: number;
}

/** A line that cannot be read. */
export class FrontMatterError extends Error {
  override readonly name = "FrontMatterError";
  /** Which it is; lines count from 1. */
  readonly line: number;

  constructor(line: number, state: string) {
    super(state);
    this.line = line;
  }
}

/**
 * Takes a Markdown file apart. Every scalar is read as text, so that `version: 1.0` stays `1.0`.
 *
 * @throws {FrontMatterError} if the head is not a YAML map.
 */
export function readFrontMatter(text: string): Document {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") return { head: new Map(), body: lines.join("\n"), bodyLine: 1 };
  const end = lines.findIndex((line, i) => i > 0 && line.trimEnd() === "---");
  if (end < 0) throw new FrontMatterError(1, "--- is not closed; write a second --- below the last key");
  return { head: readHead(lines.slice(1, end).join("\n")), body: lines.slice(end + 1).join("\n"), bodyLine: end + 2 };
}

function readHead(text: string): ReadonlyMap<string, Value> {
  const counter = new LineCounter();
  // The first line of the file is `---`.
  const toLine = (offset: number) => counter.linePos(offset).line + 1;
  const options = { schema: "failsafe", lineCounter: counter, prettyErrors: false } as const;
  const document = platform.withoutEnv(() => parseDocument(text, options));
  const [error] = document.errors;
  if (error) throw new FrontMatterError(toLine(error.pos[0]), explain(error, text));
  let count = 0;

  function convert(node: unknown, line: number): Value {
    // Aliases of aliases grow without bound.
    if (++count > MOST_VALUES) throw new FrontMatterError(line, `there are more than ${MOST_VALUES} values`);
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (!target) throw new FrontMatterError(line, `there is no anchor &${node.source} before it; add one`);
      return convert(target, line);
    }
    if (isMap(node)) {
      return {
        line,
        map: new Map(node.items.map(({ key, value }) => {
          const keyLine = isNode(key) ? toLine(key.range[0]) : line;
          if (!isScalar(key)) throw new FrontMatterError(keyLine, "a key is no text; write it as key: value");
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
  const head = convert(document.contents, toLine(document.contents.range[0]));
  if ("map" in head) return head.map;
  const shown = "text" in head
    ? `${JSON.stringify(head.text)} is no key with a value`
    : "there is a list without a key";
  throw new FrontMatterError(head.line, `${shown}; write it as key: value`);
}

const MOST_VALUES = 10_000;

function isNode(value: unknown): value is Node & { readonly range: readonly [number, number, number] } {
  return (isScalar(value) || isMap(value) || isSeq(value) || isAlias(value)) && !!value.range;
}

function explain({ code, message, pos }: YAMLError, text: string): string {
  if (code === "TAB_AS_INDENT") return "it is set in by a tab; use spaces";
  if (code === "DUPLICATE_KEY") {
    const key = /^[^\s:]*/.exec(text.slice(pos[0]))?.[0];
    return `${key} is there already; keep one of the two`;
  }
  if (code === "MISSING_CHAR" && /quote/.test(message)) return "a quote is not closed; close it";
  const state = message.replace(/\.$/, "");
  return `it is no YAML: ${state[0].toLowerCase()}${state.slice(1)}; fix it, or put the value in quotes`;
}
