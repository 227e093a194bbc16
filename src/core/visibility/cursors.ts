/**
 * Seals and opens the cursors of lists.
 *
 * @see specification/2026-07-28/server/utilities/pagination
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import type { Call } from "../call/call.ts";
import type { FeatureParts } from "./feature_parts.ts";

/**
 * The cursors of one list. They are sealed, because the position in a cursor may be something that the caller must not
 * see. Cursors of a list that differs between callers are bound to the principal.
 */
export class Cursors {
  readonly #core: FeatureParts;
  readonly #list: string;
  readonly #isPrivate: boolean;

  /** Creates the cursors of `list`. */
  constructor(core: FeatureParts, list: string, isPrivate: boolean) {
    this.#core = core;
    this.#list = list;
    this.#isPrivate = isPrivate;
  }

  /** Returns the cursor of the entries after `place`. */
  write(place: string, call: Call): Promise<string> {
    return this.#core.sealer.seal(this.#purpose(call), place);
  }

  /**
   * Returns the position in a call's cursor, or `undefined` without a cursor. Throws if the cursor is not from this
   * list.
   */
  async read(call: Call): Promise<string | undefined> {
    const { cursor } = call.params;
    if (cursor === undefined) return;
    const isShort = typeof cursor === "string" && cursor.length <= MAX_CURSOR;
    const place = isShort ? await this.#core.sealer.open(this.#purpose(call), cursor) : undefined;
    if (typeof place !== "string") throw this.refuse(call);
    return place;
  }

  /** Creates the error for an invalid cursor. */
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

/** Maximum characters of a cursor. It includes a provider's own cursor, which may be long. */
const MAX_CURSOR = 65_536;
