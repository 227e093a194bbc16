/**
 * Ranks the tools of a server for its clients in turns, so that many searches of one client do not delay the calls of
 * others, and remembers rankings.
 */
import type { Account, Holding } from "../../server/capacity/account.ts";
import { FIXED_LIMITS } from "../../server/capacity/fixed_limits.ts";
import { Turns } from "../../server/capacity/turns.ts";
import type { Call } from "../../server/call/call.ts";
import { type Ranking, rankTools } from "./ranking.ts";
import type { ToolSet } from "./tool_set.ts";

/** The tools that a caller sees, in the order of the set. */
interface Seen {
  readonly set: ToolSet;
  readonly tools: readonly { readonly tags: readonly string[] }[];
}

export interface Query {
  readonly query: string;
  /** The tool must have one of these labels, if there are any. */
  readonly tags: readonly string[];
  readonly limit: number;
}

interface Known {
  readonly ranking: Ranking;
  readonly holding: Holding;
}

/** Bytes of memory that a ranking needs in addition to its query and its places. */
const RANKING_BYTES = 400;

/** The rankings of one server. */
export class Rankings {
  readonly #turns = new Turns();
  // Bound: `search.bytes`.
  /** By client, and by set and query. Clients do not share rankings, because the time would tell what others search. */
  readonly #known = new Map<unknown, Map<string, Known>>();

  async find(call: Call, seen: Seen, asked: Query): Promise<Ranking> {
    const { account } = call.link;
    const client = account.turnKey;
    const { query, tags, limit } = asked;
    const key = JSON.stringify([seen.set.id, limit, query, tags]);
    const recall = () => {
      const known = this.#known.get(client)?.get(key);
      known?.holding.touch();
      return known?.ranking;
    };
    const known = recall();
    if (known) return known;
    const turn = this.#turns.enqueue(client);
    try {
      await call.untilCancelled(turn.begun);
    } catch (error) {
      turn.leave();
      throw error;
    }
    try {
      // An equal query of the client may have been ranked while this query waited.
      const found = recall();
      if (found) return found;
      const isWanted = (place: number) => seen.tools[place].tags.some((tag) => tags.includes(tag));
      const ranking = rankTools(seen.set, query, { limit, isWanted: tags.length ? isWanted : undefined });
      this.#remember(account, { client, key, ranking });
      return ranking;
    } finally {
      this.#turns.end();
    }
  }

  #remember(account: Account, { client, key, ranking }: Made): void {
    const total = FIXED_LIMITS.search.bytes;
    const pot = account.pot({ name: "search.bytes", total, share: total / 4, isCache: true });
    const own = this.#known.get(client) ?? new Map();
    const drop = () => {
      if (own.delete(key) && !own.size) this.#known.delete(client);
      return true;
    };
    const bytes = RANKING_BYTES + 2 * key.length + 8 * ranking.places.length;
    const holding = pot.keep(account, bytes, drop);
    if (!holding) return;
    this.#known.set(client, own.set(key, { ranking, holding }));
  }
}

interface Made {
  readonly client: unknown;
  readonly key: string;
  readonly ranking: Ranking;
}
