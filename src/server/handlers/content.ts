/**
 * Helpers that create content blocks.
 *
 * @see specification/2026-07-28/server/tools (Tool Result)
 */
import { toBase64 } from "../../core/kit/base64.ts";
import type {
  Annotations,
  AudioContent,
  EmbeddedResource,
  ImageContent,
  ResourceLink,
} from "../../core/protocol/types.ts";
import { ICONS } from "../engine/icons.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import type { EncodedResults, Sending } from "./encoded_results.ts";
import { ignoreRejections } from "../../core/protocol/promises.ts";
import { loadValues } from "./lazy_values.ts";

/** Options of {@linkcode media}. */
export interface MediaOptions {
  /** URI of the data. Required unless the data is an image or audio. */
  readonly uri?: string;
  /** Hints for clients, such as the audience. */
  readonly annotations?: Annotations;
}

const MEDIA: KnownOptions<keyof MediaOptions> = { names: { uri: true, annotations: true } };

/**
 * Creates a content block from bytes: an image block, an audio block, or an embedded resource for any other media type.
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
  if (!(bytes instanceof Uint8Array)) {
    const given: unknown = bytes;
    const remedy = given instanceof URL || typeof given === "string"
      ? "read the file and pass its bytes"
      : "pass the bytes, such as new Uint8Array(buffer)";
    throw new TypeError(
      `Cannot make media: the data is ${given instanceof URL ? "a URL" : show(given)}, not a Uint8Array; ${remedy}`,
    );
  }
  if (typeof mimeType !== "string") {
    throw new TypeError(
      `Cannot make media: the media type is ${show(mimeType)}; pass a media type such as "image/png"`,
    );
  }
  const { uri, annotations } = options;
  const data = toBase64(bytes);
  if (mimeType.startsWith("image/")) return { type: "image", data, mimeType, annotations };
  if (mimeType.startsWith("audio/")) return { type: "audio", data, mimeType, annotations };
  if (!uri) {
    throw new TypeError(
      `Cannot send ${mimeType}: the media type is neither an image nor audio; pass { uri } to send an embedded resource`,
    );
  }
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

/** Ignores rejections of promises in `given`, because a promise may reject before the encoder reports it as invalid. */
export async function loadResults(sending: Sending, given: unknown): Promise<EncodedResults> {
  ignoreRejections(given);
  const { EncodedResults } = await loadValues();
  return new EncodedResults(sending);
}
