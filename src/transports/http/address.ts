/**
 * Reads the parts of addresses (hosts, origins, paths, and addresses of clients), and returns one spelling for each.
 *
 * @module
 */

/** A host with its parts. */
export interface Authority {
  /** Name, or IPv6 address in brackets. */
  readonly name: string;
  /** Name, followed by the port if there is one. */
  readonly host: string;
}

/**
 * Parses a host. Rejects spellings that a URL parser accepts but no client sends, such as 127.1, 0x7f.1 and user@host.
 */
export function parseAuthority(text: string | undefined): Authority | undefined {
  const match = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,126}\.?)(:\d{1,5})?$/i.exec(
    text ?? "",
  );
  return match ? { host: match[0].toLowerCase(), name: match[1].toLowerCase() } : undefined;
}

/** Removes the port and the brackets, and converts an IPv4 address in IPv6 form to IPv4. */
export function toAddress(text: string): string {
  const bare = text.toLowerCase().replace(/^\[([^\]]*)\](:\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return bare.replace(/^::ffff:(?=\d+\.)/, "");
}

/**
 * Normalizes an origin with a URL parser. Comparing prefixes would be unsafe, because `http://localhost.evil.example`
 * starts like an allowed origin. Text that is not an origin is returned unchanged.
 */
export function toOrigin(text: string): string {
  return /^https?:\/\/[^/?#@\s]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : text;
}

/**
 * Returns the path of an absolute URL as it was sent. Does not parse the URL, because parsing takes longer, and may
 * throw on Bun.
 */
export function toRequestPath(url: string): string {
  return url.replace(/^[^/]*\/\/[^/]*|[?#].*/gs, "");
}
