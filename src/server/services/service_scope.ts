/**
 * The service values that one run of a handler uses.
 */
import type { Definition, ServiceCall } from "../call/container.ts";
import type { ServiceEnd } from "../call/service.ts";
import type { Entry } from "./service_entry.ts";

export class Scope {
  readonly call: ServiceCall;
  /** Whether this is a run of `allow` or `list`, which cannot use services that live for one call. */
  readonly isShared: boolean;
  /** The outcome of the run. `undefined` while the function runs. */
  end?: ServiceEnd;
  #entries?: Map<Definition, Entry>;
  #made?: Entry[];
  #holds?: Set<Entry>;
  #closed?: PromiseWithResolvers<void>;

  constructor(call: ServiceCall, isShared: boolean) {
    this.call = call;
    this.isShared = isShared;
  }

  // The getters create the collections on first use, because most runs use only values that live as long as the server.

  get entries(): Map<Definition, Entry> {
    return this.#entries ??= new Map();
  }

  /** Values that live for the call, in the order of their creation. */
  get made(): Entry[] {
    return this.#made ??= [];
  }

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
