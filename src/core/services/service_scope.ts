/**
 * The values of services that one run of a handler uses.
 *
 * @module
 */
import type { Definition, ServiceCall } from "../call/container.ts";
import type { ServiceEnd } from "../call/service.ts";
import type { Entry } from "./service_entry.ts";

/** The values that one run of a handler uses. */
export class Scope {
  readonly call: ServiceCall;
  /** Whether the run is `allow` or `list`, which have no values that live for one call. */
  readonly isShared: boolean;
  /** How the run ended. */
  end?: ServiceEnd;
  #entries?: Map<Definition, Entry>;
  #made?: Entry[];
  #holds?: Set<Entry>;
  #closed?: PromiseWithResolvers<void>;

  constructor(call: ServiceCall, isShared: boolean) {
    this.call = call;
    this.isShared = isShared;
  }

  // Created on first use, because most runs use only values that live as long as the server.

  get entries(): Map<Definition, Entry> {
    return this.#entries ??= new Map();
  }

  /** Values that live for the call, in the order of their creation. */
  get made(): Entry[] {
    return this.#made ??= [];
  }

  /** The values by key that the run uses. */
  get holds(): Set<Entry> {
    return this.#holds ??= new Set();
  }

  get closed(): PromiseWithResolvers<void> {
    return this.#closed ??= Promise.withResolvers();
  }

  get isEmpty(): boolean {
    return !this.#entries?.size && !this.#holds?.size;
  }
}
