/**
 * Checks the sign-in of a server file whose users sign in at a provider: its options, and whether the provider accepts the
 * server's client.
 */
import { isLoopback } from "../../core/kit/loopback_host.ts";
import type { UsedSignIn } from "../../host.ts";
import { type Endpoint, exchange, NoResponse } from "./exchange.ts";
import { type Check, createReport, type Finding, type Report, toReason } from "./report.ts";

/** Maximum time in milliseconds for each request. */
const TIMEOUT_MS = 10_000;

/** Error codes of providers that do not accept the id or the secret of a client. The second code is GitHub's. */
const WRONG_CLIENT = ["invalid_client", "incorrect_client_credentials", "unauthorized_client"];

export interface SignInOptions {
  readonly signal?: AbortSignal;
  /** Sends a request to the public address of the server. Defaults to the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** Examines a sign-in. Sends one token request with an unknown code to the provider. */
export async function examineSignIn(
  used: UsedSignIn,
  { signal, fetch = (request) => globalThis.fetch(request) }: SignInOptions = {},
): Promise<readonly Finding[]> {
  const report = createReport(signal);
  const isLocal = isLoopback(new URL(used.resource).hostname);
  checkResource(used, isLocal, report.at("resource"));
  report.at("callback").ok(`register ${used.callback} as the callback URL (redirect URI) at ${used.provider}`);
  checkSecret(used, isLocal, report.at("secret"));
  checkStore(used, report.at("store"));
  checkUsers(used, report);
  if (used.unready) {
    report.at("client").problem(used.unready.message, "set the environment variables that the file reads");
  } else await checkProvider(used, report, signal);
  const lookUp = () => Promise.resolve([]);
  const endpoint = { url: used.callback, headers: {}, timeoutMs: TIMEOUT_MS, fetch, lookUp, signal };
  if (!isLocal) await report.run("address", (check) => checkAddress(used, endpoint, check));
  return report.findings;
}

function checkResource({ resource }: UsedSignIn, isLocal: boolean, check: Check): void {
  if (!isLocal) return check.ok(`the public URL of the server is ${resource}`);
  check.note(
    `the URL of the server is ${resource}, so only programs on this machine can sign in`,
    "set resource to the public https URL before you deploy the server",
  );
}

function checkSecret({ hasSecret }: UsedSignIn, isLocal: boolean, check: Check): void {
  if (hasSecret) return check.ok("the server has a secret");
  const fix = "set secret of createServer, such as to the output of openssl rand -hex 32";
  if (!isLocal) return check.problem("the server has no secret, so it does not start", fix);
  check.note("the server has no secret, so that after a restart clients must register and users sign in again", fix);
}

function checkStore({ isShared }: UsedSignIn, check: Check): void {
  if (isShared) return check.ok("the sign-ins are in a store, which doctor --store examines");
  check.note(
    "the sign-ins are in the memory of the process, so that they end with it, and other instances do not know them",
    "set store of createServer, such as sqliteStore, redisStore or postgresStore",
  );
}

function checkUsers({ isOpen, provider, redirects }: UsedSignIn, { at }: Report): void {
  if (isOpen) {
    at("who").note(
      `everybody who has an account at ${provider} can sign in`,
      "check the user in who, unless you want this",
    );
  } else at("who").ok("the function who decides which users can sign in");
  if (redirects) return at("redirects").ok(`the server accepts ${redirects} redirect URIs of hosted clients`);
  at("redirects").note(
    "redirects is empty, so that only local clients and clients with a metadata document can sign in",
    "add the redirect URIs of hosted clients, or remove redirects to accept those of common clients",
  );
}

async function checkProvider(used: UsedSignIn, report: Report, signal?: AbortSignal): Promise<void> {
  const { provider, callback } = used;
  const hosts = await attempt(used.findHosts, signal);
  if (hosts instanceof Error) {
    return report.at("provider").problem(toReason(hosts), "check the issuer, and whether this machine can reach it");
  }
  report.at("provider").ok(`users sign in at ${hosts.join(" and ")}`);
  const check = report.at("client");
  const code = await attempt(used.requestToken, signal);
  if (code instanceof Error) {
    return check.problem(
      `${provider} does not respond to a token request: ${toReason(code)}`,
      "check whether this machine can reach the provider",
    );
  }
  if (code === undefined) {
    return check.note(
      `${provider} refuses a token request without an error code`,
      "sign in to find out whether the provider accepts the client",
    );
  }
  if (WRONG_CLIENT.includes(code)) {
    return check.problem(
      `${provider} does not accept the client (${code})`,
      "check clientId and clientSecret; the secret may have expired, or belong to another client",
    );
  }
  if (code === "redirect_uri_mismatch") {
    return check.problem(
      `the callback URL is not registered at ${provider} (${code})`,
      `register ${callback} as the callback URL (redirect URI) of the client`,
    );
  }
  check.ok(`${provider} knows the client, and refuses an unknown code (${code})`);
}

/** Checks that the public address leads to the server, because a proxy may forward only the path of the MCP endpoint. */
async function checkAddress({ resource, callback }: UsedSignIn, endpoint: Endpoint, check: Check): Promise<void> {
  try {
    const { status } = await exchange(endpoint, { method: "GET", headers: {} });
    if (status === 400) return check.ok(`${callback} leads to the server; doctor ${resource} examines it`);
    check.problem(
      `${callback} responds with ${status}`,
      "forward all paths of this host to the server, not only the path of its MCP endpoint",
    );
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error;
    check.note(`nothing responds at ${callback}: ${error.message}`, `start the server, and run doctor ${resource}`);
  }
}

async function attempt<T>(run: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T | Error> {
  const late = AbortSignal.timeout(TIMEOUT_MS);
  try {
    return await run(signal ? AbortSignal.any([signal, late]) : late);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
