/**
 * Records the calls that only pass on what the client wants, such as calls of a tool that calls the tool which a search
 * has found, or of a tool that reads a resource. Otherwise clients could exceed the concurrency of a handler, because an
 * inner call needs no slot.
 */

const relays = new WeakSet<object>();

/** The relays that make any number of calls, and read their results. */
const programs = new WeakSet<object>();

interface Inner<C> {
  readonly host: { readonly outer?: C };
}

/** Records that `call` makes its inner call for the client, and not for a handler of the author. */
export function markRelay(call: object): void {
  relays.add(call);
}

export function isRelay(call: object): boolean {
  return relays.has(call);
}

/**
 * Records that `call` runs a program that the client has sent. The calls of the program have the conditions of direct
 * calls. They do not share the metadata of `call`, such as a key, each of them counts towards rates, and their results
 * are for the program, so that they are never handles.
 */
export function markProgram(call: object): void {
  relays.add(call);
  programs.add(call);
}

export function isProgram(call: object): boolean {
  return programs.has(call);
}

/**
 * Returns the calls that pass `call` on for the client, the innermost first. Returns no calls if a handler of the author
 * makes `call`, or an outer call of it, because this handler may already keep a slot of the called handler.
 */
export function listRelays<C extends Inner<C>>({ host: { outer } }: Inner<C>): readonly C[] {
  if (!outer || !isRelay(outer)) return [];
  if (!outer.host.outer) return [outer];
  const relays = listRelays(outer);
  return relays.length ? [outer, ...relays] : [];
}

/**
 * Returns whether the inner calls of `call` are calls of the client, which have the same conditions as its direct calls.
 */
export function passesOn<C extends Inner<C>>(call: Inner<C>): boolean {
  return isRelay(call) && (!call.host.outer || listRelays(call).length > 0);
}
