/**
 * Distinguishes public IP addresses from loopback, private and reserved addresses.
 */
import { PRIVATE_NETWORKS } from "../core/kit/private_networks.ts";
import { type AddressList, findProcess, type NetModule } from "../core/runtime.ts";

/**
 * IPv6 addresses that contain an address of these IPv4 networks are not public either: mapped addresses, translated
 * addresses (64:ff9b::/96) and tunneled addresses (2002::/16).
 */
const PRIVATE = [...PRIVATE_NETWORKS, "192.88.99.0/24"]; // 6to4 relays

const PUBLIC_V6 = ["2000::/3", "64:ff9b::/96", "::ffff:0:0/96"];
/** Networks within `PUBLIC_V6` that are reserved for documentation and protocol assignments. */
const PRIVATE_V6 = ["2001::/23", "2001:db8::/32", "3fff::/16"];

/** The lists are created when they are first needed, because creating them loads several modules on Deno. */
let lists: { readonly privateList: AddressList; readonly publicList: AddressList } | undefined;

function openLists(): NonNullable<typeof lists> {
  return lists ??= {
    privateList: toList([...PRIVATE, ...PRIVATE_V6, ...PRIVATE.flatMap(toEmbedded)]),
    publicList: toList(PUBLIC_V6),
  };
}

function openNet(): NetModule {
  return findProcess().getBuiltinModule("net");
}

/** Whether an IP address, such as `10.0.0.1` or `fe80::1`, is outside the public internet. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, "");
  const version = openNet().isIP(plain);
  const { privateList, publicList } = openLists();
  if (version === 4) return privateList.check(plain, "ipv4");
  return !version || privateList.check(plain, "ipv6") || !publicList.check(plain, "ipv6");
}

/** Whether the host of a URL is an IP address, not a host name. */
export function isIpAddress(host: string): boolean {
  return openNet().isIP(host.replace(/[[\]]/g, "")) !== 0;
}

function toList(subnets: readonly string[]): AddressList {
  const { BlockList } = openNet();
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address, bits] = subnet.split("/");
    list.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}

/** Returns the IPv6 networks whose addresses contain an address of an IPv4 network. */
function toEmbedded(subnet: string): readonly string[] {
  const [address, bits] = subnet.split("/");
  const [a, b, c, d] = address.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"));
  return [
    ...["::ffff:", "64:ff9b::"].map((prefix) => `${prefix}${address}/${96 + Number(bits)}`),
    `2002:${a}${b}:${c}${d}::/${16 + Number(bits)}`,
  ];
}
