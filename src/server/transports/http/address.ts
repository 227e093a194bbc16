/**
 * Parses and normalizes hosts, origins, paths and IP addresses.
 */

export interface Authority {
  /** The host name, or the IPv6 address in brackets. */
  readonly name: string;
  /** The name, followed by the port if the host has a port. */
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

/** Removes the port and the brackets of an IP address, and converts an IPv4-mapped IPv6 address to IPv4. */
export function toAddress(text: string): string {
  const bare = text.toLowerCase().replace(/^\[([^\]]*)\](:\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return bare.replace(/^::ffff:(?=\d+\.)/, "");
}

/**
 * Normalizes an origin with a URL parser, so that origins can be compared exactly. Comparing prefixes would be unsafe,
 * because `http://localhost.evil.example` starts like an allowed origin. Returns text that is not an origin unchanged.
 */
export function toOrigin(text: string): string {
  return /^https?:\/\/[^/?#@\s]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : text;
}

/** Returns the path without normalizing it. Does not parse the URL: parsing is slower, and may throw on Bun. */
export function toRequestPath(url: string): string {
  return url.replace(/^[^/]*\/\/[^/]*|[?#].*/gs, "");
}
