/**
 * Decides where the authorization server may send a user with an authorization code.
 *
 * @see RFC 8252, section 7
 * @see specification/2026-07-28/basic/authorization
 */
import { quote } from "../../../core/protocol/errors.ts";
import type { Client } from "./client.ts";

/** Redirect URIs of well-known clients. Clients on the user's machine need no entry, because they use loopback. */
export const knownRedirects: readonly string[] = [
  // Claude on the web, on the desktop and on phones. Looked up in November 2026.
  "https://claude.ai/api/mcp/auth_callback",
  "https://claude.com/api/mcp/auth_callback",
  // ChatGPT, which uses this URI if the authorization server sends `iss` (RFC 9207). Looked up in November 2026.
  "https://chatgpt.com/connector_platform_oauth_redirect",
  // VS Code in a browser, which the desktop application registers too. Looked up in November 2026.
  "https://vscode.dev/redirect",
  "https://insiders.vscode.dev/redirect",
  // Cursor registers all of these together with a loopback URI. Looked up in November 2026.
  "https://www.cursor.com/agents/mcp/oauth/callback",
  "https://www.cursor.com/bot/mcp/oauth/callback",
  "cursor://anysphere.cursor-mcp/oauth/callback",
  "grokbot://mcp/oauth/callback",
];

/** The facts about a client that decide about its redirect URIs. */
export type RedirectClient = Pick<Client, "redirectUris" | "isDocument" | "origin" | "isTrusted">;

/** Maximum length of a redirect URI in characters. */
const MAX_URI = 2000;
/** All characters of a URI (RFC 3986). Excludes characters that browsers remove or replace, such as a backslash. */
const URI_TEXT = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;
/** A redirect URI of a program on the user's machine. Groups: the origin without its port. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::[1-9]\d{0,4})?(?=[/?]|$)/;
/** Schemes that browsers handle themselves. Some run code from the URI, or read local files. */
const BROWSER_SCHEMES = [
  ...["about", "blob", "chrome", "data", "file", "filesystem", "ftp", "intent", "jar", "javascript", "livescript"],
  ...["mailto", "mhtml", "mocha", "ms-appx", "resource", "sms", "tel", "urn", "vbscript", "view-source", "ws", "wss"],
];

/** Parameters that the authorization server adds to a redirect URI. */
const RESPONSE = ["code", "state", "iss", "error", "error_description"];

/** Tests whether a redirect URI leads to a program on the user's machine. */
export function isLoopbackRedirect(uri: string): boolean {
  return LOOPBACK.test(uri) && findRedirectProblem(uri) === undefined;
}

/**
 * Returns what is wrong with a redirect URI, or `undefined`. Requires the form in which browsers write the URI, so that
 * equal URIs are equal texts, and no other parser reads another host.
 */
export function findRedirectProblem(uri: unknown): string | undefined {
  if (typeof uri !== "string" || uri === "") return "it is not a text";
  if (uri.length > MAX_URI) return `it is longer than ${MAX_URI} characters`;
  if (uri.includes("#")) return "it has a fragment";
  if (!URI_TEXT.test(uri)) return "it contains characters that are not allowed in a URI";
  const url = URL.parse(uri);
  if (!url) return "it is not an absolute URI";
  if (url.username || url.password || /^[^/?]*\/\/[^/?]*@/.test(uri)) return "it contains a user name or a password";
  const scheme = url.protocol.slice(0, -1);
  if (BROWSER_SCHEMES.includes(scheme)) return `the scheme ${scheme} is not allowed`;
  const plain = uri.replace(LOOPBACK, "$1");
  if (RESPONSE.some((name) => url.searchParams.has(name))) return "its query has a parameter of the response";
  if (!isCanonical(plain)) return "it is not in the normal form of a URI";
  if (scheme === "http" && plain === uri && !LOOPBACK.test(uri)) return "it uses http for a host that is not loopback";
}

/** Tests whether a browser would not change a URI before it sends a request. An empty path counts as `/`. */
function isCanonical(uri: string): boolean {
  const url = URL.parse(uri);
  if (!url) return false;
  // The origin of other schemes is opaque.
  if (!/^https?:$/.test(url.protocol)) return url.href === uri;
  if (!uri.startsWith(url.origin)) return false;
  const [path] = uri.slice(url.origin.length).split("?", 1);
  return (path || "/") === url.pathname;
}

/** The redirect URIs that an authorization server accepts. */
export class RedirectRules {
  readonly #listed: ReadonlySet<string>;

  /**
   * `redirects` lists the redirect URIs of hosted clients, and of clients with a scheme of their own.
   *
   * @throws {TypeError} if a redirect URI is not valid.
   */
  constructor(redirects: readonly string[] = knownRedirects) {
    for (const uri of redirects) {
      const problem = findRedirectProblem(uri);
      if (problem === undefined) continue;
      throw new TypeError(
        `Cannot accept the redirect URI ${
          quote(uri)
        }: ${problem}; write a URI over https, such as https://example.com/callback, or with the scheme of an app`,
      );
    }
    this.#listed = new Set(redirects);
  }

  /** Returns why a request of `client` must not be answered at a redirect URI, or `undefined`. */
  findProblem(uri: unknown, client: RedirectClient): string | undefined {
    const problem = findRedirectProblem(uri);
    if (problem !== undefined || typeof uri !== "string") return problem;
    if (!client.redirectUris.some((own) => isSame(own, uri))) return "the client has not registered it";
    if (client.isTrusted || isOnHost(uri, client)) return;
    return this.findListProblem(uri);
  }

  /** Returns why no client can register a redirect URI, or `undefined`. */
  findListProblem(uri: unknown): string | undefined {
    const problem = findRedirectProblem(uri);
    if (problem !== undefined || typeof uri !== "string") return problem;
    if (LOOPBACK.test(uri) || this.#listed.has(uri)) return;
    return "this server does not accept it";
  }
}

/** Loopback URIs can differ in their ports, because programs listen on a free port (RFC 8252, section 7.3). */
function isSame(own: string, uri: string): boolean {
  if (own === uri) return true;
  return LOOPBACK.test(own) && LOOPBACK.test(uri) && own.replace(LOOPBACK, "$1") === uri.replace(LOOPBACK, "$1");
}

function isOnHost(uri: string, { isDocument, origin }: RedirectClient): boolean {
  if (!isDocument || origin === undefined) return false;
  const { protocol, host } = new URL(uri);
  return protocol === "https:" && host === origin;
}
