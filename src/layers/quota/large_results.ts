/**
 * Limits the size of results: refuses or truncates large results, or replaces large results with links to resources.
 */
import { INTERNAL_ERROR, McpError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import { restoreText } from "../../core/protocol/text_copy.ts";
import type { Content } from "../../core/protocol/types.ts";
import type { Call } from "../../server/call/call.ts";
import { toCall } from "../../server/call/find_call.ts";
import { readCaller } from "../../server/call/reads.ts";
import type { HandlerInfo, Steps } from "../../server/engine/layers.ts";
import { isContent, toText } from "../../server/handlers/content_checks.ts";
import { Keeper } from "./kept_results.ts";
import { cutText, toSize } from "./text.ts";

export interface LargeResultsOptions {
  readonly resultBytes?: number;
  readonly onLarge?: "refuse" | "cut" | "link";
  readonly keepMs?: number;
  readonly keepBytes?: number;
}

/**
 * Reads the options for the large results of a handler. Returns the step that replaces a large result, and the resource
 * that serves the linked pages, for `onLarge: "link"`. Returns nothing if the options set no limit.
 *
 * @throws {TypeError} if `onLarge` or `resultBytes` is not valid for the handler.
 */
export function readLargeResults(
  options: LargeResultsOptions,
  handler: HandlerInfo,
): Pick<Steps<unknown, unknown, undefined>, "handlers" | "result"> | undefined {
  const { resultBytes, onLarge = "refuse" } = options;
  if (resultBytes === undefined || resultBytes === Infinity) return;
  const { key: place, kind, hasOutput } = handler;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  const isOne = kind !== "server";
  if (onLarge === "link" && isOne && kind !== "tool") throw refuse('onLarge "link" is only for tools; use "refuse"');
  if (onLarge !== "refuse" && hasOutput) {
    throw refuse(`onLarge ${quote(onLarge)} would produce results that violate the output schema; use "refuse"`);
  }
  if (onLarge !== "refuse" && kind === "method") {
    throw refuse('onLarge must be "refuse" for extension methods');
  }
  if (onLarge !== "refuse" && resultBytes < MIN_BYTES) {
    throw refuse(`resultBytes is ${resultBytes}; with onLarge ${quote(onLarge)} it must be at least ${MIN_BYTES}`);
  }
  const keeper = onLarge === "link" && isOne ? new Keeper(handler, { ...options, resultBytes }) : undefined;
  return {
    handlers: keeper && [keeper.handler],
    result(result, { ctx, reachLimit }) {
      const size = toSize(JSON.stringify(result));
      if (size <= resultBytes) return;
      reachLimit("handler.resultBytes");
      const call = toCall(ctx, "limit the size of a result");
      const state = `the result has ${size} bytes, but at most ${resultBytes} bytes are allowed (handler.resultBytes)`;
      if (kind === "tool") {
        const { content } = restoreText(result);
        const blocks: readonly Content[] = Array.isArray(content) ? content.filter(isContent) : [];
        const { isError } = result;
        const refuse = () => {
          if (onLarge === "cut") return { content: cutBlocks(blocks, resultBytes, size), isError };
          const words = `Cannot send the result of ${place}: ${state}. Request less data.`;
          return { content: [toText(words)], isError: true };
        };
        if (!keeper || !canKeep(call)) return refuse();
        return keeper.keep(blocks, size, call).then((kept) => kept ? { ...kept, isError } : refuse());
      }
      if (onLarge === "cut") return cutOther(result, resultBytes, size);
      throw new McpError(INTERNAL_ERROR, `Cannot send the result of ${place}: ${state}`);
    },
  };
}

/** A link would outlive the check of the caller's rights to the resources that the handler has read. */
function canKeep({ reads = [] }: Call): boolean {
  return typeof reads !== "string" && reads.every((entry) => readCaller(entry) !== undefined);
}

/** Bytes that are reserved for the note, and for the JSON around a truncated text. */
const NOTE_BYTES = 512;

/** Minimum of `resultBytes`. A lower limit would leave too little space for text next to the note. */
const MIN_BYTES = 1024;

/** Truncates the text of content blocks, and adds a note. Omits media that exceed the limit. */
function cutBlocks(blocks: readonly Content[], max: number, size: number): Content[] {
  let left = max - NOTE_BYTES;
  const kept: Content[] = [];
  for (const block of blocks) {
    const bytes = toSize(JSON.stringify(block)) + 1;
    if (bytes <= left) {
      kept.push(block);
      left -= bytes;
    } else if (block.type === "text") {
      const rest = { ...block, text: cutText(block.text, left - 64 - (bytes - toSize(JSON.stringify(block.text)))) };
      if (rest.text) kept.push(rest);
      left = 0;
    }
  }
  return [...kept, toText(toNote(max, size))];
}

function cutOther(result: Result, max: number, size: number): Result {
  const { messages, contents } = result;
  let left = max - NOTE_BYTES;
  const take = (item: unknown, cut: (text: string, bytes: number) => unknown, text: unknown) => {
    const bytes = toSize(JSON.stringify(item)) + 1;
    if (bytes <= left) {
      left -= bytes;
      return [item];
    }
    const room = typeof text === "string" ? left - 64 - (bytes - toSize(JSON.stringify(text))) : 0;
    left = Math.min(left, 0);
    return typeof text === "string" && room > 0 ? [cut(text, room)] : [];
  };
  if (Array.isArray(messages)) {
    const kept = messages.flatMap((message) => {
      const content = Object(Object(message).content);
      const cut = (text: string, room: number) => ({ ...message, content: { ...content, text: cutText(text, room) } });
      return take(message, cut, content.text);
    });
    return { ...result, messages: [...kept, { role: "user", content: toText(toNote(max, size)) }] };
  }
  const all: readonly unknown[] = Array.isArray(contents) ? contents : [];
  const kept = all.filter(isObject).flatMap((item) =>
    take(item, (text, room) => ({ ...item, text: cutText(text, room) }), item.text)
  );
  const { uri = "" } = Object(all[0]);
  return { ...result, contents: [...kept, { uri, mimeType: "text/plain", text: toNote(max, size) }] };
}

function toNote(max: number, size: number): string {
  return `[Truncated: the whole result has ${size} bytes, but only about ${max} bytes are shown. Request less data to see the rest.]`;
}
