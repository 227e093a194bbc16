/**
 * Reads the bodies of HTTP responses as text, and describes responses in error messages.
 *
 * @module
 */

import { MAX_CHARACTERS } from "../kit/event_stream.ts";
import { toPrintableLine } from "../kit/printable.ts";

/** Returns the body of a response as text. Throws if the text exceeds the maximum length of a message. */
export async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_CHARACTERS) {
      throw new RangeError(`Cannot read the response: the text is longer than ${MAX_CHARACTERS} characters`);
    }
  }
  return text + decoder.decode();
}

/** A response that is not a JSON-RPC message. Without HTTP, only `text` is set. */
export interface ReceivedText {
  readonly status?: number;
  readonly headers?: Headers;
  readonly text?: string;
}

/** Maximum number of characters of a response's text in an error message. */
const MAX_SHOWN = 200;
/** Number of characters at the beginning of an HTML page that are searched for the title. */
const MAX_HEAD = 10_000;

/**
 * Describes a response for an error message: its status, its content type, and the first line of its text or the title
 * of its HTML page, such as `got 502 text/html: Bad Gateway`.
 */
export function describeResponse({ status, headers, text = "" }: ReceivedText): string {
  const [type] = (headers?.get("content-type") ?? "").split(";");
  const isPage = /html/i.test(type) || /^\s*<(!doctype|html)/i.test(text);
  const [line] = isPage
    ? [/<title[^>]*>([^<]*)/i.exec(text.slice(0, MAX_HEAD))?.[1] ?? ""]
    : /\S[^\r\n]*/.exec(text) ?? [""];
  const shown = toPrintableLine(line.trim().slice(0, MAX_SHOWN));
  const received = [status, toPrintableLine(type.trim().slice(0, MAX_SHOWN))].filter(Boolean).join(" ");
  return `got ${received || "a text"}${shown && `: ${shown}`}`;
}
