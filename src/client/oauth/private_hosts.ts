/**
 * Ranges of IPv4 addresses that are not public: the first three bytes of the address, and the prefix length in bits.
 */
const PRIVATE_RANGES: readonly (readonly [number, number, number, number])[] = [
  [0, 0, 0, 8], // this network
  [10, 0, 0, 8],
  [100, 64, 0, 10], // carrier-grade NAT
  [127, 0, 0, 8], // loopback
  [169, 254, 0, 16], // link-local, metadata services of clouds
  [172, 16, 0, 12],
  [192, 0, 0, 24], // protocol assignments
  [192, 0, 2, 24], // documentation
  [192, 168, 0, 16],
  [198, 18, 0, 15], // benchmarks
  [198, 51, 100, 24], // documentation
  [203, 0, 113, 24], // documentation
  [224, 0, 0, 3], // multicast and reserved
];

const PRIVATE_NAMES = /^(?:localhost|[^.]+)$|\.(?:localhost|local|internal|home\.arpa)$/;

/**
 * Tests whether a host is not on the public internet: a private address, a name such as `localhost` or `db.internal`,
 * or a name without a dot. Returns `false` for a public name that points to a private address, because names are not
 * resolved.
 *
 * @param hostname The `hostname` of a `URL`, in which addresses are normalized.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/\.$/, "");
  if (host.startsWith("[")) return !isPublicV6(host);
  const bytes = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host)?.slice(1).map(Number);
  return bytes ? PRIVATE_RANGES.some((range) => isIn(range, bytes)) : PRIVATE_NAMES.test(host);
}

function isIn([a, b, c, bits]: readonly [number, number, number, number], bytes: readonly number[]): boolean {
  const size = 2 ** (32 - bits);
  return Math.floor(toNumber(bytes) / size) === Math.floor(toNumber([a, b, c, 0]) / size);
}

function toNumber(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

/**
 * Tests whether an address is a global unicast address. Excludes addresses for protocol assignments, documentation and
 * tunnels, because tunnels can lead to private addresses.
 */
function isPublicV6(host: string): boolean {
  const [first, second] = host.slice(1).split(":", 2).map((group) => parseInt(group || "0", 16));
  const isGlobal = first >= 0x2000 && first < 0x4000;
  return isGlobal && first !== 0x2002 && first !== 0x3fff &&
    !(first === 0x2001 && (second < 0x200 || second === 0xdb8));
}
