// Requests that both the attackers and the other clients send.
import { toRequest } from "../../support/requests.ts";
import { toGet, toInitialize, toLegacy } from "../../hostile/attack.ts";
import { type Caller, FOLLOW, send, type Site } from "./sites.ts";

const REVISION = { "mcp-protocol-version": "2025-11-25" };
const CAN_ASK = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };

/** Opens a session. Returns its id, or an empty string if the server refused the session. */
export async function initialize(site: Site, caller: Caller): Promise<string> {
  const response = await send(site, caller, toLegacy(toInitialize(), REVISION));
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

/** Creates a message in a session. */
export function toMessage(session: string, method: string, params: object, id?: number): Request {
  return toLegacy({ jsonrpc: "2.0", id, method, params }, { ...REVISION, "mcp-session-id": session });
}

/** Creates a tool call in a session. */
export function toTalk(session: string, name: string, given: object = {}): Request {
  return toMessage(session, "tools/call", { name, arguments: given }, 1);
}

/** Creates a request that ends a session. */
export function toEnd(session: string): Request {
  return new Request(toGet(session), { method: "DELETE" });
}

/** Creates a request that follows a topic of the store. */
export function toFollow(): Request {
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { extensions: { [FOLLOW]: {} } } };
  return toRequest("follow/topic", { _meta });
}

/** Creates a request that reads a resource. */
export function toRead(uri: string): Request {
  return toRequest("resources/read", { uri });
}

/** A question of a tool. */
export interface Asked {
  readonly name: string;
  readonly key: string;
  readonly requestState: string;
}

/** Creates a call of a tool that asks. */
export function toAsk(name: string): Request {
  return toRequest("tools/call", { name, arguments: {}, _meta: CAN_ASK });
}

/** Calls a tool that asks. Returns empty texts if the server refused the request. */
export async function ask(site: Site, caller: Caller, name: string): Promise<Asked> {
  const text = await (await send(site, caller, toAsk(name))).text();
  const [, requestState = ""] = /"requestState":"([^"]+)"/.exec(text) ?? [];
  const [, key = ""] = /"inputRequests":\{"([^"]+)"/.exec(text) ?? [];
  return { name, key, requestState };
}

/** Creates a request that answers the question of {@linkcode ask}. */
export function toAnswer({ name, key, requestState }: Asked): Request {
  const inputResponses = { [key]: { action: "accept", content: { ok: true } } };
  return toRequest("tools/call", { name, arguments: {}, requestState, inputResponses, _meta: CAN_ASK });
}
