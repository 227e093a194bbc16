/**
 * Examines a server by sending the requests that clients send. The examination calls no tools. On the server, it only
 * creates and deletes sessions of its own.
 */
import {
  type AuthorizationOptions,
  checkChallenge,
  checkForbidden,
  checkMissingToken,
  checkScopeChallenge,
} from "./authorization_checks.ts";
import { checkUrl, type Directory } from "../directories.ts";
import { checkConnection, suggestEndpoint } from "./connection_check.ts";
import type { Endpoint, RequestWriter } from "./exchange.ts";
import { checkLatency, checkLists } from "./list_checks.ts";
import type { LookUp } from "./named_url.ts";
import { createReport, type Finding, type Report } from "./report.ts";
import { checkInvalidRequests, checkRevisionRequests } from "./request_checks.ts";
import { LEGACY, MODERN } from "../protocol.ts";
import { checkHandshakes, endSession, identifyEndpoint, initialize, readDiscovery } from "./revision_checks.ts";
import { checkSession, checkSessionEnd } from "./session_checks.ts";
import { checkStream } from "./stream_checks.ts";
import { checkWebPages, type SendAs } from "./web_page_checks.ts";

export interface ExamineOptions {
  readonly url: string;
  /** Headers of every request, with lowercase names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The timeout of each request, in milliseconds. Defaults to 5000. */
  readonly timeoutMs?: number;
  /** Milliseconds to wait for a heartbeat on an idle stream. By default, the examination does not wait. */
  readonly heartbeatMs?: number;
  /** The origin of a web page to which the server should allow access. */
  readonly origin?: string;
  /** Stops the examination. `examine` then returns the findings up to this point. */
  readonly signal?: AbortSignal;
  /** The directories whose rules are checked too. Defaults to none. */
  readonly directories?: readonly Directory[];
  readonly fetch?: (request: Request) => Promise<Response>;
  readonly sendAs?: SendAs;
  /**
   * Looks up the hosts in URLs that the server sends. Without this function, `examine` requests only URLs with an IP
   * address and URLs on the server's own host.
   */
  readonly lookUp?: LookUp;
}

/** Examines a server. Returns the findings in the order of the checks. */
export async function examine(options: ExamineOptions): Promise<readonly Finding[]> {
  const { url, headers = {}, timeoutMs = 5000, signal } = options;
  const fetch = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  const report = createReport(signal);
  const { lookUp = () => Promise.reject(new Error("Cannot look up names")) } = options;
  const endpoint = { url, headers, timeoutMs, fetch, lookUp };
  const sessions = new Set<RequestWriter>();
  try {
    await runChecks({ ...endpoint, signal }, report, { ...options, sessions });
  } finally {
    for (const session of sessions) await endSession(endpoint, session).catch(() => {});
  }
  return report.findings;
}

interface RunOptions extends ExamineOptions {
  readonly sessions: Set<RequestWriter>;
}

async function runChecks(
  endpoint: Endpoint,
  report: Report,
  { heartbeatMs, origin, sendAs, sessions, directories = [] }: RunOptions,
): Promise<void> {
  for (const finding of checkUrl(endpoint.url, directories)) {
    report.at("directory").problem(`${finding.state} [${finding.rule}]`, finding.fix ?? "");
  }
  const first = await report.run("connection", (check) => checkConnection(endpoint, check));
  if (!first) return;
  const authorization = { report, origin, directories };
  if (first.status === 401) return await checkChallenge(endpoint, first, authorization);
  if (first.status === 403 && first.headers.has("www-authenticate")) return checkForbidden(first, report.at("scopes"));
  const modern = readDiscovery(first, report.at(MODERN));
  const legacy = await report.run("handshake", (check) => checkHandshakes(endpoint, { check, sessions }));
  const writer = modern ?? legacy;
  if (!writer) return await examineOther(endpoint, authorization);
  noteMissingRevisions(report, { modern: modern !== undefined, legacy: legacy !== undefined });
  if (legacy) await checkSession(endpoint, legacy, report);
  await checkMissingToken(endpoint, writer, authorization);
  await checkScopeChallenge(endpoint, writer, report);
  await checkInvalidRequests(endpoint, writer, report);
  const writers = [modern, legacy].filter((each) => each !== undefined);
  for (const each of writers) await checkRevisionRequests(endpoint, each, report);
  // Run the checks in parallel, so that the examination waits for heartbeats only once.
  await Promise.all(writers.map((each) => checkStream(endpoint, each, { report, heartbeatMs })));
  // Prefer the session, because requests in a session need more CORS headers.
  await checkWebPages(endpoint, legacy ?? writer, { report, origin, sendAs });
  await checkLatency(endpoint, writer, report);
  if (legacy && await checkSessionEnd(endpoint, legacy, report)) sessions.delete(legacy);
  await checkLists(endpoint, report, directories);
}

/** Identifies a server that supports no known revision at this URL. */
async function examineOther(endpoint: Endpoint, authorization: AuthorizationOptions): Promise<void> {
  const { report } = authorization;
  const found = await report.run("HTTP+SSE", () => identifyEndpoint(endpoint));
  if (found?.isHttpSse) {
    report.at("HTTP+SSE").note(
      "the server supports only the HTTP+SSE transport of 2024-11-05, which newer clients no longer support",
      "serve the Streamable HTTP transport, with one endpoint for all requests",
    );
    return await checkLists(endpoint, report, authorization.directories);
  }
  const unauthorized = await report.run("path", async (check) => {
    const response = await initialize(endpoint, LEGACY[0]);
    if (response.status === 401) return response;
    const { error } = response.message ?? {};
    if (!error || [404, 405].includes(response.status)) return void await suggestEndpoint(endpoint, response, check);
    check.problem(
      `the server rejects initialize with error ${error.code}, ${JSON.stringify(error.message)} (${response.status})`,
      "accept server/discover or initialize from new clients; the server's log may show the reason",
    );
  });
  if (unauthorized) await checkChallenge(endpoint, unauthorized, authorization);
}

function noteMissingRevisions({ at }: Report, has: { readonly modern: boolean; readonly legacy: boolean }): void {
  if (!has.modern) {
    at(MODERN).note(
      `the server does not support ${MODERN}; clients of this revision fall back to a handshake`,
      `support ${MODERN} in addition to ${LEGACY[0]}`,
    );
  }
  if (!has.legacy) {
    at("handshake").note(
      `the server supports no handshake; clients of ${LEGACY[0]} and earlier, which are most clients, cannot connect`,
      "support the earlier revisions too (in @x/mcp, list them in the revisions option, or omit the option)",
    );
  }
}
