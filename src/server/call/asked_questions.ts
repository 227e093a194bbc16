/**
 * Finds questions whose answer the handler does not await. Such a handler works without the user's consent, and no
 * error shows it.
 */

/** Number of microtasks in which `Promise.all` and similar functions may still call `then` after the handler. */
const LATE_TICKS = 3;

/** The questions that a handler has asked in one run. */
export class AskedQuestions {
  readonly #asked: { readonly source: string; readonly promise: AskedPromise<unknown> }[] = [];

  /**
   * Returns a promise for the answer that records whether the handler awaits the promise. `source` is the source code
   * that asks the question, such as `ctx.elicit("sure")`.
   */
  ask<T>(source: string, answer: Promise<T>): Promise<T> {
    const promise = new AskedPromise<T>((resolve, reject) => answer.then(resolve, reject));
    // Handle the rejection, because an unhandled rejection would end the process. Call `then` of `Promise`, because
    // `then` of `AskedPromise` would record the promise as awaited.
    Promise.prototype.then.call(promise, undefined, () => void (promise.hasFailed = true));
    this.#asked.push({ source, promise });
    return promise;
  }

  /**
   * Returns the source code of the questions that the handler has not awaited. Called when the handler has ended.
   * Returns an empty list if the handler has caught the error of a question, because the handler may have ended before
   * it reached the `await` of another question.
   */
  async listIgnored(): Promise<readonly string[]> {
    for (let tick = 0; tick < LATE_TICKS; tick++) await undefined;
    if (this.#asked.some(({ promise }) => promise.isAwaited && promise.hasFailed)) return [];
    return this.#asked.flatMap(({ source, promise }) => promise.isAwaited ? [] : [source]);
  }
}

/** A promise that records whether its `then` was called. */
class AskedPromise<T> extends Promise<T> {
  isAwaited = false;
  hasFailed = false;

  // Let `then` return a plain `Promise`, because only the original promise is checked.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // `await` calls this method too, because the promise's constructor is not `Promise`.
  override then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    return super.then(onValue, onError);
  }
}
