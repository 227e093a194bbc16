// Simulates many clients of one server over separate sockets. The argument is the server's port. Each line of standard
// input is a command as JSON. The program prints one line after each command:
//
//     ["open", kind, count]    opens notification streams: `listen` is a stream without a session, `get` with a session
//     ["touch", rounds]        makes the server notify all streams `rounds` times, and waits for each notification
//     ["send", kind, count]    sends 16 requests at a time: `initialize`, `handshake` (two requests) or `call`
import { handshake, INITIALIZED, toModernAsk, toSessionHeaders } from "../asks.ts";
import { isWhole, toBytes } from "./wire.ts";

const port = Number(Deno.args[0]);
const decoder = new TextDecoder("latin1");
const NEWS = "notifications/resources/updated";
const listen = toModernAsk("subscriptions/listen", { notifications: { resourceSubscriptions: ["bench://0"] } });
const touch = toModernAsk("tools/call", { name: "touch", arguments: {} });
const add = toModernAsk("tools/call", { name: "add", arguments: { a: 1, b: 2 } });
const streams: Deno.TcpConn[] = [];
let heard = 0;
let awaited = Infinity;
let resolveHeard = () => {};

async function write(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** Sends a request, and reads the whole response. Throws unless the status is 2xx. */
async function ask(connection: Deno.TcpConn, bytes: Uint8Array, buffer: Uint8Array): Promise<string> {
  await write(connection, bytes);
  let text = "";
  while (!isWhole(text)) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error(`Cannot read the response: the connection ended after ${text}`);
    text += decoder.decode(buffer.subarray(0, count));
  }
  if (!text.startsWith("HTTP/1.1 2")) throw new Error(`Cannot continue: the server responded with ${text}`);
  return text;
}

/** Runs `work` `count` times in total, over 16 concurrent connections. */
async function repeat(count: number, work: (ask: (bytes: Uint8Array) => Promise<string>) => Promise<void>) {
  let left = count;
  await Promise.all(Array.from({ length: 16 }, async () => {
    using connection = await Deno.connect({ port });
    const buffer = new Uint8Array(65_536);
    while (left-- > 0) await work((bytes) => ask(connection, bytes, buffer));
  }));
}

async function agree(send: (bytes: Uint8Array) => Promise<string>): Promise<Record<string, string>> {
  const text = await send(toBytes("POST", port, handshake.headers, handshake.body));
  const headers = toSessionHeaders(/mcp-session-id: (\S+)/i.exec(text)?.[1] ?? "");
  await send(toBytes("POST", port, headers, INITIALIZED));
  return headers;
}

async function open(kind: string, count: number): Promise<void> {
  await repeat(count, async (send) => {
    if (kind === "listen") return await openStream(toBytes("POST", port, listen.headers, listen.body));
    const headers = await agree(send);
    const params = { uri: "bench://0" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "resources/subscribe", params });
    await send(toBytes("POST", port, headers, body));
    await openStream(toBytes("GET", port, headers));
  });
}

/**
 * Opens a stream, and waits for its first event or comment. Then reads the stream in the background until the stream
 * ends.
 */
async function openStream(bytes: Uint8Array): Promise<void> {
  const connection = await Deno.connect({ port });
  await write(connection, bytes);
  const buffer = new Uint8Array(2048);
  let text = "";
  while (!/\r\n\r\n[^]*\n\n/.test(text)) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error(`Cannot open a stream: the server responded with ${text}`);
    text += decoder.decode(buffer.subarray(0, count));
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`Cannot open a stream: the server responded with ${text}`);
  }
  streams.push(connection);
  follow(connection, buffer).catch(() => {}); // Ignore the error that occurs when this program closes the connection.
}

async function follow(connection: Deno.TcpConn, buffer: Uint8Array): Promise<void> {
  let rest = "";
  for (let count = await connection.read(buffer); count !== null; count = await connection.read(buffer)) {
    const parts = (rest + decoder.decode(buffer.subarray(0, count))).split(NEWS);
    rest = parts[parts.length - 1].slice(1 - NEWS.length);
    heard += parts.length - 1;
    if (heard >= awaited) resolveHeard();
  }
}

async function touchAll(rounds: number): Promise<void> {
  using connection = await Deno.connect({ port });
  const buffer = new Uint8Array(2048);
  const bytes = toBytes("POST", port, touch.headers, touch.body);
  for (let i = 0; i < rounds; i++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    resolveHeard = resolve;
    awaited = heard + streams.length;
    await ask(connection, bytes, buffer);
    if (streams.length) await promise;
  }
  if (heard > awaited) {
    throw new Error(`Cannot use the measurements: ${heard - awaited} more notifications arrived than expected`);
  }
}

async function run([what, ...rest]: readonly [string, string, number] | readonly [string, number]): Promise<void> {
  if (what === "touch") return await touchAll(Number(rest[0]));
  const [kind, count] = [String(rest[0]), Number(rest[1])];
  if (what === "open") return await open(kind, count);
  const { headers, body } = kind === "call" ? add : handshake;
  const bytes = toBytes("POST", port, headers, body);
  await repeat(count, async (send) => void await (kind === "handshake" ? agree(send) : send(bytes)));
}

let text = "";
for await (const chunk of Deno.stdin.readable) {
  const lines = (text + decoder.decode(chunk)).split("\n");
  text = lines.pop() ?? "";
  for (const line of lines) {
    await run(JSON.parse(line));
    console.log("done");
  }
}
