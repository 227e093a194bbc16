/**
 * Spends ids that may be used only once, such as the id of an answer to a question.
 *
 * @module
 */
import { type Found, type Mark, type Marking, toClientHash } from "./marked_ids.ts";
import { KnownMarks } from "./marking.ts";
import type { Clock } from "./capacity/timers.ts";

/** A permission to do something once. It travels in sealed form. */
export interface SingleUse extends Mark {
  /** The place where the use is recorded: `store`, or the id of the process that records it in memory. */
  readonly by: string;
}

/** The result of spending an id. Only `spent` is a permission. */
export type Spending = "spent" | Found | "elsewhere" | "lost";

/** Spends an id in a store that several processes share. Resolves to `undefined` if the store did not respond. */
export type SpendShared = (use: Mark) => Promise<Marking | undefined>;

/** Spent ids, in the memory of this process or in a store. */
export class SpentIds {
  readonly #process: string;
  readonly #known: KnownMarks;

  /** Creates an empty memory. `ttlMs` is the lifetime of an id in milliseconds. */
  constructor(clock: Clock, ttlMs: number) {
    this.#process = crypto.randomUUID();
    this.#known = new KnownMarks(clock, ttlMs);
  }

  /** Creates an id that a client can spend once. `key` is the key of the client. */
  async make(key: string | undefined, isShared: boolean): Promise<SingleUse> {
    const client = await toClientHash(key);
    const id = crypto.randomUUID().slice(0, 18);
    return { client, at: this.#known.toTime(client), id, by: isShared ? STORE : this.#process };
  }

  /** Spends an id, in the store if there is one. */
  async spend(use: SingleUse, shared?: SpendShared): Promise<Spending> {
    // Refuse the id, because another process may have spent it, and only that process knows.
    if (use.by !== (shared ? STORE : this.#process)) return "elsewhere";
    const known = shared ? await shared(use) : this.#known.find(use);
    if (!known) return "lost";
    if (shared) this.#known.tell(use.client, known.cutoff);
    else if (!known.found) this.#known.add(use);
    return known.found ?? "spent";
  }
}

const STORE = "store";
