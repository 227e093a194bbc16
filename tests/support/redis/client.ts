// A small Redis client with pipelined commands and channels.
import { connect, type Socket } from "node:net";

/** A Redis response. */
export type Answer = string | number | null | Error | readonly Answer[];

/** A connection to Redis. It does not reconnect, and does not queue commands while it is disconnected. */
export interface RedisClient {
  /** Sends a command, and resolves to its response. Rejects if the connection is lost. */
  send(...words: readonly (string | number)[]): Promise<Answer>;
  /** Called with each message of a channel. */
  onMessage?: (channel: string, text: string) => void;
  /** Called once, when the connection is lost. */
  onLost?: (error: Error) => void;
  close(): void;
}

/** Connects to a Redis server through its Unix socket. */
export function connectRedis(path: string, signal?: AbortSignal): Promise<RedisClient> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    const late = () => socket.destroy(new Error("the connection attempt was aborted"));
    signal?.addEventListener("abort", late);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the connection was closed")));
    socket.once("connect", () => {
      signal?.removeEventListener("abort", late);
      resolve(talk(socket));
    });
  });
}

function talk(socket: Socket): RedisClient {
  const waiting: { resolve(answer: Answer): void; reject(error: Error): void }[] = [];
  let failed: Error | undefined;
  let rest = new Uint8Array();
  const client: RedisClient = {
    send: (...words) =>
      new Promise((resolve, reject) => {
        if (failed) return reject(failed);
        waiting.push({ resolve, reject });
        socket.write(toCommand(words));
      }),
    close: () => socket.destroy(),
  };
  const lose = (error: Error) => {
    if (failed) return;
    failed = error;
    for (const { reject } of waiting.splice(0)) reject(error);
    client.onLost?.(error);
  };
  socket.on("error", lose);
  socket.on("close", () => lose(new Error("the connection was closed")));
  socket.on("data", (chunk: Uint8Array) => {
    const bytes = new Uint8Array(rest.length + chunk.length);
    bytes.set(rest);
    bytes.set(chunk, rest.length);
    let at = 0;
    for (let found = read(bytes, at); found; found = read(bytes, at)) {
      at = found.end;
      const { answer } = found;
      if (Array.isArray(answer) && answer[0] === "message") client.onMessage?.(String(answer[1]), String(answer[2]));
      else if (answer instanceof Error) waiting.shift()?.reject(answer);
      else waiting.shift()?.resolve(answer);
    }
    rest = bytes.slice(at);
  });
  return client;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function toCommand(words: readonly (string | number)[]): Uint8Array {
  const sized = words.map(String).map((word) => `$${encoder.encode(word).length}\r\n${word}\r\n`);
  return encoder.encode(`*${words.length}\r\n${sized.join("")}`);
}

interface Found {
  readonly answer: Answer;
  readonly end: number;
}

/** Parses a response. Returns `undefined` if the response is not complete. */
function read(bytes: Uint8Array, at: number): Found | undefined {
  const end = bytes.indexOf(10, at);
  if (end < 0) return;
  const kind = String.fromCharCode(bytes[at]);
  const line = decoder.decode(bytes.subarray(at + 1, end - 1));
  const next = end + 1;
  if (kind === "+") return { answer: line, end: next };
  if (kind === "-") return { answer: new Error(line), end: next };
  if (kind === ":") return { answer: Number(line), end: next };
  const size = Number(line);
  if (size < 0) return { answer: null, end: next };
  if (kind === "*") return readList(bytes, next, size);
  if (bytes.length < next + size + 2) return;
  return { answer: decoder.decode(bytes.subarray(next, next + size)), end: next + size + 2 };
}

function readList(bytes: Uint8Array, at: number, size: number): Found | undefined {
  const answer: Answer[] = [];
  for (let left = size; left; left--) {
    const found = read(bytes, at);
    if (!found) return;
    answer.push(found.answer);
    at = found.end;
  }
  return { answer, end: at };
}
