/**
 * Reads the metadata of a request, and checks the HTTP headers that repeat parts of the body.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 * @see specification/2026-07-28/basic/transports/streamable-http (Server Validation)
 */
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  McpError,
  quote,
  UNSUPPORTED_VERSION,
  withLimits,
} from "../../../core/protocol/errors.ts";
import { isObject, type Request } from "../../../core/protocol/jsonrpc.ts";
import { decodeHeaderValue } from "../../../core/protocol/header_value.ts";
import { type Implementation, LOG_LEVELS } from "../../../core/protocol/types.ts";
import { isProgressToken } from "../../call/call.ts";
import type { ClientInfo } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import type { Method } from "../../visibility/feature.ts";
import type { HeaderReader, Link } from "../../call/link.ts";
import { META_CAPABILITIES, META_CLIENT, META_LEVEL, META_VERSION, VERSION } from "./meta_keys.ts";

/** Checks `_meta` before the headers, as the specification requires. Throws an `McpError` if a value is invalid. */
export function readEnvelope(
  message: Request,
  link: Link,
  { method, core, revisions }: {
    readonly method: Method | undefined;
    readonly core: Core;
    /** The revisions that the server serves. */
    readonly revisions: readonly string[];
  },
): ClientInfo {
  const { params = {} } = message;
  const { _meta: meta = {} } = params;
  if (!isObject(meta)) throw invalid("params._meta is not an object");
  const { [META_VERSION]: version, [META_CAPABILITIES]: capabilities } = meta;
  // `null` counts as absent.
  const info = meta[META_CLIENT] ?? undefined;
  const level = meta[META_LEVEL] ?? undefined;
  const progressToken = meta.progressToken ?? undefined;
  // Some clients initialize with a revision in the header that the server does not know.
  if (version === undefined && message.method === "initialize" && link.version !== VERSION) {
    throw toUnsupported(String(link.version), revisions);
  }
  if (typeof version !== "string") {
    throw invalid(`params._meta["${META_VERSION}"] is not a string; use "${VERSION}"`);
  }
  const { headers } = link;
  if (headers && link.version !== version) throw toMismatch("MCP-Protocol-Version", link.version, version);
  if (version !== VERSION) throw toUnsupported(version, [VERSION]);
  // Capabilities are extensible, so the server checks a capability only when a handler needs it.
  if (!isObject(capabilities)) {
    throw invalid(`params._meta["${META_CAPABILITIES}"] is not an object`);
  }
  if (info !== undefined && !isImplementation(info)) {
    throw invalid(`params._meta["${META_CLIENT}"] is not an object with name and version`);
  }
  const logLevel = level === undefined ? undefined : LOG_LEVELS.find((each) => each === level);
  if (level !== logLevel) throw invalid(`params._meta["${META_LEVEL}"] is not a log level`);
  if (progressToken !== undefined && !isProgressToken(progressToken)) {
    throw invalid("params._meta.progressToken is not a string or integer");
  }
  // Limit the length of the token, because every progress notification repeats the token.
  const maxToken = core.limits.request.idCharacters;
  if (typeof progressToken === "string" && progressToken.length > maxToken) {
    const limit = "request.idCharacters";
    throw withLimits(invalid(`params._meta.progressToken is longer than ${maxToken} characters (${limit})`), limit);
  }
  if (headers) checkHeaders(message, headers, method?.subject && params[method.subject]);
  return { version, info, capabilities, logLevel: core.can.logging ? logLevel : undefined };
}

function toUnsupported(requested: string, supported: readonly string[]): McpError {
  return new McpError(
    UNSUPPORTED_VERSION,
    `Cannot serve the request: protocol version ${quote(requested)} is not supported`,
    { supported, requested: requested.slice(0, 200) },
  );
}

function isImplementation(value: unknown): value is Implementation {
  return isObject(value) && typeof value.name === "string" && typeof value.version === "string";
}

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot serve the request: ${state}`);
}

// Matches text that needs no encoding in a header. Non-ASCII text is encoded, because proxies may decode its bytes
// differently.
const PLAIN = /^(?!=\?)[ -~]*$/;

/** Tests whether a header, decoded if necessary, equals `value` from the body. */
export function isRepeated(header: string | null, value: string): boolean {
  if (header === value && PLAIN.test(value)) return true;
  return header !== null && decodeHeaderValue(header) === value;
}

/** Checks the headers that repeat the method and the subject, because proxies rely on these headers. */
function checkHeaders({ method }: Request, headers: HeaderReader, subject: unknown): void {
  const named = headers.get("mcp-method");
  if (named !== method) throw toMismatch("Mcp-Method", named, method);
  if (typeof subject !== "string") return;
  const name = headers.get("mcp-name");
  // Fast path: most names need no decoding.
  if (name === subject && PLAIN.test(name)) return;
  if (!isRepeated(name, subject)) throw toMismatch("Mcp-Name", name, subject);
}

export function toMismatch(name: string, header: string | null | undefined, body: string): McpError {
  const state = header === null || header === undefined ? "is missing" : `is ${quote(header)}`;
  return new McpError(
    HEADER_MISMATCH,
    `Cannot serve the request: header ${name} ${state}, but the body has ${quote(body)}`,
  );
}
