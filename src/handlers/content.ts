/**
 * Helpers that create content blocks.
 *
 * @see specification/2026-07-28/server/tools (Tool Result)
 * @module
 */
import { toBase64 } from "../kit/base64.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type {
  Annotations,
  AudioContent,
  Content,
  EmbeddedResource,
  ImageContent,
  ResourceLink,
} from "../protocol/types.ts";
import { ICONS } from "../core/icons.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { EncodedResults, Sending } from "./encoded_results.ts";
import { loadValues } from "./value_room.ts";

/** Options of a media block. */
export interface MediaOptions {
  /** URI of the data. Required unless it is an image or audio. */
  readonly uri?: string;
  /** Hints for clients. */
  readonly annotations?: Annotations;
}

const MEDIA: KnownOptions<keyof MediaOptions> = { names: { uri: true, annotations: true } };

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
  checkOptions("make media", options, MEDIA);
  const { uri, annotations } = options;
  const data = toBase64(bytes);
  if (mimeType.startsWith("image/")) return { type: "image", data, mimeType, annotations };
  if (mimeType.startsWith("audio/")) return { type: "audio", data, mimeType, annotations };
  if (!uri) throw new TypeError(`Cannot send ${mimeType}: it is neither image nor audio, so it needs { uri }`);
  return { type: "resource", resource: { uri, mimeType, blob: data }, annotations };
}

const LINK: KnownOptions<keyof Omit<ResourceLink, "type" | "uri">> = {
  names: {
    name: true,
    title: true,
    description: true,
    mimeType: true,
    size: true,
    annotations: true,
    icons: ICONS,
    _meta: true,
  },
};

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
  checkOptions("link to a resource", options, LINK);
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

/** Whether a content block has parts that may be wrong, though it looks like one. */
export function isDoubtful({ type, annotations }: Content): boolean {
  return type === "resource" || annotations !== undefined;
}

/** Returns a value as JSON text. Returns `undefined` if JSON cannot represent it, or may silently lose a part of it. */
export function toJson(value: unknown): string | undefined {
  try {
    // Loops and searches cost a small result half as much as callbacks and patterns. `Object.values` of an array is ten
    // times slower on one runtime.
    if (isOdd(value)) return;
    if (Array.isArray(value)) { for (const item of value) if (isOdd(item)) return; }
    else if (isObject(value)) { for (const key of Object.keys(value)) if (isOdd(value[key])) return; }
    const text = JSON.stringify(value);
    // Maps, streams and similar values become `{}`, and bytes become `{"0":…}`.
    return text && !text.includes("{}") && !text.includes('{"0":') ? text : undefined;
  } catch {
    // The value contains a bigint or a cycle, or its own toJSON() throws.
  }
}

// Built-in objects have a tag, and dates and URLs also have toJSON(). Headers and byte arrays have toJSON() on some
// runtimes only, and the result is not useful.
function isOdd(value: unknown): boolean {
  if (typeof value !== "object" || !value) {
    return typeof value === "function" || typeof value === "symbol" || typeof value === "bigint";
  }
  const isNamed = Symbol.toStringTag in value || Symbol.asyncIterator in value || value instanceof Error;
  return isNamed && (Symbol.iterator in value || !("toJSON" in value));
}

/** Loads the encoder of values for which {@linkcode toJson} has no text. */
export async function loadResults(sending: Sending): Promise<EncodedResults> {
  const { EncodedResults } = await loadValues();
  return new EncodedResults({ ...sending, isContent });
}
