/**
 * Reads the bodies of HTTP responses as text, and describes responses in error messages.
 */

import { readPieces } from "../core/kit/body_pieces.ts";
import { deadline } from "../core/kit/deadline.ts";
import { MAX_CHARACTERS } from "../core/kit/event_stream.ts";
import { toPrintableLine } from "../core/kit/printable.ts";
import type { SendResult } from "./channel.ts";

/** Throws if the text exceeds the maximum length of a message. */
export async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of readPieces(body)) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_CHARACTERS) {
      throw new RangeError(`Cannot read the response: the text is longer than ${MAX_CHARACTERS} characters`);
    }
  }
  return text + decoder.decode();
}

/** Maximum number of characters that {@linkcode readStart} reads. */
const MAX_START = 64 * 1024;
/** Milliseconds for which {@linkcode readStart} reads, so that the HTTP connection can be reused. */
const START_MS = 1000;

/**
 * Returns the start of a body that is not a reply, such as the body of an error or of the response to a notification.
 * Cancels the rest of a long or slow body, because a server could otherwise hold the connection, and fill the memory.
 * Never throws.
 */
export async function readStart({ body }: Response, signal?: AbortSignal): Promise<string> {
  const reader = body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  async function read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let next = await reader.read(); !next.done && text.length < MAX_START; next = await reader.read()) {
      text += decoder.decode(next.value, { stream: true });
    }
  }
  // Use the text that has arrived if the body breaks, because the status is known already.
  await deadline(read(reader), { ms: START_MS, onTimeout: () => {}, signal }).catch(() => {});
  reader.cancel().catch(() => {});
  return text.slice(0, MAX_START);
}

export function isStream({ ok, headers }: Response): boolean {
  return ok && (headers.get("content-type")?.startsWith("text/event-stream") ?? false);
}

/** Maximum number of characters of a response's text in an error message. */
const MAX_SHOWN = 200;
/** Number of characters at the beginning of an HTML page that are searched for the title. */
const MAX_HEAD = 10_000;

/**
 * Describes a response for an error message: its status, its content type, and the first line of its text or the title
 * of its HTML page, such as `got 502 text/html: Bad Gateway`.
 */
export function describeResponse({ status, headers, text = "" }: SendResult): string {
  const [type] = (headers?.get("content-type") ?? "").split(";");
  const isPage = /html/i.test(type) || /^\s*<(!doctype|html)/i.test(text);
  const [line] = isPage
    ? [/<title[^<>]*>([^<]*)/i.exec(text.slice(0, MAX_HEAD))?.[1] ?? ""]
    : /\S[^\r\n]*/.exec(text) ?? [""];
  const shown = toPrintableLine(line.trim().slice(0, MAX_SHOWN));
  const received = [status, toPrintableLine(type.trim().slice(0, MAX_SHOWN))].filter(Boolean).join(" ");
  return `got ${received || "a text"}${shown && `: ${shown}`}`;
}
