/**
 * Encodes values that JSON cannot represent. Loaded when a handler first returns such a value.
 */
import { toBase64 } from "../../core/kit/base64.ts";
import { type Limited, REACHED, withLimits } from "../../core/protocol/errors.ts";
import type { Content } from "../../core/protocol/types.ts";
import { measureJson } from "../../core/protocol/json_size.ts";
import { countIndexes } from "../../core/protocol/weight.ts";
import { isContent, toText } from "./content_checks.ts";

export interface EncodeOptions {
  /** Aborts when the call ends, and cancels the reading of streams and iterables. */
  readonly signal: AbortSignal;
  /** Maximum bytes of the value as JSON text: `calls.resultBytes`. */
  readonly maxBytes: number;
  /** Maximum time in milliseconds to read streams and iterables: `calls.readMs`. */
  readonly readMs: number;
  /** Runs a function after a number of milliseconds. Returns a function that cancels the run. */
  readonly startTimer: (run: () => void, ms: number) => () => void;
}

/** Bytes or named text, sent in addition to the JSON value. */
export interface Media {
  /** Path in the value, such as `rows[1].chart`. Empty if the medium is the whole value. */
  readonly path: string;
  readonly text?: string;
  /** Bytes in base64. */
  readonly blob?: string;
  readonly mimeType?: string;
  /** Content block: an image, audio, or an embedded resource whose URI is `result:` followed by its name. */
  readonly block: Content;
}

export interface Encoded extends Limited {
  /** The JSON value. References such as `result:chart` replace the media. */
  readonly value?: unknown;
  /** The value as text: a string unchanged, any other value as JSON. `undefined` if there is no value. */
  readonly text?: string;
  /** Media type of the value, if the whole value is the text of a `Blob`, or of another body with a media type. */
  readonly mimeType?: string;
  /** Media in the value, in order. */
  readonly media: readonly Media[];
  /** Content blocks that replace the whole value: one for media, several for a list of texts, blocks and media. */
  readonly blocks?: readonly Content[];
  /** Whether JSON can represent the value unchanged. */
  readonly isPlain?: boolean;
  /** Whether the value is an HTTP response with an error status. */
  readonly isError?: boolean;
  /** Describes the part of the value that JSON would lose, and the remedy. */
  readonly lost?: string;
}

export async function encode(value: unknown, options: EncodeOptions): Promise<Encoded> {
  const encoder = new Encoder(options);
  try {
    return await encoder.encode(value);
  } catch (error) {
    release(value);
    if (error instanceof Lost) return { media: [], lost: error.message, [REACHED]: error[REACHED] };
    throw error;
  } finally {
    encoder.close();
  }
}

/** The reason why a value cannot be sent. */
class Lost extends Error {
  declare readonly [REACHED]?: string;
}

/** A conversion to JSON, text or {@linkcode Media}, or the remedy if values of the kind cannot be sent. */
interface Kind {
  readonly is: (value: object, tag: string) => boolean;
  readonly encode?: (encoder: Encoder, value: object, place: Place) => unknown;
  readonly remedy?: string;
}

/** The position of a value within the value that a handler returned. */
interface Place {
  readonly path: string;
  readonly depth: number;
}

const byTag = (tag: RegExp, remedy: string): Kind => ({ is: (_, its) => tag.test(its), remedy });
const encodeTag = <T>(tag: RegExp, encode: (encoder: Encoder, value: T, place: Place) => unknown): Kind => ({
  is: (_, its) => tag.test(its),
  encode: (encoder, value, place) => encode(encoder, value as T, place), // Safe, because the tag was tested.
});

// The order matters: the first kind that matches a value is used.
const KINDS: readonly Kind[] = [
  {
    is: (value, tag) => ArrayBuffer.isView(value) || /^(Shared)?ArrayBuffer$/.test(tag),
    encode: (encoder, value, { path }) => encoder.toMedia(toBytes(value), { path }),
  },
  // Test for both tags, because one runtime tags a `File` as `Blob`.
  encodeTag<Blob>(/^(Blob|File)$/, (encoder, value, place) => encoder.readBlob(value, place)),
  encodeTag<Response>(/^Response$/, (encoder, value, place) => encoder.readResponse(value, place)),
  encodeTag<ReadableStream>(/^ReadableStream$/, (encoder, value, place) => encoder.readStream(value, place)),
  encodeTag<Map<unknown, unknown>>(/^Map$/, (encoder, value, place) => encoder.toEntries(value, place)),
  encodeTag<Set<unknown>>(/^Set$/, (encoder, value, place) => encoder.toList(value, place)),
  encodeTag<bigint>(/^BigInt$/, (_, value) => Number.isSafeInteger(Number(value)) ? Number(value) : String(value)),
  byTag(/^(Headers|URLSearchParams|FormData)$/, "return Object.fromEntries(value)"),
  // Values with a toJSON() method convert themselves.
  {
    is: (value) => typeof Object(value).toJSON === "function",
    encode: (encoder, value, place) =>
      encoder.toPart(ask(() => Object(value).toJSON(place.path), place), place, { isJson: true }),
  },
  byTag(/^Weak/, "return a plain object, because its items cannot be listed"),
  byTag(/^Promise$/, "await it"),
  byTag(/^Request$/, "return await request.json(), .text() or .blob()"),
  byTag(/^RegExp$/, "return its source"),
  byTag(/Error$|^DOMException$/, "throw it, or return its message"),
  byTag(/Function$/, "call it and return its result"),
  byTag(/^Symbol$/, "return its description"),
  {
    is: (value) => Symbol.asyncIterator in value,
    // The cast is safe, because `is` found the async iterator.
    encode: (encoder, value, place) => encoder.readIterable(value as AsyncIterable<unknown>, place),
  },
  {
    is: (value) => Symbol.iterator in value && isBare(value),
    // The cast is safe, because `is` found the iterator.
    encode: (encoder, value, place) => encoder.toList(value as Iterable<unknown>, place),
  },
  { is: isBare, remedy: "return a plain object, or give its class a toJSON() method" },
];

/** Media types that are sent as text. */
const TEXT = /^(text\/|application\/([\w.-]+\+)?(json|xml|yaml|toml|javascript|x-ndjson|x-www-form-urlencoded)\b)/i;
const JSON_TYPE = /^(application|text)\/([\w.-]+\+)?json\b/i;
// Maximum number of nested levels, equal to the default limit for messages from clients. Encoding a deeper value could
// overflow the stack.
const MAX_DEPTH = 128;
// Bytes of `calls.resultBytes` per allowed value. During encoding, a value takes up to 140 bytes of memory, even if its
// text is short. Without this limit, many short values could exhaust the memory.
const VALUE_BYTES = 16;
// Maximum number of object keys in one JSON text that are small integers. One JavaScript engine may allocate 8,300
// bytes for each of these keys.
const MAX_INDEXES = 10_000;
// Maximum length of a path, in characters. Longer paths are truncated, because the path of each nested value repeats
// all keys above the value.
const MAX_PATH = 500;
// Maximum number of objects in a value that are searched for streams to cancel.
const MAX_RELEASED = 10_000;
// Milliseconds of reading after which other calls get a turn. Otherwise a source that never waits for I/O would block
// the other calls.
const MAX_PAUSE = 20;

interface Reader {
  read(): Promise<{ readonly done?: boolean; readonly value?: unknown }>;
  /** Cancels the source, without waiting for the cancellation. */
  cancel(): unknown;
}

interface BodyOptions {
  readonly place: Place;
  readonly mimeType?: string;
  /** Whether bytes without a media type are sent as text if they are valid UTF-8. */
  readonly mayBeText?: boolean;
}

class Encoder {
  readonly #options: EncodeOptions;
  readonly #media: Media[] = [];
  /** The values around the value that is being encoded, to detect a value that contains itself. */
  readonly #open = new Set<unknown>();
  #isError = false;
  #isPlain = true;
  /** Media type of the text that is the whole value. */
  #mimeType?: string;
  /** Whether the value contains media, or numbers that JSON represents as `null`. */
  #hasReplaced = false;
  #used = 0;
  #values = 0;
  #stopTimer?: () => void;
  /** The reason why reading stopped. */
  #reason?: unknown;
  #reject?: (reason: unknown) => void;
  #lastPause = performance.now();

  constructor(options: EncodeOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", this.#abort);
    if (options.signal.aborted) this.#abort();
  }

  close(): void {
    this.#options.signal.removeEventListener("abort", this.#abort);
    this.#stopTimer?.();
  }

  async encode(given: unknown): Promise<Encoded> {
    const value = await this.toPart(given, { path: "", depth: 0 });
    const isError = this.#isError;
    if (value instanceof Found) {
      const [media, blocks] = [[value.media], [value.media.block]];
      return { media, blocks, text: value.media.text, isError };
    }
    if (value === undefined) return { media: [], blocks: [], isError };
    const blocks = Array.isArray(value) ? this.#toBlocks(value) : undefined;
    const json = this.#hasReplaced ? this.#refer(value) : value;
    const text = typeof json === "string" ? json : JSON.stringify(json);
    const mimeType = typeof json === "string" ? this.#mimeType : undefined;
    return { value: json, text, mimeType, media: this.#media, blocks, isError, isPlain: this.#isPlain };
  }

  /** Converts a value to JSON. Bytes and other media become {@linkcode Found} objects. */
  async toPart(value: unknown, place: Place, { isJson = false } = {}): Promise<unknown> {
    const { path, depth } = place;
    if (++this.#values > this.#maxValues) throw this.#tooMany(path);
    if (typeof value === "string") {
      this.#charge(value.length + 2, path);
      return value;
    }
    this.#charge(2, path);
    if (value === null || value === undefined || typeof value === "boolean") return value;
    if (typeof value === "number") {
      if (!Number.isFinite(value)) this.#hasReplaced = true;
      return value;
    }
    if (depth > MAX_DEPTH) throw this.#tooDeep(path);
    if (!isJson && this.#open.has(value)) {
      throw new Lost(`it returned an object that contains itself${at(path)}; return a copy without the cycle`);
    }
    const object = Object(value);
    const kind = KINDS.find((kind) => kind.is(object, toTag(object)) && !(isJson && kind === KINDS[TO_JSON]));
    if (kind && !kind.encode) throw new Lost(`it returned ${toName(object)}${at(path)}; ${kind.remedy}`);
    if (this.#reason) throw this.#reason;
    this.#open.add(value);
    if (kind) this.#isPlain = false;
    const made = kind?.encode
      ? await kind.encode(this, object, place)
      : Array.isArray(value)
      ? await this.toList(value, place)
      : /^(String|Number|Boolean)$/.test(toTag(object))
      ? object.valueOf()
      : await this.#toObject(ask(() => Object.entries<unknown>(object), place), place);
    this.#open.delete(value);
    return made;
  }

  /** Converts the items of a list. Omitted items become `null`, as in JSON. */
  async toList(items: Iterable<unknown>, place: Place): Promise<unknown[]> {
    const list: unknown[] = [];
    if (!Array.isArray(items)) this.#startTimer();
    for (const item of items) {
      list.push(await this.#toItem(item, place, list.length));
      await this.#pause();
    }
    return list;
  }

  async #toItem(item: unknown, { path, depth }: Place, index: number): Promise<unknown> {
    return await this.toPart(item, { path: toPath(`${path}[${index}]`), depth: depth + 1 }) ?? null;
  }

  async #toObject(entries: Iterable<readonly [string, unknown]>, { path, depth }: Place): Promise<unknown> {
    const made: [string, unknown][] = [];
    for (const [key, value] of entries) {
      if (value === undefined) continue;
      const inner = toPath(path ? `${path}.${key}` : key);
      this.#charge(key.length, inner);
      made.push([key, await this.toPart(value, { path: inner, depth: depth + 1 })]);
      await this.#pause();
    }
    return Object.fromEntries(made);
  }

  /** Converts a map to an object if its keys are strings, otherwise to a list of pairs. */
  async toEntries(map: ReadonlyMap<unknown, unknown>, place: Place): Promise<unknown> {
    const entries = [...map];
    const named = entries.filter((entry): entry is [string, unknown] => typeof entry[0] === "string");
    return named.length === entries.length ? await this.#toObject(named, place) : await this.toList(entries, place);
  }

  /** Converts bytes according to their media type. Bytes that are not valid text remain bytes. */
  toMedia(
    bytes: Uint8Array,
    { path, mimeType, name }: { readonly path: string; readonly mimeType?: string; readonly name?: string },
  ): unknown {
    this.#charge(bytes.length, path);
    const text = mimeType && TEXT.test(mimeType) ? decodeText(bytes, mimeType) : undefined;
    if (text !== undefined && name === undefined) {
      // The text is decoded, so the charset of the bytes no longer applies.
      if (!path) this.#mimeType = mimeType?.replace(/;\s*charset=[^;]*/i, "");
      return text;
    }
    const end = name ?? (path || "bytes");
    const shown = mimeType || "application/octet-stream";
    const blob = text === undefined ? toBase64(bytes) : undefined;
    const [type] = shown.split("/");
    const block: Content = blob !== undefined && (type === "image" || type === "audio")
      ? { type, data: blob, mimeType: shown }
      : {
        type: "resource",
        resource: { uri: toUri(end), mimeType: shown, ...(text === undefined ? { blob } : { text }) },
      };
    this.#hasReplaced = true;
    return new Found({ path, text, blob, mimeType: mimeType || undefined, block }, toUri(end));
  }

  async readBlob(blob: Blob, { path }: Place): Promise<unknown> {
    this.#expect(blob.size, path);
    const { type, name }: { readonly type: string; readonly name?: string } = blob;
    return this.toMedia(new Uint8Array(await this.#wait(blob.arrayBuffer())), { path, mimeType: type, name });
  }

  async readStream(stream: ReadableStream, place: Place): Promise<unknown> {
    if (stream.locked) throw this.#alreadyRead(stream, place);
    return await this.readBody(toReader(stream), { place });
  }

  /** If the response is the whole value and its status is an error, the result is an error. */
  async readResponse(response: Response, place: Place): Promise<unknown> {
    const { path } = place;
    const { body, ok, status, statusText, bodyUsed } = response;
    if (bodyUsed || body?.locked) throw this.#alreadyRead(response, place);
    if (!ok && path) {
      throw new Lost(
        `it returned a Response with status ${status}${at(path)}; check response.ok, and throw a ToolError`,
      );
    }
    const mimeType = response.headers.get("content-type") ?? undefined;
    const content = body ? await this.readBody(toReader(body), { place, mimeType, mayBeText: true }) : undefined;
    let made = content;
    if (typeof content === "string" && mimeType && JSON_TYPE.test(mimeType) && this.#isSound(content, path)) {
      try {
        made = await this.toPart(JSON.parse(content), place);
      } catch (error) {
        if (error instanceof Lost) throw error;
        // The body is not valid JSON, although its media type is JSON. Send the body as text.
        this.#mimeType = undefined;
      }
    }
    if (ok) return made;
    this.#isError = true;
    const state = `HTTP ${status}${statusText && ` ${statusText}`}`;
    if (content instanceof Found) return [state, content];
    return content ? `${state}\n${content}` : state;
  }

  /** Whether parsing a text as JSON stays within the limits. */
  #isSound(text: string, path: string): boolean {
    const { excess } = measureJson(text, { depth: MAX_DEPTH, values: this.#maxValues - this.#values });
    if (excess) throw excess === "depth" ? this.#tooDeep(path) : this.#tooMany(path);
    return countIndexes(text) <= MAX_INDEXES;
  }

  /** Bytes are converted according to their media type, strings are joined, and any other items become a list. */
  async readBody(reader: Reader, { place, mimeType, mayBeText }: BodyOptions): Promise<unknown> {
    const { path } = place;
    const items: unknown[] = [];
    let kind: string | undefined;
    let buffer = new Uint8Array(1024);
    let length = 0;
    let text = "";
    await this.#read(reader, path, async (chunk) => {
      const its = typeof chunk === "string" ? "text" : isBytes(chunk) ? "bytes" : "values";
      kind ??= its;
      if (kind === "values") items.push(await this.#toItem(chunk, place, items.length));
      else if (its !== kind) {
        throw new Lost(`it returned a stream that mixes ${kind} and ${its}${at(path)}; send only ${kind}`);
      } else if (typeof chunk === "string") {
        this.#expect(text.length + chunk.length, path);
        text += chunk;
      } else if (isBytes(chunk)) {
        const bytes = toBytes(chunk);
        this.#expect(length + bytes.length, path);
        if (length + bytes.length > buffer.length) {
          const larger = new Uint8Array(Math.max(2 * buffer.length, length + bytes.length));
          larger.set(buffer);
          buffer = larger;
        }
        buffer.set(bytes, length);
        length += bytes.length;
      }
    });
    if (kind === "values") return items;
    if (kind === "bytes") {
      const bytes = buffer.subarray(0, length);
      // The media type may be missing: one runtime does not set the content type of a response that was created from
      // text.
      return this.toMedia(bytes, {
        path,
        mimeType: mimeType ?? (mayBeText && isText(bytes) ? "text/plain" : undefined),
      });
    }
    this.#charge(text.length, path);
    return text;
  }

  /** Reads an iterable into a list. A Node.js stream is read like a web stream. */
  async readIterable(iterable: AsyncIterable<unknown>, place: Place): Promise<unknown> {
    const reader = toReader(iterable);
    if ("pipe" in iterable) return await this.readBody(reader, { place });
    const items: unknown[] = [];
    await this.#read(reader, place.path, async (item) => {
      items.push(await this.#toItem(item, place, items.length));
    });
    return items;
  }

  /** Reads a source to its end, or cancels it after an error. */
  async #read(reader: Reader, path: string, take: (value: unknown) => Promise<void>): Promise<void> {
    this.#startTimer();
    let isDone = false;
    try {
      while (true) {
        const { done, value } = await this.#wait(reader.read());
        if (done) break;
        // Count empty pieces too, because a source may send them forever.
        this.#charge(1, path);
        await take(value);
        await this.#pause();
      }
      isDone = true;
    } finally {
      if (!isDone) quietly(() => reader.cancel());
    }
  }

  #startTimer(): void {
    const { readMs, startTimer } = this.#options;
    const limit = "calls.readMs";
    const stop = () =>
      this.#stop(withLimits(new Lost(`it took longer than ${readMs} ms to read (${limit}); return less data`), limit));
    this.#stopTimer ??= startTimer(stop, readMs);
  }

  /** Waits for the next item of a source. Rejects if reading is stopped. */
  #wait<T>(coming: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      if (this.#reason) reject(this.#reason);
      coming.then(resolve, reject);
    });
  }

  #stop(reason: unknown): void {
    this.#reason ??= reason;
    this.#reject?.(this.#reason);
  }

  readonly #abort = (): void => this.#stop(this.#options.signal.reason);

  async #pause(): Promise<void> {
    if (performance.now() - this.#lastPause < MAX_PAUSE) return;
    await new Promise((resolve) => setTimeout(resolve));
    this.#lastPause = performance.now();
    if (this.#reason) throw this.#reason;
  }

  #charge(bytes: number, path: string): void {
    this.#expect(bytes, path);
    this.#used += bytes;
  }

  /** Throws if this number of additional bytes would exceed the limit. */
  #expect(bytes: number, path: string): void {
    const { maxBytes } = this.#options;
    if (this.#used + bytes > maxBytes) {
      const limit = "calls.resultBytes";
      const state = `it is longer than ${maxBytes} bytes (${limit})${at(path)}`;
      throw withLimits(new Lost(`${state}; return less data`), limit);
    }
  }

  get #maxValues(): number {
    return this.#options.maxBytes / VALUE_BYTES;
  }

  #tooMany(path: string): Lost {
    const most = Math.floor(this.#maxValues);
    const lost = new Lost(
      `it has more than ${most} values${
        at(path)
      }, the maximum if calls.resultBytes is ${this.#options.maxBytes}; return fewer values`,
    );
    return withLimits(lost, "calls.resultBytes");
  }

  #tooDeep(path: string): Lost {
    return new Lost(`it is nested deeper than ${MAX_DEPTH} levels${at(path)}; return fewer levels`);
  }

  #alreadyRead(value: object, { path }: Place): Lost {
    return new Lost(
      `it returned ${toName(value)}${at(path)} that was already read or is locked; return the data instead`,
    );
  }

  /** Returns `undefined` if the list has anything but content blocks, media and texts, or has only texts. */
  #toBlocks(list: readonly unknown[]): Content[] | undefined {
    const blocks = list.flatMap((item): Content[] =>
      item instanceof Found
        ? [item.media.block]
        : typeof item === "string"
        ? [toText(item)]
        : isContent(item)
        ? [item]
        : []
    );
    return blocks.length === list.length && list.some((item) => typeof item !== "string") ? blocks : undefined;
  }

  /** Replaces media in the value with references to the media, and numbers as JSON does. */
  #refer(value: unknown): unknown {
    if (value instanceof Found) {
      this.#media.push(value.media);
      return value.uri;
    }
    if (Array.isArray(value)) return value.map((item) => this.#refer(item));
    if (typeof value === "number") return Number.isFinite(value) ? value : null;
    if (typeof value !== "object" || !value) return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, this.#refer(part)]));
  }
}

/** A placeholder for media in the value. `#refer` replaces the placeholder with the URI. */
class Found {
  readonly media: Media;
  readonly uri: string;

  constructor(media: Media, uri: string) {
    this.media = media;
    this.uri = uri;
  }
}

const TO_JSON = KINDS.findIndex(({ is }) => is({ toJSON() {} }, "Object"));

/** Cancels the streams in a value that will not be sent. */
export function release(value: unknown): void {
  const found = new Set<unknown>([value]);
  // The loop also visits the items that `releaseOne` adds to the set.
  for (const each of found) quietly(() => releaseOne(each, found));
}

function releaseOne(value: unknown, found: Set<unknown>): void {
  if (typeof value !== "object" || !value) return;
  const tag = toTag(value);
  if (tag === "ReadableStream" || tag === "Response") {
    const stream = tag === "Response" ? (value as Response).body : value as ReadableStream; // The cast is safe, because the tag identifies the type.
    if (stream && !stream.locked) quietly(() => stream.cancel());
    return;
  }
  if (!/^(Object|Array|Map|Set)$/.test(tag)) return;
  const { values = () => Object.values(value) }: { readonly values?: () => Iterable<unknown> } = tag === "Object"
    ? {}
    : value;
  for (const part of values.call(value)) {
    if (found.size >= MAX_RELEASED) return;
    if (typeof part === "object") found.add(part);
  }
}

/** If code of the returned value, such as a getter, throws, the error says which part of the value cannot be sent. */
function ask<T>(run: () => T, { path }: Place): T {
  try {
    return run();
  } catch (error) {
    throw new Lost(`JSON cannot represent the value that it returned${at(path)} (${error}); return a plain object`);
  }
}

/** Runs a function, and ignores errors and rejections. */
function quietly(run: () => unknown): void {
  try {
    Promise.resolve(run()).catch(() => {});
  } catch {
    // Ignore synchronous errors too.
  }
}

function toReader(source: ReadableStream | AsyncIterable<unknown>): Reader {
  if ("getReader" in source) {
    const reader: ReadableStreamDefaultReader = source.getReader();
    return { read: () => reader.read(), cancel: () => reader.cancel() };
  }
  const iterator = source[Symbol.asyncIterator]();
  return { read: async () => await iterator.next(), cancel: () => iterator.return?.() };
}

function toPath(path: string): string {
  return path.length > MAX_PATH ? path.slice(0, MAX_PATH) : path;
}

function at(path: string): string {
  return path && ` at ${path.slice(0, 200)}`;
}

function toUri(name: string): string {
  return `result:${encodeURIComponent(name.slice(0, 200).toWellFormed())}`;
}

/** Returns `undefined` if the bytes are invalid in the charset of the media type. */
function decodeText(bytes: Uint8Array, mimeType: string): string | undefined {
  try {
    const [, charset = "utf-8"] = /charset="?([^\s;"]+)/i.exec(mimeType) ?? [];
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    // The caller sends invalid text as bytes.
  }
}

/** Whether bytes are UTF-8 text. Bytes with control characters count as binary, except for white space and ESC. */
function isText(bytes: Uint8Array): boolean {
  return !bytes.some((byte) => byte < 32 && (byte < 9 || byte > 13) && byte !== 27) &&
    decodeText(bytes, "text/plain") !== undefined;
}

/** Returns the tag of an object. Unlike `instanceof`, the tag also identifies objects from other realms. */
function toTag(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function isBytes(value: unknown): value is object {
  return ArrayBuffer.isView(value) ||
    typeof value === "object" && !!value && /^(Shared)?ArrayBuffer$/.test(toTag(value));
}

function toBytes(value: object): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value as ArrayBuffer); // The cast is safe, because the caller passes only views and buffers.
}

/**
 * Whether JSON cannot represent the content of an object: the object is an instance of a class and has no properties,
 * or it is a plain object with an iterator.
 */
function isBare(value: object): boolean {
  if (Array.isArray(value) || Object.keys(value).length) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = !prototype || !Object.getPrototypeOf(prototype);
  // JSON represents boxed strings, numbers and booleans. A plain object may have an iterator, whose items JSON would
  // lose.
  return isPlain ? Symbol.iterator in value : !/^(String|Number|Boolean)$/.test(toTag(value));
}

function toName(value: object): string {
  const tag = toTag(value);
  const { name = tag }: { readonly name?: unknown } = Object(value.constructor);
  const word = String(tag === "Object" && name ? name : tag);
  return `${/^[AEIOU]/.test(word) ? "an" : "a"} ${word}`;
}
