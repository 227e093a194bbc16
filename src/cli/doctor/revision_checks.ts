/**
 * Checks which protocol revisions a server supports.
 *
 * @see specification/2026-07-28/basic/versioning
 * @see specification/2025-11-25/basic/lifecycle
 */
import { LEGACY, MODERN, UNSUPPORTED_VERSION } from "../protocol.ts";
import { connect, McpError, type Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import {
  type Endpoint,
  exchange,
  legacyWriter,
  modernWriter,
  type RequestWriter,
  type ServerResponse,
  toInitialize,
} from "./exchange.ts";
import type { Check } from "./report.ts";

export function readResult({ message }: ServerResponse): Params | undefined {
  return isObject(message?.result) ? message.result : undefined;
}

/** Describes a response in a few words, as part of a finding. */
export function describeResponse({ status, headers, message, text, isCut }: ServerResponse): string {
  if (message?.error) return `${status} with error ${message.error.code}, ${JSON.stringify(message.error.message)}`;
  if (message) return `${status} with a result`;
  const type = headers.get("content-type")?.split(";")[0];
  const body = text.trim() && type !== "text/html" ? `: ${text.trim().slice(0, 120)}` : "";
  const cut = isCut ? " that did not end in time" : "";
  return `${status}${type ? ` with ${type === "text/html" ? "a web page" : type}` : ""}${cut}${body}`;
}

/** Reads the response to `server/discover`. Returns `undefined` if the server does not support the modern revision. */
export function readDiscovery(first: ServerResponse, check: Check): RequestWriter | undefined {
  const { error } = first.message ?? {};
  if (error?.code === UNSUPPORTED_VERSION) {
    const supported = isObject(error.data) && Array.isArray(error.data.supported) ? error.data.supported : [];
    return void check.note(
      `the server supports server/discover but not ${MODERN}; the supported revisions are ` +
        `${supported.join(", ") || "no revision"}`,
      `support ${MODERN}; until then, clients must use a supported revision`,
    );
  }
  const result = readResult(first);
  if (!result || !Array.isArray(result.supportedVersions)) return;
  const { supportedVersions, capabilities, _meta } = result;
  const info = isObject(_meta) ? _meta["io.modelcontextprotocol/serverInfo"] : undefined;
  check.ok(`server/discover responds in ${formatMs(first.ms)}${formatServerInfo(info ?? result.serverInfo)}`);
  if (!supportedVersions.includes(MODERN)) {
    check.problem(
      `server/discover does not list ${MODERN}, although the server uses this revision`,
      `add ${MODERN} to supportedVersions`,
    );
  }
  checkCapabilities("server/discover", capabilities, check);
  return modernWriter();
}

function checkCapabilities(method: string, capabilities: unknown, check: Check): void {
  if (isObject(capabilities)) return;
  check.problem(
    `${method} returns no capabilities`,
    "return a capabilities object, or {} if the server has no capabilities",
  );
}

export interface HandshakeOptions {
  readonly check: Check;
  readonly sessions: Set<RequestWriter>;
}

/** Tries a handshake in each older revision. Returns the session in the newest revision, which stays open. */
export async function checkHandshakes(
  endpoint: Endpoint,
  { check, sessions }: HandshakeOptions,
): Promise<RequestWriter | undefined> {
  const supported: string[] = [];
  let kept: RequestWriter | undefined;
  for (const version of LEGACY) {
    const response = await initialize(endpoint, version);
    const result = readResult(response);
    if (!result) {
      if (kept) reportSecondFailure(response, check);
      if (kept || !isMethodUnknown(response)) break;
      return;
    }
    const { protocolVersion } = result;
    const agreed = typeof protocolVersion === "string" ? protocolVersion : JSON.stringify(protocolVersion) ?? "nothing";
    const session = legacyWriter(agreed, response.headers.get("mcp-session-id") ?? undefined);
    sessions.add(session);
    if (!kept) {
      checkInitializeResult(result, check);
      kept = session;
      reportFirst(agreed, result, response, check);
    } else {
      await endSession(endpoint, session);
      sessions.delete(session);
    }
    if (agreed === version) supported.push(agreed);
  }
  const older = supported.slice(1);
  if (older.length) check.ok(`the server also supports the handshakes of older revisions: ${older.join(", ")}`);
  return kept;
}

function reportFirst(version: string, result: Params, { ms }: ServerResponse, check: Check): void {
  if (LEGACY.includes(version)) {
    return check.ok(`initialize agrees on ${version} in ${formatMs(ms)}${formatServerInfo(result.serverInfo)}`);
  }
  check.problem(
    `initialize responds with the unknown revision ${JSON.stringify(version)}`,
    `respond with the requested revision, or with one of the revisions ${LEGACY.join(", ")}`,
  );
}

/** A server that shares one transport between all clients rejects every client after the first. */
function reportSecondFailure(response: ServerResponse, check: Check): void {
  check.problem(
    `initialize works only once; the second request gets ${describeResponse(response)}`,
    "create a server or transport for each session, so that several clients can connect",
  );
}

function isMethodUnknown({ message, status }: ServerResponse): boolean {
  return message?.error?.code === -32601 || [404, 405].includes(status);
}

function checkInitializeResult({ serverInfo, capabilities }: Params, check: Check): void {
  if (!isObject(serverInfo) || typeof serverInfo.name !== "string" || typeof serverInfo.version !== "string") {
    check.problem("initialize does not identify the server", "return serverInfo: { name, version }");
  }
  checkCapabilities("initialize", capabilities, check);
}

/** Begins a session. The request has no abort signal, because the session could not be ended if its id were lost. */
export async function initialize({ signal: _, ...endpoint }: Endpoint, version: string): Promise<ServerResponse> {
  return await exchange(endpoint, toInitialize(version));
}

/** Has no abort signal, so that the session ends even after Ctrl-C. Returns `undefined` without a session. */
export async function endSession(
  { signal: _, ...endpoint }: Endpoint,
  { sessionId, write }: RequestWriter,
): Promise<ServerResponse | undefined> {
  if (sessionId === undefined) return;
  const { headers } = write("ping");
  return await exchange(endpoint, { method: "DELETE", headers: { ...headers, "content-type": null } });
}

export interface IdentifiedEndpoint {
  /** Whether the server has the transport of the oldest revision, which has a separate endpoint for streams. */
  readonly isHttpSse: boolean;
  /** The protocol revision, the transport, or that the server requires a token. */
  readonly description: string;
}

/** Identifies the server at a URL by connecting as clients do. Returns `undefined` if there is no MCP server. */
export async function identifyEndpoint(
  { url, fetch, headers, timeoutMs, signal }: Endpoint,
): Promise<IdentifiedEndpoint | undefined> {
  let hasOpenedStream = false;
  const noteStream = (request: Request) => {
    hasOpenedStream ||= request.method === "GET";
    return fetch(request);
  };
  try {
    await using client = await connect(url, { fetch: noteStream, headers, timeoutMs, signal, onWarning() {} });
    const { era, version } = client.server;
    // Only the HTTP+SSE transport opens a stream before the client subscribes.
    const isHttpSse = era === "legacy" && hasOpenedStream;
    const handshake = isHttpSse ? "HTTP+SSE transport of 2024-11-05" : `handshake with ${version}`;
    return { isHttpSse, description: era === "modern" ? version : handshake };
  } catch (error) {
    if (error instanceof McpError && error.status === 401) {
      return { isHttpSse: false, description: "requires a token (401)" };
    }
  }
}

export function formatMs(ms: number): string {
  return `${Math.max(1, Math.round(ms))} ms`;
}

function formatServerInfo(info: unknown): string {
  if (!isObject(info) || typeof info.name !== "string") return "";
  return `: ${info.name}${typeof info.version === "string" ? ` ${info.version}` : ""}`;
}
