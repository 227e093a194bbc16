/**
 * Reads several values from an engine in one round trip.
 */
import { isPromiseLike } from "../core/protocol/promises.ts";
import type { Awaitable, EngineOptions, StoredValue, StoreEngine } from "../server/engine/store.ts";

/** A symbol, because an engine of another author may have a method with the same name and another meaning. */
export const GET_ALL: unique symbol = Symbol("getAll");

export interface BatchEngine extends StoreEngine {
  /** Returns the values in the order of the keys. */
  [GET_ALL](keys: readonly string[], options: EngineOptions): Promise<readonly (StoredValue | undefined)[]>;
}

/** Reads several values: in one statement if the engine has one, or else with concurrent reads. */
export function getAll(
  engine: StoreEngine | BatchEngine,
  keys: readonly string[],
  options: EngineOptions,
): Awaitable<readonly (StoredValue | undefined)[]> {
  if (GET_ALL in engine) return engine[GET_ALL](keys, options);
  const found = keys.map((key) => engine.get(key, options));
  const values = found.flatMap((value) => isPromiseLike(value) ? [] : [value]);
  return values.length === found.length ? values : Promise.all(found);
}
