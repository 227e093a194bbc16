/**
 * Headers that a user sends along, such as tokens.
 *
 * @module
 */
import { UsageProblem } from "./problem.ts";

/**
 * Reads what stands behind `--header`: `name=value`, or `name: value` as in a request.
 *
 * @throws {Problem} if a word is none, or holds what HTTP forbids.
 */
export function readHeaders(words: readonly string[] = []): Readonly<Record<string, string>> {
  const headers = new Headers();
  for (const word of words) {
    const [, name, value] = /^([^=:\s]+)(?:=|:\s*)(.*)$/s.exec(word) ?? [];
    // What is not told here is the value: it is a secret more often than not.
    if (name === undefined) throw new UsageProblem("Cannot send a header: write --header name=value");
    try {
      headers.append(name, value);
    } catch {
      throw new UsageProblem(`Cannot send the header ${name}: its name or value has characters that HTTP forbids`);
    }
  }
  return Object.fromEntries(headers);
}
