/**
 * The keys under which the tokens for servers are stored.
 *
 * @module
 */

const PREFIX = "server ";

/** Returns the key under which the tokens for a server are stored. */
export function toTokenKey(url: string): string {
  return PREFIX + url;
}

/** Returns the server's URL from a key of {@linkcode toTokenKey}. Returns `undefined` for any other key. */
export function readTokenKey(key: string): string | undefined {
  const url = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : "";
  return /^https?:/.test(url) ? url : undefined;
}
