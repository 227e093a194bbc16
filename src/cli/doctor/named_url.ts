/**
 * Decides which URLs from a server the examination may request. A server on another machine must not cause requests to
 * this machine or its private network, whatever the URL's scheme is.
 */
import { isIpAddress, isPrivateAddress } from "../../ready/private_addresses.ts";

/** Looks up the addresses of a host name. `port` is the port to connect to. Throws if the name has no address. */
export type LookUp = (name: string, port: number) => Promise<readonly string[]>;

export interface NamingServer {
  readonly url: string;
  readonly lookUp: LookUp;
}

/** Whether the addresses of a host are public or private. */
type Reach = "public" | "private" | "mixed" | "unknown";

/** Explains why a URL from a server is not requested. Returns `undefined` if the examination may request the URL. */
export async function findRefusal(url: string, server: NamingServer): Promise<string | undefined> {
  if (!isSecure(url, server.url)) return "no https connection";
  const [target, own] = [new URL(url), new URL(server.url)];
  if (target.origin === own.origin) return;
  const reach = await findReach(target, server.lookUp);
  if (reach === "public") return;
  if (reach === "unknown") return "no address";
  // A server on this machine or its private network may send URLs on this machine or its network.
  if (await findReach(own, server.lookUp) === "private") return;
  return "an address on this machine or its network, and doctor sends no requests there for a server on another network";
}

/** Whether a URL uses https, or plain http on this machine. */
export function isSecure(url: string, serverUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" ||
    (protocol === "http:" && isLoopback(hostname) && isLoopback(new URL(serverUrl).hostname));
}

async function findReach({ hostname, port, protocol }: URL, lookUp: LookUp): Promise<Reach> {
  if (isLoopback(hostname)) return "private";
  if (isIpAddress(hostname)) return isPrivateAddress(hostname.replace(/[[\]]/g, "")) ? "private" : "public";
  try {
    const addresses = await lookUp(hostname, Number(port) || (protocol === "https:" ? 443 : 80));
    const count = addresses.filter(isPrivateAddress).length;
    if (!addresses.length) return "unknown";
    return count === 0 ? "public" : count === addresses.length ? "private" : "mixed";
  } catch {
    return "unknown";
  }
}

function isLoopback(hostname: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|\[::1\]|(.*\.)?localhost\.?)$/i.test(hostname);
}
