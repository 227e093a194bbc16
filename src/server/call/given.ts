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

/** Keys of the facts about a call. Global, because layers and tools may come from different copies of the library. */
const GIVEN: unique symbol = Symbol.for("mcp.given");
const NOTES: unique symbol = Symbol.for("mcp.notes");

interface GivenCall {
  /** Has the facts, because layers of extensions replace calls, but not their parameters. */
  readonly params: Params & { readonly [GIVEN]?: Given; readonly [NOTES]?: Notes };
}

/** The facts are not enumerable, so that no copy of the parameters has them. */
function note(params: Params, key: symbol, value: object): void {
  Object.defineProperty(params, key, { value, configurable: true });
}

export function noteGiven({ params }: GivenCall, given: Given): void {
  note(params, GIVEN, given);
}

/** Returns `undefined` if no layer of the called tool adds an argument, or if the arguments were not read yet. */
export function readGiven({ params }: GivenCall): Given | undefined {
  return params[GIVEN];
}

/** Texts about a call, by name. */
export type Notes = Readonly<Record<string, string>>;

export function addNote({ params }: GivenCall, name: string, text: string): Notes {
  const noted = { ...params[NOTES], [name]: text };
  note(params, NOTES, noted);
  return noted;
}

export function readNotes({ params }: GivenCall): Notes | undefined {
  return params[NOTES];
}
