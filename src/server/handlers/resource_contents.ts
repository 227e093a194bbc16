/**
 * Converts the return value of a resource's `read` to contents.
 *
 * @see specification/2026-07-28/server/resources (Resource Contents)
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { ResourceContents } from "../../core/protocol/types.ts";
import { loadResults } from "./content.ts";
import { isContents, toJson } from "./content_checks.ts";
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
  /** Whether the contents come from another server, and are sent without a media type if they have none. */
  readonly isForeign?: boolean;
}

/** Converts a return value to contents. Returns `undefined` if the resource does not exist. */
export async function toContents(
  value: unknown,
  { uri, mimeType, isForeign }: ContentsOptions,
  sending: Sending,
): Promise<ResourceContents[] | undefined> {
  if (value === undefined || value === null) return;
  const given = isObject(value) && Array.isArray(value.contents) ? value.contents : value;
  const list = Array.isArray(given) && (given.length || isForeign) ? given : [given];
  if (list.every(isContents)) return isForeign ? await toChecked(list, sending) : await toFull(list, mimeType, sending);
  if (typeof value === "string") return [{ uri, mimeType: mimeType ?? TEXT, text: value }];
  const json = toJson(value);
  if (json) return [{ uri, mimeType: mimeType ?? "application/json", text: json }];
  const results = await loadResults(sending, value);
  const contents = await results.ofResource(value, { uri, mimeType });
  return contents?.every(isContents) ? await toFull(contents, mimeType, sending) : undefined;
}

async function toFull(
  list: readonly ResourceContents[],
  mimeType: string | undefined,
  sending: Sending,
): Promise<ResourceContents[]> {
  const contents = list.map((one) => ({
    ...one,
    mimeType: one.mimeType ?? mimeType ?? (typeof one.text === "string" ? TEXT : BYTES),
  }));
  return contents.some(isDoubtful) ? await toChecked(contents, sending) : contents;
}

async function toChecked(contents: ResourceContents[], sending: Sending): Promise<ResourceContents[]> {
  return (await loadResults(sending, contents)).check({ contents }, "resources/read").contents;
}

/** Whether contents have members that {@linkcode isContents} does not check, so that the contents may be invalid. */
function isDoubtful({ blob, mimeType, _meta }: ResourceContents): boolean {
  return blob !== undefined || _meta !== undefined || typeof mimeType !== "string";
}

const TEXT = "text/plain";
const BYTES = "application/octet-stream";
