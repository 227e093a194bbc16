/**
 * Makes the texts and names of another server safe to show: invisible characters could hide instructions from people.
 */
import { escapeUnprintable } from "../core/kit/printable.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";

/** Members that people and models read. */
const TEXTS: readonly string[] = ["title", "description", "message"];
/** Members that contain argument values, or data for programs. */
const VALUES: readonly string[] = ["const", "default", "enum", "examples", "_meta"];
/** The depth beyond which no entry is served. */
const MAX_DEPTH = 100;

/** Shows invisible characters of a text, such as `‹U+200B›`. */
export function showInvisible(text: string): string {
  return escapeUnprintable(text, "\n\r\t", (code) => `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** Returns a copy of an entry or a question whose titles, descriptions and messages show invisible characters. */
export function showTexts(value: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((each) => showTexts(each, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      if (VALUES.includes(name)) return [name, each];
      const isText = typeof each === "string" && TEXTS.includes(name);
      return [name, isText ? showInvisible(each) : showTexts(each, depth + 1)];
    }),
  );
}

/** Some clients accept only names up to this length. */
const MAX_LENGTH = 64;
const DIGEST_LENGTH = 8;

/** Returns a name that every client accepts. A name that had to be changed ends with a digest of the original name. */
export async function toValidName(prefix: string, name: string): Promise<string> {
  const full = prefix + name;
  const valid = full.replace(/[^\w.-]/g, "_");
  if (valid === full && full.length <= MAX_LENGTH) return full;
  const digest = (await sha256(name)).replace(/\W|_/g, "").slice(0, DIGEST_LENGTH);
  return `${valid.slice(0, MAX_LENGTH - DIGEST_LENGTH - 1)}_${digest}`;
}
