/**
 * Parses the text of an OpenAPI document.
 */
import { parse } from "yaml";
import { isObject } from "../../core/kit/json.ts";
import { platform } from "../platform.ts";
import { toMessage } from "../../ready/problem.ts";

/** Maximum number of bytes of a document. */
export const MAX_DOCUMENT_BYTES: number = 50 * 1024 * 1024;

/** @throws {TypeError} as {@linkcode parseDocument} does. */
export async function readDocument(path: string): Promise<object> {
  return parseDocument(await platform.files.read(path, MAX_DOCUMENT_BYTES + 1));
}

/** @throws {TypeError} if the text is neither JSON nor YAML, is not an object, or has more than 50 MB. */
export function parseDocument(bytes: Uint8Array): object {
  if (bytes.length > MAX_DOCUMENT_BYTES) throw new TypeError("the document has more than 50 MB; remove parts of it");
  const value = parseText(new TextDecoder().decode(bytes));
  if (isObject(value)) return value;
  throw new TypeError("the document is not an object in JSON or YAML; name an OpenAPI document");
}

function parseText(text: string): unknown {
  try {
    // `JSON.parse` is much faster than the parser for YAML, which also takes JSON.
    if (/^\s*\{/.test(text)) return JSON.parse(text);
  } catch {
    // The parser for YAML reports the position of the error.
  }
  try {
    return platform.withoutEnv(() => parse(text, { logLevel: "error", merge: true }));
  } catch (error) {
    const [state] = toMessage(error).split("\n");
    throw new TypeError(`the document is neither JSON nor YAML: ${state.replace(/:$/, "")}`);
  }
}
