/**
 * Reads references within a document.
 *
 * @see RFC 6901 (JSON Pointer)
 */

/** Returns the keys to which a reference such as `#/components/schemas/Pet` leads. Returns no keys for other references. */
export function toTokens(ref: string): readonly string[] {
  if (!ref.startsWith("#/")) return [];
  return ref.slice(2).split("/").map((token) => decode(token).replaceAll("~1", "/").replaceAll("~0", "~"));
}

function decode(token: string): string {
  if (!token.includes("%")) return token;
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}
