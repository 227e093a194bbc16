// Opens connections that do not read incoming bytes until a test reads them, and creates calls to send over such
// connections.
import { MODERN, toMeta } from "./http.ts";

/** A connection that leaves incoming bytes in the kernel until `read` is called. */
export interface Unread {
  /** Reads until the server closes the connection, or until `isEnough` returns `true` for the text received so far. */
  read(isEnough?: (text: string) => boolean): Promise<string>;
  close(): void;
}

interface BunSocket {
  write(bytes: Uint8Array): number;
  pause(): void;
  resume(): void;
  terminate(): void;
}

interface BunHost {
  connect(options: {
    hostname: string;
    port: number;
    socket: Record<string, (socket: BunSocket, data: Uint8Array) => void>;
  }): Promise<BunSocket>;
}

const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost }; // The types of this package do not declare `Bun`.

/** Connects to a port of `127.0.0.1`, writes a text, and reads nothing. */
export function openUnread(port: number, text: string): Promise<Unread> {
  const bytes = new TextEncoder().encode(text);
  return bun ? openBun(bun, port, bytes) : openDeno(port, bytes);
}

async function openDeno(port: number, bytes: Uint8Array): Promise<Unread> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  let isOpen = true;
  let text = "";
  const decoder = new TextDecoder();
  return {
    async read(isEnough = () => false) {
      const buffer = new Uint8Array(1 << 20);
      while (isOpen && !isEnough(text)) {
        const size = await connection.read(buffer).catch(() => null);
        if (size === null) break;
        text += decoder.decode(buffer.subarray(0, size), { stream: true });
      }
      return text;
    },
    close() {
      if (isOpen) connection.close();
      isOpen = false;
    },
  };
}

async function openBun({ connect }: BunHost, port: number, bytes: Uint8Array): Promise<Unread> {
  let text = "";
  let isOver = false;
  let wake = () => {};
  const decoder = new TextDecoder();
  const end = () => {
    isOver = true;
    wake();
  };
  let at = 0;
  const write = (socket: BunSocket) => {
    at += Math.max(0, socket.write(bytes.subarray(at)));
  };
  const socket = await connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        socket.pause();
        write(socket);
      },
      drain: write,
      data(_socket, data) {
        text += decoder.decode(data, { stream: true });
        wake();
      },
      close: end,
      end,
      error: end,
    },
  });
  return {
    async read(isEnough = () => false) {
      socket.resume();
      while (!isOver && !isEnough(text)) await new Promise<void>((resolve) => wake = resolve);
      return text;
    },
    close: () => socket.terminate(),
  };
}

/** Options of a tool call. */
export interface CallOptions {
  readonly id?: string | number;
  readonly args?: Readonly<Record<string, unknown>>;
  /** Additional fields of `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Id of a legacy session. If omitted, the call is a modern call without a session. */
  readonly session?: string;
  readonly accept?: string;
}

/** Creates the `RequestInit` of a tool call. */
export function toCall(name: string, options: CallOptions = {}): {
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
} {
  const { id = 1, args = {}, meta = {}, session, accept = "application/json, text/event-stream" } = options;
  const _meta = session === undefined ? toMeta(meta) : meta;
  return {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept,
      ...session === undefined
        ? { "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name }
        : { "mcp-session-id": session },
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args, _meta } }),
  };
}

/** Encodes the result of `toCall` as a raw HTTP request. */
export function toWire(port: number, { method, headers, body }: ReturnType<typeof toCall>): string {
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers, "content-length": body.length });
  return `${method} /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
}

/** Performs the handshake. Returns the session id. */
export async function startSession(url: string, send: (request: Request) => Promise<Response>): Promise<string> {
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "hostile", version: "1" },
  };
  const response = await send(
    new Request(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }),
    }),
  );
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

/** Returns the parsed data of all events in the text of a stream. */
export function readData(text: string): unknown[] {
  return text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
}
