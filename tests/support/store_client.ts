// Starts a store in another process, and connects to this store.
import {
  customStore,
  type EngineOptions,
  type Store,
  type StoreEngine,
  type StoreOptions,
} from "../../src/stores/stores.ts";
import { startHttpProcess } from "./http_process.ts";

/**
 * Milliseconds for the timeout of store operations. It is long, because a loaded machine responds late, and because
 * instances miss changes while the store does not respond.
 */
export const TIMEOUT_MS = 20_000;

/** Faults that the store process injects into the commands of a connection. */
export interface Faults {
  /** Delays each command by up to this number of milliseconds, which can also change the order of commands. */
  delayMs?: number;
  /** Runs each command twice. */
  repeats?: boolean;
  /** The proportion of responses that are lost, between 0 and 1. */
  loses?: number;
  losesAnswer?: boolean;
  losesCommand?: boolean;
  /** Whether notifications of `listen` are lost. */
  isDeaf?: boolean;
  /** Whether commands never get a response. */
  stalls?: boolean;
}

/** A store in another process. */
export interface StoreProcess extends AsyncDisposable {
  /** Connects to the store, as a server in another process does. */
  open(faults?: Faults, options?: StoreOptions): Store;
  /** Starts a new, empty store in the process. */
  restart(): Promise<void>;
}

/** Starts a store in another process. */
export async function startStore(): Promise<StoreProcess> {
  const { origin, [Symbol.asyncDispose]: end } = await startHttpProcess(new URL("store_process.ts", import.meta.url));
  return {
    open: (faults = {}, options = {}) =>
      customStore(() => connect(origin, faults), { pollMs: 200, timeoutMs: TIMEOUT_MS, ...options }),
    async restart() {
      await (await fetch(`${origin}/restart`)).text();
    },
    [Symbol.asyncDispose]: end,
  };
}

function connect(origin: string, faults: Faults): StoreEngine {
  const client = crypto.randomUUID();
  const closed = new AbortController();
  /**
   * Operations whose last response was lost. The next response to the same operation is not lost, because a store gives
   * up after several attempts.
   */
  const lost = new Set<string>();
  async function run({ signal }: EngineOptions, operation: string, ...args: readonly unknown[]) {
    const key = JSON.stringify([operation, args]);
    const losesAnswer = !lost.delete(key) && Math.random() < (faults.loses ?? 0);
    if (losesAnswer) lost.add(key);
    const body = JSON.stringify({ client, operation, args, faults: { ...faults, losesAnswer } });
    const { status, text } = await send({ body, signal: AbortSignal.any([closed.signal, signal]) });
    if (status === 599) throw new Error("the connection was lost");
    const { result, error } = JSON.parse(text);
    if (error) throw new Error(error);
    return result;
  }
  // A TypeError would tell the store that the operation can never succeed, so this function throws another error.
  async function send(init: RequestInit): Promise<{ readonly status: number; readonly text: string }> {
    try {
      const response = await fetch(origin, { method: "POST", ...init });
      return { status: response.status, text: await response.text() };
    } catch (cause) {
      throw new Error("the connection has failed", { cause });
    }
  }
  return {
    get: (key, options) => run(options, "get", key),
    set: (key, value, options) => run(options, "set", key, value, options),
    delete: (key, options) => run(options, "delete", key, options),
    list: (prefix, options) => run(options, "list", prefix, options),
    append: (log, value, options) => run(options, "append", log, value, options),
    read: (log, options) => run(options, "read", log, options),
    trim: (log, before, options) => run(options, "trim", log, before),
    async listen(onRing, onLost) {
      const end = new AbortController();
      const signal = AbortSignal.any([closed.signal, end.signal]);
      const { body } = await fetch(`${origin}/bell?client=${client}`, { signal });
      listenTo(body, onRing).then((error) => signal.aborted || onLost(error));
      return () => end.abort();
    },
    close: () => closed.abort(),
  };
}

/** Reads notifications and passes them on until the stream ends. Returns the error that ended the stream. */
async function listenTo(body: ReadableStream<Uint8Array> | null, onRing: (log: string) => void): Promise<unknown> {
  let rest = "";
  try {
    for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line) onRing(line);
    }
  } catch (error) {
    return error;
  }
}
