/**
 * The keys under which the tokens for servers are stored.
 */

const PREFIX = "server ";

/** Tokens belong to the server's URL without credentials and fragment. */
export function toTokenKey(server: string | URL): string {
  const url = new URL(server);
  url.hash = url.username = url.password = "";
  return PREFIX + url.href;
}

/** Returns `undefined` for any other key. */
export function readTokenKey(key: string): string | undefined {
  const url = key.startsWith(PREFIX) ? key.slice(PREFIX.length) : "";
  return /^https?:/.test(url) ? url : undefined;
}
