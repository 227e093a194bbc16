/**
 * Stores the causes of unexpected errors for the page. The responses of the server do not contain these causes, just as
 * in production.
 *
 * @module
 */
import type { Endpoint } from "../../host.ts";
import { explainFault } from "../../files/fault_text.ts";

/** Maximum number of stored errors. */
const MAX_FAULTS = 100;

/** The newest unexpected errors of the server that serves the page. */
export class FaultBook {
  readonly #texts = new Map<string, string>();

  /** Records the errors of a server, unless its options set `development` to `false`. */
  watch(endpoint: Endpoint): void {
    endpoint.develop({ fault: ({ id, error }) => this.#add(id, explainFault(error)) });
  }

  /** Returns the explanation of an error by the id that the client got. */
  find(id: unknown): string | undefined {
    return typeof id === "string" ? this.#texts.get(id) : undefined;
  }

  #add(id: string, text: string): void {
    this.#texts.set(id, text);
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > MAX_FAULTS) this.#texts.delete(oldest);
  }
}
