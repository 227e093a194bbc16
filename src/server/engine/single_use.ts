/**
 * Implements ids that can be used only once, such as the id of an answer to a question.
 */
import { type Found, type Mark, type Marking, toClientHash } from "./marked_ids.ts";
import { KnownMarks } from "./marking.ts";
import type { Clock } from "../../core/timers.ts";

/** An id that a client can use once. Clients receive the id only in sealed form. */
export interface SingleUse extends Mark {
  /** The place where the use is recorded: `store`, or the id of the process that records the use in memory. */
  readonly by: string;
}

/** The result of using an id. Only `spent` means that the id was valid and unused. */
export type UseOutcome = "spent" | Found | "elsewhere" | "lost";

/** Marks an id in a shared store. Resolves to the id's state before, or `undefined` if the store did not respond. */
export type MarkUsedShared = (use: Mark) => Promise<Marking | undefined>;

export interface SharedUses {
  /** Resolves to the start of the records in milliseconds since 1970, or `undefined` if the store did not respond. */
  since(): Promise<number | undefined>;
}

export class SpentIds {
  readonly #process: string;
  readonly #known: KnownMarks;

  /** `ttlMs` is the lifetime of an id in milliseconds. */
  constructor(clock: Clock, ttlMs: number) {
    this.#process = crypto.randomUUID();
    this.#known = new KnownMarks(clock, ttlMs);
  }

  /** Creates an id that a client can use once. Pass `shared` if the use is recorded in a store. */
  async make(key: string | undefined, shared?: SharedUses): Promise<SingleUse> {
    const client = await toClientHash(key);
    const id = crypto.randomUUID().slice(0, 18);
    // If the store does not respond, the id may be older than the time that the store records later. The id then counts
    // as used.
    const since = await shared?.since() ?? 0;
    const at = Math.max(this.#known.toTime(client), since + 1);
    return { client, at, id, by: shared ? STORE : this.#process };
  }

  /** Marks an id as used. Pass `shared` if the server has a store. */
  async markUsed(use: SingleUse, shared?: MarkUsedShared): Promise<UseOutcome> {
    // Refuse the id, because another process may have recorded a use that this process cannot see.
    if (use.by !== (shared ? STORE : this.#process)) return "elsewhere";
    const known = shared ? await shared(use) : this.#known.mark(use);
    if (!known) return "lost";
    if (shared) this.#known.recordCutoff(use.client, known.cutoff);
    return known.found ?? "spent";
  }
}

const STORE = "store";
