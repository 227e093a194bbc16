/**
 * Which revisions a server speaks at an address.
 *
 * @see specification/2026-07-28/basic/versioning
 * @see specification/2025-11-25/basic/lifecycle
 * @module
 */
import { readEvents } from "../../client/event_stream.ts";
import { UNSUPPORTED_VERSION } from "../../protocol/errors.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { type Dialect, LEGACY, legacyDialect, MODERN, modernDialect, toHandshake } from "./dialect.ts";
import { type Answer, exchange, open, type Place } from "./exchange.ts";
import type { Tell } from "./report.ts";

/** What a server speaks. */
export interface Spoken {
  readonly modern?: Dialect;
  /** With the session of the newest revision, which is still open. */
  readonly legacy?: Dialect;
  /** What the server says it can do, by feature. */
  readonly capabilities: Params;
}

/** The result of a request; nothing if there is none. */
export function readResult({ message }: Answer): Params | undefined {
  return isObject(message?.result) ? message.result : undefined;
}

/** What an answer was, for people. */
export function tellAnswer({ status, headers, message, text, isCut }: Answer): string {
  if (message?.error) return `${status} with the error ${message.error.code}, ${JSON.stringify(message.error.message)}`;
  if (message) return `${status} with a result`;
  const type = headers.get("content-type")?.split(";")[0];
  const body = text.trim() && type !== "text/html" ? `: ${text.trim().slice(0, 120)}` : "";
  const cut = isCut ? " that did not end in time" : "";
  return `${status}${type ? ` with ${type === "text/html" ? "a web page" : type}` : ""}${cut}${body}`;
}

/** How a server speaks 2026-07-28, by its answer to the first question of that revision; nothing if it does not. */
export function discover(first: Answer, tell: Tell): Spoken | undefined {
  const { error } = first.message ?? {};
  if (error?.code === UNSUPPORTED_VERSION) {
    const supported = isObject(error.data) && Array.isArray(error.data.supported) ? error.data.supported : [];
    return void tell.note(
      `server/discover is answered, but not in ${MODERN}: the server speaks ${supported.join(", ") || "nothing"}`,
      `serve ${MODERN}; until then clients need one of the others`,
    );
  }
  const result = readResult(first);
  if (!result || !Array.isArray(result.supportedVersions)) return;
  const { supportedVersions, capabilities, _meta } = result;
  const info = isObject(_meta) ? _meta["io.modelcontextprotocol/serverInfo"] : undefined;
  tell.ok(`server/discover answers in ${toMs(first.ms)}${tellName(info ?? result.serverInfo)}`);
  if (!supportedVersions.includes(MODERN)) {
    tell.problem(
      `server/discover does not name ${MODERN}, in which it was asked and answers`,
      `list ${MODERN} in supportedVersions`,
    );
  }
  if (!isObject(capabilities)) {
    tell.problem("server/discover names no capabilities", "answer with a capabilities object, {} if there are none");
  }
  return { modern: modernDialect(), capabilities: isObject(capabilities) ? capabilities : {} };
}

/** Where handshakes are told, and the sessions that they begin are kept until they are ended. */
export interface Handshakes {
  readonly tell: Tell;
  readonly sessions: Set<Dialect>;
}

/** Shakes hands in each older revision; how the server speaks the newest that it takes, in a session that stays open. */
export async function shakeHands(place: Place, { tell, sessions }: Handshakes): Promise<Spoken | undefined> {
  const agreed: string[] = [];
  let kept: Spoken | undefined;
  for (const version of LEGACY) {
    const answer = await begin(place, version);
    const result = readResult(answer);
    if (!result) {
      if (kept) tellSecond(answer, tell);
      if (kept || !isMethodUnknown(answer)) break;
      return;
    }
    const { protocolVersion } = result;
    const got = typeof protocolVersion === "string" ? protocolVersion : JSON.stringify(protocolVersion) ?? "nothing";
    const id = answer.headers.get("mcp-session-id") ?? undefined;
    const dialect = legacyDialect(got, id);
    sessions.add(dialect);
    if (!kept) {
      checkHandshake(result, tell);
      kept = { legacy: dialect, capabilities: isObject(result.capabilities) ? result.capabilities : {} };
      tellHandshake(got, result, answer, tell);
    } else {
      await endSession(place, dialect);
      sessions.delete(dialect);
    }
    if (got === version) agreed.push(got);
  }
  const rest = agreed.slice(1);
  if (rest.length) tell.ok(`older handshakes are taken too: ${rest.join(", ")}`);
  return kept;
}

function tellHandshake(version: string, result: Params, { ms }: Answer, tell: Tell): void {
  if (LEGACY.includes(version)) {
    return tell.ok(`initialize agrees on ${version} in ${toMs(ms)}${tellName(result.serverInfo)}`);
  }
  tell.problem(
    `initialize is answered with the revision ${JSON.stringify(version)}, which no client knows`,
    `answer with the revision that was asked for, or with one of ${LEGACY.join(", ")}`,
  );
}

// A transport that was made once for all clients takes the first of them only.
function tellSecond(answer: Answer, tell: Tell): void {
  tell.problem(
    `initialize was taken once; the next one got ${tellAnswer(answer)}`,
    "make a server or transport for each session, so that more than one client can connect",
  );
}

function isMethodUnknown({ message, status }: Answer): boolean {
  return message?.error?.code === -32601 || [404, 405].includes(status);
}

function checkHandshake({ serverInfo, capabilities }: Params, tell: Tell): void {
  if (!isObject(serverInfo) || typeof serverInfo.name !== "string" || typeof serverInfo.version !== "string") {
    tell.problem("initialize does not say who the server is", "answer with serverInfo: { name, version }");
  }
  if (!isObject(capabilities)) {
    tell.problem("initialize names no capabilities", "answer with a capabilities object, {} if there are none");
  }
}

/** Begins a session. It is not given up on the way: nobody would know its id, and end it. */
export async function begin({ signal: _, ...place }: Place, version: string): Promise<Answer> {
  return await exchange(place, toHandshake(version));
}

/** Ends a session, if there is one; the answer. It is not given up on the way either. */
export async function endSession(
  { signal: _, ...place }: Place,
  { sessionId, write }: Dialect,
): Promise<Answer | undefined> {
  if (sessionId === undefined) return;
  const { headers } = write("ping");
  return await exchange(place, { method: "DELETE", headers: { ...headers, "content-type": null } });
}

/** How an address is answered as clients of some revision would ask it; nothing if none could. Ends what it begins. */
export async function tryAddress(place: Place): Promise<string | undefined> {
  const dialect = modernDialect();
  const modern = await exchange(place, dialect.write(dialect.idle));
  if (modern.status === 401) return "a demand for a token (401)";
  if (readResult(modern)) return MODERN;
  const answer = await begin(place, LEGACY[0]);
  const result = readResult(answer);
  if (result) {
    await endSession(place, legacyDialect(LEGACY[0], answer.headers.get("mcp-session-id") ?? undefined));
    return `a handshake, ${result.protocolVersion}`;
  }
  return await namesEndpoint(place) ? "the transport of 2024-11-05, HTTP with SSE" : undefined;
}

/** Whether the address is the stream of the first transport: one whose first event names where to send messages. */
export async function namesEndpoint(place: Place): Promise<boolean> {
  const opened = await open(place, { method: "GET", headers: { accept: "text/event-stream" } });
  try {
    if (!opened.isStream || !opened.response.ok) return false;
    const events = readEvents(opened.response, opened.signal);
    return await opened.inTime(events.next().then(({ value }) => value?.type === "endpoint"));
  } catch {
    return false;
  } finally {
    opened.close();
  }
}

/** Milliseconds for people. */
export function toMs(ms: number): string {
  return `${Math.max(1, Math.round(ms))} ms`;
}

function tellName(info: unknown): string {
  if (!isObject(info) || typeof info.name !== "string") return "";
  return `: ${info.name}${typeof info.version === "string" ? ` ${info.version}` : ""}`;
}
