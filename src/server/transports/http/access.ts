/**
 * Checks whether a caller may use the server over HTTP. These checks run before the request is parsed.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 */
import { isLoopback } from "../../../core/kit/loopback_host.ts";
import { quote } from "../../../core/protocol/errors.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import { findDeno } from "../../../core/runtime.ts";
import type { Principal } from "../../call/context.ts";
import { type Authority, parseAuthority, toAddress, toOrigin } from "./address.ts";
import { type Refusal, toMessage } from "./refusals.ts";
import { copyRequest, type Visit } from "./request_copy.ts";

/** Facts about a connection, from the runtime or from code that calls `fetch`, such as a router. */
export interface ConnectionInfo {
  /** The client's address. Set by Deno. */
  readonly remoteAddr?: unknown;
  /** Returns the client's address. Set by Bun, which passes its server object. */
  readonly requestIP?: unknown;
  /** Node's request, with the client's address. Set by `@hono/node-server`. */
  readonly incoming?: unknown;
  /**
   * The unchanged object from the runtime. To add a `principal`, set this field instead of copying the object's fields,
   * because a copy of Bun's object would lack the object's methods.
   */
  readonly info?: ConnectionInfo;
  /** The caller, which the code that calls `fetch` has authenticated. */
  readonly principal?: unknown;
  /**
   * Called with a promise for the functions that `ctx.defer` runs after the response. On Workers, pass `waitUntil` from
   * `cloudflare:workers`, because a plain Worker ends the work for a request together with its response.
   */
  readonly waitUntil?: (work: Promise<unknown>) => void;
  /**
   * Serves the request in place of this server, such as in another process or in a Durable Object. Called only if the
   * request passes all checks that come before its body: host, origin, path, caller and the headers of the protocol.
   * `principal` is the caller, or `undefined` if the server has no `auth`. If the function throws, the client gets HTTP
   * 500 without details. Requests for routes, WebSocket and HTTP+SSE are not forwarded.
   */
  readonly forward?: (
    request: Request,
    caller: { readonly principal?: Principal },
  ) => Response | Promise<Response>;
}

export interface AccessOptions {
  /** Allowed hosts, such as `box.local:8080`. If not empty, every request must use a listed or a loopback host. */
  readonly hosts: readonly string[];
  /** Origins of web pages that may call the server, such as `https://app.example.com`. */
  readonly origins: readonly string[];
  /** Returns the CORS permissions of pages from an origin, or `undefined` if these pages may not call the server. */
  readonly allows: (origin: string) => { readonly credentials: boolean } | undefined;
}

export interface CallerOptions {
  /**
   * Whether a browser may send the request without a CORS preflight, such as a request for a WebSocket or a route. Any
   * web page can send such a request, and the browser adds the user's cookies.
   */
  readonly isSimple?: boolean;
}

/** The refusal of a host or an origin. */
export interface AccessRefusal extends Refusal {
  /** The end of the message, for endpoints with a message of their own. */
  readonly state: string;
}

function forbid(state: string, reason: "host" | "origin", status: number = 403): AccessRefusal {
  return { status, state, message: toMessage(state), reason };
}

function toRemedy({ name }: Authority): string {
  return `to allow this host, set hosts: [${quote(name)}]`;
}

/**
 * Checks Host and Origin, to prevent DNS rebinding. A web page can make its own host name resolve to this machine, but
 * cannot choose the Host and Origin headers that the browser sends.
 *
 * - If hosts are listed, every request must use a listed host or loopback.
 * - Otherwise, a request from this machine must use loopback.
 * - An Origin that equals the Host is allowed only if no web page can take over that Host.
 */
export function checkCaller(
  request: Request,
  info: ConnectionInfo | undefined,
  options: AccessOptions,
  { isSimple = false }: CallerOptions = {},
): AccessRefusal | undefined {
  const { headers } = request;
  // HTTP/2 has no Host header, but the runtime puts the host into the URL.
  const host = headers.get("host") ?? hostOf(request.url);
  const authority = parseAuthority(host);
  // A framework may have built the URL from the address on which it listens.
  const isUrl = host !== undefined && (hasHost(request.url, host) || URL.canParse(`http://${host}`));
  if (!authority || !isUrl) return forbid(`the Host header ${quote(host)} is not a valid host`, "host", 400);
  const known = isLoopback(authority.name) || isListed(authority, options);
  if (!known && (options.hosts.length || isLocal(request, info))) {
    return forbid(`host ${quote(host)} is not allowed; ${toRemedy(authority)}`, "host");
  }
  const origin = headers.get("origin");
  if (!origin || isSameOrigin(origin, authority, request.url)) {
    if (!origin || known || isAddress(authority.name) || isDeployed()) return;
    return forbid(`pages from host ${quote(host)} are not allowed; ${toRemedy(authority)}`, "origin");
  }
  if (options.origins.includes(toOrigin(origin))) return;
  const grant = options.allows(origin);
  if (grant && (grant.credentials || !isSimple)) return;
  // A request without a preflight carries cookies, so the page's origin must be listed in `origins` or allowed by CORS
  // with credentials.
  const remedy = isSimple ? `origins: [${quote(origin)}]` : `cors: { origins: [${quote(origin)}] }`;
  const state = `origin ${quote(origin)} is not allowed${grant ? " with cookies" : ""}`;
  return forbid(`${state}; to allow this origin, set ${remedy}`, "origin");
}

/**
 * Checks the request target of a request that a listener of this library has received. A target with a scheme and a
 * host must have the host in the Host header, because a proxy may check one of the two hosts, and the server the other.
 *
 * `checkCaller` does not compare the hosts, because some frameworks build the URL of a request from the address on
 * which they listen.
 *
 * @see RFC 9112, section 3.2.2 (absolute-form)
 */
export function checkTarget({ headers, url }: Request): Refusal | undefined {
  const host = headers.get("Host");
  if (host === null || hasHost(url, host)) return;
  const [name, target] = [parseAuthority(host)?.name, hostOf(url)];
  // `checkCaller` rejects a malformed Host header.
  if (name === undefined || target === undefined || parseAuthority(target)?.name === name) return;
  return forbid(`the host in the URL is ${quote(target)}, but the Host header is ${quote(host)}`, "host");
}

/**
 * Returns the URL of a request, with the checked Host header as its host. Code that reads the URL must not see a host
 * that nobody has checked: a framework may build the URL from the address on which it listens, and a client can send any
 * host in its request target.
 */
export function toCheckedUrl({ headers, url }: Request): string {
  const host = headers.get("host");
  if (host === null || hasHost(url, host)) return url;
  const named = url.replace(HOST, (_whole, scheme: string) => scheme + host);
  return URL.parse(named)?.host === URL.parse(url)?.host ? url : named;
}

export function toChecked<Info>(visit: Visit<Info>): Visit<Info> {
  const { request } = visit;
  const url = toCheckedUrl(request);
  // The server rejects all other methods, and a new request cannot have some of them, such as TRACE.
  return url === request.url || !METHODS.includes(request.method) ? visit : copyRequest(visit, { url });
}

const METHODS = ["GET", "HEAD", "POST", "DELETE"];

export function isLoopbackHost(host: string): boolean {
  const authority = parseAuthority(host);
  return !!authority && isLoopback(authority.name);
}

/** Tests whether a Host header is allowed for every caller. Such a header need not be checked again. */
export function isKnownHost(host: string, options: AccessOptions): boolean {
  const authority = parseAuthority(host);
  return !!authority && (isLoopback(authority.name) || isListed(authority, options));
}

/**
 * Returns the client's address, or `undefined` if the platform does not provide the address.
 *
 * Behind a listed proxy, returns the last address in `X-Forwarded-For` that is not a listed proxy. For an IPv6 address,
 * returns only the /64 network (the first four groups, without leading zeros), because a client can choose the other
 * groups.
 */
export function readPeer(request: Request, info: unknown, proxies: readonly string[]): string | undefined {
  const peer = findAddress(request, info);
  if (peer === undefined || !proxies.includes(toAddress(peer))) return peer && toNetwork(toAddress(peer));
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").map((part) => toAddress(part.trim())) ?? [];
  const client = forwarded.findLast((address) => address && !proxies.includes(address));
  return toNetwork(client ?? toAddress(peer));
}

// Return the same spelling for each network. Otherwise a client would get a new share of the limits with each spelling
// of its address.
function toNetwork(address: string): string {
  if (!address.includes(":")) return address.slice(0, 64);
  const [head, tail] = address.slice(0, 64).split("%", 1)[0].split("::").map((part) => part.split(":").filter(Boolean));
  // An IPv4 address at the end takes the place of two groups.
  const isOf = tail === undefined ? 0 : 8 - head.length - tail.length - (tail.at(-1)?.includes(".") ? 1 : 0);
  const groups = [...head, ...Array<string>(Math.max(0, isOf)).fill("0"), ...tail ?? []].slice(0, 4);
  return groups.map((group) => (parseInt(group, 16) || 0).toString(16)).join(":");
}

/**
 * Returns the signal of a request that this program has created. Returns `undefined` for a request from a listener,
 * which has a Host header or the client's address, because reading its signal makes requests slower on Deno. There the
 * signal also aborts after each response, and Deno prints a warning.
 */
export function findSignal(request: Request, given: unknown): AbortSignal | undefined {
  const info = toInfo(given);
  // Do not read `remoteAddr`, because Deno creates it only then.
  if (info && ("remoteAddr" in info || "requestIP" in info || "incoming" in info)) return;
  return request.headers.has("host") ? undefined : request.signal;
}

function toInfo(given: unknown): ConnectionInfo | undefined {
  const info = isObject(given) && isObject(given.info) ? given.info : given;
  return isObject(info) ? info : undefined;
}

function findAddress(request: Request, given: unknown): string | undefined {
  const info = toInfo(given);
  if (!info) return;
  const remote = readRemote(info);
  let address = isObject(remote) ? remote.hostname : undefined;
  if (isObject(info.incoming) && isObject(info.incoming.socket)) address = info.incoming.socket.remoteAddress;
  if (typeof info.requestIP === "function") {
    const peer: unknown = info.requestIP(request);
    if (isObject(peer)) address = peer.address;
  }
  return typeof address === "string" ? address : undefined;
}

/** On Deno, reading the address throws when the client has disconnected, while a call of its session may still run. */
function readRemote(info: ConnectionInfo): unknown {
  try {
    return info.remoteAddr;
  } catch {
    return undefined;
  }
}

// Do not parse the URL. A runtime builds the URL from the Host header, which may be malformed, and parsing would then
// throw.
function hostOf(url: string): string | undefined {
  return HOST.exec(url)?.[2];
}

const HOST = /^([^:/?#]+:\/\/)([^/?#]*)/;

/** Tests whether the host of a URL is written as in a Host header. */
export function hasHost(url: string, host: string): boolean {
  const at = url.indexOf("//") + 2;
  return url.startsWith(host, at) && url[at + host.length] === "/";
}

function isListed({ host, name }: Authority, { hosts }: AccessOptions): boolean {
  return hosts.some((each) => each === host || each === name);
}

// Allow https origins for requests over http, because a proxy may terminate TLS in front of the server.
function isSameOrigin(origin: string, { name, host }: Authority, url: string): boolean {
  const schemes = isLoopback(name) ? [url.startsWith("https:") ? "https" : "http"] : ["http", "https"];
  return schemes.some((scheme) => toOrigin(origin) === toOrigin(`${scheme}://${host}`));
}

/** Tests whether a host is an IP address. An attacker cannot make an IP address resolve to another machine. */
function isAddress(name: string): boolean {
  return name.startsWith("[") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);
}

// Treat a request whose address is unknown as local, except on platforms that only run deployed servers.
function isLocal(request: Request, info: unknown): boolean {
  const address = findAddress(request, info);
  if (address === undefined) return !isDeployed();
  return address === "::1" || /^(::ffff:)?127\./i.test(address) || address === "localhost";
}

let deployed: boolean | undefined;

function isDeployed(): boolean {
  return deployed ??= globalThis.navigator?.userAgent === "Cloudflare-Workers" || isDenoDeploy();
}

// Read the variable only if the permission is already granted, because a permission prompt would block the server.
function isDenoDeploy(): boolean {
  const deno = findDeno();
  const variable = "DENO_DEPLOYMENT_ID";
  return deno?.permissions?.querySync({ name: "env", variable }).state === "granted" && !!deno.env.get(variable);
}
