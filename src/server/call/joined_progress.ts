/**
 * Adds up the progress of a handler, of its inner calls, and of the requests that it forwards. All of them have the same
 * progress token, and the values of one token must increase.
 *
 * @see specification/2026-07-28/basic/patterns/progress
 */

interface Part {
  readonly progress: number;
  readonly total?: number;
}

/** The progress of a handler, at place 0, and of the other parts of its work. */
export class JoinedProgress {
  readonly #parts: Part[] = [];
  #places = 0;
  #last: number;

  /** `last` is the progress that the client has received, or -Infinity. */
  constructor(last: number) {
    this.#last = last;
    if (Number.isFinite(last)) this.#parts[0] = { progress: last };
  }

  /** Returns the place of another part of the work. */
  open(): number {
    return ++this.#places;
  }

  /**
   * Sets the progress of one part. Returns the params of a notification with the sum, or `undefined` if the sum has not
   * increased. The total is unknown if a part has no total.
   */
  add<P extends Part>(place: number, params: P): P | undefined {
    this.#parts[place] = { progress: params.progress, total: params.total };
    const parts = Object.values(this.#parts);
    const progress = parts.reduce((sum, part) => sum + part.progress, 0);
    if (!(progress > this.#last) || progress === Infinity) return;
    this.#last = progress;
    const total = parts.reduce((sum, { total = NaN }) => sum + total, 0);
    return { ...params, progress, total: Number.isFinite(total) ? total : undefined };
  }
}
