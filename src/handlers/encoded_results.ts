/**
 * Builds results from values that JSON cannot represent, and rejects invalid ones. Loaded when a handler first returns one.
 *
 * @module
 */
import type { Call } from "../core/call/call.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import { ResultError } from "../protocol/errors.ts";
import type { Content, ResourceContents, ToolResult } from "../protocol/types.ts";
import type { CompiledSchema } from "../schema/schema.ts";
import { encode, type Encoded, release } from "./encoders.ts";

export { runFiltered } from "./filters.ts";

/** The result that is being sent. */
export interface Sending {
  /** Subject of error messages, such as `tool "add"`. */
  readonly place: string;
  readonly call: Call;
  readonly core: FeatureParts;
}

/** Services that build a result. */
export interface ResultTools extends Sending {
  readonly isContent: (value: unknown) => value is Content;
}

/** Facts about the result of a tool. */
export interface ToolResultOptions {
  /** The result, if the value is only its structured content. */
  readonly full?: ToolResult;
  readonly output?: CompiledSchema;
  /** Problem that the output schema found before the value was encoded. */
  readonly problem?: string;
}

/** Builds the result from the value that one handler returned. */
export class EncodedResults {
  readonly #tools: ResultTools;

  constructor(tools: ResultTools) {
    this.#tools = tools;
  }

  /** Returns the result of a tool. */
  async ofTool(given: unknown, { full, output, problem }: ToolResultOptions): Promise<Record<string, unknown>> {
    // A raw JSON Schema describes the value as sent. Any other schema describes the value that the handler returned.
    if (problem !== undefined && !output?.isRaw) {
      release(given);
      throw this.#refuse(problem);
    }
    // JSON would send a map as `{}`.
    const meta: unknown = full?._meta ?? {};
    if (Object.prototype.toString.call(meta) !== "[object Object]") {
      release(given);
      throw this.#refuse("_meta is not a plain object; give it one");
    }
    const { value, text, media, blocks, isError } = await this.#encode(given);
    // In a full result, structured content may be any JSON value. Bytes are only content.
    const isStructured = typeof value === "object" ? full || !blocks : full && !media.length;
    const structuredContent = isStructured ? full ? value : value ?? undefined : undefined;
    if (output?.isRaw && !isError) {
      const checked = await output.validate(value);
      if (checked.problem !== undefined) throw this.#refuse(checked.problem);
    }
    const found = media.map(({ block }) => block);
    this.checkContent({ content: full?.content ?? blocks ?? [] });
    if (full) return { ...full, content: [...full.content, ...found], structuredContent };
    return {
      content: blocks ?? [...text === undefined ? [] : [toText(text)], ...found],
      structuredContent,
      isError: isError || undefined,
    };
  }

  /** Returns a full result unchanged. Throws if a content block is invalid. */
  checkContent<R extends { readonly content: readonly Content[] }>(result: R): R {
    result.content.forEach((block, i) => {
      const refuse = (state: string) => this.#refuse(`content[${i}] ${state}`);
      if (block.type === "resource" && typeof (block.resource.text ?? block.resource.blob) !== "string") {
        throw refuse("is a resource without text or blob; give it one of them, or link to it");
      }
      const { annotations } = block;
      if (annotations === undefined) return;
      const { audience, priority }: { readonly audience?: unknown; readonly priority?: unknown } = Object(annotations);
      if (priority !== undefined && !(typeof priority === "number" && priority >= 0 && priority <= 1)) {
        throw refuse(`has the priority ${show(priority)}; give a number from 0 to 1`);
      }
      const known = Array.isArray(audience) && audience.every((role) => role === "user" || role === "assistant");
      if (audience !== undefined && !known) {
        throw refuse(`has the audience ${show(audience)}; give a list of "user" and "assistant"`);
      }
    });
    return result;
  }

  /** Returns the contents of a resource, or `undefined` without contents. */
  async ofResource(
    given: unknown,
    { uri, mimeType }: { readonly uri: string; readonly mimeType?: string },
  ): Promise<readonly unknown[] | undefined> {
    const { value, text, media, isError } = await this.#encode(given);
    if (isError) throw this.#toFailed();
    const found = media.map(({ path, text, blob, mimeType: type }): ResourceContents => ({
      uri: path ? `${uri}#${encodeURIComponent(path.toWellFormed())}` : uri,
      mimeType: type ?? (path ? "application/octet-stream" : mimeType),
      ...(blob === undefined ? { text } : { blob }),
    }));
    if (value === undefined) return found.length ? found : undefined;
    if (Array.isArray(value) && value.length && value.every(isContents)) return value;
    return [
      { uri, mimeType: mimeType ?? (typeof value === "string" ? undefined : "application/json"), text },
      ...found,
    ];
  }

  /** Returns the messages of a prompt, or the texts and content blocks to make messages from. */
  async ofPrompt(given: unknown): Promise<unknown> {
    const { value, text, media, blocks, isError, isPlain } = await this.#encode(given);
    if (isError) throw this.#toFailed();
    if (blocks?.length) return blocks;
    const isList = Array.isArray(value) && value.length && value.every((item) => Object(item).role ?? isTyped(item));
    // The caller reports a plain JSON value as an invalid message.
    if (isPlain || isList) return value;
    return [toText(text ?? ""), ...media.map(({ block }) => block)];
  }

  async #encode(value: unknown): Promise<Encoded> {
    const { call, core: { limits: { calls }, ticker }, isContent } = this.#tools;
    const made = await encode(value, {
      signal: call.signal,
      maxBytes: calls.resultBytes,
      readMs: calls.readMs,
      isContent,
      startTimer(run, ms) {
        const timeout = ticker.startTimeout(ms, run);
        return () => ticker.cancel(timeout);
      },
    });
    if (made.lost) throw this.#refuse(made.lost);
    return made;
  }

  #refuse(state: string): Error {
    return new ResultError(`Cannot send the result of ${this.#tools.place}: ${state}`);
  }

  #toFailed(): Error {
    return this.#refuse("it returned a Response that is not ok; look at its status, and throw an error");
  }
}

function show(value: unknown): string {
  return String(JSON.stringify(value) ?? value).slice(0, 60);
}

function toText(text: string): Content {
  return { type: "text", text };
}

function isTyped(item: unknown): boolean {
  return typeof Object(item).type === "string";
}

function isContents(value: unknown): boolean {
  const { uri, text, blob } = Object(value);
  return typeof uri === "string" && typeof (text ?? blob) === "string";
}
