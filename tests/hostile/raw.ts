// Sends raw HTTP/1.1 over a socket, because `fetch` would normalize or refuse invalid requests. Reads the raw response.

/** Time in milliseconds after which reading gives up. It is long, because machines may be slow. */
const PATIENCE_MS = 60_000;

/** A response with its decoded body. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** A TCP connection to a server on this machine. */
export interface RawConnection {
  /** Sends bytes, or a string as UTF-8. Ignores errors, because the server may have closed the connection. */
  write(data: string | Uint8Array): Promise<void>;
  /**
   * Reads the next response. Resolves to `undefined` if the connection ends before the response. Rejects after the
   * timeout.
   */
  read(options?: ReadOptions): Promise<RawAnswer | undefined>;
  /** Reads the head of the next response without waiting for the body. */
  readHead(options?: ReadOptions): Promise<Omit<RawAnswer, "body"> | undefined>;
  /** Reads the body of a response after `readHead`. */
  readBody(head: Pick<RawAnswer, "status" | "headers">, options?: ReadOptions): Promise<string>;
  /** Reads until the received text matches a pattern. Returns the text. */
  readUntil(pattern: RegExp, options?: ReadOptions): Promise<string>;
  /** Reads until the server ends the chunked response or the connection. */
  readRest(options?: ReadOptions): Promise<string>;
  /** Closes the writing side of the socket. The connection can still be read. */
  end(): void;
  close(): void;
}

/** Options for reading a response. */
export interface ReadOptions {
  /** Timeout in milliseconds. Defaults to 60,000. */
  readonly ms?: number;
  /** Whether the request was HEAD. The response then has no body, even if it has a `Content-Length`. */
  readonly isHead?: boolean;
}

/** A socket with the same interface on Deno and Bun. */
interface Socket {
  write(bytes: Uint8Array): Promise<void>;
  /** Reads the next bytes. Resolves to `undefined` if the server has closed its writing side. */
  read(): Promise<Uint8Array | undefined>;
  end(): void;
  close(): void;
}

interface BunSocket {
  write(bytes: Uint8Array): number;
  shutdown(): void;
  end(): void;
}

interface BunHost {
  connect(options: {
    hostname: string;
    port: number;
    socket: Record<string, (socket: BunSocket, data: Uint8Array) => void>;
  }): Promise<BunSocket>;
}

const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost }; // The types of this package do not declare `Bun`.

/** Connects to a port of `127.0.0.1`. */
export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = await (bun ? openBun(bun, port) : openDeno(port));
  let held: Uint8Array = new Uint8Array(0);
  let pending: Promise<Uint8Array | undefined> | undefined;

  // Reuse a pending read whose caller has timed out; otherwise, its bytes would be lost.
  async function more(deadline: number, what: string): Promise<boolean> {
    const next = pending ??= socket.read();
    const chunk = await within(next, deadline - performance.now(), what);
    pending = undefined;
    if (chunk === undefined) return false;
    const joined = new Uint8Array(held.length + chunk.length);
    joined.set(held);
    joined.set(chunk, held.length);
    held = joined;
    return true;
  }

  function take(size: number): Uint8Array {
    const taken = held.slice(0, size);
    held = held.slice(size);
    return taken;
  }

  async function readLine(deadline: number): Promise<string | undefined> {
    while (true) {
      const at = held.indexOf(10);
      if (at >= 0) return latin1(take(at + 1)).replace(/\r?\n$/, "");
      if (!await more(deadline, "the end of a line")) return;
    }
  }

  async function readBytes(size: number, deadline: number): Promise<Uint8Array> {
    while (held.length < size) if (!await more(deadline, `${size} bytes of a body`)) break;
    return take(size);
  }

  async function readHead({ ms = PATIENCE_MS }: ReadOptions = {}): Promise<Omit<RawAnswer, "body"> | undefined> {
    const deadline = performance.now() + ms;
    while (true) {
      const line = await readLine(deadline);
      if (line === undefined) return;
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1]);
      if (!status) throw new Error(`Cannot read the response: it begins with ${JSON.stringify(line.slice(0, 200))}`);
      const headers = new Headers();
      for (let text = await readLine(deadline); text; text = await readLine(deadline)) {
        const colon = text.indexOf(":");
        headers.append(text.slice(0, colon), text.slice(colon + 1).trim());
      }
      // Skip informational responses such as 100 Continue.
      if (status >= 200) return { status, headers };
    }
  }

  async function readContent(headers: Headers, deadline: number): Promise<Uint8Array> {
    if (/chunked/i.test(headers.get("transfer-encoding") ?? "")) {
      const parts: Uint8Array[] = [];
      while (true) {
        const size = parseInt(await readLine(deadline) ?? "0", 16);
        if (!size) break;
        parts.push(await readBytes(size, deadline));
        await readLine(deadline);
      }
      await readLine(deadline);
      return Uint8Array.from(parts.flatMap((part) => [...part]));
    }
    const length = headers.get("content-length");
    if (length !== null) return await readBytes(Number(length), deadline);
    while (await more(deadline, "the end of the connection"));
    return take(held.length);
  }

  async function readBody(
    { status, headers }: Pick<RawAnswer, "status" | "headers">,
    { ms = PATIENCE_MS, isHead }: ReadOptions = {},
  ): Promise<string> {
    const isEmpty = isHead || status === 204 || status === 304;
    const bytes = isEmpty ? new Uint8Array(0) : await readContent(headers, performance.now() + ms);
    // Throw for invalid UTF-8, because every response must be valid UTF-8.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  }

  return {
    write: (data) => socket.write(typeof data === "string" ? new TextEncoder().encode(data) : data),
    readHead,
    readBody,
    async read(options = {}) {
      const head = await readHead(options);
      return head && { ...head, body: await readBody(head, options) };
    },
    async readUntil(pattern, { ms = PATIENCE_MS } = {}) {
      const deadline = performance.now() + ms;
      while (!pattern.test(latin1(held))) if (!await more(deadline, `${pattern}`)) break;
      return latin1(take(held.length));
    },
    async readRest({ ms = PATIENCE_MS } = {}) {
      const deadline = performance.now() + ms;
      while (!latin1(held.slice(-5)).endsWith("0\r\n\r\n")) if (!await more(deadline, "the end of the stream")) break;
      return latin1(take(held.length));
    },
    end: () => socket.end(),
    close: () => socket.close(),
  };
}

async function openDeno(port: number): Promise<Socket> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let isOpen = true;
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length;) {
        try {
          at += await connection.write(bytes.subarray(at));
        } catch {
          return;
        }
      }
    },
    async read() {
      const buffer = new Uint8Array(65_536);
      const size = await connection.read(buffer).catch(() => null);
      return size === null ? undefined : buffer.slice(0, size);
    },
    end: () => void connection.closeWrite().catch(() => {}),
    close() {
      if (isOpen) connection.close();
      isOpen = false;
    },
  };
}

async function openBun({ connect }: BunHost, port: number): Promise<Socket> {
  const chunks: Uint8Array[] = [];
  let isOver = false;
  let heard = Promise.withResolvers<void>();
  let drained = Promise.withResolvers<void>();
  const wake = () => {
    heard.resolve();
    heard = Promise.withResolvers<void>();
  };
  const drain = () => {
    drained.resolve();
    drained = Promise.withResolvers<void>();
  };
  const end = () => {
    isOver = true;
    wake();
    drain();
  };
  const socket = await connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_socket, data) {
        chunks.push(data.slice());
        wake();
      },
      drain,
      close: end,
      end,
      error: end,
    },
  });
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length && !isOver;) {
        const wait = drained.promise;
        at += Math.max(0, socket.write(bytes.subarray(at)));
        if (at < bytes.length && !isOver) await wait;
      }
    },
    async read() {
      while (!chunks.length && !isOver) await heard.promise;
      return chunks.shift();
    },
    end: () => socket.shutdown(),
    close: () => socket.end(),
  };
}

async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`Cannot read the response: waited too long for ${what}`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
