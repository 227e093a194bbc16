/**
 * Writes requests in each protocol revision.
 *
 * @module
 */
import type { Params } from "../../client/client.ts";
import { MODERN } from "../protocol.ts";
import { VERSION } from "../version.ts";
import type { RequestParts } from "./exchange.ts";

const INFO = { name: "@x/mcp doctor", version: VERSION };
const META = "io.modelcontextprotocol/";
const ACCEPT = "application/json, text/event-stream";

/** Writes the requests of one revision. */
export interface RequestWriter {
  readonly version: string;
  readonly isModern: boolean;
  readonly sessionId?: string;
  /** A method that every server of the revision supports and that changes nothing. */
  readonly pingMethod: string;
  /** Writes a request, or a notification if the method is one. */
  write(method: string, params?: Params): RequestParts;
}

/** Writes requests of the revision without handshakes, which identify the client in every request. */
export function modernWriter(version: string = MODERN): RequestWriter {
  const _meta = {
    [META + "protocolVersion"]: version,
    [META + "clientInfo"]: INFO,
    [META + "clientCapabilities"]: {},
  };
  return {
    version,
    isModern: true,
    pingMethod: "server/discover",
    write: (method, params = {}) =>
      toRequest({ "mcp-protocol-version": version, "mcp-method": method }, method, { ...params, _meta }),
  };
}

/** Writes requests of a session. */
export function legacyWriter(version: string, sessionId?: string): RequestWriter {
  const headers = {
    ...sessionId === undefined ? {} : { "mcp-session-id": sessionId },
    // Earlier revisions have no such header.
    ...version >= "2025-06-18" ? { "mcp-protocol-version": version } : {},
  };
  return {
    version,
    isModern: false,
    sessionId,
    pingMethod: "ping",
    write: (method, params) => toRequest(headers, method, params),
  };
}

/** Writes the request that begins a session. */
export function toInitialize(version: string): RequestParts {
  return toRequest({}, "initialize", { protocolVersion: version, capabilities: {}, clientInfo: INFO });
}

function toRequest(headers: Record<string, string>, method: string, params?: Params): RequestParts {
  const id = method.startsWith("notifications/") ? {} : { id: 1 };
  return {
    headers: { "content-type": "application/json", accept: ACCEPT, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...id, method, ...params && { params } }),
  };
}
