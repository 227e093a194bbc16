/**
 * The answers of the client to the questions of one call.
 *
 * @module
 */

/**
 * The client's answers, by key. If a handler asks twice under one key, it gets the first answer, as in revisions in
 * which handlers run again after a question.
 */
export class Answers {
  readonly #answers = new Map<string, Promise<unknown>>();

  /** Returns the answer under a key. Asks the client if there is no answer yet. */
  async get(key: string, ask: () => Promise<unknown>): Promise<unknown> {
    const answer = this.#answers.get(key) ?? ask();
    this.#answers.set(key, answer);
    try {
      return await answer;
    } catch (error) {
      // Forget a failed question, so that the handler may ask again.
      this.#answers.delete(key);
      throw error;
    }
  }
}
