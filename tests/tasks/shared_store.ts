// A store that several instances open and close, while its data stays in memory.
import { sha256 } from "../../src/core/kit/sha256.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, type Store } from "../../src/stores/stores.ts";

/** Opens the data of a store as another process would open it. Closing the returned store keeps the data. */
export function openShared(shared: Store): Store {
  return customStore(async () => await shared[INTERNALS].connect(), { leaseMs: 1000, pollMs: 20, timeoutMs: 20_000 });
}

/** Returns what the store has in place of a key, after the hash of the part: only `_` is written in another way. */
export const toStoredKey = (key: string) => key.replaceAll("_", "__");

/** Returns the name under which the store has a log of the tasks of a server that `openServer` created: a hash. */
export async function toStoredLog(log: string): Promise<string> {
  const realm = JSON.stringify(["test", "/mcp"]);
  const hash = (kind: string, name: string) => sha256(JSON.stringify([realm, kind, name]));
  const prefix = (await hash("extension", "extension io.modelcontextprotocol/tasks")).slice(0, 16);
  return `${prefix}_${await hash(`log of ${prefix}`, log)}`;
}
