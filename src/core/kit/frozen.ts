/** The copies that this module has made. They are deeply frozen, so that they need no other copy. */
const made = new WeakSet<object>();

/**
 * Copies plain objects, arrays and dates at all depths, and freezes the copies. Returns the same object for a copy that
 * was made before. Calls `check`, which can throw, for other objects, which are not copied. Uses a loop instead of
 * recursion, because claims may be deeply nested.
 */
export function toFrozen<T>(value: T, check?: (other: object) => void): T {
  const copies = new Map<object, Record<string, unknown> | unknown[]>();
  const toCopy = (from: unknown): unknown => {
    if (typeof from !== "object" || from === null || made.has(from)) return from;
    if (from instanceof Date) return new Date(from);
    if (!isPlain(from)) {
      check?.(from);
      return from;
    }
    const copied = copies.get(from);
    if (copied) return copied;
    const copy = Array.isArray(from) ? [] : {};
    copies.set(from, copy);
    return copy;
  };
  const root = toCopy(value);
  // The loop also visits entries that are added to the map while it runs.
  for (const [from, copy] of copies) {
    // Symbols too: the library adds facts to capabilities.
    for (const name of Reflect.ownKeys(from)) {
      if (!Object.prototype.propertyIsEnumerable.call(from, name)) continue;
      const value = toCopy(Reflect.get(from, name));
      // Define the property, because an assignment to `__proto__` would replace the prototype.
      Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
    }
    if (Array.isArray(from) && Array.isArray(copy)) copy.length = from.length;
  }
  for (const copy of copies.values()) made.add(Object.freeze(copy));
  return root as T; // The cast is safe, because the copy has the same members.
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
