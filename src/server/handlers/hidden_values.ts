/**
 * Remembers the values of hidden arguments, so that a repeated call with an idempotency key gets no result for another
 * value.
 */

const hidden = new WeakMap<object, (readonly [name: string, value: unknown])[]>();

/** Adds the hidden arguments of a call. A handler that was changed twice adds them twice. */
export function addHidden(call: object, values: readonly (readonly [name: string, value: unknown])[]): void {
  hidden.set(call, [...hidden.get(call) ?? [], ...values]);
}

export function readHidden(call: object): readonly unknown[] | undefined {
  return hidden.get(call);
}
