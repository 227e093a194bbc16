/**
 * The store for the state of the library itself: sealed values and logs, whose names are hashes.
 */
import type { Account } from "../server/capacity/account.ts";
import type { SharedLogs } from "../server/call/shared_values.ts";
import type { OwnUse } from "./operations.ts";
import { type Seal, SealedView } from "./sealed_view.ts";
import type { StoreParts } from "./user_view.ts";

/** The functions of a server that {@linkcode SealedStore} needs. */
export interface Sealing extends Seal, Pick<SharedLogs, "hash" | "hashForAllPaths" | "queue" | "attempt"> {}

/** The values and logs of a store for one user, with the functions that hash names and report failures. */
export class SealedStore extends SealedView implements SharedLogs {
  readonly #sealing: Sealing;

  constructor(parts: StoreParts, sealing: Sealing, by: Account | OwnUse) {
    super(parts, sealing, by);
    this.#sealing = sealing;
  }

  hash(kind: string, name: string): Promise<string> {
    return this.#sealing.hash(kind, name);
  }

  hashForAllPaths(kind: string, name: string): Promise<string> {
    return this.#sealing.hashForAllPaths(kind, name);
  }

  queue<T>(key: string, run: () => Promise<T>): Promise<T> {
    return this.#sealing.queue(key, run);
  }

  attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined> {
    return this.#sealing.attempt(operation, run);
  }
}
