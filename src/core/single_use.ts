/**
 * Spends the ids of things that may be used once, such as the answer to a question.
 *
 * @module
 */
import { type Found, type Mark, type Marking, toClientHash } from "./marked_ids.ts";
import { KnownMarks } from "./marking.ts";
import type { Clock } from "./capacity/timers.ts";

/** A sealed permission to do something once. */
export interface SingleUse extends Mark {
  /** Where its use is written down: `store`, or the id of the only process that remembers it. */
  readonly by: string;
}

/** What happened when an id was to be spent. Only `spent` is a permission. */
export type Spending = "spent" | Found | "elsewhere" | "lost";

/** Spends an id in a store that several processes share. Resolves to `undefined` if the store did not answer. */
export type SpendShared = (use: Mark) => Promise<Marking | undefined>;

/** Spent ids, in the memory of this process or in a store. */
export class SpentIds {
  readonly #process: string;
  readonly #known: KnownMarks;

  /** Creates an empty memory. An id expires `ttlMs` after it was made. */
  constructor(clock: Clock, ttlMs: number) {
    this.#process = crypto.randomUUID();
    this.#known = new KnownMarks(clock, ttlMs);
  }

  /** Makes an id that a client can spend once. The client has this key. */
  async make(key: string | undefined, isShared: boolean): Promise<SingleUse> {
    const client = await toClientHash(key);
    const id = crypto.randomUUID().slice(0, 18);
    return { client, at: this.#known.toTime(client), id, by: isShared ? STORE : this.#process };
  }

  /** Spends an id, in the store if there is one. */
  async spend(use: SingleUse, shared?: SpendShared): Promise<Spending> {
    // Another process may have spent it, and only that one would know.
    if (use.by !== (shared ? STORE : this.#process)) return "elsewhere";
    const known = shared ? await shared(use) : this.#known.find(use);
    if (!known) return "lost";
    if (shared) this.#known.tell(use.client, known.cutoff);
    else if (!known.found) this.#known.add(use);
    return known.found ?? "spent";
  }
}

const STORE = "store";
