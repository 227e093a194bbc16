/**
 * Spends the ids of things that may be used once, such as the answer to a question.
 *
 * @module
 */
import type { Account, Accounts } from "./account.ts";
import type { Core } from "./core.ts";
import { type Found, type Mark, toClientHash } from "./marked_ids.ts";
import { KnownMarks, toMarkTtl } from "./marking.ts";

/** A sealed permission to do something once. */
export interface SingleUse extends Mark {
  /** Where its use is written down: `store`, or the id of the only process that remembers it. */
  readonly by: string;
}

/** What happened when an id was to be spent. Only `spent` is a permission. */
export type Spending = "spent" | Found | "elsewhere" | "lost";

/** Spent ids of one server. */
export class SpentIds {
  /** Identifies this process. */
  readonly #process: string = crypto.randomUUID();
  readonly #known: KnownMarks;

  constructor({ ticker, limits }: Pick<Core, "ticker" | "limits">) {
    this.#known = new KnownMarks(ticker.clock, toMarkTtl(limits.calls.stateMs));
  }

  /** Makes an id that can be spent once. */
  async make({ shared }: Pick<Core, "shared">, { key }: Account): Promise<SingleUse> {
    const client = await toClientHash(key);
    const id = crypto.randomUUID().slice(0, 18);
    return { client, at: this.#known.toTime(client), id, by: shared ? STORE : this.#process };
  }

  /** Spends an id. */
  async spend({ shared, limits }: Pick<Core, "shared" | "limits">, use: SingleUse): Promise<Spending> {
    // Another process may have spent it, and only that one would know.
    if (use.by !== (shared ? STORE : this.#process)) return "elsewhere";
    const known = shared ? await shared.spend(use, toMarkTtl(limits.calls.stateMs)) : this.#known.find(use);
    if (!known) return "lost";
    if (!shared && !known.found) this.#known.add(use);
    if (shared) this.#known.tell(use.client, known.cutoff);
    return known.found ?? "spent";
  }
}

const STORE = "store";

/** Endpoints of one server have the same accounts, and the same spent ids. */
const all = new WeakMap<Accounts, SpentIds>();

/** Returns the spent ids of a server. */
export function findSpentIds(accounts: Accounts, core: Core): SpentIds {
  let spent = all.get(accounts);
  if (!spent) all.set(accounts, spent = new SpentIds(core));
  return spent;
}
