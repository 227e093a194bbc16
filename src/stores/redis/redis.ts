/**
 * A store in Redis or Valkey, for server instances on several machines.
 *
 * ```ts ignore
 * import { createServer } from "@x/mcp";
 * import { redisStore } from "@x/mcp/stores/redis";
 * import { createClient } from "redis";
 *
 * const url = "redis://127.0.0.1:6379";
 * const store = redisStore(() => createClient({ url, disableOfflineQueue: true }));
 * export default createServer({ name: "notes", version: "1.0.0", store, secret: process.env.MCP_SECRET });
 * ```
 *
 * @module
 */
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineOptions,
  EngineWriteOptions,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  Store,
  StoredEntry,
  StoredValue,
  StoreEngine,
} from "../../server/engine/store.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { customStore, openOther, requireConnect, STORE_OPTIONS, type StoreOptions } from "../custom_store.ts";
import { type BatchEngine, GET_ALL } from "../get_all.ts";
import { openLink, type RedisClient, type RedisLink } from "./clients.ts";
import { APPEND, DELETE, FIND_NAMES, GET, HEADS, INDEX, READ, SET, toDigest, TRIM } from "./scripts.ts";

export type { RedisClient } from "./clients.ts";

/** Options of {@linkcode redisStore}. */
export interface RedisStoreOptions extends StoreOptions {
  /**
   * Prefix of all keys, without braces. All servers that share a store must use the same prefix. Defaults to `mcp:`.
   */
  readonly prefix?: string;
}

const OPTIONS: KnownOptions<keyof RedisStoreOptions> = { names: { ...STORE_OPTIONS.names, prefix: true } };

/**
 * Creates a store in Redis 6.2 or newer, in Valkey, or in a cluster of either.
 *
 * `connect` must return a new client on each call, because the store uses one client for commands and another client
 * for messages, and replaces a client whose connection is lost. `connect` can return a promise. The store connects each
 * client, unless it is already connected, and closes it. Turn off the client's offline queue, so that no command runs
 * after its operation has failed: use `disableOfflineQueue: true` with node-redis, and `enableOfflineQueue: false` with
 * ioredis, iovalkey and Bun.
 *
 * On Deno, node-redis and ioredis need `--allow-net` and `--allow-env`.
 *
 * @throws {TypeError} if an option is not a number above 0, or if `prefix` contains braces.
 */
export function redisStore(connect: () => Awaitable<RedisClient>, options: RedisStoreOptions = {}): Store {
  checkOptions("create a store", options, OPTIONS);
  const { prefix = "mcp:", ...rest } = options;
  requireConnect({ connect }, "redisStore(() => createClient({ url }))");
  if (typeof prefix !== "string" || /[{}]/.test(prefix)) {
    throw new TypeError(`Cannot create a store: prefix is ${JSON.stringify(prefix)}; use a string without braces`);
  }
  return customStore((options) => openEngine(connect, prefix, options), rest);
}

async function openEngine(
  connect: () => Awaitable<RedisClient>,
  prefix: string,
  { signal }: EngineOptions,
): Promise<StoreEngine> {
  const client = await connect();
  const link = await openLink(client, signal);
  const toOther = async () => await openLink(await openOther(connect, client, { database: "Redis", kind: "client" }));
  return new RedisEngine(link, prefix, toOther);
}

/** Maximum number of logs or values that one command reads. */
const BATCH = 100;

class RedisEngine implements BatchEngine {
  readonly #link: RedisLink;
  readonly #prefix: string;
  readonly #openOther: () => Promise<RedisLink>;
  /** Keys of the index. In a cluster, the index is on a single node, whereas the values are spread over all nodes. */
  readonly #index: readonly string[];

  constructor(link: RedisLink, prefix: string, openOther: () => Promise<RedisLink>) {
    this.#link = link;
    this.#prefix = prefix;
    this.#openOther = openOther;
    this.#index = [`${prefix}{index}:names`, `${prefix}{index}:times`];
  }

  async get(key: string): Promise<StoredValue | undefined> {
    const [found] = await this[GET_ALL]([key]);
    return found;
  }

  async [GET_ALL](keys: readonly string[]): Promise<readonly (StoredValue | undefined)[]> {
    const rows = await this.#each(GET, keys.map((key) => [this.#toValue(key)]));
    return rows.map((row) => {
      const [value, version] = toList(row);
      return version === null ? undefined : { value: String(value), version: String(version) };
    });
  }

  async set(key: string, value: string, { ttlMs, version, token }: SetOptions & EngineWriteOptions): Promise<boolean> {
    const args = [value, toMode(version), token, String(ttlMs), key];
    if (!this.#link.isCluster) return await this.#run(SET, [this.#toValue(key), ...this.#index], ...args) === 1;
    // Write the index first, because it may contain keys without a value, but must not lack the key of a value.
    await this.#run(INDEX, this.#index, key, String(ttlMs));
    return await this.#run(SET, [this.#toValue(key)], ...args) === 1;
  }

  async delete(key: string, { version }: DeleteOptions): Promise<boolean> {
    const keys = this.#link.isCluster ? [this.#toValue(key)] : [this.#toValue(key), ...this.#index];
    return await this.#run(DELETE, keys, toMode(version), key) === 1;
  }

  async list(prefix: string, { after = "", limit }: ListOptions): Promise<readonly StoredEntry[]> {
    const found: StoredEntry[] = [];
    let first = after && after >= prefix ? `(${after}` : `[${prefix}`;
    while (found.length < limit) {
      const left: string = String(limit - found.length);
      // "~" sorts after all characters that are allowed in keys.
      const names: readonly string[] = toList(await this.#run(FIND_NAMES, [this.#index[0]], first, `(${prefix}~`, left))
        .map(String);
      if (!names.length) break;
      const values = await this[GET_ALL](names);
      for (const [i, key] of names.entries()) {
        const value = values[i];
        if (value) found.push({ key, ...value });
      }
      first = `(${names[names.length - 1]}`;
    }
    return found;
  }

  async append(log: string, value: string, { ttlMs, max, token }: AppendOptions & EngineWriteOptions): Promise<number> {
    const args = [value, token, String(ttlMs), String(max), crypto.randomUUID(), this.#channel, log];
    return Number(await this.#run(APPEND, this.#toLog(log), ...args));
  }

  async read(log: string, { after = 0, limit }: ReadOptions): Promise<LogPage> {
    const page = toList(await this.#run(READ, this.#toLog(log), String(after), String(limit)));
    const head = toHead(page);
    const from = Math.max(after + 1, head.first);
    return { ...head, entries: toList(page[3]).map((text, i) => ({ id: from + i, value: String(text) })) };
  }

  async trim(log: string, before: number): Promise<void> {
    await this.#run(TRIM, this.#toLog(log), String(before));
  }

  async heads(logs: readonly string[]): Promise<readonly LogHead[]> {
    const keys = logs.map((log) => this.#toLog(log)).map(([state, _tokens, texts]) => [state, texts]);
    return (await this.#each(HEADS, keys)).map(toHead);
  }

  async listen(onRing: (log: string) => void, onLost: (error?: unknown) => void): Promise<() => void> {
    const link = await this.#openOther();
    let isOver = false;
    const reportLoss = (error?: unknown) => {
      if (isOver) return;
      isOver = true;
      link.close();
      onLost(error);
    };
    await link.subscribe(this.#channel, onRing, reportLoss);
    return () => {
      isOver = true;
      link.close();
    };
  }

  close(): void {
    this.#link.close();
  }

  // Without a cluster, one command processes up to `BATCH` keys. In a cluster, each key needs a separate command.
  async #each(script: string, keys: readonly (readonly string[])[]): Promise<readonly unknown[]> {
    const size = this.#link.isCluster ? 1 : BATCH;
    const parts = Array.from({ length: Math.ceil(keys.length / size) }, (_, i) => keys.slice(i * size, (i + 1) * size));
    const answers = await Promise.all(parts.map((part) => this.#run(script, part.flat())));
    return answers.flatMap(toList);
  }

  // Sends only the digest of a script that the node has run before. A node that has restarted, or whose scripts were
  // flushed, rejects the digest without running anything, and then gets the whole script.
  async #run(script: string, keys: readonly string[], ...args: readonly string[]): Promise<unknown> {
    const words = [String(keys.length), ...keys, ...args];
    try {
      return await this.#link.send(keys[0], ["EVALSHA", await toDigest(script), ...words]);
    } catch (error) {
      if (!(error instanceof Error && error.message.includes("NOSCRIPT"))) throw error;
      return await this.#link.send(keys[0], ["EVAL", script, ...words]);
    }
  }

  #toValue(key: string): string {
    return `${this.#prefix}value:${key}`;
  }

  #toLog(log: string): readonly string[] {
    return ["log", "tokens", "entries"].map((kind) => `${this.#prefix}${kind}:{${log}}`);
  }

  get #channel(): string {
    return `${this.#prefix}rings`;
  }
}

function toMode(version: string | null | undefined): string {
  if (version === undefined) return "any";
  return version === null ? "none" : `=${version}`;
}

function toHead(answer: unknown): LogHead {
  const [first, last, epoch] = toList(answer);
  return { first: Number(first), last: Number(last), epoch: String(epoch) };
}

function toList(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  throw new Error(`Cannot read the response from Redis: ${show(answer)} is not a list`);
}
