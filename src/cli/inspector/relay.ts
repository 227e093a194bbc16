/**
 * Connects the page to other servers. Only the page itself may use it: whoever can use it can send requests from this
 * machine to any server, and to the process of the command that the user named.
 *
 * @module
 */
import type { Target } from "../../client/target.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { isJsonType } from "../../transports/http/accept.ts";
import { checkCaller, type ConnectionInfo, isLoopbackHost } from "../../transports/http/access.ts";
import { Connection } from "./connection.ts";

/** A server that the user named on the command line. */
export interface GivenServer {
  /** What the user typed. */
  readonly name: string;
  readonly target: Target;
  /** Headers that the user typed; the page never sees them. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers the requests of the page that are for other servers. */
export interface Relay {
  /** What the page has to show: an unguessable text. */
  readonly key: string;
  /** Answers a request; `undefined` if its path is not one of the relay. */
  respond(request: Request, info: ConnectionInfo): Promise<Response> | undefined;
  /** Ends every connection, and the processes of commands. */
  close(): Promise<void>;
}

/** Where the relay is; nothing else is below this path. */
export const RELAY_PATH = "/-/inspector/";

const MOST_CONNECTIONS = 16;
const MOST_BODY_BYTES = 32 * 1024 * 1024;
const MOST_HEADERS = 50;
/** Bytes that may wait for a page that does not read. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
/** Milliseconds between two signs of life, without which some runtimes close a silent stream. */
const ALIVE_MS = 5000;
/** Headers that belong to HTTP and to the protocol. */
const RESERVED =
  /^(host|connection|content-.*|transfer-encoding|keep-alive|upgrade|te|trailer|expect|accept|mcp-.*|proxy-.*|sec-.*|origin|last-event-id)$/;

interface Open {
  readonly connection: Connection;
  end(): void;
}

/** Creates the relay. */
export function createRelay(given: GivenServer | undefined): Relay {
  const key = crypto.getRandomValues(new Uint8Array(32)).toHex();
  const open = new Map<string, Open>();

  function respond(request: Request, info: ConnectionInfo): Promise<Response> | undefined {
    const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
    const path = request.url.slice(start).replace(/[?#].*$/, "");
    if (!path.startsWith(RELAY_PATH)) return;
    const problem = refuse(request, info, key);
    if (problem !== undefined) return Promise.resolve(toFailure(403, problem));
    return answer(path.slice(RELAY_PATH.length), request);
  }

  async function answer(action: string, request: Request): Promise<Response> {
    const body = await readBody(request);
    if (!body) return toFailure(400, "the body is not a JSON object, or too long");
    if (action === "connect") return begin(body, request.signal);
    const found = open.get(request.headers.get("x-inspector-connection") ?? "");
    if (!found) return toFailure(404, "there is no such connection");
    if (action === "send") return toStream((signal) => found.connection.send(body, signal), request.signal);
    if (action !== "answer" || typeof body.key !== "string") return toFailure(404, "there is nothing here");
    found.connection.answer(body.key, body.result);
    return Response.json({});
  }

  /** Connects. The connection lives as long as the page reads the stream. */
  function begin(body: Params, signal: AbortSignal): Response {
    if (open.size >= MOST_CONNECTIONS) return toFailure(503, "too many pages are open; close one");
    const server = toServer(body, given);
    if (typeof server === "string") return toFailure(400, server);
    const id = crypto.randomUUID();
    return toStream(async function* (signal) {
      const events: Params[] = [];
      let news = Promise.withResolvers<void>();
      const tell = (event: Params) => {
        events.push(event);
        news.resolve();
      };
      let isOver = false;
      const end = () => {
        isOver = true;
        news.resolve();
      };
      const capabilities = isObject(body.capabilities) ? body.capabilities : {};
      const connection = new Connection({ ...server, capabilities, tell, onGone: end, signal });
      // Questions may come before the connection is open: then their answers are for it too.
      open.set(id, { connection, end });
      tell({ kind: "opening", id });
      signal.addEventListener("abort", end, { once: true });
      connection.open().then(() => tell({ kind: "open" }), (error) => {
        tell({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
        end();
      });
      try {
        while (!isOver || events.length) {
          yield* events.splice(0);
          if (isOver) continue;
          await news.promise;
          news = Promise.withResolvers<void>();
        }
      } finally {
        open.delete(id);
        await connection.close();
      }
    }, signal);
  }

  async function close(): Promise<void> {
    const all = [...open.values()];
    for (const { end } of all) end();
    await Promise.all(all.map(({ connection }) => connection.close()));
  }

  return { key, respond, close };
}

/**
 * Why a request is not from the page; `undefined` if it is. A page of another origin can neither read the key nor send
 * the header without being asked, and one whose name was made to point at this machine names another host.
 */
function refuse(request: Request, info: ConnectionInfo, key: string): string | undefined {
  const { method, headers } = request;
  const refusal = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
  if (refusal) return refusal.reason;
  const host = headers.get("host") ?? "";
  if (!isLoopbackHost(host)) return "it is for this machine only";
  if (headers.get("origin") !== `http://${host}`) return "it is for the inspector's own page only";
  const site = headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return "it is for the inspector's own page only";
  if (method !== "POST" || !isJsonType(headers.get("content-type"))) return "it must be a POST of JSON";
  if (!equals(headers.get("x-inspector-key") ?? "", key)) {
    return "the key is wrong; open the link that the terminal shows";
  }
}

// In a time that does not tell how much of the key was right.
function equals(given: string, key: string): boolean {
  let difference = given.length ^ key.length;
  for (let at = 0; at < key.length; at++) difference |= given.charCodeAt(at) ^ key.charCodeAt(at);
  return difference === 0;
}

async function readBody(request: Request): Promise<Params | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > MOST_BODY_BYTES) return;
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(await new Blob(chunks).text());
    return isObject(value) ? value : undefined;
  } catch {
    return;
  }
}

/** Where to connect: to a URL that the user typed into the page, or to what the command line names; else why not. */
function toServer(
  { url, headers }: Params,
  given: GivenServer | undefined,
): { readonly target: Target; readonly headers: Readonly<Record<string, string>> } | string {
  const own = readHeaders(headers);
  if (typeof own === "string") return own;
  if (url === undefined) {
    return given ? { target: given.target, headers: { ...given.headers, ...own } } : "no server was named at the start";
  }
  if (typeof url !== "string" || url.length > 4000 || !URL.canParse(url)) return "this is not a URL";
  const { protocol, username, password } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return "the URL must begin with http:// or https://";
  if (username || password) return "the URL holds a name or a password; use a header";
  return { target: url, headers: own };
}

function readHeaders(given: unknown): Readonly<Record<string, string>> | string {
  const entries = Object.entries(isObject(given) ? given : {});
  if (entries.length > MOST_HEADERS) return `there are more than ${MOST_HEADERS} headers`;
  const headers = new Headers();
  for (const [name, value] of entries) {
    if (RESERVED.test(name.toLowerCase())) return `the header ${name} cannot be set`;
    try {
      headers.set(name, String(value));
    } catch {
      return `the header ${name} has characters that HTTP forbids`;
    }
  }
  return Object.fromEntries(headers);
}

/** A stream of events, which aborts what makes them when the page does not read any more. */
function toStream(make: (signal: AbortSignal) => AsyncGenerator<Params>, gone: AbortSignal): Response {
  const stop = new AbortController();
  const encoder = new TextEncoder();
  const abort = () => stop.abort(new DOMException("The page is gone", "AbortError"));
  gone.addEventListener("abort", abort, { once: true });
  let timer: ReturnType<typeof setInterval> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        if (stop.signal.aborted) return;
        controller.enqueue(encoder.encode(text));
        if ((controller.desiredSize ?? 0) < -MOST_WAITING_BYTES) abort();
      };
      write(":\n\n");
      timer = setInterval(() => write(":\n\n"), ALIVE_MS);
      // Not waited for: a stream that has not started is not sent.
      void pump(write).catch(abort).finally(() => {
        clearInterval(timer);
        gone.removeEventListener("abort", abort);
        try {
          controller.close();
        } catch {
          // The page is gone, and the stream with it.
        }
        // What is still being connected is given up.
        abort();
      });
    },
    cancel: abort,
  }, { highWaterMark: 0, size: (chunk) => chunk.length });

  async function pump(write: (text: string) => void): Promise<void> {
    for await (const event of make(stop.signal)) write(`data: ${JSON.stringify(event)}\n\n`);
  }

  return new Response(body, { headers: { "content-type": "text/event-stream", ...SAFE } });
}

const SAFE = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
};

function toFailure(status: number, reason: string): Response {
  return Response.json({ problem: `Cannot serve the page: ${reason}` }, { status, headers: SAFE });
}
