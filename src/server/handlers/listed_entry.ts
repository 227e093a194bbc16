/**
 * An entry that another server lists.
 */
import type { KnownOptions } from "../../core/known_options.ts";

/** Maximum length of a name or URI in characters. */
export const MAX_NAME = 2000;

/** Clients, and functions that walk schemas, could not read a deeper entry. */
export const LIMITS = { depth: 100, values: Infinity };

/** What the author passes to `from`. */
export interface FromGiven {
  /** Kind of the handler, for messages. */
  readonly kind: string;
  readonly listed: unknown;
  /** The author's function that serves the entry. */
  readonly run: unknown;
  /** The member that identifies the entry. */
  readonly key?: string;
  readonly options?: object;
  readonly known: KnownOptions;
}

export interface Skipped extends Pick<FromGiven, "kind" | "listed" | "key"> {
  /** The error that the factory has thrown. `undefined` if the entry has no name, or is too deep. */
  readonly error?: unknown;
}
