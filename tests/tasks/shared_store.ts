// A store that several instances open and close, while its data stays in memory.
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, type Store } from "../../src/stores/stores.ts";

/** Opens the data of a store as another process would open it. Closing the returned store keeps the data. */
export function openShared(shared: Store): Store {
  return customStore(async () => await shared[INTERNALS].connect(), { leaseMs: 1000, pollMs: 20, timeoutMs: 20_000 });
}
