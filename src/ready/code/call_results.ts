/**
 * Converts the results of tools to values of programs, and what programs return to content.
 */
import { isObject } from "../../core/kit/json.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Content } from "../../core/protocol/types.ts";
import type { SandboxResult } from "./sandbox.ts";

/** The error of a call, as the program gets it. */
export class CallError extends Error {
  readonly code?: number;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

/** The images, sounds and files that a program gets. The program has handles, and the data stays here. */
export class MediaHandles {
  // Bound: the limit on calls, and `calls.resultBytes`.
  readonly #blocks: Content[] = [];

  /** Returns the structured content of a result, or else its text, which is never parsed. Throws for `isError`. */
  toValue({ content, structuredContent, isError }: Result): unknown {
    const blocks = Array.isArray(content) ? content.filter(isObject) : [];
    const texts = blocks.flatMap(({ type, text }) => type === "text" && typeof text === "string" ? text : []);
    if (isError === true) throw new CallError(texts.join("\n") || "the tool failed without words");
    if (structuredContent !== undefined) return structuredContent;
    if (blocks.length === 1) return texts.length ? texts[0] : this.#toHandle(blocks[0]);
    return blocks.length ? { content: blocks.map((block) => this.#toHandle(block)) } : undefined;
  }

  /** Returns the block itself if it has no data. */
  #toHandle(block: Readonly<Record<string, unknown>>): unknown {
    const { type, data, mimeType, resource } = block;
    const { blob, uri, mimeType: ofResource } = Object(resource);
    if (data === undefined && blob === undefined) return block;
    // The cast is safe, because the server has checked the result.
    const media = this.#blocks.push(block as unknown as Content);
    return { type, mimeType: mimeType ?? ofResource, ...uri !== undefined && { uri }, media };
  }

  /** Returns the content of a run: the returned value with the media in it, the error, and what was logged. */
  toContent({ value, error, logs }: SandboxResult): { readonly content: readonly Content[]; readonly isError?: true } {
    const found = new Set<Content>();
    const isOnlyMedia = [value].flat().every((each) => this.#find(each)) && value !== undefined;
    const collect = (part: unknown) => {
      const block = this.#find(part);
      if (block) found.add(block);
      else if (typeof part === "object" && part !== null) Object.values(part).forEach(collect);
    };
    collect(value);
    const logged = logs.length ? [`Logged:\n${logs.join("\n")}`] : [];
    const texts = error !== undefined ? [`Cannot finish the program: ${error}`, ...logged] : [
      ...isOnlyMedia && found.size ? [] : [value === undefined ? "The program returned no value." : toText(value)],
      ...logged,
    ];
    const content = [...texts.map((text) => ({ type: "text", text }) as const), ...error === undefined ? found : []];
    return { content, ...error !== undefined && { isError: true } };
  }

  #find(value: unknown): Content | undefined {
    if (!isObject(value)) return;
    const { media, type } = value;
    const block = typeof media === "number" ? this.#blocks[media - 1] : undefined;
    return block?.type === type ? block : undefined;
  }
}

function toText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text === undefined) throw new TypeError("Cannot use the result of the sandbox: its value is not a JSON value");
  return text;
}
