/**
 * Stores for the state that several instances of a server share.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { memoryStore } from "@x/mcp/stores";
 *
 * const store = memoryStore();
 * const secret = "a secret of at least thirty-two characters";
 * const [first, second] = [1, 2].map(() => createServer({ name: "notes", version: "1.0.0", store, secret }));
 * // A session that `first` has opened continues on `second`, with its subscriptions and streams.
 * await first.close();
 * await second.close();
 * ```
 *
 * @module
 */
export { customStore, type StoreOptions } from "./custom_store.ts";
export { memoryStore, type MemoryStoreOptions } from "./memory_store.ts";
export type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineConnectOptions,
  EngineOptions,
  EngineWriteOptions,
  Lease,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  Store,
  StoredEntry,
  StoredValue,
  StoreEngine,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
