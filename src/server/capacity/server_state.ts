/** The values of one server. All paths of a server share them. */
export class ServerState {
  readonly #values = new WeakMap<object, unknown>();

  /** Calls `make` if there is no value. The value exists as long as the server and the key. */
  slot<T extends object>(key: object, make: () => T): T {
    // The cast is safe, because each key is used for only one type of value.
    let value = this.#values.get(key) as T | undefined;
    if (!value) this.#values.set(key, value = make());
    return value;
  }
}
