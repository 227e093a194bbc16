/**
 * Detects a server's era, and starts the protocol of this era.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @see specification/2026-07-28/basic/transports/stdio (Backward Compatibility)
 */
import {
  HEADER_MISMATCH,
  isRemoteError,
  McpError,
  MISSING_CAPABILITY,
  UNSUPPORTED_VERSION,
} from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { deadline } from "../core/kit/deadline.ts";
import { readFailure, withFailure } from "../core/kit/failure.ts";
import { toPrintableLine } from "../core/kit/printable.ts";
import { LegacyCodec, type LegacyOptions, legacyProtocol } from "./legacy.ts";
import { ModernCodec, ModernProtocol, readSupported } from "./modern.ts";
import type { Rpc } from "./rpc.ts";
import { type Protocol, type ServerInfo, toServerInfo } from "./protocol.ts";
import { toShown } from "./shown.ts";

/** All supported protocol revisions, newest first. */
export const VERSIONS: readonly string[] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** The first protocol revision without a handshake. */
const FIRST_MODERN = "2026-07-28";
/** Maximum number of times that a server may reject a revision and propose other revisions. */
const MAX_REFUSALS = 3;
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

export function isModern(version: string): boolean {
  return version >= FIRST_MODERN;
}

export interface DetectOptions extends LegacyOptions {
  /**
   * Milliseconds to wait for the response to the first request, over stdio, where a legacy server may never respond.
   */
  readonly probeMs: number;
}

/**
 * Detects a server's era by sending a modern request. A server that does not respond like a modern server is treated as
 * a legacy server.
 *
 * @throws {McpError} if the server responds with an error that a handshake would not avoid.
 * @throws {Error} if the client and the server have no protocol revision in common.
 */
export async function detectEra(rpc: Rpc, options: DetectOptions): Promise<Protocol> {
  const modern = options.versions.filter(isModern);
  const legacy = options.versions.filter((version) => !isModern(version));
  const shakeHands = () => {
    const codec = new LegacyCodec();
    rpc.codec = codec;
    return legacyProtocol(rpc, codec, { ...options, versions: legacy });
  };
  if (!modern.length) return await shakeHands();
  const codec = new ModernCodec(modern[0], options);
  rpc.codec = codec;
  const toProtocol = (server: ServerInfo) => {
    rpc.codec = codec;
    return new ModernProtocol(rpc, codec, { ...options, server, versions: modern });
  };
  const probing = probe(rpc, codec, modern, legacy);
  // Over HTTP, wait without a limit, because every HTTP server sends a response.
  const found = legacy.length && !rpc.channel.openStream
    ? await deadline(probing, { ms: options.probeMs, onTimeout: () => "late" })
    : await probing;
  if (found && found !== "late" && !("refusal" in found)) return toProtocol(found);
  if (!legacy.length) throw toModernError(modern, found === "late" ? undefined : found?.refusal);
  try {
    return await shakeHands();
  } catch (error) {
    // If the first request has timed out, wait for its response, because a modern server may only have started slowly.
    const late = found === "late" ? await probing.catch(() => undefined) : undefined;
    if (!late || "refusal" in late) throw error;
    return toProtocol(late);
  }
}

/** The error response that shows that a server may be a legacy server. */
interface Refused {
  readonly refusal: McpError;
}

/**
 * Returns the error for a server that is not modern, although the client supports only modern revisions. If the
 * response is not a JSON-RPC message, the error says that the URL may be wrong.
 */
function toModernError(modern: readonly string[], refusal: McpError | undefined): Error {
  if (refusal?.code === 0) {
    const failure = readFailure(refusal);
    const state = failure?.kind === "unreadable" ? failure.state : refusal.message;
    const message =
      `Cannot connect: the server at this URL is not an MCP server (${state}); check the URL and the server`;
    return withFailure(new McpError(0, message, undefined, { status: refusal.status }), { kind: "not-mcp" });
  }
  const reason = refusal
    ? `; the server rejected server/discover with ${toPrintableLine(refusal.message)} (${refusal.code})`
    : "";
  return new Error(`Cannot connect: the server does not support ${modern.join(", ")}${reason}`);
}

/**
 * Sends `server/discover`. Returns the facts about a modern server, or the error response of a server that may be a
 * legacy server. Returns `undefined` for any other response.
 */
async function probe(
  rpc: Rpc,
  codec: ModernCodec,
  modern: readonly string[],
  legacy: readonly string[],
): Promise<ServerInfo | Refused | undefined> {
  for (let refusals = 0;; refusals++) {
    try {
      const { result } = await rpc.request("server/discover", {});
      if (!Array.isArray(result.supportedVersions)) return;
      const version = choose(result.supportedVersions, modern, legacy);
      if (version === undefined) return;
      codec.version = version;
      const meta = isObject(result._meta) ? result._meta : {};
      // Some servers send the server info in `serverInfo`, as in the result of `initialize`, instead of `_meta`.
      return toServerInfo({ era: "modern", version, info: meta[SERVER_INFO] ?? result.serverInfo }, result);
    } catch (error) {
      if (!isRemoteError(error)) throw error;
      if (error.code === UNSUPPORTED_VERSION && refusals < MAX_REFUSALS) {
        const version = choose(readSupported(error), modern, legacy);
        if (version === undefined) return;
        codec.version = version;
      } else if (isModernRefusal(error)) throw error;
      else return { refusal: error };
    }
  }
}

/**
 * Tests whether an error means that the client should not try a handshake, because only modern servers respond with
 * this error. Also returns `true` for status 401 and 403, because a handshake would be rejected with the same status.
 */
export function isModernRefusal({ code, status }: McpError): boolean {
  return [UNSUPPORTED_VERSION, HEADER_MISMATCH, MISSING_CAPABILITY].includes(code) || status === 401 || status === 403;
}

// Chooses a modern revision that the client and the server have in common. Returns `undefined` if all common revisions
// have a handshake. Throws if there is no common revision.
function choose(
  supported: readonly unknown[],
  modern: readonly string[],
  legacy: readonly string[],
): string | undefined {
  const version = modern.find((each) => supported.includes(each));
  if (version !== undefined || legacy.some((each) => supported.includes(each))) return version;
  const ours = [...modern, ...legacy].join(", ");
  throw new Error(
    `Cannot connect: the server supports the revisions ${
      toShown(supported.join(", "))
    }, but this client supports ${ours}`,
  );
}
