/**
 * Stores tokens and client registrations as strings, by key. Each key identifies a server or an authorization server.
 * The values contain secrets.
 */
export interface TokenStore {
  /** Returns the value of a key, or `undefined` if the key does not exist. */
  readonly get: (key: string) => Promise<string | undefined>;
  /**
   * Calls `change` with the current value of a key, and stores the value that `change` returns, or deletes the key if
   * `change` returns `undefined`. While `change` runs, the store must not run another `update` of the same key, even in
   * another process, because a refresh token can be used only once. Returns the new value. If `change` throws, keeps
   * the value and rejects with the error.
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
