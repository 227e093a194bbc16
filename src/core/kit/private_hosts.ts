/**
 * Recognizes hosts in private networks.
 */
import { PRIVATE_NETWORKS } from "./private_networks.ts";

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
  const isV4 = /^(\d+\.){3}\d+$/.test(host);
  return isV4 ? PRIVATE_NETWORKS.some((network) => isIn(network, host)) : PRIVATE_NAMES.test(host);
}

function isIn(network: string, address: string): boolean {
  const [start, bits] = network.split("/");
  const size = 2 ** (32 - Number(bits));
  return Math.floor(toNumber(address) / size) === Math.floor(toNumber(start) / size);
}

function toNumber(address: string): number {
  return address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
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
