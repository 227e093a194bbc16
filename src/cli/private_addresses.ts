/**
 * Tells private IP addresses, which lead to this machine or its network, from public ones.
 *
 * @module
 */

/** Private ranges of IPv4 in CIDR notation. */
const RANGES: readonly (readonly [address: string, bits: number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local; cloud metadata services
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved and broadcast
];

/** Whether an IP address, such as `10.0.0.1` or `fe80::1`, is outside the public internet. */
export function isPrivateAddress(address: string): boolean {
  if (!address.includes(":")) {
    const number = parseIpv4(address);
    return number === undefined || RANGES.some(([range, bits]) => {
      const shift = 32 - bits;
      return Math.floor(number / 2 ** shift) === Math.floor((parseIpv4(range) ?? 0) / 2 ** shift);
    });
  }
  const groups = parseIpv6(address);
  if (!groups) return true;
  const [a, b, c] = groups;
  const toIpv4 = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join(".");
  // An embedded IPv4 address: mapped, translated (64:ff9b::/96) or tunnelled (2002::/16).
  if (groups.slice(0, 5).every((group) => !group) && (groups[5] === 0xffff || groups[5] === 0)) {
    return isPrivateAddress(toIpv4(groups[6], groups[7]));
  }
  if (a === 0x64 && b === 0xff9b) return c !== 0 || isPrivateAddress(toIpv4(groups[6], groups[7]));
  if (a === 0x2002) return isPrivateAddress(toIpv4(b, c));
  // Public addresses are in 2000::/3, except documentation ranges and protocol assignments (2001::/23).
  return a >> 13 !== 1 || (a === 0x2001 && (b < 0x200 || b === 0xdb8)) || a === 0x3fff;
}

/** Whether the host of a URL is an IP address rather than a name. */
export function isIpAddress(host: string): boolean {
  return host.startsWith("[") || parseIpv4(host) !== undefined;
}

function parseIpv4(address: string): number | undefined {
  const bytes = address.split(".");
  if (bytes.length !== 4 || !bytes.every((byte) => /^\d{1,3}$/.test(byte) && Number(byte) < 256)) return;
  return bytes.reduce((sum, byte) => sum * 256 + Number(byte), 0);
}

function parseIpv6(address: string): readonly number[] | undefined {
  const [, before, last] = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address.replace(/%.*$/, "")) ?? [];
  const number = last === undefined ? undefined : parseIpv4(last);
  const text = number === undefined
    ? address.replace(/%.*$/, "")
    : `${before}${(number / 65536 | 0).toString(16)}:${(number % 65536).toString(16)}`;
  const halves = text.split("::").map((half) => half ? half.split(":") : []);
  const missing = 8 - halves.flat().length;
  if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0)) return;
  const all = halves.length === 2 ? [...halves[0], ...Array<string>(missing).fill("0"), ...halves[1]] : halves[0];
  return all.every((group) => /^[\da-f]{1,4}$/i.test(group)) ? all.map((group) => parseInt(group, 16)) : undefined;
}
