/**
 * The keys of tokens in token stores.
 *
 * @module
 */

/** Returns the key for the tokens of a server. Tokens belong to the server's URL without credentials and fragment. */
export function toTokenKey(server: string | URL): string {
  const url = new URL(server);
  url.hash = url.username = url.password = "";
  return `server ${url.href}`;
}
