/**
 * Checks how a server that requires a token rejects requests, and which metadata the rejection names.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { checkResourceMetadata, type MetadataOptions } from "./authorization_metadata.ts";
import { readChallenge } from "../../core/kit/bearer_challenge.ts";
import { type Endpoint, exchange, modernWriter, open, type RequestWriter, type ServerResponse } from "./exchange.ts";
import { describeResponse, readResult } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";

/** A token that no authorization server has issued. */
const UNKNOWN_TOKEN = "mcp-doctor-unknown-token";

export interface AuthorizationOptions extends MetadataOptions {
  readonly report: Report;
}

/** Checks a server that responded to the first request with 401. */
export async function checkChallenge(
  endpoint: Endpoint,
  response: ServerResponse,
  options: AuthorizationOptions,
): Promise<void> {
  const check = options.report.at("token");
  if (!hasToken(endpoint)) {
    check.note(
      "the server requires a token (401)",
      "sign in with mcp login, or pass a token with --header 'authorization=Bearer ...', to run all checks",
    );
    return await checkRefusals(endpoint, response, { ...options, writer: modernWriter() });
  }
  check.problem(
    `the server rejects the token with ${describeResponse(response)}${mapError(response)}`,
    "get a new token that is issued for this server (audience) and has not expired",
  );
  await checkWithoutToken(endpoint, modernWriter(), options);
}

/** Checks how the server rejects requests without the user's token. */
export async function checkMissingToken(
  endpoint: Endpoint,
  writer: RequestWriter,
  options: AuthorizationOptions,
): Promise<void> {
  if (!hasToken(endpoint) || !await checkWithoutToken(endpoint, writer, options)) return;
  await options.report.run("query token", (check) => checkSecondToken(endpoint, writer, check));
}

/** Checks how the server rejects requests without a token. Returns whether the server rejects them with 401. */
async function checkWithoutToken(
  endpoint: Endpoint,
  writer: RequestWriter,
  options: AuthorizationOptions,
): Promise<boolean> {
  const { report } = options;
  const anonymous = withoutToken(endpoint);
  const response = await report.run("token", async (check) => {
    const response = await exchange(anonymous, writer.write(writer.pingMethod));
    if (readResult(response)) {
      check.note(
        "the server also accepts requests without a token",
        "reject such requests with 401 if the server requires a token",
      );
    } else if (response.status === 401) check.ok("a request without a token is rejected with 401");
    else {check.problem(
        `a request without a token gets ${describeResponse(response)}`,
        "respond with 401 and a WWW-Authenticate header",
      );}
    return response;
  });
  if (response?.status !== 401) return false;
  await checkRefusals(anonymous, response, { ...options, writer });
  return true;
}

/** Checks how the server rejects a list request if the user's token lacks the required scopes. */
export async function checkScopeChallenge(endpoint: Endpoint, writer: RequestWriter, report: Report): Promise<void> {
  if (!hasToken(endpoint)) return;
  await report.run("scopes", async (check) => {
    const response = await exchange(endpoint, writer.write("tools/list", {}));
    if (response.status === 403) checkForbidden(response, check);
  });
}

/** Checks a 403 response to a request with a token. */
export function checkForbidden({ headers }: ServerResponse, check: Check): void {
  const wanted = 'Bearer error="insufficient_scope", scope="..."';
  const { scheme, params } = readChallenge(headers.get("www-authenticate")) ?? {};
  if (scheme !== "bearer" || params?.get("error") !== "insufficient_scope") {
    return check.note(
      "a request with too few scopes gets 403 without the error insufficient_scope, so clients cannot request more " +
        "scopes",
      `send WWW-Authenticate: ${wanted}`,
    );
  }
  const scope = params.get("scope");
  if (!scope) return check.note("the 403 response does not name the missing scopes", `send ${wanted}`);
  check.ok(`a request with too few scopes gets 403, and the challenge names the scopes ${scope}`);
  if (!params.has("resource_metadata")) {
    check.note(
      "the challenge of the 403 response has no resource_metadata",
      "send resource_metadata as in the 401 response",
    );
  }
}

interface RefusalOptions extends AuthorizationOptions {
  readonly writer: RequestWriter;
}

/** Checks requests without a token, with an invalid token, and with a token in the query string. */
async function checkRefusals(
  endpoint: Endpoint,
  missing: ServerResponse,
  { report, writer, ...options }: RefusalOptions,
): Promise<void> {
  const named = checkChallengeHeader(missing, report.at("challenge"));
  await report.run("invalid token", (check) => checkInvalidToken(endpoint, writer, check));
  await report.run("query token", (check) => checkQueryToken(endpoint, missing, { writer, check }));
  await report.run("stream token", (check) => checkStreamToken(endpoint, writer, check));
  await checkResourceMetadata(endpoint, named, { report, ...options });
}

/** Checks the challenge for a request without a token. Returns the URL of the metadata in the challenge. */
function checkChallengeHeader({ headers }: ServerResponse, check: Check): string | undefined {
  const wanted = 'WWW-Authenticate: Bearer resource_metadata="https://..."';
  const header = headers.get("www-authenticate");
  const challenge = readChallenge(header);
  if (challenge === undefined) {
    return void check.problem("the 401 response has no WWW-Authenticate header", `send ${wanted}`);
  }
  const { scheme, params } = challenge;
  if (scheme !== "bearer") {
    return void check.note(`the scheme of the WWW-Authenticate header is not Bearer: ${header}`, `send ${wanted}`);
  }
  if (params.has("error")) {
    check.note(
      `the challenge for a request without a token has the error ${params.get("error")}`,
      "send an error only if the request contains a token",
    );
  }
  if (params.get("scope")?.split(" ").includes("offline_access")) {
    check.note(
      "the challenge contains the scope offline_access",
      "omit offline_access, because clients decide whether to request refresh tokens",
    );
  }
  const named = params.get("resource_metadata");
  if (named === undefined) {
    return void check.note("the WWW-Authenticate header has no resource_metadata", `send ${wanted}`);
  }
  if (!URL.canParse(named)) {
    return void check.problem(`resource_metadata is not a URL: ${named}`, `send ${wanted}`);
  }
  check.ok("the 401 response names the metadata URL in WWW-Authenticate");
  return named;
}

async function checkInvalidToken(endpoint: Endpoint, writer: RequestWriter, check: Check): Promise<void> {
  const headers = { ...endpoint.headers, authorization: `Bearer ${UNKNOWN_TOKEN}` };
  const response = await exchange({ ...endpoint, headers }, writer.write(writer.pingMethod));
  if (readResult(response)) {
    return check.problem(
      "the server accepts a token that no authorization server has issued",
      "verify the token in every request",
    );
  }
  if (response.status !== 401) {
    return check.problem(
      `an invalid token gets ${describeResponse(response)}`,
      "respond with 401, so that clients get a new token",
    );
  }
  const error = readChallenge(response.headers.get("www-authenticate"))?.params.get("error");
  if (error === "invalid_token") return check.ok("an invalid token is rejected with 401 and the error invalid_token");
  check.note(
    `the challenge for an invalid token has ${error === undefined ? "no error" : `the error ${error}`}`,
    'send WWW-Authenticate: Bearer error="invalid_token", ...',
  );
}

/**
 * Checks that the server does not read tokens from the query string. The check never sends the user's token in a query
 * string, because logs contain query strings. Instead, the check sends an unknown token. The server's error shows
 * whether the server has read this token.
 */
async function checkQueryToken(
  endpoint: Endpoint,
  missing: ServerResponse,
  { writer, check }: { readonly writer: RequestWriter; readonly check: Check },
): Promise<void> {
  const response = await exchange(withQueryToken(endpoint), writer.write(writer.pingMethod));
  if (readResult(response)) return reportQueryToken("is accepted", check);
  const [before, after] = [missing, response].map(readError);
  if (after === "invalid_token" && before !== after) return reportQueryToken("is read, and rejected as invalid", check);
  check.ok(`a token in the query string is not read: the response is ${response.status}`);
}

/** Checks that a token in the query string does not take precedence over the token in the header. */
async function checkSecondToken(endpoint: Endpoint, writer: RequestWriter, check: Check): Promise<void> {
  const response = await exchange(withQueryToken(endpoint), writer.write(writer.pingMethod));
  if (response.status === 401) reportQueryToken("takes precedence over the header", check);
}

function reportQueryToken(state: string, check: Check): void {
  check.problem(
    `a token in the query string ${state}, and logs and browsers keep query strings`,
    "read the token from the Authorization header only",
  );
}

async function checkStreamToken(endpoint: Endpoint, writer: RequestWriter, check: Check): Promise<void> {
  const headers = { ...writer.write(writer.pingMethod).headers, accept: "text/event-stream" };
  const opened = await open(endpoint, { method: "GET", headers });
  opened.close();
  const { status } = opened.response;
  if (status >= 200 && status < 300) {
    return check.problem(
      `GET without a token is accepted (${status})`,
      "require a token for every request: POST, GET and DELETE",
    );
  }
  check.ok(`GET without a token is rejected with ${status}`);
}

function withQueryToken(endpoint: Endpoint): Endpoint {
  const url = new URL(endpoint.url);
  url.searchParams.set("access_token", UNKNOWN_TOKEN);
  return { ...endpoint, url: url.href };
}

function hasToken({ headers }: Endpoint): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

function withoutToken(endpoint: Endpoint): Endpoint {
  const headers = Object.entries(endpoint.headers).filter(([name]) => name.toLowerCase() !== "authorization");
  return { ...endpoint, headers: Object.fromEntries(headers) };
}

function readError({ headers }: ServerResponse): string | undefined {
  return readChallenge(headers.get("www-authenticate"))?.params.get("error");
}

/** Returns the server's reason for a rejection. Returns an empty string if the server does not state a reason. */
function mapError({ headers }: ServerResponse): string {
  const reason = readChallenge(headers.get("www-authenticate"))?.params.get("error_description");
  return reason === undefined ? "" : ` (${reason})`;
}
