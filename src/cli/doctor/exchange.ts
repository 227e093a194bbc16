/**
 * Writes requests in each protocol revision, and sends the requests with limits on the time and the size of the
 * response.
 */
import { readEvents, readMessageEvent } from "../../core/kit/event_stream.ts";
import type { Message, Params } from "../../client/client.ts";
import { deadline } from "../../core/kit/deadline.ts";
import { isObject, parseJson } from "../../core/kit/json.ts";
import { startResponseTimer } from "../../core/kit/timer.ts";
import { explainConnectionError } from "../connection_errors.ts";
import type { LookUp } from "./named_url.ts";
import { MODERN } from "../protocol.ts";
import { NAME, VERSION } from "../version.ts";

/** The server under examination. */
export interface Endpoint {
  readonly url: string;
  readonly fetch: (request: Request) => Promise<Response>;
  /** Looks up the hosts in URLs that the server sends. */
  readonly lookUp: LookUp;
  readonly headers: Readonly<Record<string, string>>;
  /** The timeout of each request, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface RequestParts {
  /** The HTTP method. Defaults to `POST`. */
  readonly method?: string;
  /** Additional headers. `null` removes a header that all requests have. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
}

export interface ServerResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of the body. The empty string for a stream. */
  readonly text: string;
  /** The JSON-RPC response in the body or the stream. */
  readonly message?: Message;
  readonly isStream: boolean;
  /** Whether the timeout expired before the response was complete. */
  readonly isCut: boolean;
  /** Milliseconds from the request until the response was read. */
  readonly ms: number;
}

/** The error for a request that got no response. The message states the reason. */
export class NoResponse extends Error {
  override readonly name = "NoResponse";
  /** How to fix the problem, as a sentence. */
  readonly fix: string;

  constructor(message: string, fix: string, cause?: unknown) {
    super(message, { cause });
    this.fix = fix;
  }
}

/** Maximum number of characters of a body that are read. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/**
 * Sends a request and reads the response.
 *
 * @throws {NoResponse} if there is no response.
 */
export async function exchange(endpoint: Endpoint, request: RequestParts): Promise<ServerResponse> {
  const started = performance.now();
  const opened = await open(endpoint, request);
  const { response: { status, headers }, isStream } = opened;
  let [text, message, isCut]: [string, Message | undefined, boolean] = ["", undefined, false];
  try {
    if (isStream) message = await opened.withinTimeout(readStreamResponse(opened));
    else text = await opened.withinTimeout(readStart(opened.response));
  } catch {
    // After a timeout, return the status and the headers without the body.
    isCut = true;
  } finally {
    opened.close();
  }
  return {
    status,
    headers,
    text,
    message: message ?? readMessage(text),
    isStream,
    isCut,
    ms: performance.now() - started,
  };
}

/** A response whose body has not been read yet. */
export interface OpenResponse {
  readonly response: Response;
  readonly isStream: boolean;
  /** Milliseconds from the request until the headers arrived. */
  readonly ms: number;
  readonly signal: AbortSignal;
  /** Waits at most until the request's timeout, which covers headers and body together. */
  withinTimeout<T>(promise: Promise<T>): Promise<T>;
  /** Removes the timeout, to keep a stream open. */
  keepOpen(): void;
  close(): void;
}

/**
 * Sends a request and waits for the headers of the response.
 *
 * @throws {NoResponse} if there is no response.
 */
export async function open(
  endpoint: Endpoint,
  { method = "POST", headers = {}, body }: RequestParts,
): Promise<OpenResponse> {
  const { url, timeoutMs } = endpoint;
  const all = new Headers(endpoint.headers);
  for (const [name, value] of Object.entries(headers)) value === null ? all.delete(name) : all.set(name, value);
  const controller = new AbortController();
  const stopTimer = startResponseTimer(timeoutMs, () => controller.abort(toTimeoutError(timeoutMs)));
  const signal = endpoint.signal ? AbortSignal.any([controller.signal, endpoint.signal]) : controller.signal;
  const close = () => {
    stopTimer();
    controller.abort();
  };
  const started = performance.now();
  const withinTimeout = <T>(promise: Promise<T>) => deadline(promise, { signal });
  try {
    const request = new Request(url, { method, headers: all, body, signal, redirect: "manual" });
    const response = await withinTimeout(endpoint.fetch(request));
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    const ms = performance.now() - started;
    return { response, isStream, ms, signal, withinTimeout, keepOpen: stopTimer, close };
  } catch (error) {
    const reason: unknown = controller.signal.reason;
    close();
    if (reason instanceof NoResponse) throw reason;
    if (endpoint.signal?.aborted) throw new NoResponse("the examination was stopped", "run doctor again");
    const { state, remedy } = explainConnectionError(error, url);
    throw new NoResponse(state, remedy, error);
  }
}

function toTimeoutError(ms: number): NoResponse {
  return new NoResponse(
    `the server did not respond within ${ms / 1000} s`,
    "check whether the server is busy or blocked, or allow N seconds with --timeout N",
  );
}

async function readStreamResponse({ response, signal }: OpenResponse): Promise<Message | undefined> {
  for await (const event of readEvents(response, signal)) {
    const data = readMessageEvent(event);
    const message = data === undefined ? undefined : readMessage(data);
    if (message && message.method === undefined) return message;
  }
}

async function readStart({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MAX_CHARACTERS) break;
  }
  return text + decoder.decode();
}

function readMessage(text: string): Message | undefined {
  const value: unknown = [parseJson(text)].flat()[0];
  return isMessage(value) ? value : undefined;
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || value.jsonrpc !== "2.0") return false;
  const { error, method } = value;
  return isObject(error)
    ? typeof error.code === "number" && typeof error.message === "string"
    : method !== undefined || "result" in value;
}

const INFO = { name: `${NAME} doctor`, version: VERSION };
const META = "io.modelcontextprotocol/";
const ACCEPT = "application/json, text/event-stream";

/** Writes the requests of one protocol revision. */
export interface RequestWriter {
  readonly version: string;
  readonly isModern: boolean;
  readonly sessionId?: string;
  /** A method that every server of this revision supports, and that changes nothing. */
  readonly pingMethod: string;
  /** Writes a request, or a notification if `method` is the name of a notification. */
  write(method: string, params?: Params): RequestParts;
}

/** Creates a writer for the revision without handshakes, in which every request identifies the client. */
export function modernWriter(version: string = MODERN): RequestWriter {
  const _meta = {
    [META + "protocolVersion"]: version,
    [META + "clientInfo"]: INFO,
    [META + "clientCapabilities"]: {},
  };
  return {
    version,
    isModern: true,
    pingMethod: "server/discover",
    write: (method, params = {}) =>
      toRequest({ "mcp-protocol-version": version, "mcp-method": method }, method, { ...params, _meta }),
  };
}

/** Creates a writer for the requests of a session. */
export function legacyWriter(version: string, sessionId?: string): RequestWriter {
  const headers = {
    ...sessionId === undefined ? {} : { "mcp-session-id": sessionId },
    // Omit the header in earlier revisions, because they do not define the header.
    ...version >= "2025-06-18" ? { "mcp-protocol-version": version } : {},
  };
  return {
    version,
    isModern: false,
    sessionId,
    pingMethod: "ping",
    write: (method, params) => toRequest(headers, method, params),
  };
}

export function toInitialize(version: string): RequestParts {
  return toRequest({}, "initialize", { protocolVersion: version, capabilities: {}, clientInfo: INFO });
}

function toRequest(headers: Record<string, string>, method: string, params?: Params): RequestParts {
  const id = method.startsWith("notifications/") ? {} : { id: 1 };
  return {
    headers: { "content-type": "application/json", accept: ACCEPT, ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...id, method, ...params && { params } }),
  };
}
