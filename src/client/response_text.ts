/**
 * Reads the body of a response as text.
 *
 * @module
 */

/** The most characters of one message. Without this limit, an endless message would fill the memory. */
export const MAX_CHARACTERS: number = 64 * 1024 * 1024;

/** Returns the text of a response. Throws if it is longer than a message may be. */
export async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_CHARACTERS) {
      throw new RangeError(`Cannot read the response: it is longer than ${MAX_CHARACTERS} characters`);
    }
  }
  return text + decoder.decode();
}
