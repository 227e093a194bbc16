/**
 * Tests whether a host name is `localhost` or a loopback address.
 *
 * @param hostname In the form of `URL.hostname`: in lower case, with brackets around an IPv6 address.
 */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname);
}
