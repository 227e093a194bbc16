/**
 * What every modern request says about itself, checked in the order of the specification: first the body's `_meta`,
 * then the headers that must repeat it.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 * @see specification/2026-07-28/basic/transports/streamable-http (Server Validation)
 * @module
 */
import { HEADER_MISMATCH, INVALID_PARAMS, McpError, quote, UNSUPPORTED_VERSION } from "../../protocol/errors.ts";
import { isObject, type Params, type Request as Message } from "../../protocol/jsonrpc.ts";
import { decodeHeaderValue } from "../../protocol/header_value.ts";
import { type Implementation, LOG_LEVELS, type LogLevel } from "../../protocol/types.ts";
import { isProgressToken } from "../../core/call.ts";
import type { ClientFacts } from "../../core/context.ts";
import type { Method } from "../../core/handler.ts";

/** The revision that this era speaks. */
export const VERSION = "2026-07-28";

/** Prefix of the protocol's own metadata. */
export const META = "io.modelcontextprotocol/";

/** Reads who a request is from; throws what is wrong with it, the first thing first. */
export function readEnvelope(message: Message, http: Request | undefined, method: Method | undefined): ClientFacts {
  const { _meta: meta } = message.params ?? {};
  if (meta !== undefined && !isObject(meta)) throw invalid("params._meta is not an object");
  const version = meta?.[META + "protocolVersion"];
  if (typeof version !== "string") {
    throw invalid(`params._meta["${META}protocolVersion"] is missing; this server speaks ${VERSION}`);
  }
  const header = http?.headers.get("mcp-protocol-version");
  if (http && header !== version) throw mismatch("MCP-Protocol-Version", header, version);
  if (version !== VERSION) {
    throw new McpError(
      UNSUPPORTED_VERSION,
      `Cannot serve the request: protocol version ${quote(version)} is not supported`,
      {
        supported: [VERSION],
        requested: version.slice(0, 200),
      },
    );
  }
  const capabilities = meta?.[META + "clientCapabilities"];
  if (!isObject(capabilities)) throw invalid(`params._meta["${META}clientCapabilities"] is not an object`);
  const info = meta?.[META + "clientInfo"];
  if (info !== undefined && !isImplementation(info)) {
    throw invalid(`params._meta["${META}clientInfo"] has no name and version`);
  }
  const logLevel = meta?.[META + "logLevel"];
  if (logLevel !== undefined && !isLogLevel(logLevel)) {
    throw invalid(`params._meta["${META}logLevel"] is not a log level`);
  }
  const token = meta?.progressToken;
  if (token !== undefined && !isProgressToken(token)) {
    throw invalid("params._meta.progressToken is not a string or integer");
  }
  if (http) checkHeaders(message, http.headers, method);
  return { version, info, capabilities, logLevel };
}

function checkHeaders({ method: name, params = {} }: Message, headers: Headers, method: Method | undefined): void {
  const named = headers.get("mcp-method");
  if (named !== name) throw mismatch("Mcp-Method", named, name);
  if (!method) return;
  const subject = method.subject && params[method.subject];
  if (typeof subject === "string") {
    const value = headers.get("mcp-name");
    // Most names are plain; only others need decoding.
    if (value !== subject || value.startsWith("=?")) {
      if (value === null || decodeHeaderValue(value) !== subject) throw mismatch("Mcp-Name", value, subject);
    }
  }
  for (const { header, path, type } of method.mirrored?.(params) ?? []) {
    checkMirrored(`Mcp-Param-${header}`, headers.get(`mcp-param-${header}`), valueAt(params.arguments, path), type);
  }
}

// A value of the wrong type is left for the tool's schema to name; only what the header claims is compared here.
function checkMirrored(name: string, header: string | null, value: unknown, type: string): void {
  if (value === undefined || value === null) {
    if (header !== null) throw mismatch(name, header, "nothing");
    return;
  }
  const text = String(value);
  const decoded = header === null ? undefined : decodeHeaderValue(header);
  const same = decoded !== undefined &&
    (decoded === text || (type === "integer" && decoded.trim() !== "" && Number(decoded) === value));
  if (!same) throw mismatch(name, header, text);
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined, value);
}

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot serve the request: ${state}`);
}

function mismatch(name: string, header: string | null | undefined, body: string): McpError {
  const state = header === null || header === undefined ? "is missing" : `is ${quote(header)}`;
  return new McpError(
    HEADER_MISMATCH,
    `Cannot serve the request: header ${name} ${state}, the body says ${quote(body)}`,
  );
}

function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value);
}

function isImplementation(value: unknown): value is Implementation & Params {
  return isObject(value) && typeof value.name === "string" && typeof value.version === "string";
}
