/**
 * What a resource's `read` may return, and what clients get for it.
 *
 * @see specification/2026-07-28/server/resources (Resource Contents)
 * @module
 */
import { toBase64 } from "../protocol/base64.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { ResourceContents } from "../protocol/types.ts";

/**
 * What `read` may return: text, bytes, one or more {@linkcode ResourceContents}, or any other object, which becomes
 * JSON text. `undefined` and `null` stand for a resource that does not exist.
 */
export type ResourceReturn = string | Uint8Array | ArrayBuffer | object | null | undefined;

/** Where contents are from. */
export interface ContentsOptions {
  readonly uri: string;
  /** The type, if `read` does not say one. */
  readonly mimeType?: string;
}

/** What `read` returned, as contents. `undefined` if there is no such resource. */
export function toContents(value: unknown, { uri, mimeType }: ContentsOptions): ResourceContents[] | undefined {
  if (value === undefined || value === null) return;
  const list = Array.isArray(value) && value.length ? value : [value];
  if (list.every(isContents)) {
    return list.map((one) => ({
      ...one,
      mimeType: one.mimeType ?? mimeType ?? (one.text === undefined ? BYTES : TEXT),
    }));
  }
  const bytes = value instanceof ArrayBuffer ? new Uint8Array(value) : value;
  if (bytes instanceof Uint8Array) return [{ uri, mimeType: mimeType ?? BYTES, blob: toBase64(bytes) }];
  if (typeof value === "string") return [{ uri, mimeType: mimeType ?? TEXT, text: value }];
  const text = JSON.stringify(value);
  if (text === undefined) throw new Error(`Cannot send ${uri}: read returned a ${typeof value}`);
  return [{ uri, mimeType: mimeType ?? "application/json", text }];
}

const TEXT = "text/plain";
const BYTES = "application/octet-stream";

function isContents(value: unknown): value is ResourceContents {
  return isObject(value) && typeof value.uri === "string" &&
    (typeof value.text === "string" || typeof value.blob === "string");
}
