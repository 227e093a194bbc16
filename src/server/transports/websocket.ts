/**
 * Serves MCP over WebSocket, with one JSON message per frame.
 *
 * ```ts ignore
 * import { webSocket } from "@x/mcp/websocket";
 * import server from "./server.ts";
 *
 * Deno.serve(webSocket(server).fetch);
 * // On Bun: Bun.serve(webSocket(server));
 * ```
 *
 * @see specification/2026-07-28/basic/transports (Custom Transports)
 * @module
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isWithin } from "../../core/protocol/weight.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { Principal } from "../call/context.ts";
import { deno, node, startBackgroundTimer } from "../../core/runtime.ts";
import type { ConnectionInfo } from "./http/access.ts";
import { readPath } from "./http/access_options.ts";
import { type Entrant, Entry, type EntryServer, toEntryServer } from "./http/entry_admission.ts";
import { checkTemplate } from "./http/path_template.ts";
import type { Refusal } from "./http/refusals.ts";
import { Outbox } from "./outbox.ts";
import { openPipe, type Pipe, type Served } from "./channel.ts";

export type { Served } from "./channel.ts";

/** Options of the WebSocket transport. */
export interface WebSocketOptions {
  /**
   * Path of the WebSocket endpoint. If the server's path has parameters, this path must have the same parameters, such
   * as `/tenants/:tenant/ws`. Defaults to `/ws`.
   */
  readonly path?: string;
}

const OPTIONS: KnownOptions<keyof WebSocketOptions> = { names: { path: true } };

/** The members of a socket that a server uses. The standard `WebSocket` and Bun's own socket have these members. */
export interface Socket {
  /** Sends a frame. */
  send(text: string): unknown;
  /** Closes the socket with a code and a reason. */
  close(code?: number, reason?: string): void;
  /** On Bun, the data that was passed to the upgrade. */
  readonly data?: unknown;
  /** Number of bytes that are not sent yet. */
  readonly bufferedAmount?: number;
  /** On Bun, returns the number of bytes that are not sent yet. */
  getBufferedAmount?(): number;
}

/** The handlers to pass to Deno or Bun. `fetch` upgrades requests. Bun then calls the methods of `websocket`. */
export interface WebSocketService {
  /** Upgrades requests for the path, and passes all other requests on to the server. */
  readonly fetch: (request: Request, info?: ConnectionInfo) => Promise<Response>;
  /** Socket handlers for `Bun.serve`. */
  readonly websocket: {
    open(socket: Socket): void;
    message(socket: Socket, data: unknown): void;
    close(socket: Socket): void;
    drain(socket: Socket): void;
  };
}

/**
 * Serves MCP over WebSocket next to the HTTP endpoint, on Deno and Bun. Checks Host and Origin before an upgrade. When
 * the server closes, it closes all sockets.
 *
 * @throws {TypeError} on Node, which cannot upgrade web-standard requests, or if an option is invalid.
 */
export function webSocket(
  server: Served & {
    /** Handles all requests that are not for the WebSocket endpoint. */
    fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  },
  options: WebSocketOptions = {},
): WebSocketService {
  checkOptions("serve WebSocket", options, OPTIONS);
  const { path = "/ws" } = options;
  const entry = toEntryServer(server);
  const { find, http: { path: ownPath } } = entry[INTERNALS];
  if (find) checkTemplate(path, ownPath);
  else readPath(path);
  if (node) {
    throw new TypeError(
      "Cannot serve WebSocket: Node cannot upgrade web-standard requests; run the server with Deno or Bun, or accept " +
        "sockets with another package and pass each socket to attachSocket()",
    );
  }
  const endpoint = new SocketEndpoint(entry, path);
  return {
    fetch: (request, info) => endpoint.fetch(request, info),
    websocket: {
      open: (socket) => endpoint.accept(socket),
      message: (socket, data) => endpoint.open.get(socket)?.receive(data),
      drain: (socket) => endpoint.open.get(socket)?.drain(),
      close: (socket) => endpoint.close(socket),
    },
  };
}

// Bound: `connections.streams`.
class SocketEndpoint {
  readonly #server: EntryServer;
  readonly #entry: Entry;
  readonly open: Map<Socket, SocketConnection> = new Map();
  readonly #owners = new Map<Socket, Entrant>();
  /** The objects that `fetch` passed to Bun's upgrade. These objects identify the sockets whose request was checked. */
  readonly #admitted = new WeakSet<object>();

  constructor(server: EntryServer, path: string) {
    this.#server = server;
    this.#entry = new Entry(server, { transport: "websocket", isSimple: true, path, missing: NOT_HERE });
    server[INTERNALS].http.ended.then(() => {
      for (const socket of this.open.keys()) socket.close(GOING_AWAY, "the server is closing");
    });
  }

  async fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!isUpgrade) return await this.#server.fetch(request, info);
    return await this.#entry.fetch(
      request,
      info,
      (caller, parts) => this.#entry.admit(caller, parts, (owner) => this.#upgrade(request, info, owner)),
    );
  }

  /** Opens a socket after Bun has upgraded its request. Bun sets `socket.data` to the data of the upgrade. */
  accept(socket: Socket): void {
    const { data } = socket;
    if (this.#isAdmitted(data)) return void this.#open(socket, data);
    // Close the socket, because another function has upgraded its request without checking Host, Origin and caller.
    socket.close(POLICY_VIOLATION, "the socket was not admitted");
    const state = "another function has upgraded its request";
    this.#server[INTERNALS].http.core.report(
      new TypeError(
        `Cannot serve a socket: ${state}; pass the request to fetch() of webSocket(), or use attachSocket()`,
      ),
    );
  }

  #isAdmitted(data: unknown): data is Entrant {
    return isObject(data) && this.#admitted.has(data);
  }

  #open(socket: Socket, owner: Entrant): SocketConnection {
    this.#owners.set(socket, owner);
    const connection = new SocketConnection(owner.served, socket, owner);
    owner.drop = () => connection.drop();
    this.open.set(socket, connection);
    return connection;
  }

  close(socket: Socket): void {
    this.open.get(socket)?.close();
    if (this.open.delete(socket)) this.#owners.get(socket)?.place.end();
    this.#owners.delete(socket);
  }

  #upgrade(request: Request, info: ConnectionInfo | undefined, owner: Entrant): Response {
    // Send the subprotocol only if the client requested it. Otherwise the client would close the connection.
    const isNamed = /(^|,)\s*mcp\s*(,|$)/.test(request.headers.get("sec-websocket-protocol") ?? "");
    if (deno?.upgradeWebSocket) return this.#upgradeOnDeno(request, isNamed, owner);
    const headers = isNamed ? { "sec-websocket-protocol": "mcp" } : undefined;
    const runtime = info?.info ?? info;
    this.#admitted.add(owner);
    if (isUpgrader(runtime) && runtime.upgrade(request, { headers, data: owner })) return new Response(null);
    return this.#giveBack(owner, 501, "this runtime cannot upgrade a request to WebSocket");
  }

  #upgradeOnDeno(request: Request, isNamed: boolean, owner: Entrant): Response {
    let upgraded;
    try {
      upgraded = deno?.upgradeWebSocket?.(request, isNamed ? { protocol: "mcp" } : {});
    } catch {
      // The request lacks a header of the upgrade.
    }
    if (!upgraded) return this.#giveBack(owner, 400, "the headers of the upgrade request are incomplete");
    const { socket, response } = upgraded;
    const connection = this.#open(socket, owner);
    // Deno emits no event if the client disconnects before the socket opens, such as while `admit` runs. Do not read the
    // request's signal instead, because Deno would then print a warning when a socket opens.
    const stopWaiting = this.#server[INTERNALS].http.core.ticker.start(() => {
      socket.close();
      this.close(socket);
    }, OPEN_MS);
    const close = () => {
      stopWaiting();
      this.close(socket);
    };
    socket.addEventListener("open", stopWaiting);
    socket.addEventListener("message", ({ data }) => connection.receive(data));
    socket.addEventListener("close", close);
    socket.addEventListener("error", close);
    return response;
  }

  /** Rejects a request, and ends the charge for its socket. */
  #giveBack(owner: Entrant, status: number, state: string): Response {
    owner.place.end();
    const message = `Cannot open the socket: ${state}`;
    return this.#entry.refuse({ status, message, reason: "upgrade" }, owner.principal);
  }
}

const NOT_HERE: Refusal = {
  status: 404,
  message: "Cannot open the socket: there is no endpoint at this path",
  reason: "path",
};

/** Serves MCP over an open or connecting standard socket. For programs that upgrade requests themselves. */
export function attachSocket(server: Served, socket: WebSocket, principal?: Principal): void {
  const connection = new SocketConnection(server, socket, { principal });
  socket.addEventListener("message", ({ data }) => connection.receive(data));
  socket.addEventListener("close", () => connection.close());
  socket.addEventListener("error", () => connection.close());
}

/** Number of bytes in a socket's buffer above which writers wait (backpressure). */
const MAX_BUFFERED = 1024 * 1024;
/** Length in characters above which a text in the socket's buffer is charged to the client. */
const LARGE = 16_384;
/** Milliseconds without reading after which a client is disconnected. */
const STALLED_MS = 30_000;
const POLL_MS = 50;
/** Milliseconds within which an upgraded socket must open. A socket opens as soon as its response is sent. */
const OPEN_MS = 5000;
/**
 * Maximum number of messages that wait while the server is busy, because the server cannot pause reading from a socket.
 * Their total length is also limited, to the maximum length of a message.
 */
const MAX_QUEUED = 1024;
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
const TRY_LATER = 1013;
const UNSUPPORTED_DATA = 1003;

class SocketConnection {
  readonly #socket: Socket;
  readonly #pipe: Pipe;
  readonly #outbox: Outbox;
  readonly #stopExpiry: () => void;
  // Bound: `MAX_QUEUED`.
  readonly #queued: string[] = [];
  #queuedSize = 0;
  #isReading = true;
  #isPolling = false;
  /** The number of bytes that are charged to the client for the socket's output buffer. */
  #held = 0;
  /**
   * The number of bytes that are charged for the longest message so far, whose size the runtime's input buffer keeps.
   */
  #buffer = 0;

  constructor(server: Served, socket: Socket, { principal, account, checks, peer }: Partial<Entrant>) {
    this.#socket = socket;
    this.#pipe = openPipe(server, {
      write: (text) => this.#write(text),
      principal,
      account,
      peer,
      transport: "websocket",
    });
    this.#outbox = new Outbox({ texts: Infinity, characters: 1, account: () => this.#pipe.account });
    this.#stopExpiry = this.#pipe.watchCaller(checks, () => {
      this.#socket.close(POLICY_VIOLATION, "the credentials are no longer valid");
      this.close();
    });
  }

  receive(data: unknown): void {
    const isText = typeof data === "string";
    const isHeld = this.#growBuffer(isText ? 2 * data.length : toSize(data));
    if (!isText) return this.#socket.close(UNSUPPORTED_DATA, "messages must be text");
    if (!isHeld) return this.#socket.close(TRY_LATER, "too much memory is used");
    if (this.#isReading) return this.#receive(data);
    this.#queuedSize += data.length;
    const hasRoom = this.#queued.length < MAX_QUEUED && this.#queuedSize <= this.#pipe.lineBytes;
    if (hasRoom && this.#pipe.account.hold(2 * data.length)) return void this.#queued.push(data);
    // Drop all messages that still arrive before the socket is closed.
    this.#queuedSize = Infinity;
    this.#socket.close(TRY_LATER, "too many messages are waiting");
  }

  // Charges the client for the input buffer, which Deno and Bun keep until the connection ends. Deno also keeps the
  // text of the message.
  #growBuffer(size: number): boolean {
    const bytes = size > 2 * LARGE ? size - this.#buffer : 0;
    if (bytes <= 0) return true;
    this.#buffer += bytes;
    if (this.#pipe.account.hold(bytes)) return true;
    this.#pipe.account.add(bytes);
    return false;
  }

  /** Closes the socket to make room for another client. Returns `false` if the socket has running calls. */
  drop(): boolean {
    if (this.#pipe.unanswered) return false;
    this.#socket.close(TRY_LATER, "closed to make room for other clients");
    this.close();
    return true;
  }

  drain(): void {
    if (toBuffered(this.#socket) > MAX_BUFFERED) return;
    this.#pipe.account.free(this.#held);
    this.#held = 0;
    this.#send();
  }

  close(): void {
    this.#stopExpiry();
    this.#outbox.clear();
    const queued = this.#queued.splice(0).reduce((bytes, text) => bytes + 2 * text.length, 0);
    const { account } = this.#pipe;
    account.free(this.#held + queued);
    this.#held = 0;
    // End the charge for the buffer only after a delay, because a closed socket keeps its buffer until the client
    // closes the connection. No event reports when the client does so.
    const buffer = this.#buffer;
    this.#buffer = 0;
    if (buffer) startBackgroundTimer(() => account.free(buffer), STALLED_MS);
    this.#pipe.close();
  }

  #write(text: string): Promise<void> | undefined {
    if (!this.#outbox.push(text)) return this.#disconnect();
    this.#send();
    return this.#outbox.isFull ? this.#outbox.untilRoom() : undefined;
  }

  #send(): void {
    while (this.#outbox.length && toBuffered(this.#socket) <= MAX_BUFFERED) {
      const text = this.#outbox.next() ?? "";
      if (!this.#hold(text)) return this.#disconnect();
      try {
        this.#socket.send(text);
      } catch {
        // Drop the unsent messages, because the client has disconnected. The close event will follow.
        return this.#outbox.clear();
      }
    }
    if (!this.#isPolling && (this.#held || this.#outbox.length)) this.#poll(0);
  }

  #hold(text: string): boolean {
    const bytes = text.length > LARGE ? 2 * text.length : 0;
    if (bytes && !this.#pipe.account.hold(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  // Polls the socket's buffer, because standard sockets emit no event when they accept more data.
  #poll(waited: number): void {
    this.#isPolling = true;
    // The timer need not keep the process alive, because the open socket does.
    startBackgroundTimer(() => {
      this.#isPolling = false;
      const isEmpty = !this.#outbox.length;
      this.drain();
      if (!this.#held && isEmpty) return;
      if (this.#isPolling) return;
      if (waited >= STALLED_MS) return this.#disconnect();
      this.#poll(waited + POLL_MS);
    }, POLL_MS);
  }

  #disconnect(): undefined {
    this.#outbox.clear();
    this.#socket.close(TRY_LATER, "the client does not read its messages");
  }

  #receive(text: string): void {
    const { lineBytes } = this.#pipe;
    const isLong = text.length * 3 > lineBytes && !isWithin(text, lineBytes);
    const wait = isLong ? this.#pipe.reject("long") : this.#pipe.receive(text);
    if (!wait) return;
    this.#isReading = false;
    wait.then(() => {
      this.#isReading = true;
      while (this.#queued.length && this.#isReading) {
        const [text] = this.#queued.splice(0, 1);
        this.#queuedSize -= text.length;
        this.#pipe.account.free(2 * text.length);
        this.#receive(text);
      }
    });
  }
}

/** Returns the size of a binary message in bytes. */
function toSize(data: unknown): number {
  const { byteLength, size = byteLength }: { readonly byteLength?: unknown; readonly size?: unknown } = Object(data);
  return typeof size === "number" ? size : 0;
}

function toBuffered(socket: Socket): number {
  return socket.getBufferedAmount?.() ?? socket.bufferedAmount ?? 0;
}

interface Upgrader {
  upgrade(request: Request, options: { headers?: Record<string, string>; data: unknown }): boolean;
}

function isUpgrader(info: unknown): info is Upgrader {
  return isObject(info) && typeof info.upgrade === "function";
}
