/**
 * The `initialize` handshake.
 *
 * @see specification/2025-11-25/basic/lifecycle
 */
import { toInstructions } from "../../engine/added_instructions.ts";
import { INVALID_PARAMS, McpError } from "../../../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../../../core/protocol/jsonrpc.ts";
import type { Implementation } from "../../../core/protocol/types.ts";
import { FIXED_LIMITS } from "../../capacity/fixed_limits.ts";
import type { Link } from "../../call/link.ts";
import { toAnnounced } from "../../engine/announced.ts";
import type { Engine } from "../../engine/era.ts";
import type { SessionInfo } from "./session_state.ts";
import { isVersion, type Version, VERSIONS } from "./versions.ts";

/** Maximum length of the capabilities as JSON, in characters, because the session id in a header contains them. */
const MAX_CAPABILITIES = 4096;

/** Offers the newest revision if the requested revision is not served. Throws an `McpError` for invalid parameters. */
export function readOffer(params: Params = {}, versions: readonly Version[] = VERSIONS): SessionInfo {
  const { protocolVersion } = params;
  // `null` counts as absent.
  const [capabilities, clientInfo] = [params.capabilities ?? undefined, params.clientInfo ?? undefined];
  if (typeof protocolVersion !== "string") throw invalid("protocolVersion is not a string");
  if (capabilities !== undefined && !isObject(capabilities)) throw invalid("capabilities is not an object");
  if (clientInfo !== undefined && !isObject(clientInfo)) throw invalid("clientInfo is not an object");
  if (JSON.stringify(capabilities ?? {}).length > MAX_CAPABILITIES) {
    throw invalid(`capabilities is longer than ${MAX_CAPABILITIES} characters of JSON`);
  }
  return {
    version: isVersion(protocolVersion, versions) ? protocolVersion : versions[0],
    info: clientInfo && readInfo(clientInfo),
    capabilities: capabilities ?? {},
  };
}

/** Returns what the client says about itself, without the longest facts if all facts together are too long. */
function readInfo({ name, version, title, ...others }: Params): Implementation | undefined {
  if (typeof name !== "string" || typeof version !== "string") return;
  const utf8 = new TextEncoder();
  const facts = Object.entries(others).map(([key, value]) => {
    const text = JSON.stringify([key, value]);
    return { text, bytes: utf8.encode(text).length };
  }).sort((a, b) => a.bytes - b.bytes);
  let left = FIXED_LIMITS.sessions.clientInfoBytes;
  // Parse the texts again, because a fact can keep the whole message in memory for as long as the session exists.
  const kept = facts.filter(({ bytes }) => (left -= bytes) >= 0).map(({ text }) => JSON.parse(text));
  return {
    ...Object.fromEntries(kept),
    name: copyStart(name, 200),
    version: copyStart(version, 100),
    ...typeof title === "string" ? { title: copyStart(title, 200) } : {},
  };
}

// Copy the slice, because a slice can keep its whole source string in memory for as long as the session exists.
function copyStart(text: string, length: number): string {
  return text.length <= length ? text : JSON.parse(JSON.stringify(text.slice(0, length)));
}

export function toAgreement(
  { core, registry }: Engine,
  { version }: SessionInfo,
  link: Pick<Link, "transport">,
): Result {
  return {
    protocolVersion: version,
    capabilities: toAnnounced(core, link, toCapabilities(registry)),
    serverInfo: core.identity,
    instructions: toInstructions(core),
  };
}

// Omit extensions whose methods exist only in revisions without sessions.
function toCapabilities({ capabilities, methods }: Engine["registry"]): Engine["registry"]["capabilities"] {
  const { extensions, ...others } = capabilities;
  if (!extensions) return capabilities;
  const hidden = new Set([...methods.values()].map(({ extension, inSessions }) => inSessions ? undefined : extension));
  const shown = Object.entries(extensions).filter(([id]) => !hidden.has(id));
  return shown.length ? { ...others, extensions: Object.fromEntries(shown) } : others;
}

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot initialize: ${state}`);
}
