// A local TCP proxy that closes idle connections, as some load balancers do.

/** A running proxy. */
export interface Proxy {
  readonly port: number;
  /** Number of idle connections that the proxy has closed. */
  readonly cuts: number;
  stop(): void;
}

interface BunSocket {
  data: { other?: BunSocket; readonly waiting: Uint8Array[]; last: number };
  write(bytes: Uint8Array): number;
  terminate(): void;
}

interface BunHost {
  listen(options: object): { readonly port: number; stop(now: boolean): void };
  connect(options: object): Promise<BunSocket>;
}

const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunHost }; // The types of this package do not declare `Bun`.

/**
 * Starts a proxy that forwards connections to a port of `127.0.0.1`. Closes a connection after `idleMs` without data.
 */
export function startProxy(to: number, idleMs: number): Proxy {
  return bun ? startBun(bun, to, idleMs) : startDeno(to, idleMs);
}

function startDeno(to: number, idleMs: number): Proxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Map<Deno.Conn, { readonly other: Deno.Conn; last: number }>();
  let cuts = 0;
  const close = (client: Deno.Conn) => {
    const pair = open.get(client);
    open.delete(client);
    for (const end of pair ? [client, pair.other] : []) end.close();
  };

  async function pump(from: Deno.Conn, into: Deno.Conn, client: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(65_536);
    try {
      for (let size = await from.read(buffer); size !== null; size = await from.read(buffer)) {
        const pair = open.get(client);
        if (pair) pair.last = performance.now();
        for (let at = 0; at < size;) at += await into.write(buffer.subarray(at, size));
      }
    } catch {
      // The other end has closed the connection.
    }
    close(client);
  }

  (async () => {
    for await (const client of listener) {
      const other = await Deno.connect({ hostname: "127.0.0.1", port: to });
      open.set(client, { other, last: performance.now() });
      pump(client, other, client);
      pump(other, client, client);
    }
  })();
  const timer = setInterval(() => {
    for (const [client, { last }] of open) {
      if (performance.now() - last < idleMs) continue;
      cuts++;
      close(client);
    }
  }, 100);
  return {
    port: listener.addr.port,
    get cuts() {
      return cuts;
    },
    stop() {
      clearInterval(timer);
      for (const client of open.keys()) close(client);
      listener.close();
    },
  };
}

function startBun(bun: BunHost, to: number, idleMs: number): Proxy {
  const open = new Set<BunSocket>();
  let cuts = 0;
  const close = (socket: BunSocket) => {
    open.delete(socket);
    socket.data.other?.terminate();
  };
  const flush = (socket: BunSocket) => {
    while (socket.data.waiting.length) {
      const [bytes] = socket.data.waiting;
      const size = Math.max(0, socket.write(bytes));
      if (size < bytes.length) return void (socket.data.waiting[0] = bytes.subarray(size));
      socket.data.waiting.shift();
    }
  };
  const data = (socket: BunSocket, bytes: Uint8Array) => {
    const { other } = socket.data;
    socket.data.last = performance.now();
    if (!other) return void socket.data.waiting.push(bytes.slice());
    other.data.last = socket.data.last;
    other.data.waiting.push(bytes.slice());
    flush(other);
  };
  const common = { data, drain: flush, close, end: close, error: close };
  const listener = bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...common,
      async open(client: BunSocket) {
        client.data = { waiting: [], last: performance.now() };
        open.add(client);
        const held = client.data.waiting;
        const other = await bun.connect({
          hostname: "127.0.0.1",
          port: to,
          data: { other: client, waiting: held.splice(0), last: performance.now() },
          socket: { ...common, open: flush },
        });
        other.data.waiting.push(...held.splice(0));
        client.data.other = other;
        flush(other);
      },
    },
  });
  const timer = setInterval(() => {
    for (const socket of open) {
      if (performance.now() - socket.data.last < idleMs) continue;
      cuts++;
      close(socket);
      socket.terminate();
    }
  }, 100);
  return {
    port: listener.port,
    get cuts() {
      return cuts;
    },
    stop() {
      clearInterval(timer);
      for (const socket of open) socket.terminate();
      listener.stop(true);
    },
  };
}
