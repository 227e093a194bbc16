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
import { toBusy } from "../protocol/errors.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { isWithin } from "../protocol/weight.ts";
import type { Account } from "../core/account.ts";
import { startExpiry } from "../core/expiry.ts";
import { INTERNALS } from "../core/internals.ts";
import { RETRY_AFTER } from "../core/link.ts";
import type { RefusalReason } from "../core/observer.ts";
import type { Principal } from "../core/context.ts";
import { deno, startBackgroundTimer } from "../runtime.ts";
import { type ConnectionInfo, readPrincipal } from "./http/access.ts";
import { readPath } from "./http/access_options.ts";
import { enterCaller, toEntryFault } from "./http/enter.ts";
import { checkTemplate } from "./http/path_template.ts";
import type { FindSpot, HttpEntry, Spot } from "./http/upgrades.ts";
import { Outbox } from "./outbox.ts";
import { openPipe, type Pipe, type PipeServer } from "./channel.ts";

export type { PipeServer };

/** A server that can be served over WebSocket, created by `createServer`. */
export interface SocketServer extends PipeServer {
  /** Handles requests that do not open a socket. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Opens channels and checks requests.
   *
   * @ignore
   */
  readonly [INTERNALS]: PipeServer[typeof INTERNALS] & {
    readonly http: HttpEntry;
    readonly find?: FindSpot;
  };
}

/** Options of the WebSocket transport. */
export interface WebSocketOptions {
  /**
   * Path of the WebSocket endpoint. If the path of the server has parameters, this one needs the same ones, such as
   * `/tenants/:tenant/ws`. Defaults to `/ws`.
   */
  readonly path?: string;
}

/** The parts of a socket that a server uses. The standard `WebSocket` and Bun's own socket both have them. */
export interface Socket {
  /** Sends a frame. */
  send(text: string): unknown;
  /** Closes the socket with a code and a reason. */
  close(code?: number, reason?: string): void;
  /** Data that Bun attaches at the upgrade. */
  readonly data?: unknown;
  /** Number of bytes that have not been sent yet. */
  readonly bufferedAmount?: number;
  /** Bun's equivalent of `bufferedAmount`. */
  getBufferedAmount?(): number;
}

/** The handlers for both runtimes. `fetch` upgrades requests, and Bun calls `websocket` afterwards. */
export interface WebSocketService {
  /** Upgrades requests at the path, and passes all others to the server. */
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
 * Serves MCP over WebSocket beside the HTTP endpoint. Host and Origin are checked before an upgrade. All sockets close
 * with the server.
 */
export function webSocket(server: SocketServer, options: WebSocketOptions = {}): WebSocketService {
  const { path = "/ws" } = options;
  const { find, http: { core, ended, endpoint: lazy, path: ownPath } } = server[INTERNALS];
  if (find) checkTemplate(path, ownPath);
  else readPath(path);
  const connections = new Map<Socket, SocketConnection>();
  const owners = new Map<Socket, Owner>();
  ended.then(() => connections.forEach((_, socket) => socket.close(GOING_AWAY, "the server is closing")));

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const isUpgrade = request.headers.get("upgrade")?.toLowerCase() === "websocket";
    if (!isUpgrade) return await server.fetch(request, info);
    await core.prepare?.();
    const { check, account: findAccount } = (await lazy.load()).parts;
    const refusal = check(request, info, { isUpgrade: true });
    if (refusal) return await refusal;
    const reject = (status: number, message: string, reason: RefusalReason, principal?: Principal) =>
      refuseWith(request, { status, message, reason }, principal);
    const { pathname } = new URL(request.url);
    if (!find && pathname !== path) return reject(404, "Cannot open a socket here", "path");
    let spot: Spot | undefined;
    let principal: Principal | undefined;
    let endpoint: PipeServer | undefined;
    try {
      spot = await find?.({ template: path, request, info });
      if (find && !spot) return reject(404, "Cannot open a socket here", "path");
      const entered = await enterCaller(lazy, request, info, { transport: "websocket", route: spot?.route });
      if (entered instanceof Response) return entered;
      principal = readPrincipal(entered);
      endpoint = await spot?.open();
    } catch (error) {
      const fault = await toEntryFault(core, error);
      return fault instanceof Response ? fault : reject(503, fault, "limit", principal);
    }
    if (spot && !endpoint) return reject(404, "Cannot open a socket here", "path", principal);
    // Meanwhile the server may have closed, which would never close this socket.
    const late = check(request, info, { isUpgrade: true });
    if (late) return await late;
    const account = findAccount(request, info, principal);
    // The size of a message is known only once it has arrived, so a client above its limit may open no more sockets.
    if (!account.hold(0)) {
      const problem = "open the socket: too much memory is used (memory.bytesPerClient, memory.bytes)";
      return reject(503, toBusy(problem).message, "limit", principal);
    }
    if (!account.openStream()) {
      const problem = "open the socket: too many are open (streams.open, streams.openPerClient)";
      return reject(503, toBusy(problem).message, "limit", principal);
    }
    return upgrade(request, info, { principal, account, endpoint });
  }

  // The subprotocol is named only if the client requested it, because other clients would close the connection.
  function upgrade(request: Request, info: ConnectionInfo | undefined, owner: Owner): Response {
    const asked = /(^|,)\s*mcp\s*(,|$)/.test(request.headers.get("sec-websocket-protocol") ?? "");
    if (deno?.upgradeWebSocket) {
      let upgraded;
      try {
        upgraded = deno.upgradeWebSocket(request, asked ? { protocol: "mcp" } : {});
      } catch {
        // A header of the upgrade is missing.
        owner.account?.closeStream();
        const message = "Cannot open the socket: the upgrade request is incomplete";
        return refuseWith(request, { status: 400, message, reason: "upgrade" }, owner.principal);
      }
      const { socket, response } = upgraded;
      open(socket, owner);
      socket.addEventListener("message", ({ data }) => connections.get(socket)?.receive(data));
      socket.addEventListener("close", () => close(socket));
      socket.addEventListener("error", () => close(socket));
      return response;
    }
    const headers = asked ? { "sec-websocket-protocol": "mcp" } : undefined;
    const runtime = info?.info ?? info;
    if (isUpgrader(runtime) && runtime.upgrade(request, { headers, data: owner })) return new Response(null);
    owner.account?.closeStream();
    const message = "Cannot open the socket: this runtime has no WebSocket upgrade";
    return refuseWith(request, { status: 501, message, reason: "upgrade" }, owner.principal);
  }

  function refuseWith(http: Request, refusal: Refused, principal?: Principal): Response {
    const { status, message } = refusal;
    core.observing?.refuse({ transport: "websocket", http, principal }, refusal);
    return new Response(message, { status, headers: status === 503 ? RETRY_AFTER : undefined });
  }

  function open(socket: Socket, owner: Owner): void {
    owners.set(socket, owner);
    connections.set(socket, new SocketConnection(owner.endpoint ?? server, socket, owner.principal, owner.account));
  }

  function close(socket: Socket): void {
    connections.get(socket)?.close();
    if (connections.delete(socket)) owners.get(socket)?.account?.closeStream();
    owners.delete(socket);
  }

  return {
    fetch,
    websocket: {
      // Bun returns the data of the upgrade unchanged.
      open: (socket) => open(socket, isObject(socket.data) ? socket.data as Owner : {}),
      message: (socket, data) => connections.get(socket)?.receive(data),
      drain: (socket) => connections.get(socket)?.drain(),
      close,
    },
  };
}

/** A rejected request. */
interface Refused {
  readonly status: number;
  readonly message: string;
  readonly reason: RefusalReason;
}

/** The client that opened a socket. */
interface Owner {
  readonly principal?: Principal;
  readonly account?: Account;
  /** The server of a concrete path. */
  readonly endpoint?: PipeServer;
}

/** Serves MCP over a standard socket that is open or connecting. Use it if you upgrade requests yourself. */
export function attachSocket(server: PipeServer, socket: WebSocket, principal?: Principal): void {
  const connection = new SocketConnection(server, socket, principal);
  socket.addEventListener("message", ({ data }) => connection.receive(data));
  socket.addEventListener("close", () => connection.close());
  socket.addEventListener("error", () => connection.close());
}

/** Maximum bytes in a socket's buffer before writers wait. */
const MAX_BUFFERED = 1024 * 1024;
/** Characters above which a text in the socket's buffer is charged to the client. */
const LARGE = 16_384;
/** Milliseconds after which a client that does not read is disconnected. */
const STALLED_MS = 30_000;
const POLL_MS = 50;
/**
 * Number of messages to queue while the server is busy, because reading from a socket cannot be paused. Together they
 * may be as long as one message.
 */
const MAX_QUEUED = 1024;
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
const TRY_LATER = 1013;
const UNSUPPORTED_DATA = 1003;

/** A socket with its channel. */
class SocketConnection {
  readonly #socket: Socket;
  readonly #pipe: Pipe;
  readonly #outbox: Outbox;
  readonly #stopExpiry: () => void;
  readonly #queued: string[] = [];
  #queuedSize = 0;
  #isReading = true;
  #isPolling = false;
  /** Bytes in the socket's buffer that are charged to the client. */
  #held = 0;
  /** Bytes that are charged for the buffer of the longest message so far. */
  #buffer = 0;

  constructor(server: PipeServer, socket: Socket, principal?: Principal, account?: Account) {
    this.#socket = socket;
    this.#pipe = openPipe(server, {
      write: (text) => this.#write(text),
      principal,
      account,
      transport: "websocket",
    });
    this.#outbox = new Outbox({ texts: Infinity, characters: 1, account: () => this.#pipe.account });
    this.#stopExpiry = startExpiry(this.#pipe.ticker, principal, () => {
      this.#socket.close(POLICY_VIOLATION, "the credentials have expired");
      this.close();
    });
  }

  receive(data: unknown): void {
    const isText = typeof data === "string";
    const isHeld = this.#growBuffer(isText ? 2 * data.length : toSize(data));
    if (!isText) return this.#socket.close(UNSUPPORTED_DATA, "messages are text");
    if (!isHeld) return this.#socket.close(TRY_LATER, "too much is held");
    if (this.#isReading) return this.#take(data);
    this.#queuedSize += data.length;
    const hasRoom = this.#queued.length < MAX_QUEUED && this.#queuedSize <= this.#pipe.lineBytes;
    if (hasRoom && this.#pipe.account.hold(2 * data.length)) return void this.#queued.push(data);
    // The client may send until the socket is closed. Those messages are dropped.
    this.#queuedSize = Infinity;
    this.#socket.close(TRY_LATER, "too many messages are waiting");
  }

  // Charges the buffer of a message, which both runtimes keep until the connection ends. Deno keeps the text too.
  #growBuffer(size: number): boolean {
    const bytes = size > 2 * LARGE ? size - this.#buffer : 0;
    if (bytes <= 0) return true;
    this.#buffer += bytes;
    if (this.#pipe.account.hold(bytes)) return true;
    this.#pipe.account.charge(bytes);
    return false;
  }

  /** Continues writing when the socket has room. */
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
    // A closed socket keeps its buffer until the client closes the connection, and no event announces that.
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
        // The client has disconnected, and its close event follows.
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

  // Standard sockets have no event for new room, so poll.
  #poll(waited: number): void {
    this.#isPolling = true;
    // The open socket keeps the process alive. A call that waits for room has its own timeout.
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
    this.#socket.close(TRY_LATER, "the client does not read");
  }

  #take(text: string): void {
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
        this.#take(text);
      }
    });
  }
}

/** Bytes of a message that is not text. */
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
