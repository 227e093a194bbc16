/**
 * Helpers that create content blocks.
 *
 * @see specification/2026-07-28/server/tools (Tool Result)
 * @module
 */
import { toBase64 } from "../protocol/base64.ts";
import { ResultError } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type {
  Annotations,
  AudioContent,
  Content,
  EmbeddedResource,
  ImageContent,
  ResourceLink,
} from "../protocol/types.ts";
import type { Encoded } from "./encoders.ts";

/** Options of a media block. */
export interface MediaOptions {
  /** URI of the data. Required unless it is an image or audio. */
  readonly uri?: string;
  /** Hints for clients. */
  readonly annotations?: Annotations;
}

/**
 * Creates a content block from bytes: an image, audio, or an embedded resource for any other media type.
 *
 * ```ts
 * import { media } from "@x/mcp";
 *
 * const pixel = media(new Uint8Array([137, 80, 78, 71]), "image/png");
 * ```
 */
export function media(
  bytes: Uint8Array,
  mimeType: string,
  options: MediaOptions = {},
): ImageContent | AudioContent | EmbeddedResource {
  const { uri, annotations } = options;
  const data = toBase64(bytes);
  if (mimeType.startsWith("image/")) return { type: "image", data, mimeType, annotations };
  if (mimeType.startsWith("audio/")) return { type: "audio", data, mimeType, annotations };
  if (!uri) throw new TypeError(`Cannot send ${mimeType}: it is neither image nor audio, so it needs { uri }`);
  return { type: "resource", resource: { uri, mimeType, blob: data }, annotations };
}

/**
 * Creates a link to a resource that the client can read. The name defaults to the last part of the URI's path.
 *
 * ```ts
 * import { resourceLink } from "@x/mcp";
 *
 * const log = resourceLink("file:///var/log/app.log", { mimeType: "text/plain" });
 * ```
 */
export function resourceLink(uri: string, options: Partial<Omit<ResourceLink, "type" | "uri">> = {}): ResourceLink {
  let end = uri.length;
  while ("/?#".includes(uri.charAt(end - 1)) && end) end--;
  return { type: "resource_link", uri, name: uri.slice(0, end).split("/").at(-1) || uri, ...options };
}

/** Tests for a content block. */
export function isContent(value: unknown): value is Content {
  if (!isObject(value)) return false;
  switch (value.type) {
    case "text":
      return typeof value.text === "string";
    case "image":
    case "audio":
      return typeof value.data === "string" && typeof value.mimeType === "string";
    case "resource_link":
      return typeof value.uri === "string" && typeof value.name === "string";
    case "resource":
      return isObject(value.resource) && typeof value.resource.uri === "string";
    default:
      return false;
  }
}

/** Serializes a value as JSON. Returns `undefined` if JSON cannot represent it, or would silently lose a part. */
export function toJson(value: unknown): string | undefined {
  try {
    if (isOdd(value) || typeof value === "object" && value && Object.values(value).some(isOdd)) return;
    const text = JSON.stringify(value);
    // Maps, streams, bytes and similar objects serialize like this.
    return text && !/\{\}|\{"0":/.test(text) ? text : undefined;
  } catch {
    // The value contains a bigint or a cycle, or its own toJSON() throws.
  }
}

// Built-in objects have a tag, and dates and URLs also have toJSON(). Headers and byte arrays have toJSON() on some
// runtimes only, and the result is not useful.
function isOdd(value: unknown): boolean {
  if (typeof value !== "object" || !value) return /^[fs]..[cb]/.test(typeof value);
  const isNamed = Symbol.toStringTag in value || value instanceof Error;
  return isNamed && (Symbol.iterator in value || !("toJSON" in value));
}

/** Encodes a value for which {@linkcode toJson} returns `undefined`. */
export async function encode(value: unknown, place: string): Promise<Encoded> {
  const { encode } = await import("./encoders.ts");
  const made = await encode(value);
  if (made.lost) throw new ResultError(`Cannot send the result of ${place}: ${made.lost}`);
  return made;
}
