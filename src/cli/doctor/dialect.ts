/**
 * What is asked of a server in each revision.
 *
 * @module
 */
import type { Params } from "../../protocol/jsonrpc.ts";
import { VERSION } from "../version.ts";
import type { Sent } from "./exchange.ts";

/** The revision without handshakes. */
export const MODERN = "2026-07-28";
/** Those with a handshake over this transport, the newest first. The one before these has a transport of its own. */
export const LEGACY: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const INFO = { name: "@x/mcp doctor", version: VERSION };
const META = "io.modelcontextprotocol/";
const BOTH = "application/json, text/event-stream";

/** How to say something to a server. */
export interface Dialect {
  readonly version: string;
  readonly isModern: boolean;
  readonly sessionId?: string;
  /** A method that every server of this revision has, and that changes nothing. */
  readonly idle: string;
  /** A request, or a notification if the method is one. */
  write(method: string, params?: Params): Sent;
}

/** The revision in which each request says who is asking. */
export function modernDialect(version: string = MODERN): Dialect {
  const _meta = {
    [META + "protocolVersion"]: version,
    [META + "clientInfo"]: INFO,
    [META + "clientCapabilities"]: {},
  };
  return {
    version,
    isModern: true,
    idle: "server/discover",
    write: (method, params = {}) =>
      toSent({ "mcp-protocol-version": version, "mcp-method": method }, method, { ...params, _meta }),
  };
}

/** A revision in which a session was begun. */
export function legacyDialect(version: string, sessionId?: string): Dialect {
  const headers = {
    ...sessionId === undefined ? {} : { "mcp-session-id": sessionId },
    // Older revisions have no such header.
    ...version >= "2025-06-18" ? { "mcp-protocol-version": version } : {},
  };
  return {
    version,
    isModern: false,
    sessionId,
    idle: "ping",
    write: (method, params) => toSent(headers, method, params),
  };
}

/** The request that begins a session. */
export function toHandshake(version: string): Sent {
  return toSent({}, "initialize", { protocolVersion: version, capabilities: {}, clientInfo: INFO });
}

function toSent(headers: Record<string, string>, method: string, params?: Params): Sent {
  const id = method.startsWith("notifications/") ? {} : { id: 1 };
  return {
    headers: { "content-type": "application/json", accept: BOTH, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...id, method, ...params && { params } }),
  };
}
