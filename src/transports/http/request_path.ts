/**
 * Reads the path of a request.
 *
 * @module
 */

/** Returns the path of an absolute URL, as it was sent. Parsing the URL would cost more, and may throw on Bun. */
export function toRequestPath(url: string): string {
  return url.replace(/^[^/]*\/\/[^/]*|[?#].*/gs, "");
}
