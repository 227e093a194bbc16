/**
 * Limits the size of results: refuses or truncates large results, or replaces large results with links to resources.
 */
import { INTERNAL_ERROR, McpError, quote } from "../../core/protocol/errors.ts";
import { show } from "../../core/known_options.ts";
import { isObject, type Params, type Result } from "../../core/protocol/jsonrpc.ts";
import { restoreText } from "../../core/protocol/text_copy.ts";
import type { Content } from "../../core/protocol/types.ts";
import type { Call } from "../../server/call/call.ts";
import { toCall } from "../../server/call/find_call.ts";
import { readGiven } from "../../server/call/given.ts";
import { readCaller } from "../../server/call/reads.ts";
import type { HandlerInfo, Steps } from "../../server/engine/layers.ts";
import { toCore } from "../../server/handlers/bound_layer.ts";
import { isContent, toText } from "../../server/handlers/content_checks.ts";
import { KEEP_BYTES, Keeper } from "./kept_results.ts";
import { MORE, type MoreOptions, PAGE, toPages } from "./more_results.ts";
import { cutText, toSize } from "./text.ts";

export interface LargeResultsOptions extends Pick<MoreOptions, "items" | "cursorAfter"> {
  readonly resultBytes?: number;
  readonly resultTokens?: number;
  readonly countTokens?: (text: string) => number;
  readonly onLarge?: "refuse" | "cut" | "link" | "more";
  readonly keepMs?: number;
  readonly keepBytes?: number;
}

type LargeResultsSteps = Pick<
  Steps<unknown, unknown, undefined>,
  "handlers" | "argument" | "member" | "around" | "result"
>;

/**
 * Reads the options for the large results of a handler. Returns the step that replaces a large result, and what serves
 * the rest of it: a resource for `onLarge: "link"`, and an argument of the tool for `onLarge: "more"`. Returns nothing if
 * the options set no limit.
 *
 * @throws {TypeError} if an option is not valid for the handler.
 */
export function readLargeResults(options: LargeResultsOptions, handler: HandlerInfo): LargeResultsSteps | undefined {
  const { resultBytes = Infinity, resultTokens = Infinity, onLarge = "refuse" } = options;
  if (resultBytes === Infinity && resultTokens === Infinity) return;
  const { key: place, kind, hasOutput } = handler;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  const isOne = kind !== "server";
  if ((onLarge === "link" || onLarge === "more") && isOne && kind !== "tool") {
    throw refuse(`onLarge ${quote(onLarge)} is only for tools; use "refuse"`);
  }
  if ((onLarge === "link" || onLarge === "cut") && hasOutput) {
    const remedy = 'use "more" for a result with a list, or "refuse"';
    throw refuse(`onLarge ${quote(onLarge)} would produce results that violate the output schema; ${remedy}`);
  }
  if (onLarge !== "refuse" && kind === "method") {
    throw refuse('onLarge must be "refuse" for extension methods');
  }
  if (onLarge !== "refuse" && resultBytes < MIN_BYTES) {
    throw refuse(`resultBytes is ${resultBytes}; with onLarge ${quote(onLarge)} it must be at least ${MIN_BYTES}`);
  }
  if (onLarge === "more" && resultTokens < MIN_TOKENS) {
    throw refuse(`resultTokens is ${resultTokens}; with onLarge "more" it must be at least ${MIN_TOKENS}`);
  }
  const isKept = isOne && (onLarge === "link" || onLarge === "more");
  const keeper = isKept
    ? new Keeper(handler, { ...options, resultBytes: onLarge === "more" ? Infinity : resultBytes })
    : undefined;
  const measure = toMeasure(options);
  // A character takes two bytes in memory.
  const most = (options.keepBytes ?? KEEP_BYTES) / 2;
  /** The pages that calls read, by their parameters. Layers of extensions replace calls, but not their parameters. */
  const read = new WeakMap<Params, Result>();
  const limited: LargeResultsSteps = {
    handlers: keeper && onLarge === "link" ? [keeper.handler] : undefined,
    result(result, { ctx, entry, reachLimit }) {
      // Inner layers have changed the whole result, and must not change a page again, which would then exceed the limit.
      const page = read.get(ctx.params);
      if (page) return page;
      const excess = measure(result);
      if (!excess) return;
      reachLimit(excess.limit);
      const call = toCall(ctx, "limit the size of a result");
      const { size, limit, state } = excess;
      if (kind === "tool") {
        const { content } = restoreText(result);
        const blocks: readonly Content[] = Array.isArray(content) ? content.filter(isContent) : [];
        const { isError } = result;
        const refuse = () => {
          if (onLarge === "cut") return { content: cutBlocks(blocks, resultBytes, size), isError };
          const words = `Cannot send the result of ${place}: ${state} (${limit}). Request less data.`;
          return { content: [toText(words)], isError: true };
        };
        if (!keeper || !canKeep(call)) return refuse();
        if (onLarge === "more") {
          const more = { ...options, tool: handler.name, most, fits: (page: Result) => !measure(page) };
          return keepMore(result, { call, keeper, more, schema: Object(entry).outputSchema }).then((page) =>
            page ?? refuse()
          );
        }
        return keeper.keep(blocks, size, call).then((kept) => kept ? { ...kept, isError } : refuse());
      }
      if (onLarge === "cut") return cutOther(result, resultBytes, size);
      throw new McpError(INTERNAL_ERROR, `Cannot send the result of ${place}: ${state} (${limit})`);
    },
  };
  if (!keeper || onLarge !== "more") return limited;
  return {
    ...limited,
    argument: MORE,
    member: PAGE,
    around: async (ctx, next) => {
      const call = toCall(ctx, "read more of a result");
      const more = readGiven(call)?.values.get(MORE);
      if (typeof more !== "string") return await next();
      const page = await readMore(more, { call, keeper, tool: handler.name });
      read.set(ctx.params, page);
      return page;
    },
  };
}

/** Minimum of `resultTokens` for `onLarge: "more"`. A lower limit would leave too little space next to the note. */
const MIN_TOKENS = 200;

interface Excess {
  /** Size of the result in bytes, if the bytes are limited. */
  readonly size: number;
  readonly limit: string;
  readonly state: string;
}

/** Returns a function that measures a result. It returns `undefined` if the result is not too large. */
function toMeasure(
  { resultBytes = Infinity, resultTokens = Infinity, countTokens = countFour }: LargeResultsOptions,
): (result: Result) => Excess | undefined {
  const count = (text: string) => {
    const tokens: unknown = countTokens(text);
    if (typeof tokens === "number" && tokens >= 0) return tokens;
    throw new TypeError(
      `Cannot limit a result: countTokens returned ${show(tokens)}; return the number of tokens of the text`,
    );
  };
  return (result) => {
    const size = resultBytes < Infinity ? toSize(JSON.stringify(result)) : 0;
    if (size > resultBytes) {
      const state = `the result has ${size} bytes, but at most ${resultBytes} bytes are allowed`;
      return { size, limit: "handler.resultBytes", state };
    }
    const tokens = resultTokens < Infinity ? countResult(result, count) : 0;
    if (tokens <= resultTokens) return;
    const state = `the result has ${Math.ceil(tokens)} tokens, but at most ${resultTokens} tokens are allowed`;
    return { size, limit: "handler.resultTokens", state };
  };
}

function countFour(text: string): number {
  return text.length / 4;
}

/** Clients show a model either the structured content or the content. Media count like a text of their length. */
function countResult({ structuredContent, content, ...others }: Result, count: (text: string) => number): number {
  if (!Array.isArray(content)) return count(JSON.stringify(others));
  const sum = (blocks: readonly Content[], count: (text: string) => number) =>
    blocks.reduce(
      (sum, block) => sum + (block.type === "text" ? count(block.text) : countFour(JSON.stringify(block))),
      0,
    );
  const isMedia = ({ type }: Content) => type !== "text";
  const structured = structuredContent === undefined ? 0 : count(JSON.stringify(structuredContent));
  return Math.max(sum(content, count), structured + sum(content.filter(isMedia), count));
}

interface KeptMore {
  readonly call: Call;
  readonly keeper: Keeper;
  readonly more: Omit<MoreOptions, "toNext">;
  readonly schema: unknown;
}

/** Returns the first page of a result, and keeps the others. Returns `undefined` if the result cannot be cut or kept. */
async function keepMore(result: Result, { call, keeper, more, schema }: KeptMore): Promise<Result | undefined> {
  // A tool that has an argument of this name itself does not have the argument of this layer.
  if (!more.cursorAfter && !readGiven(call)?.tokens.includes(MORE)) return;
  const id = keeper.makeId();
  const pages = await toPages(result, schema, { ...more, toNext: (page) => `${id}/${page}` });
  const [first, ...others] = pages ?? [];
  if (!first || !others.length) return first;
  const kept = [first, ...others].map((page) => ({ text: JSON.stringify(page), mimeType: "application/json" }));
  return await keeper.keepPages(id, kept, call) ? first : undefined;
}

/** Returns the page that a client names. */
async function readMore(
  more: string,
  { call, keeper, tool }: Pick<KeptMore, "call" | "keeper"> & { readonly tool: string },
): Promise<Result> {
  const [id, number] = more.split("/");
  const found = await keeper.find(id, Number(number), call, toCore(call));
  if (found?.page.text !== undefined) return JSON.parse(found.page.text);
  const words = `Cannot call ${tool}: more: there is no such rest of a result, or the server no longer keeps it; ` +
    `call ${tool} again without more`;
  return { content: [toText(words)], isError: true };
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
