/**
 * The interface of stores for tokens and registrations, and a store in memory.
 *
 * @module
 */

/**
 * Stores tokens and registrations: string values by their keys. A key names one server, or one authorization server. A
 * value contains secrets.
 */
export interface TokenStore {
  /** Returns the value of a key, or `undefined` if the store does not have the key. */
  readonly get: (key: string) => Promise<string | undefined>;
  /**
   * Replaces the value of a key with the value that `change` returns for the current value. If `change` returns
   * `undefined`, deletes the key. No other process may read or replace this value while `change` runs, so that a
   * refresh token is used only once. Returns the new value. If `change` throws, the value stays unchanged, and the
   * error is passed on.
   */
  readonly update: (
    key: string,
    change: (current: string | undefined) => Promise<string | undefined>,
  ) => Promise<string | undefined>;
}

/** Returns a store in memory. Users must sign in again when the program restarts. */
export function memoryTokens(): TokenStore {
  const values = new Map<string, string>();
  const turns = new Map<string, Promise<unknown>>();
  const replace = async (key: string, change: (current: string | undefined) => Promise<string | undefined>) => {
    const next = await change(values.get(key));
    if (next === undefined) values.delete(key);
    else values.set(key, next);
    return next;
  };
  return {
    get: (key) => Promise.resolve(values.get(key)),
    async update(key, change) {
      const turn = (turns.get(key) ?? Promise.resolve()).then(() => replace(key, change));
      const settled = turn.then(() => {}, () => {});
      turns.set(key, settled);
      try {
        return await turn;
      } finally {
        if (turns.get(key) === settled) turns.delete(key);
      }
    },
  };
}
