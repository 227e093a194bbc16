/**
 * Reads the body of a response as text.
 *
 * @module
 */

import { MAX_CHARACTERS } from "../kit/event_stream.ts";
import { toPrintableLine } from "../kit/printable.ts";

/** Returns the body of a response as text. Throws if the text is longer than a message may be. */
export async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_CHARACTERS) {
      throw new RangeError(`Cannot read the response: it is longer than ${MAX_CHARACTERS} characters`);
    }
  }
  return text + decoder.decode();
}

/** A response that is not a JSON-RPC message. On a channel without HTTP, it has only text. */
export interface ReceivedText {
  readonly status?: number;
  readonly headers?: Headers;
  readonly text?: string;
}

/** Maximum length, in characters, of a response's text in an error message. */
const MAX_SHOWN = 200;
/** Length, in characters, of the beginning of an HTML page in which its title is searched. */
const MAX_HEAD = 10_000;

/**
 * Describes a response for an error message: its status, its type and its first line, such as `got 502 text/html: Bad
 * Gateway`. For an HTML page, shows only the title.
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
