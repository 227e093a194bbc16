/**
 * What a resource's `read` may return, and what clients get for it.
 *
 * @see specification/2026-07-28/server/resources (Resource Contents)
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { ResourceContents } from "../protocol/types.ts";
import { loadResults, type Sending, toJson } from "./content.ts";
import type { ToolReturn } from "./tool.ts";

/**
 * What `read` may return: text, one or more {@linkcode ResourceContents}, also as `{ contents }`, or any other value that a tool may return. Bytes,
 * a `Blob`, a `File`, a stream and a `Response` are text or bytes by their type, and other objects are JSON text; media
 * within them are further contents, such as `config://app#chart`. A `Response` with an error status is refused.
 *
 * `undefined` and `null` stand for a resource that does not exist.
 */
export type ResourceReturn = Exclude<ToolReturn, number | boolean>;

/** Where contents are from. */
export interface ContentsOptions {
  readonly uri: string;
  /** The type, if `read` does not say one. */
  readonly mimeType?: string;
}

/** What `read` returned, as contents. `undefined` if there is no such resource. */
export async function toContents(
  value: unknown,
  { uri, mimeType }: ContentsOptions,
  sending: Sending,
): Promise<ResourceContents[] | undefined> {
  if (value === undefined || value === null) return;
  const given = isObject(value) && Array.isArray(value.contents) ? value.contents : value;
  const list = Array.isArray(given) && given.length ? given : [given];
  if (list.every(isContents)) return toFull(list, mimeType);
  if (typeof value === "string") return [{ uri, mimeType: mimeType ?? TEXT, text: value }];
  const json = toJson(value);
  if (json) return [{ uri, mimeType: mimeType ?? "application/json", text: json }];
  const results = await loadResults(sending);
  const contents = await results.ofResource(value, { uri, mimeType });
  return contents?.every(isContents) ? toFull(contents, mimeType) : undefined;
}

function toFull(list: readonly ResourceContents[], mimeType: string | undefined): ResourceContents[] {
  return list.map((one) => ({ ...one, mimeType: one.mimeType ?? mimeType ?? (one.text === undefined ? BYTES : TEXT) }));
}

const TEXT = "text/plain";
const BYTES = "application/octet-stream";

function isContents(value: unknown): value is ResourceContents {
  return isObject(value) && typeof value.uri === "string" &&
    (typeof value.text === "string" || typeof value.blob === "string");
}
