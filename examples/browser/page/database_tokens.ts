// A token store in IndexedDB, for pages whose users should not sign in again after a reload. Every script of the origin
// can read the tokens.
import type { TokenStore } from "@x/mcp/client/oauth";

const STORE = "values";

/** Opens the database with the name, and creates it if necessary. */
export function databaseTokens(name = "mcp-tokens"): TokenStore {
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const opened = settle(opening);

  async function run<T>(mode: IDBTransactionMode, request: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    return await settle(request((await opened).transaction(STORE, mode).objectStore(STORE)));
  }

  const get = async (key: string): Promise<string | undefined> => await run("readonly", (store) => store.get(key));

  return {
    get,
    // The lock is for all tabs of the origin, because a refresh token can be used only once.
    update: async (key, change) =>
      await navigator.locks.request(`${name} ${key}`, async () => {
        const text = await change(await get(key));
        await run("readwrite", (store): IDBRequest => text === undefined ? store.delete(key) : store.put(text, key));
        return text;
      }),
  };
}

function settle<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
