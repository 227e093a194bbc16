/**
 * Discovers where the users of a server sign in: reads its resource metadata, and the metadata of its authorization
 * server.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 * @module
 */
import type { AuthorizationServer } from "oauth4webapi";
import { SignInError, toShown } from "./errors.ts";
import type { Requests } from "./requests.ts";

/** The place where the users of a server sign in. */
export interface Discovered {
  /** The identifier of the server in its metadata. The client requests tokens for this resource. */
  readonly resource: string;
  /** The scopes in the server's metadata. */
  readonly scopes: readonly string[];
  /** Whether the server accepts only tokens that are bound to a key. */
  readonly needsProof: boolean;
  /** The metadata of the authorization server. Its `issuer` is exactly the issuer that the MCP server names. */
  readonly authorizationServer: AuthorizationServer;
  /**
   * Whether the server has no metadata, so the client assumes the default endpoints of revision 2025-03-26, which may
   * not exist.
   */
  readonly isGuess: boolean;
  /** The URL of the server's metadata, if the challenge named it. It may differ from the well-known URLs. */
  readonly metadataUrl?: string;
}

/** Options of {@linkcode discover}. */
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

/**
 * Reads the metadata of the server and of its authorization server.
 *
 * @throws {SignInError} if metadata is missing, or if the metadata of the server and of the authorization server do not
 * match.
 */
export async function discover(options: DiscoveryOptions): Promise<Discovered> {
  options.requests.readUrl(options.server.href, "the server");
  const metadata = await readResourceMetadata(options);
  if (!metadata) return await discoverOld(options);
  const { server, requests, signal } = options;
  const resource = readResource(metadata.resource, server);
  const issuer = chooseIssuer(metadata.authorization_servers, options);
  const found = await readServerMetadata(requests.readUrl(issuer, "the authorization server"), issuer, options);
  if (!found) {
    throw refuse(server, `the authorization server ${toShown(issuer)} has no metadata; ask its operator`);
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

/** Reads the resource metadata. Returns `undefined` if the server does not publish metadata. */
async function readResourceMetadata(options: DiscoveryOptions): Promise<Json | undefined> {
  const { requests, server, metadataUrl, signal } = options;
  if (metadataUrl !== undefined) {
    const url = requests.readUrl(metadataUrl, "the resource metadata");
    const found = await requests.readDocument(url, signal);
    if (found) return found;
    throw refuse(server, `there is no resource metadata at ${url.href}; ask the operator of the server`);
  }
  const path = server.pathname === "/" ? "" : server.pathname;
  const places = path ? [path + server.search, ""] : [server.search];
  for (const place of places) {
    const url = new URL(`/.well-known/oauth-protected-resource${place}`, server);
    const found = await requests.readDocument(url, signal);
    if (found) return found;
  }
}

/**
 * Returns the resource if it is the URL of the server, or a URL of the same origin whose path is a prefix of the
 * server's path.
 */
function readResource(text: unknown, server: URL): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isHere = url && !url.hash && url.origin === server.origin && isWithin(server, url);
  if (isHere) return String(text);
  const state = text === undefined ? "names no resource" : `names another resource, ${toShown(text)}`;
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

/** Returns the URLs of an issuer's metadata, in the order of the specification. */
function listPlaces(issuer: URL): readonly URL[] {
  const path = issuer.pathname.replace(/\/$/, "");
  const places = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...path ? [`${path}/.well-known/openid-configuration`] : [],
  ];
  return places.map((place) => new URL(place, issuer));
}

/** Reads the metadata of the authorization server. Returns `undefined` if it does not publish metadata. */
async function readServerMetadata(
  url: URL,
  issuer: string,
  { requests, server, signal }: DiscoveryOptions,
): Promise<AuthorizationServer | undefined> {
  for (const place of listPlaces(url)) {
    const found = await requests.readDocument(place, signal);
    if (!found) continue;
    // Compare as text, because another spelling could belong to another authorization server.
    if (found.issuer !== issuer) {
      throw refuse(server, `${place.href} is the metadata of ${toShown(found.issuer)}, and not of ${toShown(issuer)}`);
    }
    return { ...found, issuer };
  }
}

/**
 * Discovers as in revision 2025-03-26: the origin of the server is the authorization server. If it has no metadata, its
 * endpoints have fixed paths.
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

/** Returns the URL without its fragment, and without the slash of an empty path. */
function toCanonical(server: URL): string {
  const url = new URL(server);
  url.hash = "";
  return url.pathname === "/" && !url.search ? url.origin : url.href;
}

/** Reads a list of scopes, or a string of scopes separated by spaces. */
export function toScopes(value: unknown): readonly string[] {
  const words = typeof value === "string" ? value.split(" ") : Array.isArray(value) ? value : [];
  return [...new Set(words.filter((each) => typeof each === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(each)))];
}
