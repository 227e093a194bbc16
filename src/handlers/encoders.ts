/**
 * Encodes values that JSON cannot represent. Loaded when a handler first returns one.
 *
 * @module
 */
import type { Content } from "../protocol/types.ts";

// This file imports no code, because bundlers would move shared code out of the server's own chunk.

/** Bytes with their media type. */
export interface Bytes {
  /** The bytes in Base64. */
  readonly blob: string;
  readonly mimeType?: string;
  /** Name of the file. */
  readonly name?: string;
}

/** A kind of value, with its encoder or a remedy for the author. */
interface Encoder {
  readonly is: (value: object, tag: string) => boolean;
  readonly encode?: (value: object) => Bytes | Promise<Bytes>;
  /** What to return instead. If there is an encoder, it applies to nested values only. */
  readonly remedy?: string;
}

const byTag = (tag: RegExp, remedy: string): Encoder => ({ is: (_, its) => tag.test(its), remedy });

// The first match counts.
const ENCODERS: readonly Encoder[] = [
  {
    is: (value) => ArrayBuffer.isView(value) || isTagged(value, "ArrayBuffer") || isTagged(value, "SharedArrayBuffer"),
    encode: (value) => ({ blob: toBytes(value).toBase64() }),
    remedy: "return it alone, as media(bytes, type) among content blocks, or as numbers with Array.from(bytes)",
  },
  {
    // On one runtime, a file has the tag of a blob.
    is: (_, tag) => tag === "Blob" || tag === "File",
    async encode(value) {
      const blob = value as Blob; // The tag identifies it.
      const { type, name }: { readonly type: string; readonly name?: string } = blob;
      return { blob: new Uint8Array(await blob.arrayBuffer()).toBase64(), mimeType: type || undefined, name };
    },
    remedy: "return it alone, or media(await blob.bytes(), blob.type) among content blocks",
  },
  byTag(/^(Headers|URLSearchParams|FormData)$/, "return Object.fromEntries(value)"),
  // A value with toJSON() serializes itself.
  { is: (value) => typeof Object(value).toJSON === "function" },
  byTag(/^Map$/, "return Object.fromEntries(map), or an array with [...map]"),
  byTag(/^Set$/, "return an array with [...set]"),
  byTag(/^Weak/, "return a plain object; what it holds cannot be listed"),
  byTag(/^Promise$/, "await it"),
  byTag(/^Response$/, "return await response.json(), .text() or .blob()"),
  byTag(/^Request$/, "return await request.json(), .text() or .blob()"),
  byTag(/^ReadableStream$/, "return await new Response(stream).text() or .blob()"),
  byTag(/^RegExp$/, "return its source"),
  byTag(/Error$|^DOMException$/, "throw it, or return its message"),
  byTag(/Function$/, "call it and return its result"),
  byTag(/^Symbol$/, "return its description"),
  byTag(/^BigInt$/, "return String(value), or Number(value) if it is small enough"),
  { is: (value) => Symbol.asyncIterator in value && isBare(value), remedy: "return await Array.fromAsync(value)" },
  { is: (value) => Symbol.iterator in value && isBare(value), remedy: "return an array with [...value]" },
  { is: isBare, remedy: "return a plain object, or give its class a toJSON() method" },
];

/** An encoded value. */
export interface Encoded {
  /** The value as JSON. */
  readonly text?: string;
  readonly bytes?: Bytes;
  /** The bytes as a content block. */
  readonly block?: Content;
  /** The part of the value that JSON would lose, and what to return instead. */
  readonly lost?: string;
}

/** Encodes a value, if possible. */
export async function encode(value: unknown): Promise<Encoded> {
  const bytes = isObjectLike(value) ? await find(value)?.encode?.(value) : undefined;
  if (bytes) return { bytes, block: toBlock(bytes) };
  try {
    const lost = findLost(value, "", new Set());
    if (lost) return { lost };
    return { text: JSON.stringify(value) ?? "null" };
  } catch (error) {
    return { lost: `JSON cannot hold what it returned (${error}); return a plain object` };
  }
}

/**
 * Creates a content block from bytes: an image, audio, or an embedded resource with a URI such as `result:report.pdf`.
 */
function toBlock({ blob, mimeType = "application/octet-stream", name = "bytes" }: Bytes): Content {
  const [type] = mimeType.split("/");
  return type === "image" || type === "audio"
    ? { type, data: blob, mimeType }
    : { type: "resource", resource: { uri: `result:${encodeURIComponent(name)}`, mimeType, blob } };
}

/** Finds the first part of a value that JSON would lose. `open` holds the objects on the path to it. */
function findLost(value: unknown, path: string, open: Set<unknown>): string | undefined {
  if (value === null || ["undefined", "string", "number", "boolean"].includes(typeof value)) return;
  const object = Object(value);
  const at = path && ` at ${path.slice(0, 200)}`;
  if (open.has(value)) return `it returned an object that holds itself${at}; return a copy without it`;
  const known = find(object);
  if (known) return known.remedy && `it returned ${toName(object)}${at}; ${known.remedy}`;
  open.add(value);
  for (const [key, part] of Object.entries(object)) {
    const lost = findLost(part, path + (Array.isArray(value) ? `[${key}]` : path ? `.${key}` : key), open);
    if (lost) return lost;
  }
  open.delete(value);
}

function find(value: object): Encoder | undefined {
  return ENCODERS.find(({ is }) => is(value, toTag(value)));
}

/** Returns the tag of an object, which is the same in every realm. */
function toTag(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function isTagged(value: object, tag: string): boolean {
  return toTag(value) === tag;
}

function toBytes(value: object): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value as ArrayBuffer); // Only an ArrayBuffer is left.
}

/** Tests for an object that is not plain and has no properties for JSON. */
function isBare(value: object): boolean {
  if (Array.isArray(value) || Object.keys(value).length) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = !prototype || !Object.getPrototypeOf(prototype);
  // Strings, numbers and booleans may be wrapped in objects. A plain object may still be iterable.
  return isPlain
    ? Symbol.iterator in value || Symbol.asyncIterator in value
    : !/^(String|Number|Boolean)$/.test(toTag(value));
}

function toName(value: object): string {
  const tag = toTag(value);
  const { name = tag }: { readonly name?: unknown } = Object(value.constructor);
  const word = String(tag === "Object" && name ? name : tag);
  return `${/^[AEIOU]/.test(word) ? "an" : "a"} ${word}`;
}

function isObjectLike(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
