/**
 * Checks and copies values as JSON.
 */

/** Maximum number of levels of a value. */
const MAX_DEPTH = 200;
/** Maximum size of a value in bytes. */
const MAX_BYTES = 50_000_000;
/** Bytes that are counted for each value in addition to its text, because small values need memory too. */
const VALUE_BYTES = 20;

/**
 * Checks that a value can be read as a document. Values that several members share count once for each of them. Returns
 * the size in bytes.
 *
 * @param before Bytes that count in addition.
 * @throws {TypeError} if the value has more than 200 levels, contains itself, or is larger than 50 MB.
 */
export function checkJson(value: unknown, before: number = 0): number {
  const parents: object[] = [];
  let bytes = before;
  const count = (more: number) => {
    bytes += more;
    if (bytes <= MAX_BYTES) return;
    throw new TypeError(`it is larger than ${MAX_BYTES} bytes; remove the parts that you do not need`);
  };
  const visit = (value: unknown) => {
    count(typeof value === "string" ? VALUE_BYTES + countBytes(value) : VALUE_BYTES);
    if (typeof value !== "object" || value === null) return;
    if (parents.length >= MAX_DEPTH) {
      throw new TypeError(
        parents.includes(value)
          ? "it contains itself; use $ref for recursive parts"
          : `it has more than ${MAX_DEPTH} levels; use $ref for nested parts`,
      );
    }
    parents.push(value);
    if (Array.isArray(value)) value.forEach(visit);
    else {
      for (const key of Object.keys(value)) {
        count(key.length);
        visit(Reflect.get(value, key));
      }
    }
    parents.pop();
  };
  visit(value);
  return bytes;
}

const encoder = new TextEncoder();

/** Returns the size of a text in UTF-8, in bytes. */
export function countBytes(text: string): number {
  return /^[\0-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length;
}

/** The place of a value in a document: keys and indexes. */
export type JsonPath = readonly (string | number)[];

export interface CopyOptions {
  readonly path: JsonPath;
  /** Decides whether a member is left out. `path` is the place of the object with the member. */
  readonly leaveOut: (path: JsonPath, key: string) => boolean;
  readonly onRef: (ref: string) => void;
}

/**
 * Members that JSON does not have are omitted, and so is `__proto__`. Values that several members share are copied for
 * each of them. Check the value first with {@linkcode checkJson}.
 */
export function copyJson(value: unknown, { path: start, leaveOut, onRef }: CopyOptions): unknown {
  const path = [...start];
  const inside = (key: string | number, value: unknown) => {
    path.push(key);
    const copied = copy(value);
    path.pop();
    return copied;
  };
  const copy = (value: unknown): unknown => {
    if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : null;
    if (typeof value === "bigint") return Number(value);
    if (typeof value !== "object") return undefined;
    // YAML parsers create dates.
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (Array.isArray(value)) return Array.from(value, (item, i) => inside(i, item) ?? null);
    const copied: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      // An assignment would set the prototype.
      if (key === "__proto__" || leaveOut(path, key)) continue;
      if (key === "$ref" && typeof member === "string") onRef(member);
      const part = inside(key, member);
      if (part !== undefined) copied[key] = part;
    }
    return copied;
  };
  return copy(value);
}
