/**
 * Reports questions whose answer a handler does not await. Loaded when a handler has not awaited a question.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import { quote } from "../../core/protocol/errors.ts";
import type { Params } from "../../core/protocol/jsonrpc.ts";

/** Maximum number of reports per server. The server remembers the reports, so that no report is repeated. */
const MAX_REPORTS = 1000;

export interface PlacedCall {
  readonly method: string;
  readonly params: Params;
}

/** Reports questions that handlers of a server do not await, each question of a handler once. */
export class IgnoredQuestions<C extends PlacedCall> {
  readonly #report: (text: string, call: C) => void;
  readonly #given = new BoundedMap<string, void>({ full: "refuse", max: MAX_REPORTS });

  constructor(report: (text: string, call: C) => void) {
    this.#report = report;
  }

  report(sources: readonly string[], call: C): void {
    for (const source of sources) {
      const text = `Cannot use the answer to ${source}: ${toPlace(call)} ended without waiting for the answer; ` +
        `write await before ${source}`;
      if (!this.#given.has(text) && this.#given.set(text)) this.#report(text, call);
    }
  }
}

/** Returns the method and handler name of a call, such as `tools/call "order"`. */
export function toPlace({ method, params: { uri, name = uri } }: PlacedCall): string {
  return typeof name === "string" ? `${method} ${quote(name)}` : method;
}
