/**
 * Remembers what layers have taken out of the arguments of a call, and what they have noted about the call.
 */
import type { Params } from "../../core/protocol/jsonrpc.ts";

/** The arguments of a call, without and with the arguments that layers have added. */
export interface Given {
  /** The object from which the arguments were taken. */
  readonly source: unknown;
  /** The arguments of the tool itself. */
  readonly rest: Params;
  /** The values of the added arguments, by token. An argument that was not sent has no value. */
  readonly values: ReadonlyMap<object, unknown>;
  /** The tokens of all arguments that the tool's schema contains. */
  readonly tokens: readonly object[];
  /** Why the added arguments are invalid. */
  readonly problem?: string;
}

// By parameters, because layers of extensions replace calls, but not their parameters.
const all = new WeakMap<Params, Given>();

interface GivenCall {
  readonly params: Params;
}

export function noteGiven({ params }: GivenCall, given: Given): void {
  all.set(params, given);
}

/** Returns `undefined` if no layer of the called tool adds an argument, or if the arguments were not read yet. */
export function readGiven({ params }: GivenCall): Given | undefined {
  return all.get(params);
}

/** Texts about a call, by name. */
export type Notes = Readonly<Record<string, string>>;

const notes = new WeakMap<Params, Notes>();

export function addNote({ params }: GivenCall, name: string, text: string): Notes {
  const noted = { ...notes.get(params), [name]: text };
  notes.set(params, noted);
  return noted;
}

export function readNotes({ params }: GivenCall): Notes | undefined {
  return notes.get(params);
}
