/**
 * `initialize`: what the two sides agree on.
 *
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Params, type Result } from "../../protocol/jsonrpc.ts";
import type { Engine } from "../../core/era.ts";
import type { SessionFacts } from "./session_state.ts";
import { isVersion, VERSIONS } from "./versions.ts";

/** Characters of the capabilities as JSON: what a client states about itself is kept, and part of the session id. */
const MOST_CAPABILITIES = 4096;

/** Reads what a client offers. A version we do not know is answered with our newest. */
export function readOffer(params: Params = {}): SessionFacts {
  const { protocolVersion, capabilities, clientInfo } = params;
  if (typeof protocolVersion !== "string") throw invalid("protocolVersion is not a string");
  if (capabilities !== undefined && !isObject(capabilities)) throw invalid("capabilities is not an object");
  if (clientInfo !== undefined && !isObject(clientInfo)) throw invalid("clientInfo is not an object");
  if (JSON.stringify(capabilities ?? {}).length > MOST_CAPABILITIES) {
    throw invalid(`capabilities are longer than ${MOST_CAPABILITIES} characters of JSON`);
  }
  const { name, version, title } = clientInfo ?? {};
  return {
    version: isVersion(protocolVersion) ? protocolVersion : VERSIONS[0],
    info: typeof name === "string" && typeof version === "string"
      ? {
        name: copyStart(name, 200),
        version: copyStart(version, 100),
        ...typeof title === "string" ? { title: copyStart(title, 200) } : {},
      }
      : undefined,
    capabilities: capabilities ?? {},
  };
}

// An engine keeps the whole text alive for a slice of it, and a session lives longer than its first message.
function copyStart(text: string, length: number): string {
  return text.length <= length ? text : JSON.parse(JSON.stringify(text.slice(0, length)));
}

/** What the server answers. */
export function toAgreement({ core, registry }: Engine, { version }: SessionFacts): Result {
  return {
    protocolVersion: version,
    capabilities: { ...registry.capabilities, logging: {} },
    serverInfo: core.identity,
    instructions: core.instructions,
  };
}

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot initialize: ${state}`);
}
