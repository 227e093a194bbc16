/**
 * Builds results from values that JSON cannot represent, and rejects invalid results. Loaded when a handler first
 * returns such a value.
 */
import type { Call } from "../call/call.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { EncodedValue } from "../visibility/guards.ts";
import { REACHED, ResultError, withLimits } from "../../core/protocol/errors.ts";
import { type Result, withoutReserved } from "../../core/protocol/jsonrpc.ts";
import { copyText, toJsonText } from "../../core/protocol/text_copy.ts";
import type { TextCopy } from "../../core/protocol/text_option.ts";
import type { ResourceContents, ToolResult } from "../../core/protocol/types.ts";
import { describeMisfits, fitResult } from "../../core/protocol/wire.ts";
import type { CompiledSchema } from "../../core/schema/schema.ts";
import { hasResultMembers, isContent, isContents, toText } from "./content_checks.ts";
import { encode, type Encoded, release } from "./encoders.ts";

export interface Sending {
  /** Subject of error messages, such as `tool "add"`. */
  readonly place: string;
  readonly call: Call;
  readonly core: FeatureParts;
  /** The text copy of structured content. Defaults to the server's option. */
  readonly text?: TextCopy;
  readonly output?: CompiledSchema;
  /** Media type of a resource. Defaults to the media type of the contents. */
  readonly mimeType?: string;
}

export interface ToolResultOptions {
  /** Set if the handler returned a full result. The value to encode is then only its structured content. */
  readonly full?: ToolResult;
  /** Problem that validation against the output schema found before the value was encoded. */
  readonly problem?: string;
}

export class EncodedResults {
  readonly #sending: Sending;

  constructor(sending: Sending) {
    this.#sending = sending;
  }

  async ofTool(given: unknown, { full, problem }: ToolResultOptions): Promise<Record<string, unknown>> {
    const { output } = this.#sending;
    // A raw JSON Schema describes the value as sent. Any other schema describes the value that the handler returned.
    if (problem !== undefined && !output?.isRaw) {
      release(given);
      throw this.#refuse(problem);
    }
    const { value, text, media, blocks, isError } = await this.#encode(given);
    if (output?.isRaw && !isError) {
      const checked = await output.validate(value);
      if (checked.problem !== undefined) throw this.#refuse(checked.problem);
    }
    const found = media.map(({ block }) => block);
    if (full) {
      // A value that is only bytes becomes content, not structured content.
      const structuredContent = typeof value === "object" || !media.length ? value : undefined;
      return this.check({ ...full, content: [...full.content, ...found], structuredContent });
    }
    if (output && !isError) return this.#withCopy(value === undefined ? await this.#toNull(output) : value, found);
    if (blocks) return this.check({ content: blocks, isError: isError || undefined });
    const isObject = typeof value === "object" && value !== null;
    // Some clients pass only structured content to the model, so structured content would hide the media.
    if (isObject && !media.length && !isError) return this.#withCopy(value, []);
    const copy = isObject ? toJsonText(value) : text;
    return { content: [...copy === undefined ? [] : [toText(copy)], ...found], isError: isError || undefined };
  }

  /** Returns the structured content of a handler that returned nothing although its tool has an output schema. */
  async #toNull(output: CompiledSchema): Promise<null> {
    const { problem } = await output.validate(null);
    if (problem === undefined) return null;
    throw this.#refuse(
      "run returned nothing, but the tool has an output schema; return a value that matches the schema",
    );
  }

  #withCopy(structuredContent: unknown, media: readonly unknown[]): Record<string, unknown> {
    const { text, core } = this.#sending;
    const { content, mark } = copyText(structuredContent, text ?? core.text ?? "full");
    return { content: [...content, ...media], structuredContent, ...mark };
  }

  /**
   * Returns the result for a value that JSON represents as a string, such as a date. A prompt cannot return such a
   * value, so for a prompt the value is returned unchanged.
   */
  #ofScalar(value: unknown): unknown {
    const { call: { method, params }, mimeType = "application/json" } = this.#sending;
    if (Object(value) === value) return value;
    if (method === "tools/call") return this.#withCopy(value, []);
    return method === "resources/read" ? [{ uri: params.uri, mimeType, text: JSON.stringify(value) }] : value;
  }

  /** Encodes a value for the output guards: as JSON, content blocks, or a full result. */
  async forGuards(given: unknown): Promise<EncodedValue> {
    const { call, mimeType } = this.#sending;
    const { method } = call;
    if (this.#isFull(given)) {
      const { value, media } = await this.#encode(given.structuredContent);
      const content = [...given.content, ...media.map(({ block }) => block)];
      return { value: { ...given, content, structuredContent: value } };
    }
    const encoded = await this.#encode(given);
    const { value, text, media, blocks, isError } = encoded;
    if (method === "resources/read") {
      if (!media.length && !isError) return { value, mimeType: encoded.mimeType };
      return { value: this.#toContents(encoded, { uri: String(call.params.uri), mimeType }) };
    }
    if (method === "prompts/get") return { value: media.length || isError ? this.#toMessages(encoded) : value };
    const found = media.map(({ block }) => block);
    if (isError) return { value: { content: blocks ?? [toText(text ?? ""), ...found], isError } };
    if (blocks) return { value: blocks.length ? blocks : undefined };
    if (!media.length) return { value };
    return { value: { content: found, structuredContent: value }, finish: "copy" };
  }

  /** Builds the result from the value that the output guards returned. */
  finish(left: unknown, { finish: how, mimeType }: EncodedValue): unknown {
    if (how === "scalar") return this.#ofScalar(left);
    if (mimeType && typeof left === "string") {
      return [{ uri: this.#sending.call.params.uri, mimeType: this.#sending.mimeType ?? mimeType, text: left }];
    }
    if (!how || !this.#isFull(left) || left.structuredContent === undefined || left.isError) return left;
    const { structuredContent, ...rest } = left;
    if (this.#sending.output) return { ...left, ...this.#withCopy(structuredContent, left.content) };
    return { ...rest, content: [toText(toJsonText(structuredContent)), ...left.content] };
  }

  #isFull(value: unknown): value is ToolResult {
    const { call: { method }, output } = this.#sending;
    const { content } = Object(value);
    return method === "tools/call" && Array.isArray(content) && content.every(isContent) &&
      (!output || hasResultMembers(value));
  }

  /**
   * Checks the types of a result's members. Returns the result without members that are `null`.
   *
   * @throws {ResultError} that names the handler and the member, if a member has a wrong type.
   */
  check<R extends Result>(result: R, method: string = this.#sending.call.method): R {
    const { value, misfits } = fitResult(method, result);
    if (misfits.length) throw this.#refuse(describeMisfits(misfits));
    return withoutReserved(value as R); // The cast is safe, because only members that are `null` were left out.
  }

  /** Returns the contents of a resource, or `undefined` if the value has no contents. */
  async ofResource(
    given: unknown,
    options: { readonly uri: string; readonly mimeType?: string },
  ): Promise<readonly unknown[] | undefined> {
    return this.#toContents(await this.#encode(given), options);
  }

  #toContents(
    { value, text, mimeType: own, media, isError }: Encoded,
    { uri, mimeType }: { readonly uri: string; readonly mimeType?: string },
  ): readonly unknown[] | undefined {
    if (isError) throw this.#toFailed();
    const found = media.map(({ path, text, blob, mimeType: type }): ResourceContents => ({
      uri: path ? `${uri}#${encodeURIComponent(path.toWellFormed())}` : uri,
      mimeType: type ?? (path ? "application/octet-stream" : mimeType),
      ...(blob === undefined ? { text } : { blob }),
    }));
    if (value === undefined) return found.length ? found : undefined;
    if (Array.isArray(value) && value.length && value.every(isContents)) return value;
    return [
      { uri, mimeType: mimeType ?? (typeof value === "string" ? own : "application/json"), text },
      ...found,
    ];
  }

  /** Returns the messages of a prompt, or the texts and content blocks from which the caller creates messages. */
  async ofPrompt(given: unknown): Promise<unknown> {
    return this.#toMessages(await this.#encode(given));
  }

  #toMessages({ value, text, media, blocks, isError, isPlain }: Encoded): unknown {
    if (isError) throw this.#toFailed();
    if (blocks?.length) return blocks;
    const isList = Array.isArray(value) && value.length && value.every((item) => Object(item).role ?? isTyped(item));
    // Return a plain JSON value as it is. The caller then rejects it as an invalid message.
    if (isPlain || isList) return value;
    return [toText(text ?? ""), ...media.map(({ block }) => block)];
  }

  async #encode(value: unknown): Promise<Encoded> {
    const { call, core: { limits: { calls }, ticker } } = this.#sending;
    const made = await encode(value, {
      signal: call.signal,
      maxBytes: calls.resultBytes,
      readMs: calls.readMs,
      startTimer: (run, ms) => ticker.start(run, ms),
    });
    if (made.lost) throw withLimits(this.#refuse(made.lost), made[REACHED]);
    return made;
  }

  #refuse(state: string): Error {
    return new ResultError(`Cannot send the result of ${this.#sending.place}: ${state}`);
  }

  #toFailed(): Error {
    return this.#refuse("it returned a Response with an error status; check response.ok, and throw an error");
  }
}

function isTyped(item: unknown): boolean {
  return typeof Object(item).type === "string";
}
