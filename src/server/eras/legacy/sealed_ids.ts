/**
 * Remembers what the process has just sealed into session ids, because opening an id takes as long as sealing it, and the
 * first request of a session follows `initialize` immediately.
 */
import type { Account, Pot } from "../../capacity/account.ts";
import { type Charge, keep } from "../../capacity/charges.ts";
import type { Engine } from "../../engine/era.ts";

/** The JSON text that was sealed into an id. */
interface Contents {
  readonly text: string;
  readonly charge: Charge;
}

/** Ids of other endpoints are sealed differently, and cannot be opened here. */
export class SealedIds {
  readonly #core: Engine["core"];
  readonly #pot: Pot;
  // Bound: the pot `sessions.sealed`.
  readonly #known = new Map<string, Contents>();

  constructor({ core, accounts }: Engine) {
    this.#core = core;
    this.#pot = accounts.pot({
      name: "sessions.sealed",
      total: CHARACTERS,
      share: CHARACTERS_PER_CLIENT,
      isCache: true,
    });
  }

  /** Remembers the contents of an id until they are forgotten, for a few seconds at most. */
  add(id: string, value: unknown, account: Account): void {
    // Keep a text instead of the value, because the value can keep the whole message of the client in memory.
    const text = JSON.stringify(value);
    const drop = () => this.#known.delete(id);
    const charge = keep(this.#core, account, [[this.#pot, id.length + text.length]], { ttlMs: LIFE_MS, drop });
    if (charge) this.#known.set(id, { text, charge });
  }

  /** Returns a copy of the contents of an id, or `undefined` if the contents are not known. */
  find(id: string): unknown {
    const contents = this.#known.get(id);
    return contents && JSON.parse(contents.text);
  }

  /** Forgets the contents of an id, because the session is now open. */
  forget(id: string): void {
    this.#known.get(id)?.charge.expire();
  }
}

/** Number of characters that are remembered for all clients together, and for one client. */
const CHARACTERS = 2_097_152;
const CHARACTERS_PER_CLIENT = 262_144;

/** Milliseconds for which contents are remembered. Clients continue a handshake without waiting. */
const LIFE_MS = 10_000;
