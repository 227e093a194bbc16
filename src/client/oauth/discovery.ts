/**
 * Finds out where a server's users sign in: its resource metadata, and the metadata of its authorization server.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 * @module
 */
import type { AuthorizationServer } from "oauth4webapi";
import { SignInError, toShown } from "./errors.ts";
import type { Requests } from "./requests.ts";

/** Where the users of a server sign in. */
export interface Discovered {
  /** The server, as its metadata identifies it. Each token is for this resource. */
  readonly resource: string;
  /** Scopes of the server's metadata. */
  readonly scopes: readonly string[];
  /** Whether the server only takes tokens that are bound to a key. */
  readonly needsProof: boolean;
  /** The metadata of the authorization server. `issuer` is exactly the one that the server names. */
  readonly authorizationServer: AuthorizationServer;
  /** Whether there is no metadata, so that the endpoints are those of 2025-03-26 if the server has any. */
  readonly isGuess: boolean;
  /** Where the server's metadata was, if the challenge named the address. It need not be a well-known one. */
  readonly metadataUrl?: string;
}

/** What to discover. */
export interface DiscoveryOptions {
  readonly requests: Requests;
  /** The URL of the server. */
  readonly server: URL;
  /** The parameter `resource_metadata` of the server's challenge. */
  readonly metadataUrl?: string;
  /** The authorization server to choose if the server names several. */
  readonly issuer?: string;
  readonly signal: AbortSignal;
}

/** Reads both kinds of metadata. @throws {SignInError} if they are missing or do not belong together. */
export async function discover(options: DiscoveryOptions): Promise<Discovered> {
  options.requests.readUrl(options.server.href, "the server");
  const metadata = await readResourceMetadata(options);
  if (!metadata) return await discoverOld(options);
  const { server, requests, signal } = options;
  const resource = readResource(metadata.resource, server);
  const issuer = chooseIssuer(metadata.authorization_servers, options);
  const found = await readServerMetadata(requests.readUrl(issuer, "the authorization server"), issuer, options);
  if (!found) {
    throw refuse(server, `the authorization server ${toShown(issuer)} has no metadata; ask whoever runs it`);
  }
  signal.throwIfAborted();
  const needsProof = metadata.dpop_bound_access_tokens_required === true;
  const scopes = toScopes(metadata.scopes_supported);
  const { metadataUrl } = options;
  return { resource, scopes, needsProof, authorizationServer: found, isGuess: false, metadataUrl };
}

function refuse({ href }: URL, state: string): SignInError {
  return new SignInError(`Cannot sign in to ${href}: ${state}`);
}

type Json = Readonly<Record<string, unknown>>;

/** Returns `undefined` if the server has none. */
async function readResourceMetadata(options: DiscoveryOptions): Promise<Json | undefined> {
  const { requests, server, metadataUrl, signal } = options;
  if (metadataUrl !== undefined) {
    const url = requests.readUrl(metadataUrl, "the resource metadata");
    const found = await requests.readDocument(url, signal);
    if (found) return found;
    throw refuse(server, `there is no resource metadata at ${url.href}; ask whoever runs the server`);
  }
  const path = server.pathname === "/" ? "" : server.pathname;
  const places = path ? [path + server.search, ""] : [server.search];
  for (const place of places) {
    const url = new URL(`/.well-known/oauth-protected-resource${place}`, server);
    const found = await requests.readDocument(url, signal);
    if (found) return found;
  }
}

/** Returns the resource if it is the server, or a part of the origin that holds it. */
function readResource(text: unknown, server: URL): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isHere = url && !url.hash && url.origin === server.origin && isWithin(server, url);
  if (isHere) return String(text);
  const state = text === undefined ? "names no resource" : `is that of ${toShown(text)}, another resource`;
  throw refuse(server, `its resource metadata ${state}; a token for it could be used elsewhere`);
}

function isWithin(server: URL, { pathname, search }: URL): boolean {
  if (search && search !== server.search) return false;
  const folder = pathname.endsWith("/") ? pathname : `${pathname}/`;
  return server.pathname === pathname || server.pathname.startsWith(folder) || `${server.pathname}/` === folder;
}

function chooseIssuer(servers: unknown, { server, issuer }: DiscoveryOptions): string {
  const issuers = Array.isArray(servers) ? servers.filter((each) => typeof each === "string") : [];
  if (!issuers.length) throw refuse(server, "its resource metadata names no authorization server");
  if (issuer === undefined || issuers.includes(issuer)) return issuer ?? issuers[0];
  const named = issuers.map(toShown).join(", ");
  throw refuse(server, `the client belongs to ${issuer}, and the server asks for a token of ${named}`);
}

/** The places of an issuer's metadata, in the order of the specification. */
function listPlaces(issuer: URL): readonly URL[] {
  const path = issuer.pathname.replace(/\/$/, "");
  const places = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...path ? [`${path}/.well-known/openid-configuration`] : [],
  ];
  return places.map((place) => new URL(place, issuer));
}

/** Returns `undefined` if there is none. */
async function readServerMetadata(
  url: URL,
  issuer: string,
  { requests, server, signal }: DiscoveryOptions,
): Promise<AuthorizationServer | undefined> {
  for (const place of listPlaces(url)) {
    const found = await requests.readDocument(place, signal);
    if (!found) continue;
    // Compared as text: another spelling could be that of another authorization server.
    if (found.issuer !== issuer) {
      throw refuse(server, `${place.href} is the metadata of ${toShown(found.issuer)}, and not of ${toShown(issuer)}`);
    }
    return { ...found, issuer };
  }
}

/**
 * The way of 2025-03-26: the origin of the server is the authorization server, with fixed endpoints if it has no
 * metadata.
 *
 * @see specification/2025-03-26/basic/authorization (Fallbacks for Servers without Metadata Discovery)
 */
async function discoverOld(options: DiscoveryOptions): Promise<Discovered> {
  const { server, issuer } = options;
  const { origin } = server;
  if (issuer !== undefined && issuer !== origin) chooseIssuer([origin], options);
  const found = await readServerMetadata(new URL(origin), origin, options);
  const guess = {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ["S256"],
  };
  const authorizationServer = found ?? guess;
  return { resource: toCanonical(server), scopes: [], needsProof: false, authorizationServer, isGuess: !found };
}

/** The URL without a fragment, and without the slash of an empty path. */
function toCanonical(server: URL): string {
  const url = new URL(server);
  url.hash = "";
  return url.pathname === "/" && !url.search ? url.origin : url.href;
}

/** Reads a list of scopes, or scopes separated by blanks. */
export function toScopes(value: unknown): readonly string[] {
  const words = typeof value === "string" ? value.split(" ") : Array.isArray(value) ? value : [];
  return [...new Set(words.filter((each) => typeof each === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(each)))];
}
