/**
 * What a server that wants a token tells those who have none.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 * @module
 */
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { isLoopbackHost } from "../../transports/http/access.ts";
import type { Dialect } from "./dialect.ts";
import { type Answer, exchange, Lost, type Place } from "./exchange.ts";
import { readResult, tellAnswer } from "./revisions.ts";
import type { Report, Tell } from "./report.ts";

/** Follows a refusal as a client does that wants to get a token. */
export async function examineRefusal(place: Place, answer: Answer, report: Report): Promise<void> {
  const tell = report.at("token");
  if (Object.keys(place.headers).some((name) => name.toLowerCase() === "authorization")) {
    tell.problem(
      `the token is not taken: it answers ${tellAnswer(answer)}`,
      "get a new one; it must be meant for this server (audience) and not have expired",
    );
  } else tell.note("it wants a token (401)", "give one with --header 'authorization=Bearer ...' to look at the rest");
  await examineMetadata(place, answer, report);
}

/** Looks whether one who has no token is refused as clients need it, where the user has given one. */
export async function examineToken(place: Place, dialect: Dialect, report: Report): Promise<void> {
  const { authorization: _, ...headers } = place.headers;
  if (!("authorization" in place.headers)) return;
  const answer = await report.look("token", async (tell) => {
    const answer = await exchange({ ...place, headers }, dialect.write(dialect.idle));
    if (readResult(answer)) {
      tell.note("it answers without the token as well", "refuse who has none with 401, if it is meant to");
    } else if (answer.status === 401) tell.ok("who has no token is refused with 401");
    else tell.problem(`who has no token gets ${tellAnswer(answer)}`, "answer 401 with WWW-Authenticate");
    return answer;
  });
  if (answer?.status === 401) await examineMetadata({ ...place, headers }, answer, report);
}

async function examineMetadata(place: Place, { headers }: Answer, report: Report): Promise<void> {
  const challenge = headers.get("www-authenticate");
  const named = /resource_metadata="?([^",\s]+)/i.exec(challenge ?? "")?.[1];
  tellChallenge(challenge, named, report.at("challenge"));
  const server = await report.look("metadata", (tell) => findIssuer(place, named, tell));
  if (server !== undefined) await report.look("authorization server", (tell) => examineIssuer(place, server, tell));
}

function tellChallenge(challenge: string | null, named: string | undefined, tell: Tell): void {
  const wanted = 'WWW-Authenticate: Bearer resource_metadata="https://..."';
  if (challenge === null) tell.problem("the 401 has no WWW-Authenticate header", `send ${wanted}`);
  else if (!/^bearer\b/i.test(challenge)) {
    tell.note(`the WWW-Authenticate header is not for Bearer: ${challenge}`, `send ${wanted}`);
  } else if (named === undefined) tell.note("the WWW-Authenticate header has no resource_metadata", `send ${wanted}`);
  else tell.ok("the 401 names its metadata in WWW-Authenticate");
}

/** The issuer that the server's own metadata names. */
async function findIssuer(place: Place, named: string | undefined, tell: Tell): Promise<string | undefined> {
  const { origin, pathname } = new URL(place.url);
  const known = `${origin}/.well-known/oauth-protected-resource`;
  const places = named === undefined ? [...pathname === "/" ? [] : [known + pathname], known] : [named];
  const found = await findJson(place, places);
  if (!found) {
    return void tell.problem(
      `there is no metadata of the protected resource at ${places.join(" or ")}`,
      "serve a JSON object with resource and authorization_servers there, without asking for a token",
    );
  }
  const { url, value: { resource, authorization_servers: servers } } = found;
  if (typeof resource !== "string" || !isPartOf(place.url, resource)) {
    tell.problem(
      `the metadata at ${url} is for ${JSON.stringify(resource) ?? "no resource"}, not for this server`,
      `set resource to ${place.url}`,
    );
  }
  const issuer: unknown = Array.isArray(servers) ? servers[0] : undefined;
  if (typeof issuer !== "string" || !isSafe(issuer)) {
    return void tell.problem(
      `the metadata at ${url} names no authorization server that can be used`,
      "list the https address of at least one in authorization_servers",
    );
  }
  tell.ok(`the metadata at ${url} names ${issuer}`);
  return issuer;
}

async function examineIssuer(place: Place, issuer: string, tell: Tell): Promise<void> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const found = await findJson(place, [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...path ? [`${origin}${path}/.well-known/openid-configuration`] : [],
  ]);
  if (!found) {
    return tell.problem(
      `${issuer} has no metadata at a well-known address`,
      "serve /.well-known/oauth-authorization-server or /.well-known/openid-configuration there",
    );
  }
  const { url, value } = found;
  if (value.issuer !== issuer) {
    tell.problem(
      `the metadata at ${url} is that of ${JSON.stringify(value.issuer)}`,
      `set issuer to ${issuer}, letter by letter`,
    );
  }
  const missing = ["authorization_endpoint", "token_endpoint"].filter((name) => typeof value[name] !== "string");
  if (missing.length) tell.problem(`the metadata at ${url} has no ${missing.join(" and no ")}`, "add what is missing");
  const methods = value.code_challenge_methods_supported;
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    tell.problem(
      `the metadata at ${url} does not say that PKCE works, so clients must not go on`,
      `set code_challenge_methods_supported: ["S256"]`,
    );
  }
  if (!value.client_id_metadata_document_supported && typeof value.registration_endpoint !== "string") {
    tell.note(
      "clients that it does not know cannot register",
      "support client id metadata documents or a registration_endpoint, or give each client an id by hand",
    );
  }
  if (!missing.length) tell.ok(`the authorization server has metadata at ${url}`);
}

/** The first JSON object at one of some addresses. Tokens for the server are not for whom it names. */
async function findJson(
  place: Place,
  urls: readonly string[],
): Promise<{ readonly url: string; readonly value: Params } | undefined> {
  for (const url of urls.filter(isSafe)) {
    try {
      const { status, text } = await exchange({ ...place, url, headers: {} }, {
        method: "GET",
        headers: { accept: "application/json" },
      });
      const value: unknown = JSON.parse(text);
      if (status === 200 && isObject(value)) return { url, value };
    } catch (error) {
      if (!(error instanceof Lost) && !(error instanceof SyntaxError)) throw error;
    }
  }
}

function isSafe(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, host } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isLoopbackHost(host));
}

function isPartOf(url: string, resource: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  const own = new URL(url);
  const start = pathname.replace(/\/$/, "");
  return own.origin === origin && (own.pathname === start || own.pathname.startsWith(`${start}/`));
}
