/**
 * The values that belong to one server, such as the state of a quota on this server.
 */

/** The values of one server. All paths of a server share them. */
export class ServerState {
  readonly #values = new WeakMap<object, unknown>();

  /**
   * Returns the server's value for `key`. Calls `make` to create the value if the server has none. The value exists as
   * long as the server and the key.
   */
  slot<T extends object>(key: object, make: () => T): T {
    // The cast is safe, because each key is used for only one type of value.
    let value = this.#values.get(key) as T | undefined;
    if (!value) this.#values.set(key, value = make());
    return value;
  }
}
