/**
 * Reads the parts of addresses: hosts, origins, paths, and addresses of clients. Each gets its one spelling.
 *
 * @module
 */

/** A host with its parts. */
export interface Authority {
  /** Name, or IPv6 address in brackets. */
  readonly name: string;
  /** Name, with the port if any. */
  readonly host: string;
}

/**
 * Parses a host. Strict, because clients never send other spellings that a URL parser accepts (127.1, 0x7f.1,
 * user@host).
 */
export function parseAuthority(text: string | undefined): Authority | undefined {
  const match = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,126}\.?)(:\d{1,5})?$/i.exec(
    text ?? "",
  );
  return match ? { host: match[0].toLowerCase(), name: match[1].toLowerCase() } : undefined;
}

/** Removes the port, brackets and the IPv6 form of an IPv4 address. */
export function toAddress(text: string): string {
  const bare = text.toLowerCase().replace(/^\[([^\]]*)\](:\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return bare.replace(/^::ffff:(?=\d+\.)/, "");
}

/**
 * Normalizes an origin with a URL parser. Comparing prefixes would be unsafe, because `http://localhost.evil.example`
 * starts like an allowed origin. Any other text is returned unchanged.
 */
export function toOrigin(text: string): string {
  return /^https?:\/\/[^/?#@\s]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : text;
}

/** Returns the path of an absolute URL, as it was sent. Parsing the URL would cost more, and may throw on Bun. */
export function toRequestPath(url: string): string {
  return url.replace(/^[^/]*\/\/[^/]*|[?#].*/gs, "");
}
