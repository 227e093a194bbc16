/**
 * Checks from which web pages a server accepts requests.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 */
import { isLoopbackHost } from "../../host.ts";
import { type Endpoint, exchange, type RequestParts, type RequestWriter, type ServerResponse } from "./exchange.ts";
import { readResult } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";
import { request } from "node:http";

/** Sends a request with a Host header that differs from the URL. Returns the status. */
export type SendAs = (
  url: string,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly timeoutMs: number },
) => Promise<number>;

export interface WebPageOptions {
  readonly report: Report;
  /** The origin of a web page to which the server should allow access. */
  readonly origin?: string;
  readonly sendAs?: SendAs;
}

/** The default origin of the official MCP Inspector. */
const INSPECTOR = "http://localhost:6274";
/** An origin that does not exist, because `.invalid` is a reserved domain. */
const UNKNOWN_ORIGIN = "https://stranger.invalid";
const UNKNOWN_HOST = "stranger.invalid";

/** Checks which web pages can call the server, by their origin. */
export async function checkWebPages(endpoint: Endpoint, writer: RequestWriter, options: WebPageOptions): Promise<void> {
  const { report, origin = INSPECTOR, sendAs = sendByNode } = options;
  const isLocal = isLoopbackHost(new URL(endpoint.url).host);
  const request = writer.write(writer.pingMethod);
  const isRejected = await report.run("foreign origin", async (check) => {
    const response = await exchange(endpoint, withHeaders(request, { origin: UNKNOWN_ORIGIN }));
    if (!readResult(response)) {
      check.ok(`a web page with an unknown origin is rejected with ${response.status}`);
      return true;
    }
    const message = `the server responds to web pages with any origin, such as ${UNKNOWN_ORIGIN}`;
    isLocal
      ? check.problem(
        `${message}, so any web page can use this server through DNS rebinding`,
        "respond with 403 to every Origin that the server does not allow",
      )
      : check.note(
        message,
        "respond with 403 to every Origin that the server does not allow, unless all web pages may use this server",
      );
    return false;
  });
  if (isLocal && endpoint.url.startsWith("http:")) {
    await report.run("foreign host", (check) => checkForeignHost(endpoint, request, { check, sendAs }));
  }
  await report.run(
    "cors",
    (check) =>
      checkCors(endpoint, writer, { check, origin, isRequested: options.origin !== undefined, isRejected, isLocal }),
  );
}

function withHeaders({ headers, ...request }: RequestParts, more: Readonly<Record<string, string>>): RequestParts {
  return { ...request, headers: { ...headers, ...more } };
}

async function checkForeignHost(
  endpoint: Endpoint,
  { headers = {}, body = "" }: RequestParts,
  { check, sendAs }: { readonly check: Check; readonly sendAs: SendAs },
): Promise<void> {
  const { port } = new URL(endpoint.url);
  const host = port ? `${UNKNOWN_HOST}:${port}` : UNKNOWN_HOST;
  const entries = Object.entries({ ...endpoint.headers, ...headers }).flatMap(([name, value]) =>
    value === null ? [] : [[name, value]]
  );
  let status;
  try {
    status = await sendAs(endpoint.url, {
      headers: { ...Object.fromEntries(entries), host },
      body,
      timeoutMs: endpoint.timeoutMs,
    });
  } catch (error) {
    // A server may also reject a request by closing the connection.
    const state = error instanceof Error ? error.message : String(error);
    return check.ok(`a request for the host ${UNKNOWN_HOST} gets no response: ${state}`);
  }
  if (status >= 400) return check.ok(`a request for the host ${UNKNOWN_HOST} is rejected with ${status}`);
  check.problem(
    `a request for the host ${UNKNOWN_HOST} is accepted (${status}), so any web page can use this server through DNS rebinding`,
    "respond with 403 to every Host except localhost and the addresses of this machine",
  );
}

interface CorsOptions {
  readonly check: Check;
  readonly origin: string;
  /** Whether the user set the origin with `--origin`. */
  readonly isRequested: boolean;
  readonly isRejected?: boolean;
  readonly isLocal: boolean;
}

async function checkCors(endpoint: Endpoint, writer: RequestWriter, cors: CorsOptions): Promise<void> {
  const { check, origin, isRejected, isLocal } = cors;
  const requiredHeaders = [
    "content-type",
    "mcp-protocol-version",
    ...writer.isModern ? ["mcp-method", "mcp-name"] : ["mcp-session-id", "last-event-id"],
    ...Object.keys(endpoint.headers).map((name) => name.toLowerCase()),
  ];
  const preflight = await sendPreflight(endpoint, origin, requiredHeaders);
  const allowed = readAllowedOrigin(preflight);
  if (allowed !== origin && allowed !== "*") return reportRefusedOrigin(preflight, cors);
  if (preflight.status < 200 || preflight.status > 299) {
    check.problem(`OPTIONS gets ${preflight.status}, which browsers treat as a rejection`, "respond with 204");
  }
  const areHeadersAllowed = checkAllowedHeaders(preflight, requiredHeaders, cors);
  checkAllowedMethods(preflight, writer, cors);
  checkResponse(await exchange(endpoint, withHeaders(writer.write(writer.pingMethod), { origin })), {
    ...cors,
    hasSession: writer.sessionId !== undefined,
    isAuthorized: "authorization" in endpoint.headers,
  });
  if (allowed === "*" && isLocal && !isRejected) {
    check.problem(
      "every web page can call this server and read its responses",
      'list the allowed origins instead of "*"',
    );
  }
  if (areHeadersAllowed) check.ok(`web pages of ${origin} can call the server`);
}

function sendPreflight(
  endpoint: Endpoint,
  origin: string,
  requiredHeaders: readonly string[],
): Promise<ServerResponse> {
  // Omit the user's headers, because browsers send preflight requests without such headers.
  return exchange({ ...endpoint, headers: {} }, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": requiredHeaders.join(","),
    },
  });
}

function reportRefusedOrigin(preflight: ServerResponse, { check, origin, isRequested }: CorsOptions): void {
  const allowed = readAllowedOrigin(preflight);
  const message = `web pages of ${origin} cannot call the server: OPTIONS gets ${preflight.status} and ${
    allowed === null ? "no Access-Control-Allow-Origin" : `Access-Control-Allow-Origin: ${allowed}`
  }`;
  const remedy = preflight.status === 401
    ? "respond to OPTIONS without requiring a token, because browsers send no token with OPTIONS"
    : `respond to OPTIONS with 204 and Access-Control-Allow-Origin: ${origin}`;
  const fix = `${remedy}; in @x/mcp: cors: { origins: ["${origin}"] }`;
  if (isRequested) check.problem(message, fix);
  else check.note(`${message}; only clients in browsers are affected`, fix);
}

/** Checks that web pages can send the headers of the protocol. Returns whether web pages can send all of them. */
function checkAllowedHeaders(
  preflight: ServerResponse,
  requiredHeaders: readonly string[],
  { check, origin }: CorsOptions,
): boolean {
  const headers = readNames(preflight, "access-control-allow-headers");
  // Authorization must be listed, because the wildcard `*` does not include Authorization.
  const missing = requiredHeaders.filter((name) =>
    !headers.includes(name) && (!headers.includes("*") || name === "authorization")
  );
  if (!missing.length) return true;
  check.problem(
    `web pages of ${origin} cannot send ${missing.join(", ")}`,
    `list ${missing.length > 1 ? "these headers" : "this header"} in Access-Control-Allow-Headers in the response ` +
      "to OPTIONS",
  );
  return false;
}

function checkAllowedMethods(
  preflight: ServerResponse,
  { sessionId }: RequestWriter,
  { check, origin }: CorsOptions,
): void {
  const methods = readNames(preflight, "access-control-allow-methods");
  if (sessionId === undefined || methods.includes("delete") || methods.includes("*")) return;
  check.problem(`web pages of ${origin} cannot end sessions`, "add DELETE to Access-Control-Allow-Methods");
}

interface ResponseOptions extends CorsOptions {
  readonly hasSession: boolean;
  /** Whether the user's headers contain a token. */
  readonly isAuthorized: boolean;
}

/** Checks that web pages can read a response and the response headers that clients need. */
function checkResponse(response: ServerResponse, options: ResponseOptions): void {
  const { check, origin, hasSession, isAuthorized } = options;
  const allowed = readAllowedOrigin(response);
  if (allowed !== origin && allowed !== "*") {
    check.problem(
      `OPTIONS allows ${origin}, but the Access-Control-Allow-Origin header of the response to POST does not`,
      "send Access-Control-Allow-Origin with every response, including errors",
    );
  }
  const exposed = readNames(response, "access-control-expose-headers");
  const hidden = [...hasSession ? ["mcp-session-id"] : [], "www-authenticate"]
    .filter((name) => !exposed.includes(name) && !exposed.includes("*"));
  if (hidden.includes("mcp-session-id")) {
    check.problem(
      `web pages of ${origin} cannot read Mcp-Session-Id, so they cannot continue after initialize`,
      "add Mcp-Session-Id to Access-Control-Expose-Headers",
    );
  } else if (hidden.length && isAuthorized) {
    check.note("web pages cannot read WWW-Authenticate", "add WWW-Authenticate to Access-Control-Expose-Headers");
  }
}

function readAllowedOrigin({ headers }: ServerResponse): string | null {
  return headers.get("access-control-allow-origin");
}

function readNames({ headers }: ServerResponse, name: string): readonly string[] {
  return (headers.get(name) ?? "").toLowerCase().split(",").map((each) => each.trim());
}

/** Sends a POST request over plain HTTP with exactly the given headers. Throws if there is no response. */
const sendByNode: SendAs = (url, { headers, body, timeoutMs }) => {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(url, { method: "POST", headers, timeout: timeoutMs }, (response) => {
    resolve(response.statusCode ?? 0);
    response.destroy();
  });
  sent.on("error", reject);
  sent.on("timeout", () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
  sent.end(body);
  return promise;
};
