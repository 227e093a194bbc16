/** The client's answers in one call, by key. Two questions with the same key both get the first answer. */
export class Answers {
  readonly #answers = new Map<string, Promise<unknown>>();

  /** Returns the answer for a key. Calls `ask` if there is no answer yet. */
  async get(key: string, ask: () => Promise<unknown>): Promise<unknown> {
    const answer = this.#answers.get(key) ?? ask();
    this.#answers.set(key, answer);
    try {
      return await answer;
    } catch (error) {
      // Remove a failed question, so that the handler can ask the question again.
      this.#answers.delete(key);
      throw error;
    }
  }
}
