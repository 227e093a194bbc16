/**
 * Who may talk to the server over HTTP. Nothing of a request is parsed before it is through here.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import type { Principal } from "../../core/context.ts";
import { findDeno } from "../../runtime.ts";

/** What the runtime or a router in front knows of a connection. Deno and Bun each hand over their own form. */
export interface ConnectionInfo {
  /** Deno's form. */
  readonly remoteAddr?: unknown;
  /** Bun's form: its server object. */
  readonly requestIP?: unknown;
  /** What the runtime handed to code in front, passed on as it is: a copy of it may lack what Bun's holds. */
  readonly info?: ConnectionInfo;
  /** Who is asking, from code in front that has authenticated the request. */
  readonly principal?: unknown;
}

/** Which callers are let in beside those that are always. */
export interface AccessOptions {
  /** Hosts that every caller must use, such as `mcp.example.com` or `box.local:8080`; loopback hosts need no entry. */
  readonly hosts: readonly string[];
  /** Origins of web pages that may call, such as `https://app.example.com`. */
  readonly origins: readonly string[];
  /** Whether pages of a further origin may call, and whether they may use the user's cookies. */
  readonly allows: (origin: string) => { readonly credentials: boolean } | undefined;
}

/** What a caller asks for beyond a request and its response. */
export interface CallerOptions {
  /**
   * Whether this opens a connection that no browser checks with a preflight, such as a WebSocket. The browser sends the
   * user's cookies along whatever page opens it.
   */
  readonly isUpgrade?: boolean;
}

/** Why a caller is not let in. */
export interface Refusal {
  readonly status: number;
  /** What follows "Cannot serve the request: ". */
  readonly reason: string;
}

/**
 * Checks Host and Origin. A page in a browser can make any name point at this machine or its network (DNS rebinding),
 * but it cannot choose the Host and Origin its browser sends. Listed hosts therefore bind every caller. Without a list,
 * a caller on this machine must use a loopback host, and an Origin that equals the Host proves nothing unless the Host
 * is one that no page can take over.
 */
export function checkCaller(
  request: Request,
  info: ConnectionInfo | undefined,
  options: AccessOptions,
  { isUpgrade = false }: CallerOptions = {},
): Refusal | undefined {
  const { headers } = request;
  // HTTP/2 has no Host header: what it has in its place the runtime puts into the URL.
  const host = headers.get("host") ?? hostOf(request.url);
  const authority = parseAuthority(host);
  if (!authority) return { status: 400, reason: `the Host header is ${quoted(host)}` };
  const target = hostOf(request.url);
  if (target !== undefined && parseAuthority(target)?.name !== authority.name) {
    return {
      status: 403,
      reason: `it is for ${quoted(target)}, its Host says ${quoted(host)}`,
    };
  }
  const known = isLoopbackName(authority.name) || isListed(authority, options);
  if (!known && (options.hosts.length || isLocal(request, info))) {
    return {
      status: 403,
      reason: `host ${quoted(host)} is not allowed; to allow it, set hosts: [${quoted(authority.name)}]`,
    };
  }
  const origin = headers.get("origin");
  if (!origin || isSameOrigin(origin, authority, request.url)) {
    if (!origin || known || isAddress(authority.name) || isDeployed()) return;
    return {
      status: 403,
      reason: `a page at ${quoted(host)} is not allowed; to allow it, set hosts: [${quoted(authority.name)}]`,
    };
  }
  if (options.origins.includes(toOrigin(origin))) return;
  const grant = options.allows(origin);
  if (grant && (grant.credentials || !isUpgrade)) return;
  // An upgrade has no preflight, and cookies go with it, so that CORS alone lets no page in.
  const remedy = isUpgrade ? `origins: [${quoted(origin)}]` : `cors: { origins: [${quoted(origin)}] }`;
  return {
    status: 403,
    reason: `origin ${quoted(origin)} is not allowed${grant ? " with cookies" : ""}; to allow it, set ${remedy}`,
  };
}

/** Whether a Host names this machine. */
export function isLoopbackHost(host: string): boolean {
  const authority = parseAuthority(host);
  return !!authority && isLoopbackName(authority.name);
}

/** Whether a Host can be let in again without looking, whoever sends it. */
export function isKnownHost(host: string, options: AccessOptions): boolean {
  const authority = parseAuthority(host);
  return !!authority && (isLoopbackName(authority.name) || isListed(authority, options));
}

/** Hosts that a user lists, as they are compared. */
export function readHosts(hosts: readonly string[] = []): readonly string[] {
  return hosts.map((each) => parseAuthority(each)?.host ?? complain(each, "a host like mcp.example.com"));
}

/**
 * Origins that a user lists, as they are compared. Extensions and the like have schemes of their own, and pages without
 * an origin say `null`.
 */
export function readOrigins(origins: readonly string[] = []): readonly string[] {
  return origins.map((each) =>
    each === "null" || /^[a-z][a-z\d+.-]*:\/\/[^/?#@\s]+$/i.test(each)
      ? toOrigin(each)
      : complain(each, "an origin like https://app.example.com")
  );
}

/** Who is asking, from code in front that has authenticated the request. */
export function readPrincipal(info: ConnectionInfo | undefined): Principal | undefined {
  const given = info?.principal;
  if (given === undefined) return;
  if (!isObject(given) || typeof given.id !== "string") {
    throw new TypeError("Cannot serve the request: info.principal must be an object with a string id");
  }
  return { ...given, id: given.id };
}

/**
 * The address of a request's client, as far as the platform gives it. Behind a listed proxy it is the one that the proxy
 * forwards: the last in `X-Forwarded-For` that is no listed proxy itself. IPv6 addresses are cut to their network of 64
 * bits, because a client can choose the rest.
 */
export function readPeer(request: Request, info: unknown, proxies: readonly string[]): string | undefined {
  const peer = findAddress(request, info);
  if (peer === undefined || !proxies.includes(toAddress(peer))) return peer && toNetwork(toAddress(peer));
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").map((part) => toAddress(part.trim())) ?? [];
  const client = forwarded.findLast((address) => address && !proxies.includes(address));
  return toNetwork(client ?? toAddress(peer));
}

/** Addresses that a user lists, as they are compared. */
export function readProxies(proxies: readonly string[] = []): readonly string[] {
  return proxies.map((each) =>
    /^[0-9a-f]*[.:][0-9a-f.:]+$/.test(toAddress(each)) ? toAddress(each) : complain(each, "an address like 10.0.0.1")
  );
}

// IPv4 addresses in IPv6 form, ports and brackets are other spellings of the same address.
function toAddress(text: string): string {
  const bare = text.toLowerCase().replace(/^\[([^\]]*)\](:\d+)?$/, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return bare.replace(/^::ffff:(?=\d+\.)/, "");
}

// What "::" stands for in the first half is left out, which at most counts neighbours as one client.
function toNetwork(address: string): string {
  if (!address.includes(":")) return address.slice(0, 64);
  return address.slice(0, 64).split("::")[0].split(":").slice(0, 4).join(":") || address.slice(0, 64);
}

function findAddress(request: Request, given: unknown): string | undefined {
  const info = isObject(given) && isObject(given.info) ? given.info : given;
  if (!isObject(info)) return;
  let address = isObject(info.remoteAddr) ? info.remoteAddr.hostname : undefined;
  if (typeof info.requestIP === "function") {
    const peer: unknown = info.requestIP(request);
    if (isObject(peer)) address = peer.address;
  }
  return typeof address === "string" ? address : undefined;
}

interface Authority {
  /** The name, an IPv6 address with its brackets. */
  readonly name: string;
  /** The name, and the port if there is one. */
  readonly host: string;
}

// Strict: what a URL parser would mend (127.1, 0x7f.1, user@host) is not a Host that a client sends.
function parseAuthority(text: string | undefined): Authority | undefined {
  const match = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,126}\.?)(:\d{1,5})?$/i.exec(
    text ?? "",
  );
  return match ? { host: match[0].toLowerCase(), name: match[1].toLowerCase() } : undefined;
}

// Sliced, not parsed: a runtime builds the URL from the Host header, and a parser may throw on what it made of it.
function hostOf(url: string): string | undefined {
  return /^[^:/?#]+:\/\/([^/?#]*)/.exec(url)?.[1];
}

function isListed({ host, name }: Authority, { hosts }: AccessOptions): boolean {
  return hosts.some((each) => each === host || each === name);
}

// Behind a proxy that ends TLS a public host is called by https pages, though the request itself came by http.
function isSameOrigin(origin: string, { name, host }: Authority, url: string): boolean {
  const schemes = isLoopbackName(name) ? [url.startsWith("https:") ? "https" : "http"] : ["http", "https"];
  return schemes.some((scheme) => toOrigin(origin) === toOrigin(`${scheme}://${host}`));
}

/** Whether a host is an IP address: no page can make it point elsewhere. */
function isAddress(name: string): boolean {
  return name.startsWith("[") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);
}

function isLoopbackName(name: string): boolean {
  return name === "localhost" || name === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

/**
 * An origin as it is compared: whole, as a URL parser reads it, for `http://localhost.evil.example` starts like a good
 * one. What is not an origin and nothing more stays as it is, and equals nothing.
 */
export function toOrigin(text: string): string {
  return /^https?:\/\/[^/?#@\s]+$/i.test(text) && URL.canParse(text) ? new URL(text).origin : text;
}

// A caller nobody knows is taken for one on this machine, unless the platform is never on the caller's machine.
function isLocal(request: Request, info: unknown): boolean {
  const address = findAddress(request, info);
  if (address === undefined) return !isDeployed();
  return address === "::1" || /^(::ffff:)?127\./i.test(address) || address === "localhost";
}

let deployed: boolean | undefined;

function isDeployed(): boolean {
  return deployed ??= globalThis.navigator?.userAgent === "Cloudflare-Workers" || isDenoDeploy();
}

// Asked only where reading is allowed already: a permission prompt would stop the server.
function isDenoDeploy(): boolean {
  const deno = findDeno();
  const variable = "DENO_DEPLOYMENT_ID";
  return deno?.permissions?.querySync({ name: "env", variable }).state === "granted" && !!deno.env.get(variable);
}

function complain(given: string, wanted: string): never {
  throw new TypeError(`Cannot create a server: ${quoted(given)} is not ${wanted}`);
}

function quoted(value: string | undefined): string {
  return JSON.stringify(String(value).slice(0, 200));
}
