/**
 * Checks what a server that requires a token tells clients without one.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 * @module
 */
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { isLoopbackHost } from "../../transports/http/access.ts";
import type { RequestWriter } from "./request_writer.ts";
import { type Endpoint, exchange, NoResponse, type ServerResponse } from "./exchange.ts";
import { describeResponse, readResult } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";

/** Checks a 401 response, and the metadata that leads clients to a token. */
export async function checkChallenge(endpoint: Endpoint, response: ServerResponse, report: Report): Promise<void> {
  const check = report.at("token");
  if (Object.keys(endpoint.headers).some((name) => name.toLowerCase() === "authorization")) {
    check.problem(
      `the server rejects the token with ${describeResponse(response)}`,
      "get a new token, which must be issued for this server (audience) and not be expired",
    );
  } else {check.note(
      "the server requires a token (401)",
      "pass one with --header 'authorization=Bearer ...' to run all checks",
    );}
  await checkMetadata(endpoint, response, report);
}

/** Checks how the server rejects requests without a token, if the user has given one. */
export async function checkMissingToken(endpoint: Endpoint, writer: RequestWriter, report: Report): Promise<void> {
  const { authorization: _, ...headers } = endpoint.headers;
  if (!("authorization" in endpoint.headers)) return;
  const response = await report.run("token", async (check) => {
    const response = await exchange({ ...endpoint, headers }, writer.write(writer.pingMethod));
    if (readResult(response)) {
      check.note(
        "the server accepts requests without the token too",
        "reject them with 401 if the server requires a token",
      );
    } else if (response.status === 401) check.ok("a request without a token is rejected with 401");
    else {check.problem(
        `a request without a token gets ${describeResponse(response)}`,
        "respond with 401 and WWW-Authenticate",
      );}
    return response;
  });
  if (response?.status === 401) await checkMetadata({ ...endpoint, headers }, response, report);
}

async function checkMetadata(endpoint: Endpoint, { headers }: ServerResponse, report: Report): Promise<void> {
  const challenge = headers.get("www-authenticate");
  const named = /resource_metadata="?([^",\s]+)/i.exec(challenge ?? "")?.[1];
  checkChallengeHeader(challenge, named, report.at("challenge"));
  const server = await report.run("metadata", (check) => checkResourceMetadata(endpoint, named, check));
  if (server !== undefined) {
    await report.run("authorization server", (check) => checkAuthorizationServer(endpoint, server, check));
  }
}

function checkChallengeHeader(challenge: string | null, named: string | undefined, check: Check): void {
  const wanted = 'WWW-Authenticate: Bearer resource_metadata="https://..."';
  if (challenge === null) check.problem("the 401 response has no WWW-Authenticate header", `send ${wanted}`);
  else if (!/^bearer\b/i.test(challenge)) {
    check.note(`the scheme of the WWW-Authenticate header is not Bearer: ${challenge}`, `send ${wanted}`);
  } else if (named === undefined) check.note("the WWW-Authenticate header has no resource_metadata", `send ${wanted}`);
  else check.ok("the 401 response names the metadata URL in WWW-Authenticate");
}

/** Checks the metadata of the protected resource. Returns the issuer that it names. */
async function checkResourceMetadata(
  endpoint: Endpoint,
  named: string | undefined,
  check: Check,
): Promise<string | undefined> {
  const { origin, pathname } = new URL(endpoint.url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const urls = named === undefined ? [...pathname === "/" ? [] : [wellKnown + pathname], wellKnown] : [named];
  const found = await findJson(endpoint, urls);
  if (!found) {
    return void check.problem(
      `there is no protected resource metadata at ${urls.join(" or ")}`,
      "serve a JSON object with resource and authorization_servers there, without requiring a token",
    );
  }
  const { url, value: { resource, authorization_servers: servers } } = found;
  if (typeof resource !== "string" || !isWithin(endpoint.url, resource)) {
    check.problem(
      `the metadata at ${url} is for ${JSON.stringify(resource) ?? "no resource"}, not for this server`,
      `set resource to ${endpoint.url}`,
    );
  }
  const issuer: unknown = Array.isArray(servers) ? servers[0] : undefined;
  if (typeof issuer !== "string" || !isSafe(issuer)) {
    return void check.problem(
      `the metadata at ${url} names no usable authorization server`,
      "list the https URL of at least one in authorization_servers",
    );
  }
  check.ok(`the metadata at ${url} names ${issuer}`);
  return issuer;
}

async function checkAuthorizationServer(endpoint: Endpoint, issuer: string, check: Check): Promise<void> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const found = await findJson(endpoint, [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...path ? [`${origin}${path}/.well-known/openid-configuration`] : [],
  ]);
  if (!found) {
    return check.problem(
      `${issuer} has no metadata at a well-known URL`,
      "serve /.well-known/oauth-authorization-server or /.well-known/openid-configuration there",
    );
  }
  const { url, value } = found;
  if (value.issuer !== issuer) {
    check.problem(
      `the issuer in the metadata at ${url} is ${JSON.stringify(value.issuer)}`,
      `set issuer to exactly ${issuer}`,
    );
  }
  const missing = ["authorization_endpoint", "token_endpoint"].filter((name) => typeof value[name] !== "string");
  if (missing.length) {
    check.problem(`the metadata at ${url} has no ${missing.join(" and no ")}`, `add ${missing.join(" and ")}`);
  }
  const methods = value.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    check.problem(
      `the metadata at ${url} does not announce PKCE, so clients must not continue`,
      `set code_challenge_methods_supported: ["S256"]`,
    );
  }
  if (!value.client_id_metadata_document_supported && typeof value.registration_endpoint !== "string") {
    check.note(
      "unknown clients cannot register",
      "support client ID metadata documents or a registration_endpoint, or register each client by hand",
    );
  }
  if (!missing.length) check.ok(`the authorization server has metadata at ${url}`);
}

/** The first JSON object at one of several URLs. The headers of the user are not sent, because they may hold a token. */
async function findJson(
  endpoint: Endpoint,
  urls: readonly string[],
): Promise<{ readonly url: string; readonly value: Params } | undefined> {
  for (const url of urls.filter(isSafe)) {
    try {
      const { status, text } = await exchange({ ...endpoint, url, headers: {} }, {
        method: "GET",
        headers: { accept: "application/json" },
      });
      const value: unknown = JSON.parse(text);
      if (status === 200 && isObject(value)) return { url, value };
    } catch (error) {
      if (!(error instanceof NoResponse) && !(error instanceof SyntaxError)) throw error;
    }
  }
}

function isSafe(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, host } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isLoopbackHost(host));
}

function isWithin(url: string, resource: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  const target = new URL(url);
  const start = pathname.replace(/\/$/, "");
  return target.origin === origin && (target.pathname === start || target.pathname.startsWith(`${start}/`));
}
