/**
 * Reads the HTTP headers of `--header` options.
 *
 * @module
 */
import { UsageProblem } from "./problem.ts";

/**
 * Reads `name=value` or `name: value`.
 *
 * @throws {UsageProblem} for another form, or characters that HTTP forbids.
 */
export function readHeaders(words: readonly string[] = []): Readonly<Record<string, string>> {
  const headers = new Headers();
  for (const word of words) {
    const [, name, value] = /^([^=:\s]+)(?:=|:\s*)(.*)$/s.exec(word) ?? [];
    // The message must not contain the value, which may be a secret.
    if (name === undefined) {
      throw new UsageProblem("Cannot send a header: it has no name and value; write --header name=value");
    }
    try {
      headers.append(name, value);
    } catch {
      throw new UsageProblem(
        `Cannot send the header ${name}: its name or value has characters that HTTP forbids; remove them`,
      );
    }
  }
  return Object.fromEntries(headers);
}
