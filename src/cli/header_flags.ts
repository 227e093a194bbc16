/**
 * Reads the HTTP headers from `--header` options.
 */
import { UsageError } from "./cli_error.ts";

/**
 * Reads headers in the form `name=value` or `name: value`.
 *
 * @throws {UsageError} if a word is malformed, or contains characters that HTTP forbids.
 */
export function readHeaders(words: readonly string[] = []): Readonly<Record<string, string>> {
  const headers = new Headers();
  for (const word of words) {
    const [, name, value] = /^([^=:\s]+)(?:=|:\s*)(.*)$/s.exec(word) ?? [];
    // Leave the value out of the message, because the value may be a secret.
    if (name === undefined) {
      throw new UsageError("Cannot send a header: it has no name and value; write --header name=value");
    }
    try {
      headers.append(name, value);
    } catch {
      throw new UsageError(
        `Cannot send the header ${name}: the name or value contains characters that HTTP forbids; remove these ` +
          "characters",
      );
    }
  }
  return Object.fromEntries(headers);
}
