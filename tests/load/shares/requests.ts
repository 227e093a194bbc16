// Requests that attackers and other clients both send.
import { toRequest } from "../../support/requests.ts";
import { toGet, toInitialize, toLegacy } from "../../hostile/attack.ts";
import { type Caller, send, type Site } from "./sites.ts";

const REVISION = { "mcp-protocol-version": "2025-11-25" };
const CAN_ASK = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };

/** Opens a session. Returns its id, or an empty text if it was refused. */
export async function initialize(site: Site, caller: Caller): Promise<string> {
  const response = await send(site, caller, toLegacy(toInitialize(), REVISION));
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

/** A message within a session. */
export function toMessage(session: string, method: string, params: object, id?: number): Request {
  return toLegacy({ jsonrpc: "2.0", id, method, params }, { ...REVISION, "mcp-session-id": session });
}

/** A call within a session. */
export function toTalk(session: string, name: string, given: object = {}): Request {
  return toMessage(session, "tools/call", { name, arguments: given }, 1);
}

/** The end of a session. */
export function toEnd(session: string): Request {
  return new Request(toGet(session), { method: "DELETE" });
}

/** A read of a resource. */
export function toRead(uri: string): Request {
  return toRequest("resources/read", { uri });
}

/** Asks for a consent with singleUse. Returns its state, or an empty text if it was refused. */
export async function ask(site: Site, caller: Caller): Promise<string> {
  const response = await send(
    site,
    caller,
    toRequest("tools/call", { name: "consent", arguments: {}, _meta: CAN_ASK }),
  );
  return /"requestState":"([^"]+)"/.exec(await response.text())?.[1] ?? "";
}

/** The answer to the question of {@linkcode ask}. */
export function toConsent(requestState: string): Request {
  const inputResponses = { sure: { action: "accept", content: { ok: true } } };
  return toRequest("tools/call", { name: "consent", arguments: {}, requestState, inputResponses, _meta: CAN_ASK });
}
