/**
 * The handles of the server that services get.
 */
import { quote } from "../../core/protocol/errors.ts";
import type { ContainerHost, Definition } from "../call/container.ts";
import type { Engine } from "../engine/era.ts";
import type { ServerHandle } from "../engine/server_handle.ts";
import { ServerPart } from "../engine/server_part.ts";

interface Owner {
  readonly definition: Definition;
  readonly part: ServerPart;
}

export class ServiceHandles {
  readonly #host: ContainerHost;
  /** The services that have a handle, by name. */
  // Bound: one per service.
  #owners = new Map<string, Owner>();

  constructor(host: ContainerHost) {
    this.#host = host;
  }

  /**
   * Resolves to the handle of a service, which all values of the service share.
   *
   * @throws {TypeError} if another service with the same name has a handle.
   */
  async open(name: string, definition: Definition): Promise<ServerHandle> {
    const { part, definition: owner } = this.#owners.get(name) ?? this.#add(name, definition);
    // Both services would have the same keys in the store, and could open each other's sealed values.
    if (owner !== definition) {
      throw new TypeError(
        `Cannot get the server in service ${quote(name)}: another service of the server has this name; ` +
          "choose another name",
      );
    }
    await part.start();
    if (part.handle) return part.handle;
    throw new TypeError(`Cannot get the server in service ${quote(name)}: the server has stopped its services`);
  }

  #add(name: string, definition: Definition): Owner {
    // The cast is safe, because only `buildServer` and `mount` set `engine`, and only their hosts create containers.
    const engine = this.#host.engine as Engine;
    // The value of the service does what other parts do in `start`.
    const start = () => {};
    const part = new ServerPart(engine, { name: `service ${quote(name)}`, id: `service ${name}`, start });
    const owner = { definition, part };
    this.#owners.set(name, owner);
    return owner;
  }

  /**
   * Removes all handles, so that values which are created from now on get new handles. Returns a function that stops the
   * removed handles, after the values that use them were disposed.
   */
  removeAll(): () => Promise<void> {
    const owners = [...this.#owners.values()];
    this.#owners = new Map();
    return async () => void await Promise.all(owners.map(({ part }) => part.stop()));
  }
}
