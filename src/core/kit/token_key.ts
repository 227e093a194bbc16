/**
 * The keys under which the tokens for servers are stored.
 */

const PREFIX = "server ";

/**
 * Returns the key under which the tokens for a server are stored. Tokens belong to the server's URL without credentials
 * and fragment.
 */
export function toTokenKey(server: string | URL): string {
  const url = new URL(server);
  url.hash = url.username = url.password = "";
  return PREFIX + url.href;
}

/** Returns the server's URL from a key of {@linkcode toTokenKey}. Returns `undefined` for any other key. */
export function readTokenKey(key: string): string | undefined {
  const url = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : "";
  return /^https?:/.test(url) ? url : undefined;
}
