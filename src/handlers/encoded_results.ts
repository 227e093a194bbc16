/**
 * Results made of values that JSON has no word for, and of what does not fit. Loaded when a handler first returns one.
 *
 * @module
 */
import type { Content, ResourceContents, ToolResult } from "../protocol/types.ts";
import type { CompiledSchema } from "../schema/schema.ts";
import type { Sending } from "./content.ts";
import { encode, type Encoded } from "./encoders.ts";

// Nothing that the server has loaded is imported: a bundler would cut what both share out of the server's own file.

/** What results are made with. */
export interface ResultTools extends Sending {
  readonly isContent: (value: unknown) => value is Content;
  /** The class of errors for what cannot be sent. */
  readonly ResultError: new (text: string) => Error;
}

/** What is known of the result of a tool. */
export interface ToolResultOptions {
  /** The result, if the value is only its structured content. */
  readonly full?: ToolResult;
  readonly output?: CompiledSchema;
  /** What the output schema found wrong with the value before it was encoded. */
  readonly problem?: string;
}

/** Sends what one handler returned. */
export class EncodedResults {
  readonly #tools: ResultTools;

  constructor(tools: ResultTools) {
    this.#tools = tools;
  }

  /** The result of a tool. */
  async ofTool(given: unknown, { full, output, problem }: ToolResultOptions): Promise<Record<string, unknown>> {
    // A raw JSON Schema is of what is sent, and any other schema of what the handler made.
    if (problem !== undefined && !output?.isRaw) throw this.#refuse(problem);
    const { value, text, media, blocks, isError } = await this.#encode(given);
    // Of a full result, structured content may be any JSON value. Bytes are content alone.
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

  /** The result as it was given. Throws if a content block is not what the protocol wants it to be. */
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

  /** The contents of a resource; `undefined` if there is none. */
  async ofResource(
    given: unknown,
    { uri, mimeType }: { readonly uri: string; readonly mimeType?: string },
  ): Promise<readonly unknown[] | undefined> {
    const { value, text, media, isError } = await this.#encode(given);
    if (isError) throw this.#toFailed();
    const found = media.map(({ path, text, blob, mimeType: type }): ResourceContents => ({
      uri: path ? `${uri}#${encodeURIComponent(path)}` : uri,
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

  /** The messages of a prompt, or what stands for messages: texts and content blocks. */
  async ofPrompt(given: unknown): Promise<unknown> {
    const { value, text, media, blocks, isError, isPlain } = await this.#encode(given);
    if (isError) throw this.#toFailed();
    if (blocks?.length) return blocks;
    const isList = Array.isArray(value) && value.length && value.every((item) => Object(item).role ?? isTyped(item));
    // What JSON can hold as it is was meant to be something else, such as a message.
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
    const { place, ResultError } = this.#tools;
    return new ResultError(`Cannot send the result of ${place}: ${state}`);
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
