/**
 * Shared code for store tests: stores whose engines fail on demand, and assertions.
 */
import { INTERNALS } from "../core/internals.ts";
import type { Awaitable, EngineConnectOptions, Store, StoreEngine } from "../server/engine/store.ts";
import { customStore, type StoreOptions } from "../stores/custom_store.ts";

export type Rule = readonly [name: string, check: (bench: Bench) => Promise<void>];

export interface Faults {
  /** Whether each command runs twice. */
  repeats?: boolean;
  /** Number of upcoming commands whose response is lost. */
  loses?: number;
  /** Whether notifications of `listen` are lost. */
  isDeaf?: boolean;
  /** Whether commands never receive a response. */
  stalls?: boolean;
  /** Whether commands fail. An engine that receives a command while this field is `true` fails permanently. */
  isKilled?: boolean;
  /** Called before each command, with the command's name and arguments. */
  onCommand?: (name: string, args: readonly unknown[]) => void;
}

/** Creates stores whose engines have faults. */
export class Bench {
  /** A key that no other test uses. */
  readonly key: string = crypto.randomUUID();
  readonly #make: () => Awaitable<Store>;
  readonly #stores: Store[] = [];

  constructor(make: () => Awaitable<Store>) {
    this.#make = make;
  }

  /** Opens a store with its own connection to the data, like another process would. */
  open(faults: Faults = {}, options: StoreOptions = {}): Store {
    const connect = async (options: EngineConnectOptions) => toFaulty(await this.connect(options), faults);
    // On a busy machine, operations can take longer than the default timeout.
    const store = customStore(connect, { pollMs: 100, timeoutMs: 20_000, ...options });
    this.#stores.push(store);
    return store;
  }

  /** Connects to an engine without faults. */
  async connect(options?: EngineConnectOptions): Promise<StoreEngine> {
    return await (await this.#make())[INTERNALS].connect(options);
  }

  /** Tests whether the engine has an optional method. An engine that cannot listen at this place has no `listen`. */
  async has(name: "listen" | "heads"): Promise<boolean> {
    const engine = await this.connect();
    let isThere = typeof engine[name] === "function";
    if (name === "listen") {
      const stop = await engine.listen?.(() => {}, () => {});
      stop?.();
      isThere = stop !== undefined;
    }
    await engine.close?.();
    return isThere;
  }

  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
  }
}

const COMMANDS: readonly PropertyKey[] = ["get", "set", "delete", "list", "append", "read", "trim", "heads"];

function toFaulty(engine: StoreEngine, faults: Faults): StoreEngine {
  let isKilled = false;
  async function run(command: () => unknown): Promise<unknown> {
    isKilled ||= faults.isKilled === true;
    if (isKilled) throw new Error("the engine was killed");
    if (faults.stalls) return await new Promise<never>(() => {});
    if (faults.repeats) await command();
    const result = await command();
    if (!faults.loses) return result;
    faults.loses--;
    throw new Error("the answer was lost");
  }
  const listen: StoreEngine["listen"] = async (onRing, onLost) =>
    await engine.listen?.((log) => faults.isDeaf || onRing(log), onLost) ?? (() => {});
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name === "listen") return listen;
      if (!COMMANDS.includes(name)) return value.bind(target);
      return (...args: readonly unknown[]) => {
        faults.onCommand?.(String(name), args);
        return run(() => Reflect.apply(value, target, args));
      };
    },
  });
}

/** Options of a value whose time to live is longer than a test. */
export const MINUTE = { ttlMs: 60_000 };
export const LOG = { ttlMs: 60_000, max: 100 };

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until `condition` returns `true`. Throws after 10 seconds. */
export async function until(condition: () => Awaitable<boolean>): Promise<void> {
  const end = performance.now() + 10_000;
  while (!await condition()) {
    if (performance.now() > end) throw new Error("The store did not reach the expected state within 10 seconds");
    await wait(10);
  }
}

/** Throws unless `run` rejects with an error whose message names an option or a parameter, such as `timeoutMs`. */
export async function rejects(run: () => unknown, name: string): Promise<void> {
  const text = String(await toRejection(run, name));
  if (text.includes(name)) return;
  throw new Error(`The store rejects the operation with "${text}"; the message must contain "${name}"`);
}

/** Throws unless `run` rejects with a `RangeError`. */
export async function rejectsRange(run: () => unknown): Promise<void> {
  const error = await toRejection(run, "a RangeError");
  if (error instanceof RangeError) return;
  throw new Error(`The store rejects the operation with "${error}"; the error must be a RangeError`);
}

/** Throws unless `run` rejects with an error other than a timeout. */
export async function rejectsEarly(run: () => unknown): Promise<void> {
  const error = await toRejection(run, "an error");
  if (!String(error).includes("timeoutMs")) return;
  throw new Error(`The store rejects the operation with "${error}"; it must reject the operation before the timeout`);
}

async function toRejection(run: () => unknown, expected: string): Promise<unknown> {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error(`The store accepts an operation that it must reject with ${expected}`);
}

/** Throws unless two values have the same JSON, apart from the order of fields. */
export function equal(actual: unknown, expected: unknown): void {
  const [found, wanted] = [actual, expected].map(toText);
  if (found !== wanted) throw new Error(`The store returns ${found}; expected ${wanted}`);
}

// Converts a value to JSON with sorted fields, because engines may return fields in any order.
function toText(value: unknown): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === "object" && value && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
      : value;
  return JSON.stringify(value, sorted) ?? "undefined";
}
