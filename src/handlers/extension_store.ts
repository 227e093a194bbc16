/**
 * The part of a store that belongs to one extension of one server.
 *
 * @module
 */
import { toBase64Url } from "../kit/base64.ts";
import type { ExtensionStore } from "../core/extension.ts";
import type { Store, StoredEntry } from "../core/store.ts";

/**
 * Returns a view of a store that contains only the keys, logs and topics of one extension of one server. Servers that
 * use the same store with another name, path or tenant get separate views.
 */
export async function openExtensionStore(store: Store, realm: string, id: string): Promise<ExtensionStore> {
  const bytes = new TextEncoder().encode(JSON.stringify([realm, "extension", id]));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const prefix = `${toBase64Url(hash.subarray(0, 12))}-`;
  const toOwn = (found: readonly StoredEntry[]) =>
    found.map(({ key, ...value }) => ({ key: key.slice(prefix.length), ...value }));
  return {
    // All extensions share the lease of the process.
    lease: store.lease,
    get: (key) => store.get(prefix + key),
    set: (key, value, options) => store.set(prefix + key, value, options),
    delete: (key, options) => store.delete(prefix + key, options),
    list: (start, { after, limit }) => {
      const found = store.list(prefix + start, { after: after && prefix + after, limit });
      return found instanceof Promise ? found.then(toOwn) : toOwn(found);
    },
    append: (log, value, options) => store.append(prefix + log, value, options),
    read: (log, options) => store.read(prefix + log, options),
    trim: (log, before) => store.trim(prefix + log, before),
    publish: (topic, text) => store.publish(prefix + topic, text),
    subscribe: (topic, listener, options) => store.subscribe(prefix + topic, listener, options),
  };
}
