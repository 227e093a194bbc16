/**
 * Detects the era of a server and starts its protocol.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @see specification/2026-07-28/basic/transports/stdio (Backward Compatibility)
 * @module
 */
import {
  HEADER_MISMATCH,
  isRemoteError,
  McpError,
  MISSING_CAPABILITY,
  UNSUPPORTED_VERSION,
} from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import { toPrintableLine } from "../kit/printable.ts";
import { LegacyCodec, legacyProtocol } from "./legacy.ts";
import { ModernCodec, modernProtocol, readSupported } from "./modern.ts";
import { delay } from "./delay.ts";
import type { Rpc } from "./rpc.ts";
import { type Protocol, type ProtocolOptions, type ServerFacts, toImplementation } from "./protocol.ts";

/** The default protocol revisions, best first. */
export const VERSIONS: readonly string[] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** The first protocol revision without a handshake. */
const FIRST_MODERN = "2026-07-28";
/** Number of times that a server may refuse a revision and name another revision. */
const MAX_REFUSALS = 3;
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

/** Whether a protocol revision has no handshake. */
export function isModern(version: string): boolean {
  return version >= FIRST_MODERN;
}

/** The options of {@linkcode detectEra}. */
export interface DetectOptions extends ProtocolOptions {
  /** The protocol revisions, best first. */
  readonly versions: readonly string[];
  /** Milliseconds to wait for a response to the first request, on a channel where a legacy server may never respond. */
  readonly probeMs: number;
  /** Whether to open a stream for messages outside of requests at once, in the legacy era. */
  readonly listens: boolean;
}

/**
 * Sends a modern request first. A server that does not respond like a modern server is treated as a legacy server.
 *
 * @throws {McpError} if the server refuses the client.
 * @throws {Error} if client and server have no protocol revision in common.
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
  const toProtocol = (server: ServerFacts) => {
    rpc.codec = codec;
    return modernProtocol(rpc, codec, { ...options, server, versions: modern });
  };
  const probing = probe(rpc, codec, modern, legacy);
  // Over HTTP, wait for the response, because every server sends one.
  const found = legacy.length && !rpc.channel.openStream ? await within(probing, options.probeMs) : await probing;
  if (found && found !== LATE && !("refusal" in found)) return toProtocol(found);
  if (!legacy.length) throw toModernError(modern, found === LATE ? undefined : found?.refusal);
  try {
    return await shakeHands();
  } catch (error) {
    // The response may still arrive from a modern server that was slow to start.
    const late = found === LATE ? await probing.catch(() => undefined) : undefined;
    if (!late || "refusal" in late) throw error;
    return toProtocol(late);
  }
}

const LATE: unique symbol = Symbol("late");

async function within<T>(promise: Promise<T>, ms: number): Promise<T | typeof LATE> {
  const late = new AbortController();
  const waited = delay(ms, late.signal).catch(() => {}).then((): typeof LATE => LATE);
  promise.catch(() => {});
  return await Promise.race([promise, waited]).finally(() => late.abort());
}

/** The reason why a server is treated as a legacy server. */
interface Refused {
  readonly refusal: McpError;
}

/**
 * Creates the error for a server that must be modern. If its response is not a JSON-RPC message, there may be no MCP
 * server at the URL.
 */
function toModernError(modern: readonly string[], refusal: McpError | undefined): Error {
  if (refusal?.code === 0) {
    const state = refusal.message.replace(/^Cannot read the response: /, "");
    const message = `Cannot connect: there is no MCP server at this URL: ${state}; check the URL and the server`;
    return new McpError(0, message, undefined, { status: refusal.status });
  }
  const reason = refusal
    ? `; it refused server/discover with ${toPrintableLine(refusal.message)} (${refusal.code})`
    : "";
  return new Error(`Cannot connect: the server does not support ${modern.join(", ")}${reason}`);
}

/**
 * Returns the facts of a modern server, or the refusal of a legacy server. Returns `undefined` for any other response.
 */
async function probe(
  rpc: Rpc,
  codec: ModernCodec,
  modern: readonly string[],
  legacy: readonly string[],
): Promise<ServerFacts | Refused | undefined> {
  for (let refusals = 0;; refusals++) {
    try {
      const { result } = await rpc.request("server/discover", {});
      if (!Array.isArray(result.supportedVersions)) return;
      const version = choose(result.supportedVersions, modern, legacy);
      if (version === undefined) return;
      codec.version = version;
      return toFacts(result, version);
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
 * Whether an error means that a handshake is not worth trying, because only a modern server responds with this error.
 * Status 401 and 403 count too, because a handshake would fail in the same way.
 */
export function isModernRefusal({ code, status }: McpError): boolean {
  return [UNSUPPORTED_VERSION, HEADER_MISMATCH, MISSING_CAPABILITY].includes(code) || status === 401 || status === 403;
}

// Chooses a revision that client and server have in common. Returns `undefined` if all common revisions have a
// handshake.
function choose(
  supported: readonly unknown[],
  modern: readonly string[],
  legacy: readonly string[],
): string | undefined {
  const version = modern.find((each) => supported.includes(each));
  if (version !== undefined || legacy.some((each) => supported.includes(each))) return version;
  const ours = [...modern, ...legacy].join(", ");
  throw new Error(`Cannot connect: the server supports ${supported.join(", ")}, and this client ${ours}`);
}

function toFacts({ capabilities, instructions, serverInfo, _meta }: Result, version: string): ServerFacts {
  const meta = isObject(_meta) ? _meta : {};
  return {
    era: "modern",
    version,
    // Some servers put the server info into the field that the result of `initialize` uses.
    info: toImplementation(meta[SERVER_INFO] ?? serverInfo),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
