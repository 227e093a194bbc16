/**
 * Connects the page to other servers. Only the page may use it, because it sends requests from this machine to any server
 * and to the process of a command.
 *
 * @module
 */
import type { Params, Target } from "../../client/client.ts";
import { isObject } from "../../kit/json.ts";
import type { ConnectionInfo } from "../../library.ts";
import { checkCaller, isLoopbackHost } from "../../host.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { EventQueue } from "./event_queue.ts";

/** The server named on the command line. */
export interface NamedServer {
  /** The name that the user gave. */
  readonly name: string;
  readonly target: Target;
  /** The headers that the user gave. The page never sees them. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Handles the requests of the page for other servers. */
export interface Relay {
  /** The secret key that the page must send. */
  readonly key: string;
  /** Handles a request. Returns `undefined` for paths outside the relay. */
  respond(request: Request, info: ConnectionInfo): Promise<Response> | undefined;
  /** Closes all connections, and ends the processes of commands. */
  close(): Promise<void>;
}

/** The path prefix of the relay. */
const RELAY_PATH = "/-/inspector/";

const MAX_CONNECTIONS = 16;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const MAX_HEADERS = 50;
/** The number of bytes to buffer for a page that does not read. */
const MAX_BUFFERED_BYTES = 64 * 1024 * 1024;
/** The time between two heartbeats in milliseconds. Some runtimes close silent streams. */
const HEARTBEAT_MS = 5000;
/** Headers of HTTP and of the protocol, which users cannot set. */
const RESERVED =
  /^(host|connection|content-.*|transfer-encoding|keep-alive|upgrade|te|trailer|expect|accept|mcp-.*|proxy-.*|sec-.*|origin|last-event-id)$/;

interface OpenConnection {
  readonly connection: Connection;
  end(): void;
}

/** Creates the relay. */
export function createRelay(server: NamedServer | undefined): Relay {
  return new ServerRelay(server);
}

class ServerRelay implements Relay {
  readonly key: string = crypto.getRandomValues(new Uint8Array(32)).toHex();
  readonly #server: NamedServer | undefined;
  readonly #connections = new Map<string, OpenConnection>();

  constructor(server: NamedServer | undefined) {
    this.#server = server;
  }

  respond(request: Request, info: ConnectionInfo): Promise<Response> | undefined {
    const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
    const path = request.url.slice(start).replace(/[?#].*$/, "");
    if (!path.startsWith(RELAY_PATH)) return;
    const problem = checkRequest(request, info, this.key);
    if (problem !== undefined) return Promise.resolve(toFailure(403, problem));
    return this.#handle(path.slice(RELAY_PATH.length), request);
  }

  async close(): Promise<void> {
    const all = [...this.#connections.values()];
    for (const { end } of all) end();
    await Promise.all(all.map(({ connection }) => connection.close()));
  }

  async #handle(action: string, request: Request): Promise<Response> {
    const body = await readBody(request);
    if (!body) return toFailure(400, "the body is not a JSON object or is too large");
    if (action === "connect") return this.#connect(body, request.signal);
    if (action === "server") return this.#describeServer();
    const found = this.#connections.get(request.headers.get("x-inspector-connection") ?? "");
    if (!found) return toFailure(404, "the connection does not exist");
    if (action === "send") return toStream((signal) => found.connection.send(body, signal), request.signal);
    if (action !== "answer" || typeof body.key !== "string") return toFailure(404, "the path does not exist");
    found.connection.answer(body.key, body.result);
    return Response.json({});
  }

  /** Describes the server of the command line. The page itself does not, because anybody on this machine can read it. */
  #describeServer(): Response {
    const server = this.#server;
    const facts = server ? { name: server.name, hasHeaders: typeof server.target === "string" } : {};
    return Response.json(facts, { headers: SAFE });
  }

  /** Connects to a server. The connection stays open while the page reads the stream. */
  #connect(body: Params, gone: AbortSignal): Response {
    if (this.#connections.size >= MAX_CONNECTIONS) return toFailure(503, "too many pages are open; close one");
    const target = readTarget(body, this.#server);
    if (typeof target === "string") return toFailure(400, target);
    const capabilities = isObject(body.capabilities) ? body.capabilities : {};
    const revision = typeof body.revision === "string" && body.revision ? body.revision : undefined;
    return toStream((signal) => this.#open({ ...target, capabilities, revision, signal }), gone);
  }

  /** Opens a connection, and yields its events until it ends. */
  async *#open(options: Omit<ConnectionOptions, "onEvent" | "onGone">): AsyncGenerator<Params> {
    const id = crypto.randomUUID();
    const events = new EventQueue();
    const end = () => events.end();
    const connection = new Connection({ ...options, onEvent: (event) => events.add(event), onGone: end });
    // The server may send requests before the connection is open, and the page responds to them here.
    this.#connections.set(id, { connection, end });
    events.add({ kind: "opening", id });
    options.signal.addEventListener("abort", end, { once: true });
    connection.open().then(() => events.add({ kind: "open" }), (error) => {
      events.add({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
      end();
    });
    try {
      yield* events.read();
    } finally {
      this.#connections.delete(id);
      await connection.close();
    }
  }
}

/**
 * The reason to reject a request; `undefined` if it comes from the page. Pages of other origins cannot read the key or
 * send the header without a CORS preflight. Pages with a rebound DNS name send another Host header.
 */
function checkRequest(request: Request, info: ConnectionInfo, key: string): string | undefined {
  const { method, headers } = request;
  const rejection = checkCaller(request, info, { hosts: [], origins: [], allows: () => undefined });
  if (rejection) return rejection.reason;
  const host = headers.get("host") ?? "";
  if (!isLoopbackHost(host)) return "it is only for this machine";
  if (headers.get("origin") !== `http://${host}`) return "it is only for the page of the inspector";
  const site = headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return "it is only for the page of the inspector";
  if (method !== "POST" || !/^application\/json *(; *charset="?utf-8"?)?$/i.test(headers.get("content-type") ?? "")) {
    return "it must be a POST request with JSON";
  }
  if (headers.get("x-inspector-key") !== key) {
    return "the key is wrong; open the link that the terminal shows";
  }
}

async function readBody(request: Request): Promise<Params | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return;
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(await new Blob(chunks).text());
    return isObject(value) ? value : undefined;
  } catch {
    return;
  }
}

/** The URL entered in the page, or the server of the command line. Returns the problem if there is neither. */
function readTarget(
  { url, headers }: Params,
  server: NamedServer | undefined,
): { readonly target: Target; readonly headers: Readonly<Record<string, string>> } | string {
  const own = readHeaders(headers);
  if (typeof own === "string") return own;
  if (url === undefined) {
    return server
      ? { target: server.target, headers: { ...server.headers, ...own } }
      : "the command line names no server";
  }
  if (typeof url !== "string" || url.length > 4000 || !URL.canParse(url)) return "this is not a URL";
  const { protocol, username, password } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") return "the URL must begin with http:// or https://";
  if (username || password) return "the URL contains a name or password; use a header";
  return { target: url, headers: own };
}

function readHeaders(value: unknown): Readonly<Record<string, string>> | string {
  const entries = Object.entries(isObject(value) ? value : {});
  if (entries.length > MAX_HEADERS) return `there are more than ${MAX_HEADERS} headers`;
  const headers = new Headers();
  for (const [name, value] of entries) {
    if (RESERVED.test(name.toLowerCase())) return `the header ${name} cannot be set`;
    try {
      headers.set(name, String(value));
    } catch {
      return `the header ${name} has characters that are not allowed in a header`;
    }
  }
  return Object.fromEntries(headers);
}

/** A stream of events. It aborts the generator when the page stops reading. */
function toStream(make: (signal: AbortSignal) => AsyncGenerator<Params>, gone: AbortSignal): Response {
  const stop = new AbortController();
  const encoder = new TextEncoder();
  const abort = () => stop.abort(new DOMException("The page was closed", "AbortError"));
  gone.addEventListener("abort", abort, { once: true });
  let timer: ReturnType<typeof setInterval> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        if (stop.signal.aborted) return;
        controller.enqueue(encoder.encode(text));
        if ((controller.desiredSize ?? 0) < -MAX_BUFFERED_BYTES) abort();
      };
      write(":\n\n");
      timer = setInterval(() => write(":\n\n"), HEARTBEAT_MS);
      // Not awaited, because the response is sent only after `start` returns.
      void pump(write).catch(abort).finally(() => {
        clearInterval(timer);
        gone.removeEventListener("abort", abort);
        try {
          controller.close();
        } catch {
          // The page has already closed the stream.
        }
        // Cancels a connection attempt.
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
