/**
 * Converts the return value of a resource's `read` to contents.
 *
 * @see specification/2026-07-28/server/resources (Resource Contents)
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { ResourceContents } from "../protocol/types.ts";
import { loadResults } from "./content.ts";
import { toJson } from "./content_checks.ts";
import type { Sending } from "./encoded_results.ts";
import type { ToolReturn } from "./tool.ts";

/**
 * The return value of `read`: text, bytes, a `Blob` or `File`, or one or more {@linkcode ResourceContents}. Any other
 * object becomes JSON text. `undefined` and `null` mean that the resource does not exist.
 */
export type ResourceReturn = Exclude<ToolReturn, number | boolean>;

export interface ContentsOptions {
  readonly uri: string;
  /** Media type of contents for which `read` returns no media type. */
  readonly mimeType?: string;
}

/** Converts a return value to contents. Returns `undefined` if the resource does not exist. */
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
  const results = await loadResults(sending, value);
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
