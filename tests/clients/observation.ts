// What was seen of a client over one connection.
import type { Evidence } from "./behaviours.ts";
import type { WireEntry } from "./wire.ts";

export interface Observation {
  readonly evidence: Evidence;
  readonly entries: readonly WireEntry[];
  /** The output of the client. */
  readonly output: string;
  /** The reason why the client did not end by itself; `undefined` if it did. */
  readonly unfinished?: string;
}
