// Compares written text with a value piece by piece, so that the place of every delimiter counts.

import { isObject } from "./document.ts";

/** One character as it was written, and whether it was written as percent-encoding. */
interface Atom {
  readonly char: string;
  readonly isEncoded: boolean;
}

/** How written text is decoded: `form` also reads `+` as a space, `plain` decodes nothing. */
export type Decoding = "form" | "percent" | "plain";

export interface TextPiece {
  /** Spellings that mean the same, such as the forms of a number. */
  readonly texts: readonly string[];
  /** `raw` for a delimiter that must not be encoded. */
  readonly form: "raw" | "any";
  /** Characters that must be encoded, because they would be read as delimiters. */
  readonly encoded: string;
}

export interface CheckPiece {
  /** Decides about the decoded text, where many spellings are right. */
  readonly check: (text: string) => boolean;
  readonly shown: string;
  readonly encoded: string;
}

export type Piece = TextPiece | CheckPiece;

const TRIPLES = /(?:%[0-9A-Fa-f]{2})+/g;

export function decodePercent(text: string, isForm = false): string {
  return (isForm ? text.replaceAll("+", " ") : text).replace(TRIPLES, decodeTriples);
}

function decodeTriples(triples: string): string {
  const bytes = triples.slice(1).split("%").map((pair) => parseInt(pair, 16));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));
}

function readAtoms(text: string, decoding: Decoding): readonly Atom[] {
  const atoms: Atom[] = [];
  const add = (part: string, isEncoded: boolean): void => {
    for (const char of part) atoms.push({ char, isEncoded });
  };
  if (decoding === "plain") {
    add(text, false);
    return atoms;
  }
  let last = 0;
  for (const match of text.matchAll(decoding === "form" ? /(?:%[0-9A-Fa-f]{2})+|\+/g : TRIPLES)) {
    add(text.slice(last, match.index), false);
    add(match[0] === "+" ? " " : decodeTriples(match[0]), true);
    last = match.index + match[0].length;
  }
  add(text.slice(last), false);
  return atoms;
}

export function matchesPieces(text: string, decoding: Decoding, pieces: readonly Piece[]): boolean {
  const atoms = readAtoms(text, decoding);
  const matchFrom = (start: number, index: number): boolean => {
    const piece = pieces[index];
    if (piece === undefined) return start === atoms.length;
    if ("check" in piece) {
      const least = index === pieces.length - 1 ? atoms.length : start;
      for (let end = atoms.length; end >= least; end--) {
        const part = atoms.slice(start, end);
        const isClean = decoding === "plain" || part.every((one) => one.isEncoded || !piece.encoded.includes(one.char));
        if (isClean && piece.check(part.map((one) => one.char).join("")) && matchFrom(end, index + 1)) return true;
      }
      return false;
    }
    return piece.texts.some((expected) => {
      const chars = [...expected];
      const part = atoms.slice(start, start + chars.length);
      const isEqual = part.length === chars.length && part.every((atom, at) => {
        if (atom.char !== chars[at]) return false;
        if (piece.form === "raw") return !atom.isEncoded;
        return atom.isEncoded || decoding === "plain" || !piece.encoded.includes(atom.char);
      });
      return isEqual && matchFrom(start + chars.length, index + 1);
    });
  };
  return matchFrom(0, 0);
}

export function showPieces(pieces: readonly Piece[]): string {
  return pieces.map((piece) => "check" in piece ? piece.shown : piece.texts[0] ?? "").join("");
}

export function delimiter(text: string, form: "raw" | "any"): TextPiece {
  return { texts: [text], form, encoded: "" };
}

/**
 * "Appendix B: Data Type Conversion" leaves the text of numbers, booleans and null to the implementation. Numbers may be
 * in any form JavaScript has; booleans are `true` and `false` as in the examples of 3.2; null is `null` or nothing.
 */
export function scalarTexts(value: unknown): readonly string[] {
  if (value === null || value === undefined) return ["null", ""];
  if (typeof value === "number" && Number.isInteger(value)) return [String(value), BigInt(value).toString()];
  return [String(value)];
}

export interface DataRules {
  /** Characters that would be read as delimiters. */
  readonly encoded: string;
  /** `allowReserved`: percent-encoded triples of the value may pass unchanged. */
  readonly isReservedAllowed: boolean;
}

export function dataPiece(value: unknown, rules: DataRules): Piece {
  if (typeof value === "object" && value !== null) {
    return checkPiece(value, rules.encoded);
  }
  const texts = scalarTexts(value);
  const passed = rules.isReservedAllowed ? texts.map((text) => decodePercent(text)) : [];
  return { texts: [...texts, ...passed], form: "any", encoded: rules.encoded };
}

/** All texts and numbers inside of a value. */
function leaves(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap(leaves);
  if (isObject(value)) return Object.values(value).flatMap(leaves);
  return value === null || value === undefined ? [] : [value];
}

/**
 * "Appendix C": the result of nesting where no behaviour is specified is implementation-defined, so any text is right
 * that lost no value.
 */
export function holdsLeaves(text: string, value: unknown): boolean {
  if (text.includes("[object ")) return false;
  const escaped = (leaf: unknown): string => JSON.stringify(String(leaf)).slice(1, -1);
  return leaves(value).every((leaf) =>
    scalarTexts(leaf).some((one) => text.includes(one)) || text.includes(escaped(leaf))
  );
}

function checkPiece(value: unknown, encoded: string): CheckPiece {
  return { check: (text) => holdsLeaves(text, value), shown: JSON.stringify(value), encoded };
}

export function jsonPiece(value: unknown, encoded: string): CheckPiece {
  return { check: (text) => isJsonOf(text, value), shown: JSON.stringify(value) ?? "", encoded };
}

export function isJsonOf(text: string, value: unknown): boolean {
  try {
    return isSame(JSON.parse(text), toJson(value));
  } catch {
    return false;
  }
}

/** The value as JSON can hold it: without members that are undefined. */
function toJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}

export function isSame(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) || Array.isArray(right)) {
    return Array.isArray(left) && Array.isArray(right) && left.length === right.length &&
      left.every((item, index) => isSame(item, right[index]));
  }
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left);
    return names.length === Object.keys(right).length &&
      names.every((name) => Object.hasOwn(right, name) && isSame(left[name], right[name]));
  }
  return left === right;
}
