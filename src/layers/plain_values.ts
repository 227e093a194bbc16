/**
 * Measures and compares plain values, which can be copied exactly: JSON values, dates, maps, sets, bigints and bytes.
 */

/** Maximum number of nested levels of a value. */
const MAX_DEPTH = 128;

interface Walk {
  bytes: number;
  /** The objects that contain the current object. */
  readonly open: Set<object>;
}

/**
 * Returns an upper bound of the bytes that a value takes in memory. Returns `undefined` if the bytes exceed `max`, or
 * if the value cannot be copied exactly. Streams, functions, class instances, and objects that contain themselves
 * cannot be copied.
 */
export function weighPlain(value: unknown, max: number): number | undefined {
  const walk: Walk = { bytes: max, open: new Set() };
  return weigh(value, walk) ? max - walk.bytes : undefined;
}

function weigh(value: unknown, walk: Walk): boolean {
  if ((walk.bytes -= weighOne(value)) < 0) return false;
  if (typeof value === "function" || typeof value === "symbol") return false;
  if (typeof value !== "object" || value === null || isBytes(value) || isDate(value)) return true;
  const parts = listParts(value);
  if (!parts || walk.open.size >= MAX_DEPTH || walk.open.has(value)) return false;
  walk.open.add(value);
  for (const part of parts) if (!weigh(part, walk)) return false;
  walk.open.delete(value);
  return true;
}

function weighOne(value: unknown): number {
  if (typeof value === "string") return 24 + 2 * value.length;
  if (typeof value === "bigint") return 24 + value.toString(16).length;
  return isBytes(value) ? 64 + toBuffer(value).byteLength : 32;
}

/**
 * Returns a text that is the same for two values only if they are equal, regardless of the order of keys. Returns
 * `undefined` for a value that cannot be compared, such as a class instance, or that takes more than `max` bytes in
 * memory.
 */
export function toKey(value: unknown, max: number): string | undefined {
  return weighPlain(value, max) === undefined ? undefined : JSON.stringify(toParts(value));
}

function toParts(value: unknown): unknown {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
  if (typeof value !== "object") return [typeof value, Object.is(value, -0) ? "-0" : String(value)];
  if (isDate(value)) return ["date", String(value.getTime())];
  if (isBytes(value)) return [Object.prototype.toString.call(value), [...new Uint8Array(...toRange(value))].join()];
  if (Array.isArray(value)) return ["list", ...Array.from(value, toParts)];
  if (value instanceof Map) return ["map", ...[...value].flat().map(toParts)];
  if (value instanceof Set) return ["set", ...[...value].map(toParts)];
  return ["object", ...Object.keys(value).sort().flatMap((key) => [key, toParts(Reflect.get(value, key))])];
}

/** Returns the values in a list, a map, a set or a plain object. Returns `undefined` for any other object. */
function listParts(value: object): Iterable<unknown> | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return Array.isArray(value) ? value : undefined;
  if (prototype === Map.prototype || prototype === Set.prototype) {
    return value instanceof Map ? [...value].flat() : value instanceof Set ? value : undefined;
  }
  if (prototype !== null && prototype !== Object.prototype || Object.getOwnPropertySymbols(value).length) return;
  const fields = Object.values(Object.getOwnPropertyDescriptors(value));
  // Reject getters, because a getter may return a different value each time.
  if (fields.some(({ get, set, enumerable }) => get || set || !enumerable)) return;
  return Object.entries(value).flat();
}

function isDate(value: unknown): value is Date {
  return value instanceof Date && Object.getPrototypeOf(value) === Date.prototype;
}

function isBytes(value: unknown): value is ArrayBuffer | ArrayBufferView {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) && value.buffer instanceof ArrayBuffer;
}

function toBuffer(value: ArrayBuffer | ArrayBufferView): ArrayBufferLike {
  return ArrayBuffer.isView(value) ? value.buffer : value;
}

function toRange(value: ArrayBuffer | ArrayBufferView): [ArrayBufferLike, number, number] {
  return ArrayBuffer.isView(value) ? [value.buffer, value.byteOffset, value.byteLength] : [value, 0, value.byteLength];
}
