/**
 * Where the tokens and registrations of a client are kept.
 *
 * @module
 */

/**
 * Keeps tokens and registrations: texts by their keys. A key names one server, or one authorization server. A value
 * holds secrets.
 */
export interface TokenStore {
  /** Returns the value of a key, or `undefined`. */
  readonly get: (key: string) => Promise<string | undefined>;
  /**
   * Replaces the value of a key by what `change` returns for the current one; `undefined` deletes it. No other process
   * reads or replaces this value while `change` runs, so that a refresh token is used once. Returns the new value. If
   * `change` throws, the value stays and the error is passed on.
   */
  readonly update: (
    key: string,
    change: (current: string | undefined) => Promise<string | undefined>,
  ) => Promise<string | undefined>;
}

/** Returns a store in memory. Users sign in again when the program restarts. */
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
