/**
 * Checks the metadata that clients need to get a token: the metadata of the resource, and of its authorization servers.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
import type { Params } from "../../client/client.ts";
import { listMetadataUrls } from "../../core/kit/issuer_metadata.ts";
import { isObject } from "../../core/kit/json.ts";
import type { Directory } from "../directories.ts";
import { type Endpoint, exchange, NoResponse, type ServerResponse } from "./exchange.ts";
import { findRefusal, isSecure } from "./named_url.ts";
import type { Check, Report } from "./report.ts";

export interface MetadataOptions {
  readonly report: Report;
  /** The origin of a web page to allow. Defaults to the origin of the official inspector. */
  readonly origin?: string;
  /** The directories whose rules are checked too. Defaults to none. */
  readonly directories?: readonly Directory[];
}

/** The default origin of the official MCP Inspector. */
const INSPECTOR = "http://localhost:6274";

/** Maximum number of authorization servers whose metadata is checked. */
const MAX_ISSUERS = 5;

interface Metadata {
  readonly url: string;
  readonly value: Params;
  readonly headers: Headers;
}

/** `named` is the URL in the challenge. The user's token is not sent. */
export async function checkResourceMetadata(
  { headers: _, ...endpoint }: Endpoint,
  named: string | undefined,
  { report, origin = INSPECTOR, directories = [] }: MetadataOptions,
): Promise<void> {
  const anonymous = { ...endpoint, headers: {} };
  const found = await report.run("metadata", (check) => findResourceMetadata(anonymous, named, check));
  if (found === undefined) {
    if (directories.includes("claude")) {
      report.at("directory").problem(
        "the server requires a token that clients do not get with OAuth, and Claude's directory refuses such a server [D21]",
        "use OAuth, or require no token",
      );
    }
    return;
  }
  const issuers = checkResource(anonymous, found, report.at("metadata"));
  await report.run("metadata", (check) => checkMetadataCors(anonymous, found, { check, origin }));
  for (const issuer of issuers.slice(0, MAX_ISSUERS)) {
    await report.run("authorization server", (check) => checkAuthorizationServer(anonymous, issuer, check));
  }
}

/** Finds the metadata in the places in which clients look: the URL in the challenge, or else the well-known URLs. */
async function findResourceMetadata(
  endpoint: Endpoint,
  named: string | undefined,
  check: Check,
): Promise<Metadata | undefined> {
  const { origin, pathname } = new URL(endpoint.url);
  const root = `${origin}/.well-known/oauth-protected-resource`;
  const inserted = pathname === "/" ? root : root + pathname;
  const byChallenge = named === undefined ? undefined : await readJson(endpoint, named);
  if (named !== undefined && !byChallenge?.metadata) {
    check.problem(
      `the challenge names ${named}, but there is no metadata at this URL: ${byChallenge?.state ?? "no response"}`,
      "serve a JSON object with resource and authorization_servers at this URL, without requiring a token",
    );
  }
  const byPath = named === inserted ? byChallenge : await readJson(endpoint, inserted);
  const byRoot = byPath?.metadata || inserted === root ? undefined : await readJson(endpoint, root);
  const wellKnown = byPath?.metadata ?? byRoot?.metadata;
  const found = byChallenge?.metadata ?? wellKnown;
  if (!found) {
    if (named !== undefined) return;
    const urls = inserted === root ? root : `${inserted} or ${root}`;
    return void check.note(
      `there is no protected resource metadata at ${urls}, so clients cannot find out where to get a token`,
      "serve a JSON object with resource and authorization_servers at this URL, unless clients get their tokens in " +
        "another way",
    );
  }
  if (!wellKnown) {
    check.note(
      `there is no metadata at ${inserted}, where some clients look first`,
      "serve the same document at this URL too",
    );
  } else if (wellKnown !== found && !isSame(wellKnown, found)) {
    check.problem(
      `the metadata at ${wellKnown.url} names a different resource or different authorization servers than the metadata at ` +
        `${found.url}`,
      "serve the same document at both URLs",
    );
  }
  return found;
}

function isSame(a: Metadata, b: Metadata): boolean {
  return ["resource", "authorization_servers"].every((name) =>
    JSON.stringify(a.value[name]) === JSON.stringify(b.value[name])
  );
}

/** Checks the properties of the metadata. Returns the valid issuers. */
function checkResource(endpoint: Endpoint, { url, value, headers }: Metadata, check: Check): readonly string[] {
  const target = endpoint.url;
  const { resource, authorization_servers: servers, scopes_supported: scopes, bearer_methods_supported: methods } =
    value;
  if (typeof resource !== "string" || !isWithin(target, resource)) {
    check.problem(
      `the metadata at ${url} is for ${JSON.stringify(resource) ?? "no resource"}, not for this server`,
      `set resource to ${target}`,
    );
  } else if (!isEqual(target, resource)) {
    check.note(
      `the metadata at ${url} is for ${resource}, and some clients accept only the exact URL of the server`,
      `set resource to ${target}`,
    );
  }
  if (!/^application\/json\b/i.test(headers.get("content-type") ?? "")) {
    check.note(`the metadata at ${url} has a content type other than application/json`, "send application/json");
  }
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    check.problem(
      `scopes_supported of the metadata at ${url} is not an array of strings`,
      "list the scopes, or remove scopes_supported",
    );
  } else if (Array.isArray(scopes) && scopes.includes("offline_access")) {
    check.note(
      "scopes_supported has offline_access",
      "omit offline_access, because clients decide whether to request refresh tokens",
    );
  }
  if (methods !== undefined && !(Array.isArray(methods) && methods.join() === "header")) {
    check.problem(
      `bearer_methods_supported of the metadata at ${url} is ${JSON.stringify(methods)}`,
      'set bearer_methods_supported to ["header"], because MCP clients send tokens only in a header',
    );
  }
  const all: readonly unknown[] = Array.isArray(servers) ? servers : [];
  const issuers = all.filter((issuer) => typeof issuer === "string").filter((issuer) => isSecure(issuer, endpoint.url));
  if (!issuers.length) {
    check.problem(
      `the metadata at ${url} contains no usable authorization server`,
      "list the https URL of at least one authorization server in authorization_servers",
    );
  } else {
    for (const issuer of all) {
      if (typeof issuer === "string" && issuers.includes(issuer)) continue;
      check.problem(
        `the metadata at ${url} names an authorization server without an https URL: ${JSON.stringify(issuer)}`,
        "list https URLs in authorization_servers",
      );
    }
    check.ok(`the metadata at ${url} names ${issuers.join(", ")}`);
  }
  return issuers;
}

/** Checks CORS, because clients in browsers read the metadata from any origin and before they have a token. */
async function checkMetadataCors(
  endpoint: Endpoint,
  { url }: Metadata,
  { check, origin }: { readonly check: Check; readonly origin: string },
): Promise<void> {
  const { status, headers } = await readUrl(endpoint, url, { origin });
  const allow = headers.get("access-control-allow-origin");
  if (status === 200 && (allow === "*" || allow === origin)) return check.ok("web pages can read the metadata");
  check.note(
    `web pages of ${origin} cannot read the metadata at ${url}: GET gets ${status} and ${
      allow === null ? "no Access-Control-Allow-Origin" : `Access-Control-Allow-Origin: ${allow}`
    }`,
    "send Access-Control-Allow-Origin: * with the metadata, because the metadata is public",
  );
}

async function checkAuthorizationServer(endpoint: Endpoint, issuer: string, check: Check): Promise<void> {
  const refusal = await findRefusal(issuer, endpoint);
  if (refusal !== undefined) {
    return check.problem(
      `the authorization server ${issuer} cannot be examined: ${refusal}`,
      "list a host that clients can reach in authorization_servers, or run doctor in the server's own network",
    );
  }
  const found = await findFirst(endpoint, listMetadataUrls(new URL(issuer)));
  if (!found) {
    return check.problem(
      `${issuer} has no metadata at a well-known URL`,
      "serve /.well-known/oauth-authorization-server or /.well-known/openid-configuration on this host",
    );
  }
  const { url, value } = found;
  if (value.issuer !== issuer) {
    check.problem(
      `the issuer in the metadata at ${url} is ${JSON.stringify(value.issuer)}`,
      `set issuer to exactly ${issuer}`,
    );
  }
  const required = ["authorization_endpoint", "token_endpoint"];
  const missing = required.filter((name) => typeof value[name] !== "string");
  if (missing.length) {
    check.problem(`the metadata at ${url} has no ${missing.join(" and no ")}`, `add ${missing.join(" and ")}`);
  }
  const unsafe = [...required, "registration_endpoint", "jwks_uri"].filter((name) => {
    const url = value[name];
    return typeof url === "string" && !isSecure(url, endpoint.url);
  });
  if (unsafe.length) {
    check.problem(`${unsafe.join(" and ")} of the metadata at ${url} is not an https URL`, "use https URLs");
  }
  const methods = value.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    check.problem(
      `the metadata at ${url} does not declare PKCE with S256, so clients must refuse to sign in`,
      `set code_challenge_methods_supported: ["S256"]`,
    );
  }
  if (!value.client_id_metadata_document_supported && typeof value.registration_endpoint !== "string") {
    check.note(
      "the authorization server offers clients no way to register",
      "support client ID metadata documents or a registration_endpoint, or register each client by hand",
    );
  }
  if (!missing.length) check.ok(`the authorization server has metadata at ${url}`);
  if (new URL(issuer).origin === new URL(endpoint.url).origin) await checkEndpoints(endpoint, value, check);
}

/**
 * Checks that the endpoints of an authorization server on the host of the MCP server can be reached, because a proxy may
 * forward only the path of the MCP server. The requests have no parameters, so they begin nothing.
 */
async function checkEndpoints(endpoint: Endpoint, metadata: Params, check: Check): Promise<void> {
  const headers = { "content-type": "application/x-www-form-urlencoded", accept: "application/json" };
  const requests = {
    authorization_endpoint: { method: "GET", headers: { accept: "text/html" } },
    token_endpoint: { method: "POST", headers, body: "" },
  };
  for (const [name, request] of Object.entries(requests)) {
    const url = metadata[name];
    if (typeof url !== "string" || URL.parse(url)?.origin !== new URL(endpoint.url).origin) continue;
    const { status, headers } = await exchange({ ...endpoint, url }, request);
    const isJson = /^application\/json\b/i.test(headers.get("content-type") ?? "");
    const isOdd = name === "token_endpoint" && !isJson;
    if (![403, 404].includes(status) && status < 500 && !isOdd) continue;
    check.problem(
      `the ${name} ${url} responds with ${status}${isOdd ? " and without JSON" : ""}`,
      status === 403
        ? "send the Host header that the server expects, or allow the host (in @x/mcp: hosts)"
        : "forward all paths of the host to the server, not only the path of its MCP endpoint",
    );
  }
}

async function findFirst(endpoint: Endpoint, urls: readonly string[]): Promise<Metadata | undefined> {
  for (const url of urls) {
    const { metadata } = await readJson(endpoint, url);
    if (metadata) return metadata;
  }
}

/** Reads a JSON object from a URL. `state` describes the response if it contains no JSON object. */
async function readJson(
  endpoint: Endpoint,
  url: string,
): Promise<{ readonly metadata?: Metadata; readonly state: string }> {
  const refusal = await findRefusal(url, endpoint);
  if (refusal !== undefined) return { state: refusal };
  try {
    const { status, text, headers } = await readUrl(endpoint, url);
    const state = String(status);
    if (status !== 200) return { state };
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { metadata: { url, value, headers }, state } : { state: "no object" };
  } catch (error) {
    if (error instanceof SyntaxError) return { state: "no JSON" };
    if (!(error instanceof NoResponse)) throw error;
    return { state: "no response" };
  }
}

async function readUrl(
  endpoint: Endpoint,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ServerResponse> {
  return await exchange({ ...endpoint, url }, { method: "GET", headers: { accept: "application/json", ...headers } });
}

function isWithin(url: string, resource: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname, hash } = new URL(resource);
  const target = new URL(url);
  const start = pathname.replace(/\/$/, "");
  return !hash && target.origin === origin &&
    (target.pathname === start || target.pathname.startsWith(`${start}/`));
}

/** Whether two URLs are equal except for a trailing slash, which clients also ignore. */
function isEqual(url: string, resource: string): boolean {
  const [target, named] = [url, resource].map((text) => new URL(text));
  return target.pathname.replace(/\/$/, "") === named.pathname.replace(/\/$/, "");
}
