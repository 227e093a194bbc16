/**
 * Stores the causes of unexpected errors for the page, because the server's responses do not contain these causes.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { Endpoint } from "../../host.ts";
import { explainFault } from "../../ready/files/fault_text.ts";

const MAX_FAULTS = 100;

/** The newest unexpected errors of the server that serves the page. */
export class FaultBook {
  readonly #texts = new BoundedMap<string, string>({ full: "evict", max: MAX_FAULTS });

  /** Records the unexpected errors of a server, unless the server's options set `development` to `false`. */
  watch(endpoint: Endpoint): void {
    endpoint.develop({ fault: ({ id, error }) => this.#texts.set(id, explainFault(error)) });
  }

  /** Returns the explanation of an error. `id` is the error id that the client received. */
  find(id: unknown): string | undefined {
    return typeof id === "string" ? this.#texts.get(id) : undefined;
  }
}
