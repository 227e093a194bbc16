/**
 * Cursors of lists.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../protocol/errors.ts";
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";

/**
 * The cursors of one list. They are sealed, because the place that one names may be something its holder must not
 * see; those of a list that is not the same for everybody are good for one principal.
 */
export class Cursors {
  readonly #core: Core;
  readonly #list: string;
  readonly #isPrivate: boolean;

  /** The cursors of `list`. */
  constructor(core: Core, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** The cursor to what follows `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /** The place that a call's cursor names; `undefined` without one. Throws if the cursor is not one of this list. */
  async read(call: Call): Promise<string | undefined> {
    const { cursor } = call.params;
    if (cursor === undefined) return;
    const isShort = typeof cursor === "string" && cursor.length <= MAX_CURSOR;
    const place = isShort ? await this.#core.sealer.open(this.#purpose(call), cursor) : undefined;
    if (typeof place !== "string") throw this.refuse(call);
    return place;
  }

  /** The error for a cursor that leads nowhere. */
  refuse({ params: { cursor } }: Call): McpError {
    return new McpError(
      INVALID_PARAMS,
      `Cannot read the list: cursor ${quote(cursor)} is not from it; start without one`,
    );
  }

  #purpose({ principal }: Call): string {
    return JSON.stringify(["cursor", this.#list, this.#isPrivate ? principal?.id : undefined]);
  }
}

/** Characters of a cursor; a provider's own may be long. */
const MAX_CURSOR = 65_536;
