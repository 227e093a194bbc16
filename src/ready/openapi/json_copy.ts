/**
 * Copies values as JSON, and refuses values that are too deep or too large, or that contain themselves.
 */
import { isObject } from "../../core/kit/json.ts";

/** Maximum number of levels of a value. */
const MAX_DEPTH = 200;
/** Maximum size of a value in bytes. */
const MAX_BYTES = 50_000_000;
/** Bytes that are counted for each value in addition to its text, because small values need memory too. */
const VALUE_BYTES = 20;

/** Decides whether a member is left out. `path` are the keys of the object with the member. */
export type LeaveOut = (path: readonly (string | number)[], key: string) => boolean;

/**
 * Returns a copy of a value as JSON. Members that JSON does not have are omitted, and so is `__proto__`. Values that
 * several members share are copied for each of them.
 *
 * @throws {TypeError} if the value has more than 200 levels, contains itself, or is larger than 50 MB.
 */
export function copyJson(value: unknown, leaveOut: LeaveOut = () => false): Record<string, unknown> {
  const copier = new Copier(leaveOut);
  const copy = copier.copy(value);
  return isObject(copy) ? copy : {};
}

class Copier {
  readonly #leaveOut: LeaveOut;
  readonly #parents: object[] = [];
  readonly #path: (string | number)[] = [];
  #bytes = 0;

  constructor(leaveOut: LeaveOut) {
    this.#leaveOut = leaveOut;
  }

  copy(value: unknown): unknown {
    this.#count(VALUE_BYTES);
    if (typeof value === "string") {
      this.#count(countBytes(value));
      return value;
    }
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") return Number.isFinite(value) ? value : null;
    if (typeof value === "bigint") return Number(value);
    if (typeof value !== "object") return undefined;
    // YAML parsers create dates.
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (this.#parents.length >= MAX_DEPTH) {
      throw new TypeError(
        this.#parents.includes(value)
          ? "it contains itself; use $ref for recursive parts"
          : `it has more than ${MAX_DEPTH} levels; use $ref for nested parts`,
      );
    }
    this.#parents.push(value);
    const copy = Array.isArray(value) ? this.#copyList(value) : this.#copyObject(value);
    this.#parents.pop();
    return copy;
  }

  #copyList(list: readonly unknown[]): unknown[] {
    return Array.from(list, (item, i) => {
      this.#path.push(i);
      const copied = this.copy(item) ?? null;
      this.#path.pop();
      return copied;
    });
  }

  #copyObject(given: object): Record<string, unknown> {
    const copy: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(given)) {
      // An assignment would set the prototype.
      if (key === "__proto__" || this.#leaveOut(this.#path, key)) continue;
      this.#count(key.length);
      this.#path.push(key);
      const copied = this.copy(value);
      this.#path.pop();
      if (copied !== undefined) copy[key] = copied;
    }
    return copy;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= MAX_BYTES) return;
    throw new TypeError(`it is larger than ${MAX_BYTES} bytes; remove the parts that you do not need`);
  }
}

const encoder = new TextEncoder();

/** Returns the size of a text in UTF-8, in bytes. */
export function countBytes(text: string): number {
  // deno-lint-ignore no-control-regex
  return /^[\0-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length;
}
