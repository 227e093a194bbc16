/**
 * Adapts the clients node-redis, ioredis, iovalkey and Bun's. Recognizes a client by its methods, without an import.
 */
import { toState } from "../../core/kit/error_state.ts";

/**
 * A client of Redis or Valkey: `createClient()` or `createCluster()` of node-redis, `new Redis()` or `new Cluster()` of
 * ioredis and iovalkey, or `new RedisClient()` of Bun. The store recognizes the kind of client by its methods.
 */
export interface RedisClient {
  /** A method that all these clients have, and the store never calls. Lets TypeScript reject other objects. */
  duplicate: unknown;
}

/** A connection to Redis, with the same methods for every client. */
export interface RedisLink {
  /** Whether the connection is to a cluster, in which each key is on one of several nodes. */
  readonly isCluster: boolean;
  /** Sends a command. `key` is one of the command's keys. In a cluster, the key determines the node. */
  send(key: string, words: readonly string[]): Promise<unknown>;
  /** Subscribes to a channel. Calls `onText` for each message, and `onLost` when no more messages can arrive. */
  subscribe(channel: string, onText: (text: string) => void, onLost: (error?: unknown) => void): Promise<void>;
  close(): void;
}

type Listener = (...args: readonly unknown[]) => void;

interface Ioredis {
  readonly status: string;
  readonly isCluster?: boolean;
  on(event: string, listener: Listener): unknown;
  connect(): Promise<unknown>;
  call(command: string, ...args: readonly string[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  disconnect(): unknown;
}

interface NodeRedis {
  readonly isOpen: boolean;
  readonly isReady?: boolean;
  on(event: string, listener: Listener): unknown;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[]): Promise<unknown>;
  subscribe(channel: string, onText: (text: string) => void): Promise<unknown>;
  destroy(): unknown;
}

/** The parts of a node-redis cluster that differ from a single client. */
interface NodeRedisCluster {
  sendCommand(key: string, isReadOnly: boolean, words: readonly string[]): Promise<unknown>;
}

interface BunRedis {
  onconnect?: unknown;
  onclose?: unknown;
  connect(): Promise<unknown>;
  send(command: string, args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, onText: (text: string) => void): Promise<unknown>;
  close(): unknown;
}

/**
 * Wraps a client, after it has connected.
 *
 * @throws {TypeError} if the kind of client is unknown.
 */
export async function openLink(client: object, signal?: AbortSignal): Promise<RedisLink> {
  // Test for ioredis first, because ioredis clients also have `sendCommand`.
  if (has<Ioredis>(client, "call")) return await openIoredis(client, signal);
  if (has<NodeRedis>(client, "sendCommand")) return await openNodeRedis(client, signal);
  if (has<BunRedis>(client, "send")) return await openBun(client, signal);
  throw new TypeError(
    "Cannot connect to Redis: connect returned an unknown client; return a client of node-redis, ioredis, " +
      "iovalkey or Bun",
  );
}

/** Tests whether a client has a method that only one kind of client has. */
function has<T extends object>(client: object, method: keyof T & string): client is T {
  return typeof Reflect.get(client, method) === "function";
}

async function openIoredis(client: Ioredis, signal?: AbortSignal): Promise<RedisLink> {
  const close = () => void client.disconnect();
  // A client with sentinels reports each sentinel that it does not reach, and then asks the next sentinel.
  const isLast = !Object(Reflect.get(client, "options")).sentinels;
  await connected(client, { signal, close, isReady: client.status === "ready", isLast }, () => {
    // The client connects automatically, unless its option `lazyConnect` is set.
    if (client.status === "wait") client.connect().catch(() => {});
  });
  return {
    isCluster: client.isCluster === true,
    send: (_key, [command, ...args]) => client.call(command, ...args),
    async subscribe(channel, onText, onLost) {
      client.on("message", (from, text) => from === channel && onText(String(text)));
      client.on("close", () => onLost());
      await client.subscribe(channel);
    },
    close,
  };
}

async function openNodeRedis(client: NodeRedis, signal?: AbortSignal): Promise<RedisLink> {
  const isCluster = "masters" in client;
  const close = () => {
    if (client.isOpen) client.destroy();
  };
  const isReady = client.isOpen && (isCluster || client.isReady === true);
  // Clients with several nodes report each node that they do not reach, and then try the next node.
  const isLast = Object(Reflect.get(client, "options")).socket !== undefined;
  await connected(client, { signal, close, isReady, isLast }, (onReady, onFailed) => {
    if (!client.isOpen) client.connect().then(onReady, onFailed);
  });
  return {
    isCluster,
    send: (key, words) => isClusterOf(client) ? client.sendCommand(key, false, words) : client.sendCommand(words),
    async subscribe(channel, onText, onLost) {
      client.on("error", (error) => onLost(error));
      client.on("end", () => onLost());
      await client.subscribe(channel, onText);
    },
    close,
  };
}

function isClusterOf(client: object): client is NodeRedisCluster {
  return "masters" in client;
}

async function openBun(client: BunRedis, signal?: AbortSignal): Promise<RedisLink> {
  const close = () => void client.close();
  signal?.addEventListener("abort", close, { once: true });
  try {
    await client.connect();
  } catch (error) {
    throw toConnectError(client, error);
  } finally {
    signal?.removeEventListener("abort", close);
  }
  return {
    isCluster: false,
    send: (_key, [command, ...args]) => client.send(command, args),
    async subscribe(channel, onText, onLost) {
      await client.subscribe(channel, onText);
      // After a restart of the Redis server, Bun's client reconnects but no longer receives messages.
      client.onconnect = client.onclose = () => onLost();
    },
    close,
  };
}

interface Opening {
  readonly signal?: AbortSignal;
  readonly close: () => void;
  readonly isReady: boolean;
  /** Whether an error ends the attempt. The client would try again, but the store does so too, and reports the error. */
  readonly isLast: boolean;
}

/** Waits for `ready` until `signal` aborts, because some clients retry forever. The error contains the last error. */
function connected(
  client: { on(event: string, listener: Listener): unknown },
  { signal, close, isReady, isLast }: Opening,
  start: (onReady: () => void, onFailed: (error: unknown) => void) => void,
): Promise<void> {
  let last: unknown;
  let onError = () => {};
  // Listen to `error`, because an error event without a listener would end the process.
  client.on("error", (error) => {
    last = error;
    onError();
  });
  if (isReady) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const fail = () => {
      onError = () => {};
      close();
      reject(toConnectError(client, last));
    };
    if (isLast) onError = fail;
    signal?.addEventListener("abort", fail, { once: true });
    const succeed = () => {
      onError = () => {};
      signal?.removeEventListener("abort", fail);
      resolve();
    };
    client.on("ready", succeed);
    client.on("end", fail);
    start(succeed, (error) => {
      last ??= error;
      fail();
    });
  });
}

/** Returns the error of a failed attempt, which names the address, because the errors of some clients do not. */
function toConnectError(client: object, cause: unknown): Error {
  const address = findAddress(client);
  const at = address === undefined ? "" : ` at ${address}`;
  // The error of a host has an error for each of its addresses, and the error of an ioredis cluster has that of a node.
  const { lastNodeError = cause, errors = [lastNodeError] } = Object(cause);
  const states: readonly string[] = cause === undefined ? [] : errors.map(toState).filter(Boolean);
  const state = states.join(", ") || "the Redis server does not respond";
  const there = address === undefined ? "" : " there";
  // A Redis that runs has refused the client.
  const remedy = /^(WRONGPASS|NOAUTH|NOPERM|ERR) /.test(state)
    ? "check the username and the password in the client's options"
    : `check that Redis runs${there}, and the address and the TLS settings in the client's options`;
  return new Error(`Cannot connect to Redis${at}: ${state}; ${remedy}`, { cause });
}

/** Returns the host and port of a client, or those of its nodes, without credentials. */
function findAddress(client: object): string | undefined {
  const { options, startupNodes, _options } = client as Readonly<Record<string, unknown>>; // The cast is safe, because a missing property is `undefined`.
  const { sentinels } = Object(options);
  const nodes: unknown = startupNodes ?? Object(_options).rootNodes ?? sentinels ??
    (options === undefined ? [] : [options]);
  const found = (Array.isArray(nodes) ? nodes : []).map(toAddress).filter((address) => address !== undefined);
  return found.length ? found.join(", ") : undefined;
}

function toAddress(node: unknown): string | undefined {
  const { url = node, socket = node } = Object(node);
  const { host, port, path } = Object(socket);
  if (typeof path === "string") return path;
  // A node of a cluster can be a text such as `localhost:7000`.
  const parsed = typeof url === "string" ? URL.parse(url.includes("://") ? url : `redis://${url}`) : undefined;
  const { hostname = host, port: own = port } = parsed ?? {};
  return hostname ? `${hostname}:${own || 6379}` : undefined;
}
