// Measures the memory that clients make the server hold: after garbage collection, and at its peak.
import { openUnread, toWire } from "../../hostile/unread.ts";
import { META } from "../../hostile/http.ts";
import { readRss, sleep } from "../processes.ts";
import { initialize, legacy, modern, plain, type Sent, shapes } from "./cases.ts";
import { openSession, send } from "./cost.ts";
import { type Abused, type AbusedRuntime, readPeak, startAbused } from "./server.ts";

/** Maximum number of bytes that one client can make the server hold. */
export const MOST_HELD = 64 * 2 ** 20;

/** A way to make the server hold memory, which is repeated `count` times. */
export interface HeldCase {
  readonly name: string;
  readonly count: number;
  /**
   * Whether the memory is outside of the JavaScript heap. If so, pages that are not returned to the system count too.
   */
  readonly isNative?: boolean;
  /** Starts one repetition. Returns the number of bytes sent, and adds the opened resources to `open`. */
  readonly begin: (server: Abused, open: Opened, i: number) => Promise<number>;
}

/** The memory that a case made the server hold. */
export interface Holding {
  readonly name: string;
  readonly count: number;
  readonly sent: number;
  /**
   * Bytes held after garbage collection: the larger of the heap growth and the resident memory that is freed when the
   * resources are closed. Pages that the engine keeps for reuse do not count.
   */
  readonly held: number;
  /** Peak growth of resident memory in bytes. */
  readonly peak: number;
  readonly isDead: boolean;
}

/** Collects the open resources of a case. */
export class Opened {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #closers: (() => void)[] = [];

  constructor() {
    this.signal = this.#stop.signal;
  }

  /** Registers a function that closes an open resource. */
  add(close: () => void): void {
    this.#closers.push(close);
  }

  close(): void {
    this.#stop.abort();
    for (const close of this.#closers) {
      try {
        close();
      } catch {
        // The resource is already closed.
      }
    }
  }
}

const utf8 = new TextEncoder();
const SIZE = 4_000_000;
/** Timeout of a write in milliseconds. */
const PATIENCE = 1500;
const LINE = 8_000_000;
/** Time in milliseconds after which the server has parsed all queued large bodies. */
const SETTLE = 4000;

/** Sends a request, and leaves part of the response unread. */
function post({ url }: Abused, open: Opened, { headers, body }: Sent): number {
  fetch(url, { method: "POST", headers, body, signal: open.signal }).catch(() => {});
  return body.length;
}

const slow = (text: string): Sent => modern("tools/call", { name: "slow", arguments: { v: "@" } }, text);
const LISTEN = "subscriptions/listen";
const listening = (notifications: object, text: string): Sent => modern(LISTEN, { notifications }, text);
const toCapable = (method: string, params: Readonly<Record<string, unknown>>, text: string): Sent =>
  modern(method, params, text, { [`${META}clientCapabilities`]: { a: "@" } });

async function connect({ port }: Abused, open: Opened, text: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port, transport: "tcp" });
  open.add(() => connection.close());
  await write(connection, utf8.encode(text));
  return connection;
}

/** Writes bytes, or as many bytes as the server accepts within a few seconds. */
async function write(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  const writing = (async () => {
    for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  })();
  // A write fails if the server has closed the connection.
  await Promise.race([writing.catch(() => {}), sleep(PATIENCE)]);
}

/** Opens a WebSocket. The case handles only its events. */
export async function openSocket({ origin }: Pick<Abused, "origin">): Promise<WebSocket> {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/ws`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  socket.onerror = () => {};
  return socket;
}

/**
 * Opens a WebSocket that declares the given capabilities, as JSON. Returns the number of bytes sent, or 0 if the server
 * refuses the WebSocket.
 */
async function initializeSocket(server: Abused, open: Opened, capabilities: string): Promise<number> {
  const socket = await openSocket(server).catch(() => undefined);
  if (!socket) return 0;
  open.add(() => socket.close());
  const { body } = initialize(capabilities);
  const { promise, resolve } = Promise.withResolvers();
  socket.onmessage = socket.onclose = resolve;
  socket.send(body);
  await promise;
  return body.length;
}

/** Returns the header of a client's WebSocket frame, masked with zeros. */
function toFrame(length: number): Uint8Array {
  const head = new Uint8Array(14);
  head.set([0x81, 0xff]);
  new DataView(head.buffer).setBigUint64(2, BigInt(length));
  return head;
}

/** Opens a WebSocket on a raw connection, so that received bytes stay in the kernel. */
async function upgrade(server: Abused, open: Opened): Promise<Deno.Conn> {
  const lines = [
    "GET /ws HTTP/1.1",
    `host: 127.0.0.1:${server.port}`,
    "upgrade: websocket",
    "connection: upgrade",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
  ];
  const connection = await connect(server, open, `${lines.join("\r\n")}\r\n\r\n`);
  await connection.read(new Uint8Array(4096));
  return connection;
}

async function writeFrame(connection: Deno.Conn, text: string): Promise<number> {
  const bytes = utf8.encode(text);
  await write(connection, toFrame(bytes.length));
  await write(connection, bytes);
  return bytes.length;
}

/** Opens an HTTP+SSE stream, and returns the URL for messages. */
export async function openEvents({ origin }: Pick<Abused, "origin">, signal: AbortSignal): Promise<string> {
  const response = await fetch(`${origin}/sse`, { signal });
  const reader = response.body?.getReader();
  let text = "";
  while (reader && !text.includes("\n\n")) text += new TextDecoder().decode((await reader.read()).value);
  (async () => {
    while (reader && !(await reader.read()).done);
  })().catch(() => {});
  return origin + (/data: (\S+)/.exec(text)?.[1] ?? "");
}

function toChunkedHead(port: number): string {
  const { headers } = plain();
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers, "transfer-encoding": "chunked" });
  return `POST /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** Returns a request whose declared length is larger than its body. */
function toUnfinished(port: number, length: number): string {
  const { headers, body } = plain();
  return toWire(port, { method: "POST", headers, body }).replace(/content-length: \d+/, `content-length: ${length}`);
}

type Begin = HeldCase["begin"];
const held = (name: string, count: number, begin: Begin): HeldCase => ({ name, count, begin });
/** Returns a case that holds memory outside of the JavaScript heap. */
const outside = (name: string, count: number, begin: Begin): HeldCase => ({ name, count, begin, isNative: true });

const unread = (name: string, count: number, make: (server: Abused) => Promise<Sent> | Sent): HeldCase =>
  held(name, count, async (server, open) => {
    const { method = "POST", headers, body } = await make(server);
    // The cast is safe, because `toWire` writes every method the same way as POST.
    const wire = toWire(server.port, { method: method as "POST", headers, body });
    const connection = await openUnread(server.port, wire);
    open.add(() => connection.close());
    return wire.length;
  });

/** Returns a case that sends one request, and leaves part of the response unread. */
const posting = (name: string, count: number, sent: Sent): HeldCase =>
  held(name, count, (server, open) => Promise.resolve(post(server, open, sent)));

const big = { name: "big", arguments: { kb: 4096 } };
const uris = JSON.stringify(Array.from({ length: 1000 }, (_, i) => `w://${"x".repeat(245)}${i}`));
const fat = `{"a":${shapes["{},{},…"](SIZE)}}`;

/** The handwritten cases. */
export const heldCases: readonly HeldCase[] = [
  posting("slow tool: {},{},…", 40, slow(shapes["{},{},…"](SIZE))),
  posting('slow tool: 64 KiB of {"999":0},…', 40, slow(shapes['{"999":0},…'](60_000))),
  posting("slow tool: a string", 40, slow(shapes["a string"](SIZE))),
  posting("slow tool: many keys", 40, slow(shapes["many keys"](SIZE))),
  posting(
    "slow tool: capabilities",
    40,
    toCapable("tools/call", { name: "slow", arguments: {} }, shapes["{},{},…"](SIZE)),
  ),
  posting("listen: {},{},… in the filter", 60, listening({ a: "@" }, shapes["{},{},…"](SIZE))),
  posting("listen: {},{},… in capabilities", 60, toCapable(LISTEN, { notifications: {} }, shapes["{},{},…"](SIZE))),
  posting("listen: a string in capabilities", 60, toCapable(LISTEN, { notifications: {} }, shapes["a string"](SIZE))),
  posting("listen: 1000 long URIs", 200, listening({ resourceSubscriptions: "@" }, uris)),
  held("session: question, {},{},…", 40, async (server, open) => {
    const session = await openSession(server.url, "2025-11-25", '{"elicitation":{}}');
    return post(
      server,
      open,
      legacy("tools/call", { name: "ask", arguments: { v: "@" } }, shapes["{},{},…"](SIZE), session),
    );
  }),
  held("session: fat capabilities", 500, async ({ url }) => {
    const capabilities = `{"a":[${"{},".repeat(1350)}0]}`;
    await openSession(url, "2025-11-25", capabilities);
    return capabilities.length;
  }),
  held("session: 1000 long URIs", 30, async ({ url }) => {
    const session = await openSession(url);
    for (let i = 0; i < 1000; i++) {
      await send(url, legacy("resources/subscribe", { uri: "@" }, `"w://${"x".repeat(245)}${i}"`, session));
    }
    return 1000 * 256;
  }),
  held("session: idle streams", 250, async (server, open) => {
    const session = await openSession(server.url);
    await fetch(server.url, {
      headers: { accept: "text/event-stream", "mcp-session-id": session },
      signal: open.signal,
    });
    return 200;
  }),
  held("session: long progressToken, 100 steps", 8, async (server, open) => {
    const session = await openSession(server.url);
    const sent = legacy(
      "tools/call",
      { name: "steps", arguments: { count: 100 }, _meta: { progressToken: "@" } },
      shapes["a string"](SIZE),
      session,
    );
    return post(server, open, sent);
  }),
  held("WebSocket: fat capabilities at initialize", 40, (server, open) => initializeSocket(server, open, fat)),
  held(
    "WebSocket: a string at initialize",
    40,
    (server, open) => initializeSocket(server, open, `{"a":${shapes["a string"](LINE)}}`),
  ),
  held("WebSocket: messages behind unread answers", 30, async (server, open) => {
    const connection = await upgrade(server, open);
    let sent = 0;
    for (let i = 0; i < 3; i++) sent += await writeFrame(connection, modern("tools/call", big, "").body);
    await sleep(50);
    return sent + await writeFrame(connection, `"${"x".repeat(LINE - 2000)}"`);
  }),
  outside("WebSocket: a frame of 15 MB that never ends", 20, async (server, open) => {
    const connection = await upgrade(server, open);
    await write(connection, toFrame(15_700_000));
    await write(connection, new Uint8Array(15_600_000).fill(120));
    return 15_600_000;
  }),
  held("http-sse: fat capabilities at initialize", 40, async (server, open) => {
    const { body, headers } = initialize(fat);
    const address = await openEvents(server, open.signal);
    await send(address, { body, headers });
    return body.length;
  }),
  held("http-sse: messages of a client whose queue is full", 40, async (server, open, i) => {
    const { body, headers } = initialize();
    const address = await openEvents(server, open.signal);
    const sendLater = (body: string) => {
      fetch(address, { method: "POST", headers, body, signal: open.signal }).catch(() => {});
      return body.length;
    };
    if (i === 0) await send(address, { body, headers });
    else sendLater(body);
    // All streams share the queue of their client.
    const call = { name: "slow", arguments: {} };
    for (let id = 1; i === 0 && id <= 600; id++) sendLater(legacy("tools/call", call, "", undefined, id).body);
    if (i === 0) await sleep(PATIENCE);
    return sendLater(legacy("ping", { v: "@" }, shapes["a string"](SIZE)).body);
  }),
  unread("unread: JSON of 4 MB", 100, () => modern("tools/call", big, "")),
  unread("unread: an event of 4 MB", 100, () => {
    const { headers, body } = modern("tools/call", big, "");
    return { headers: { ...headers, accept: "text/event-stream" }, body };
  }),
  unread("unread: replay of 4 MB", 60, async ({ url }) => {
    const session = await openSession(url);
    const { headers, body } = legacy(
      "tools/call",
      { name: "big", arguments: { kb: 3000 }, _meta: { progressToken: 1 } },
      "",
      session,
    );
    const response = await fetch(url, { method: "POST", headers: { ...headers, accept: "text/event-stream" }, body });
    const id = /id: (\S+)_/.exec(await response.text())?.[1];
    return {
      method: "GET",
      headers: { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": `${id}_0` },
      body: "",
    };
  }),
  held("batch of 100 answers of 4 MB", 2, async (server, open) => {
    const session = await openSession(server.url, "2025-03-26");
    const { headers } = legacy("", {}, "", session);
    const items = Array.from({ length: 100 }, (_, id) => ({ jsonrpc: "2.0", id, method: "tools/call", params: big }));
    const sent = post(server, open, { headers, body: JSON.stringify(items) });
    await sleep(3000);
    return sent;
  }),
  outside("body in chunks of one byte", 8, async (server, open) => {
    const connection = await connect(server, open, toChunkedHead(server.port));
    await write(connection, utf8.encode("1\r\n \r\n".repeat(2000)));
    await sleep(100);
    return 12_000;
  }),
  outside("body in packets of one byte", 20, async (server, open) => {
    const wire = toUnfinished(server.port, 100_000);
    const connection = await connect(server, open, wire);
    connection.setNoDelay(true);
    for (let i = 0; i < 1000; i++) {
      await write(connection, utf8.encode(" "));
      if (i % 4 === 0) await sleep(0);
    }
    return wire.length + 1000;
  }),
  outside("slow bodies of 60 KB", 2000, async (server, open) => {
    await connect(server, open, toUnfinished(server.port, 65_000) + " ".repeat(60_000));
    return 60_000;
  }),
  held("requests behind an open stream", 4, async (server, open) => {
    const { headers, body } = listening({ toolsListChanged: true }, "");
    const connection = await connect(server, open, toWire(server.port, { method: "POST", headers, body }));
    await connection.read(new Uint8Array(4096));
    const text = `GET / HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`.repeat(200_000);
    await write(connection, utf8.encode(text));
    return text.length;
  }),
  outside("connections that send nothing", 2000, async (server, open) => {
    await connect(server, open, "POST /mcp HTTP/1.1\r\n");
    return 20;
  }),
];

/** Whether a runtime can run a case. On Node, the server has no WebSockets. */
export function canHold(runtime: AbusedRuntime, { name }: HeldCase): boolean {
  return runtime !== "node" || !name.startsWith("WebSocket");
}

/** Runs a case on its own server. */
export async function measureHeld(runtime: AbusedRuntime, each: HeldCase): Promise<Holding> {
  await using server = await startAbused(runtime);
  // Run some repetitions before the measurement, so that compiled code, caches and pools already exist.
  for (let i = 0; i < 300; i++) await send(server.url, plain());
  for (let i = 0; i < 5; i++) {
    await send(server.url, modern("tools/call", { name: "any", arguments: { v: "@" } }, shapes["a string"](SIZE)));
  }
  const before = await server.held();
  const open = new Opened();
  let sent = 0;
  try {
    for (let i = 0; i < each.count && !server.isDead && readRss(server.pid) < 1.5 * 2 ** 30; i++) {
      sent += await each.begin(server, open, i);
    }
    await sleep(SETTLE);
    const after = await server.held();
    const peak = readPeak(server.pid) - before.rss;
    open.close();
    await sleep(700);
    const { rss } = await server.held();
    const gained = after.rss - before.rss;
    const held = Math.max(after.heap - before.heap, each.isNative ? gained : Math.min(gained, after.rss - rss));
    return { name: each.name, count: each.count, sent, held, peak, isDead: false };
  } catch (error) {
    if (!server.isDead) throw error;
    return { name: each.name, count: each.count, sent, held: Infinity, peak: Infinity, isDead: true };
  } finally {
    open.close();
  }
}
