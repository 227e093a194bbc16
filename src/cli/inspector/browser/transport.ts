/**
 * Sends messages to the server. The page sends requests directly to its own server, and uses the relay for other
 * servers and other protocol revisions.
 */
import { readEvents } from "../../../core/kit/event_stream.ts";
import { endpoint, type NamedServer, ownUrl, protocol } from "./config.ts";
import { headers as ownHeaders, key, place } from "./credentials.ts";
import { logFrame } from "./message_log.ts";
import { askUser } from "./question_dialogs.ts";
import { type Json, parseObject, toCompact, toObject, toText } from "./json.ts";
import { client } from "./server_facts.ts";

const RELAY = "/-/inspector/";

export interface PostOptions {
  /** The protocol headers to send. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

// Reject redirects, because following a redirect would send the headers to its target.
const REQUEST = { method: "POST", cache: "no-store", redirect: "error" } as const;

/** Sends a request. Throws if there is no response. */
export async function post(body: string, { headers, signal }: PostOptions): Promise<Response> {
  if (place.kind === "own" && endpoint !== undefined && ["", protocol].includes(place.revision)) {
    const all = { ...ownHeaders, ...headers };
    return await fetch(endpoint, { ...REQUEST, headers: all, body, signal, credentials: "same-origin" });
  }
  const response = await ask("send", body, { signal, connection: await connect() });
  if (response.status !== 404) return response;
  opening = undefined;
  return await ask("send", body, { signal, connection: await connect() });
}

export async function* readData(response: Response): AsyncGenerator<string> {
  for await (const { data } of readEvents(response)) if (data) yield data;
}

/** Returns the server named on the command line. Throws if the page has no key. */
export async function findNamedServer(): Promise<NamedServer> {
  const response = await ask("server", "{}", {});
  const { name, hasHeaders } = parseObject(await response.text());
  return { name: toText(name) ?? "", hasHeaders: hasHeaders === true };
}

/** Returns why a handler of the page's own server failed, by the error's id. `undefined` if the reason is unknown. */
export async function findFault(id: string): Promise<string | undefined> {
  if (endpoint === undefined || key === undefined) return;
  try {
    return toText(parseObject(await (await ask("fault", JSON.stringify({ id }), {})).text()).text);
  } catch {
    // Ignore the error. The page then shows the failure without a reason.
  }
}

interface AskOptions {
  readonly signal?: AbortSignal;
  readonly connection?: string;
}

/** Sends a request to the relay. */
async function ask(action: string, body: string, { signal, connection }: AskOptions): Promise<Response> {
  if (key === undefined) {
    throw new Error("The page has no key; open the complete link that the terminal shows, including the part after #");
  }
  const headers = {
    "content-type": "application/json",
    "x-inspector-key": key,
    ...connection === undefined ? {} : { "x-inspector-connection": connection },
  };
  return await fetch(RELAY + action, { ...REQUEST, headers, body, signal, credentials: "omit" });
}

let opening: Promise<string> | undefined;

/** Returns the ID of the connection. Opens a connection if no connection is open. */
function connect(): Promise<string> {
  if (opening) return opening;
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  opening = promise;
  follow(resolve).then(() => reject(new Error("The connection has ended")), reject).finally(() => {
    if (opening === promise) opening = undefined;
  });
  return promise;
}

/** Opens a connection and handles its events until the connection ends. Calls `opened` with the connection's ID. */
async function follow(opened: (id: string) => void): Promise<void> {
  const url = { own: ownUrl, named: undefined, url: place.url }[place.kind];
  const { revision } = place;
  const { capabilities } = client;
  const response = await ask("connect", JSON.stringify({ url, revision, headers: ownHeaders, capabilities }), {});
  if (!response.ok) {
    throw new Error(
      toText(parseObject(await response.text()).problem) ?? "Cannot connect: the inspector is no longer running",
    );
  }
  const questions = new Map<string, AbortController>();
  let id = "";
  try {
    for await (const data of readData(response)) {
      const event = parseObject(data);
      const question = String(event.key);
      if (event.kind === "opening") id = String(event.id);
      if (event.kind === "open") opened(id);
      if (event.kind === "failed") throw new Error(String(event.message));
      if (event.kind === "warning") logWarning(String(event.text));
      if (event.kind === "withdrawn") questions.get(question)?.abort();
      if (event.kind !== "question") continue;
      const stop = new AbortController();
      questions.set(question, stop);
      void reply(id, event, stop.signal).finally(() => questions.delete(question));
    }
  } finally {
    for (const question of questions.values()) question.abort();
  }
}

function logWarning(data: string): void {
  const method = "inspector/warning";
  logFrame({
    kind: "notification",
    id: 0,
    method,
    text: toCompact({ method, params: { level: "warning", data } }),
    ms: 0,
  });
}

/** Shows a request from the server to the user, and sends the response. */
async function reply(connection: string, { key, method, params }: Json, signal: AbortSignal): Promise<void> {
  const start = performance.now();
  const log = (kind: "question" | "answer", value: unknown) =>
    logFrame({ kind, id: 0, method: String(method), text: toCompact(value), ms: performance.now() - start });
  log("question", { method, params });
  const result = await askUser(String(method), toObject(params), signal);
  log("answer", { result });
  if (signal.aborted) return;
  await ask("answer", JSON.stringify({ key, result }), { connection }).catch(() => {});
}
