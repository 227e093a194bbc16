/**
 * Charges clients for the bytes that extensions store for them.
 */
import type { Account } from "../capacity/account.ts";
import { type Charge, type Charging, keep } from "../capacity/charges.ts";

interface KeptFor {
  readonly account: Account;
  readonly core: Charging;
}

/** Returns `undefined` if the client or the server has no room. */
export function keepBytes({ account, core }: KeptFor, bytes: number): Charge | undefined {
  const pot = account.pot({ name: "extensions.bytes", total: KEPT_BYTES, share: KEPT_BYTES / 4, small: SMALL_BYTES });
  return keep(core, account, [[pot, bytes], [account.memory, bytes]]);
}

/**
 * Maximum bytes that extensions keep for all clients of a server, such as the results of tasks. Extensions may keep the
 * bytes for hours, so without this limit clients could fill the memory or the store. A single client can use at most a
 * quarter of the limit.
 */
const KEPT_BYTES = 134_217_728;

/** Clients that hold more bytes than this cannot use the reserve of the limit. The amount suffices for a few tasks. */
const SMALL_BYTES = 65_536;
