/**
 * Discovers a server's authorization server, by reading the metadata of the server and of the authorization server.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
import type { AuthorizationServer } from "oauth4webapi";
import { listMetadataUrls } from "../../core/kit/issuer_metadata.ts";
import { SignInError, toShown } from "./errors.ts";
import { isBelow, isSameResource } from "../url_scope.ts";
import type { Requests } from "./requests.ts";

export interface Discovered {
  /** The resource identifier in the server's metadata. The client requests tokens for this resource. */
  readonly resource: string;
  readonly scopes: readonly string[];
  /** Whether the server accepts only tokens that are bound to a key. */
  readonly needsProof: boolean;
  /**
   * The authorization server's metadata. `issuer` equals the issuer in the MCP server's metadata, character by
   * character.
   */
  readonly authorizationServer: AuthorizationServer;
  /** Whether the client assumes the default endpoints of revision 2025-03-26, which may not exist. */
  readonly isGuess: boolean;
  /**
   * The URL of the server's metadata, if the challenge contained this URL. The URL may differ from the well-known URLs.
   */
  readonly metadataUrl?: string;
}

export interface DiscoveryOptions {
  readonly requests: Requests;
  readonly server: URL;
  readonly metadataUrl?: string;
  /** The only authorization server to accept. Defaults to the first in the server's metadata. */
  readonly issuer?: string;
  /** A resource that contains the server, and that the user has named. */
  readonly resource?: string;
  readonly signal: AbortSignal;
}

/**
 * Reads the metadata of a server and of its authorization server.
 *
 * @throws {SignInError} if metadata is missing, or if the issuers in the server's metadata and the authorization
 * server's metadata differ.
 */
export async function discover(options: DiscoveryOptions): Promise<Discovered> {
  options.requests.readUrl(options.server.href, "the server");
  const metadata = await readResourceMetadata(options);
  if (!metadata) return await discoverOld(options);
  const { server, requests, signal } = options;
  const resource = readResource(metadata.resource, options);
  const issuer = chooseIssuer(metadata.authorization_servers, options);
  const found = await readServerMetadata(requests.readUrl(issuer, "the authorization server"), issuer, options);
  if (!found) {
    throw refuse(
      server,
      `the authorization server ${toShown(issuer)} has no metadata; ask the operator of the authorization server`,
    );
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

/** Returns `undefined` if the server does not publish metadata. */
async function readResourceMetadata(options: DiscoveryOptions): Promise<Json | undefined> {
  const { requests, server, metadataUrl, signal } = options;
  if (metadataUrl !== undefined) {
    const url = requests.readUrl(metadataUrl, "the resource metadata");
    const found = await requests.readDocument(url, signal);
    if (found) return found;
    throw refuse(server, `the server has no resource metadata at ${url.href}; ask the operator of the server`);
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
 * Returns the resource in the metadata. Throws unless the resource is the server's URL, or a URL that contains the
 * server and that the user has named. Otherwise a server could obtain tokens for other servers at the same origin.
 * Also throws if the text is not a URL as `URL` writes it, because the text is sent, and the authorization server could
 * read it as another URL.
 */
function readResource(text: unknown, { server, resource: named }: DiscoveryOptions): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isParent = url !== null && isWritten(text, url) && isBelow(server, url) &&
    (!url.search || url.search === server.search);
  if (isParent && (isSameResource(url, server) || named !== undefined && new URL(named).href === url.href)) {
    return String(text);
  }
  if (isParent) {
    throw refuse(
      server,
      `its resource metadata names the resource ${
        toShown(text)
      }, which contains other servers; if you trust every server ` +
        `at this URL, set the option resource to ${toShown(text)}`,
    );
  }
  if (text === undefined || text === null) {
    throw refuse(server, "its resource metadata contains no resource; ask the operator of the server");
  }
  throw refuse(
    server,
    `its resource metadata names the resource ${
      toShown(text)
    }, not the server's URL; a token for this resource could be used at another server`,
  );
}

/**
 * Tests whether a text is a URL without user info and fragment, as `URL` writes it. The slash after the origin may be
 * missing, and the scheme and the host may contain upper case letters.
 *
 * @see specification/2026-07-28/basic/authorization (Canonical Server URI)
 */
function isWritten(text: unknown, { href, username, password }: URL): boolean {
  if (username || password || href.includes("#")) return false;
  const lower = String(text).replace(/^[^/?#]+\/\/[^/?#]*/, (origin) => origin.toLowerCase());
  return lower === href || `${lower}/` === href;
}

function chooseIssuer(servers: unknown, { server, issuer }: DiscoveryOptions): string {
  const issuers = Array.isArray(servers) ? servers.filter((each) => typeof each === "string") : [];
  if (!issuers.length) throw refuse(server, "its resource metadata contains no authorization server");
  if (issuer === undefined || issuers.includes(issuer)) return issuer ?? issuers[0];
  const named = issuers.map(toShown).join(", ");
  throw refuse(server, `the client is registered at ${issuer}, but the server requires a token from ${named}`);
}

/** Returns `undefined` if the authorization server does not publish metadata. */
async function readServerMetadata(
  url: URL,
  issuer: string,
  { requests, server, signal }: DiscoveryOptions,
): Promise<AuthorizationServer | undefined> {
  for (const place of listMetadataUrls(url)) {
    const found = await requests.readDocument(new URL(place), signal);
    if (!found) continue;
    // Compare the issuers as text, because another spelling could be the issuer of another authorization server.
    if (found.issuer !== issuer) {
      throw refuse(
        server,
        `the metadata at ${place} belongs to ${toShown(found.issuer)}, not to ${toShown(issuer)}`,
      );
    }
    return { ...found, issuer };
  }
}

/**
 * Follows the rules of revision 2025-03-26: the authorization server is at the server's origin. If this authorization
 * server has no metadata, its endpoints have fixed paths.
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

/** Returns the URL without its fragment. If the path is `/`, also removes the trailing slash. */
function toCanonical(server: URL): string {
  const url = new URL(server);
  url.hash = "";
  return url.pathname === "/" && !url.search ? url.origin : url.href;
}

/** Reads an array of scopes, or a string of scopes separated by spaces. Ignores invalid scopes. */
export function toScopes(value: unknown): readonly string[] {
  const words = typeof value === "string" ? value.split(" ") : Array.isArray(value) ? value : [];
  return [...new Set(words.filter((each) => typeof each === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(each)))];
}
