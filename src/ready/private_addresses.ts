/**
 * Distinguishes public IP addresses from loopback, private and reserved addresses.
 */
import { type AddressList, findProcess, type NetModule } from "../core/runtime.ts";

/**
 * IPv4 networks that are not public. IPv6 addresses that contain an address of these networks are not public either:
 * mapped addresses, translated addresses (64:ff9b::/96) and tunneled addresses (2002::/16).
 */
const PRIVATE = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local; cloud metadata services
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/3", // multicast, reserved and broadcast
];

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
