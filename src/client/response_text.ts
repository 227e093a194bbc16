/**
 * Reads a response to its end.
 *
 * @module
 */

/** Characters of one message: a server that never ends one must not fill the memory. */
export const MOST_CHARACTERS: number = 64 * 1024 * 1024;

/** The text of a response. Throws if it is longer than a message may be. */
export async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MOST_CHARACTERS) {
      throw new RangeError(`Cannot read the answer: it is longer than ${MOST_CHARACTERS} characters`);
    }
  }
  return text + decoder.decode();
}
