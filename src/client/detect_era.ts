/**
 * Finds out which era a server is of, and begins to speak it.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @see specification/2026-07-28/basic/transports/stdio (Backward Compatibility)
 * @module
 */
import { HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION } from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import { LegacyCodec, legacyProtocol } from "./legacy.ts";
import { ModernCodec, modernProtocol, readSupported } from "./modern.ts";
import { delay } from "./delay.ts";
import type { Rpc } from "./rpc.ts";
import { RpcError } from "./rpc_error.ts";
import { type Protocol, type ProtocolOptions, type ServerFacts, toImplementation } from "./protocol.ts";

/** The revisions that a client speaks if nothing is said, the best first. */
export const VERSIONS: readonly string[] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** The first revision without a handshake. */
const FIRST_MODERN = "2026-07-28";
/** How often a server may refuse a revision and name another. */
const MOST_REFUSALS = 3;
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

/** Whether a revision is without a handshake. */
export function isModern(version: string): boolean {
  return version >= FIRST_MODERN;
}

/** What a client may speak. */
export interface DetectOptions extends ProtocolOptions {
  /** The revisions, the best first. */
  readonly versions: readonly string[];
  /** Milliseconds for an answer to the first question, on a channel where an old server may say nothing at all. */
  readonly probeMs: number;
  /** Whether a stream for what belongs to no request is opened at once, in the legacy era. */
  readonly listens: boolean;
}

/**
 * Asks a modern question first. Whatever is no modern answer is taken for that of a legacy server.
 *
 * @throws {RpcError} if the server refuses the client.
 * @throws {Error} if the two have no revision in common.
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
  // Over HTTP there is always an answer.
  const found = legacy.length && !rpc.channel.openStream ? await within(probing, options.probeMs) : await probing;
  if (found && found !== LATE) return toProtocol(found);
  if (!legacy.length) throw new Error(`Cannot connect: the server does not speak ${modern.join(", ")}`);
  try {
    return await shakeHands();
  } catch (error) {
    // It was slow to start, and is no legacy server.
    const late = found === LATE ? await probing.catch(() => undefined) : undefined;
    if (!late) throw error;
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

/** What a modern server says of itself; nothing if the server is a legacy one. */
async function probe(
  rpc: Rpc,
  codec: ModernCodec,
  modern: readonly string[],
  legacy: readonly string[],
): Promise<ServerFacts | undefined> {
  for (let refusals = 0;; refusals++) {
    try {
      const { result } = await rpc.request("server/discover", {});
      if (!Array.isArray(result.supportedVersions)) return;
      const version = choose(result.supportedVersions, modern, legacy);
      if (version === undefined) return;
      codec.version = version;
      return toFacts(result, version);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      if (error.code === UNSUPPORTED_VERSION && refusals < MOST_REFUSALS) {
        const version = choose(readSupported(error), modern, legacy);
        if (version === undefined) return;
        codec.version = version;
      } else if (isModernRefusal(error)) throw error;
      else return;
    }
  }
}

/** Whether this is what only a modern server says, or would be said to any client. */
export function isModernRefusal({ code, status }: RpcError): boolean {
  return [UNSUPPORTED_VERSION, HEADER_MISMATCH, MISSING_CAPABILITY].includes(code) || status === 401 || status === 403;
}

// Nothing if both can only shake hands.
function choose(
  supported: readonly unknown[],
  modern: readonly string[],
  legacy: readonly string[],
): string | undefined {
  const version = modern.find((each) => supported.includes(each));
  if (version !== undefined || legacy.some((each) => supported.includes(each))) return version;
  const ours = [...modern, ...legacy].join(", ");
  throw new Error(`Cannot connect: the server speaks ${supported.join(", ")}, this client ${ours}`);
}

function toFacts({ capabilities, instructions, serverInfo, _meta }: Result, version: string): ServerFacts {
  const meta = isObject(_meta) ? _meta : {};
  return {
    era: "modern",
    version,
    // Some servers keep it where a handshake had it.
    info: toImplementation(meta[SERVER_INFO] ?? serverInfo),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
