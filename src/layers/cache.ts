/**
 * Caches the values that a tool returns.
 */
import { checkOptions, type KnownOptions, show } from "../core/known_options.ts";
import type { HandlerInfo, KeptValue, Layer, LayerRun } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import type { Clock, Context } from "../library.ts";
import { ignoreRejections } from "../core/protocol/promises.ts";
import { checkNumbers } from "./numbers.ts";
import { toKey, weighPlain } from "./plain_values.ts";

/** Only `ttlMs` is required. `Input` is the type of the tool's validated input, for `key`. */
export interface CacheOptions<Input = unknown> {
  /** Milliseconds for which a result is kept. */
  readonly ttlMs: number;
  /** Maximum number of results that the cache keeps for all its tools. Defaults to 1000. */
  readonly entries?: number;
  /**
   * Maximum total bytes of all kept results, including their inputs. A single client can use at most a quarter of the
   * bytes. If the limit is reached, the cache evicts the least recently used results. These bytes also count towards
   * `limits.memory`. Defaults to 16 MiB.
   */
  readonly bytes?: number;
  /**
   * Returns a text for everything that the result depends on in addition to the input and the principal, such as
   * `(_input, { http }) => http?.headers.get("x-user") ?? undefined`. A kept result is returned only for calls with an
   * equal text. If the function returns `undefined`, the call neither gets nor keeps a result. If the function throws or
   * returns any other value, the call fails.
   */
  readonly key?: (input: Input, ctx: Context) => string | undefined;
  /**
   * Whether callers without a principal share results. Set it to `true` only if the result depends on nothing but the
   * input. Defaults to `false`: without `key`, the tool runs for each call of a caller without a principal.
   */
  readonly shared?: boolean;
}

/** A layer that caches the results of tools. Tools with the same cache object share its limits. */
export interface ToolCache<Input = unknown> extends Layer<Input> {
  /** Removes all kept results. The cache does not keep the results of calls that are running at this time. */
  clear(): void;
}

const OPTIONS: KnownOptions<keyof CacheOptions> = {
  names: { ttlMs: true, entries: true, bytes: true, key: "function", shared: "boolean" },
  hints: { max: "entries", vary: "key", public: "shared" },
};

/**
 * Creates a layer that caches the results of tools with `annotations: { readOnlyHint: true }`. A kept result is
 * returned for calls with an equal input, and an equal `key`, from the same principal at the same path of the server.
 *
 * A caller without a principal, such as a caller that the tool identifies by a header, gets and keeps results only if
 * the cache has `key` or `shared: true`. This rule does not apply to the user who started the process, whose calls arrive
 * over stdio or in memory.
 *
 * The cache does not keep errors, results of calls that sent a request to the client or used `ctx.once`, or values that
 * cannot be copied, such as streams and class instances. If equal calls arrive at the same time, each call runs the
 * tool.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { cache } from "@x/mcp/layers";
 *
 * const rates = tool({
 *   name: "rates",
 *   annotations: { readOnlyHint: true },
 *   use: [cache({ ttlMs: 60_000, shared: true })],
 *   run: () => ({ EUR: 1.08 }),
 * });
 *
 * export default createServer({ name: "rates", version: "1.0.0", handlers: [rates] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid. `tool()` throws if the tool has no `readOnlyHint: true`.
 */
export function cache<Input = unknown>(options: CacheOptions<Input>): ToolCache<Input> {
  checkOptions("make a cache", options, OPTIONS);
  const { ttlMs, entries = 1000, bytes = 16 * 1024 * 1024, key: keyOf, shared } = options;
  checkNumbers("make a cache", { ttlMs, entries, bytes });
  const bounds = { ttlMs, bytes, least: Math.ceil(bytes / entries) };
  // The limit is named after the first tool of the cache, so that the cache has the same limit on all paths of a
  // server.
  let pot: string | undefined;
  const key = {};
  let generation = 0;
  const made = layer<Input>((handler) => {
    checkReadOnly(handler);
    const { name } = handler;
    if (handler.kind === "tool") pot ??= `${name} ${bytes}`;
    const of = pot ?? name;
    const open: Open = ({ slot, clock }) => slot(key, () => new Shelf({ ...bounds, pot: of }, clock)).open(generation);
    return {
      name: "cache",
      rank: "reuse",
      run: (run, next) => serve(run, next, { open, caller: toCaller(run, { name, keyOf, shared }) }),
    };
  });
  return Object.assign(made, { clear: () => void generation++ });
}

function checkReadOnly({ key, kind, annotations }: HandlerInfo): void {
  if (kind !== "tool" || annotations?.readOnlyHint === true) return;
  const remedy = "set annotations: { readOnlyHint: true }, or remove the cache";
  throw new TypeError(`Cannot make ${key}: it has a cache, but is not marked as read-only; ${remedy}`);
}

/** Whose results a call may get, as a part of the key of its result. `undefined` if the call uses no kept result. */
type Caller = readonly unknown[] | undefined;

interface Sharing<Input> {
  readonly name: string;
  readonly keyOf?: CacheOptions<Input>["key"];
  readonly shared?: boolean;
}

function toCaller<Input>(
  { ctx, input, hasAllScopes }: LayerRun<Input>,
  { name, keyOf, shared }: Sharing<Input>,
): Caller {
  const { principal } = ctx;
  const key: unknown = keyOf?.(input, ctx);
  if (keyOf && typeof key !== "string") {
    if (key === undefined) return;
    ignoreRejections(key);
    throw new TypeError(
      `Cannot run tool ${JSON.stringify(name)}: key() of its cache returned ${show(key)}; return a string or undefined`,
    );
  }
  // The key contains the scopes and other properties of the principal, because the result may depend on these
  // properties. The key does not contain the expiry, because the expiry changes when a credential is renewed.
  const { expiresAt: _, ...rest } = principal ?? {};
  // Without a principal, only the user who started the process is known to be one caller. Nobody can see what a result
  // depends on, because a service may have read the caller's headers before.
  const isUser = !principal && hasAllScopes;
  if (!principal && !isUser && !keyOf && !shared) return;
  return [name, principal ? rest : isUser, key === undefined ? null : key];
}

/** Returns the kept value of a call, or runs the tool and keeps its value. */
function serve(run: LayerRun, next: () => unknown, { open, caller }: Serving): unknown {
  const shelf = open(run.server);
  const { generation } = shelf;
  const key = caller && shelf.toKey(caller, run);
  const kept = key === undefined ? undefined : shelf.find(key, run.ctx);
  if (kept) return structuredClone(kept.value);
  const returned = next();
  const keep = (value: unknown) => {
    // If clear() was called during the run, the result must not be kept. A result of resources that not every caller
    // may read must not be kept either, because the next call would not read them.
    const isOpen = !run.usesRounds && !run.reads.length;
    if (key !== undefined && isOpen && open(run.server).generation === generation) shelf.keep(key, value, run);
    return value;
  };
  // Wait for thenables too, because a query builder is a thenable but not a promise.
  return typeof Object(returned).then === "function" ? Promise.resolve(returned).then(keep) : keep(returned);
}

interface Serving {
  readonly open: Open;
  readonly caller: Caller;
}

/** Returns the results that are kept for a server. Removes results from before the last clear(). */
type Open = (server: LayerRun["server"]) => Shelf;

interface Kept {
  readonly value: unknown;
  /** Time until which the result is kept, in milliseconds of the monotonic clock. */
  readonly ends: number;
  /** The bytes that the result takes from the memory limit of the client, and from the limit of the cache. */
  readonly charge: KeptValue;
}

interface CacheBounds {
  readonly ttlMs: number;
  readonly bytes: number;
  /** Minimum number of bytes that are counted for a result, to limit the number of results. */
  readonly least: number;
  /** Name of the limit for `bytes`. The name distinguishes this limit from the limits of other caches. */
  readonly pot: string;
}

class Shelf {
  /** Number of calls of `clear` before the results were kept. */
  generation = 0;
  readonly #bounds: CacheBounds;
  readonly #clock: Clock;
  /** Keyed by the text that `toKey` returns. The least recently used result is the first. */
  // Bound: `handler.cacheBytes`.
  readonly #entries = new Map<string, Kept>();

  constructor(bounds: CacheBounds, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /** Removes all results if `clear` has been called since they were kept. Returns the shelf itself. */
  open(generation: number): this {
    if (this.generation === generation) return this;
    for (const key of this.#entries.keys()) this.#forget(key);
    this.generation = generation;
    return this;
  }

  /** Returns the key of a call. Returns `undefined` if the input or the principal cannot be compared. */
  toKey(caller: readonly unknown[], { path, input }: LayerRun): string | undefined {
    return toKey([path, caller, input], this.#bounds.bytes / 4);
  }

  find(key: string, ctx: Context): Kept | undefined {
    const kept = this.#entries.get(key);
    if (!kept) return;
    if (kept.ends <= this.#clock.now()) return void this.#forget(key);
    kept.charge.use(ctx);
    return kept;
  }

  /** Keeps a result unless the run has failed, the result cannot be copied, or a limit is exceeded. */
  keep(key: string, value: unknown, run: LayerRun): void {
    if (run.hasEnded || isFailure(value)) return;
    const { bytes, least, ttlMs, pot } = this.#bounds;
    const weight = weighPlain(value, bytes / 4);
    if (weight === undefined) return;
    this.#forget(key);
    const drop = () => this.#forget(key);
    const limit = { of: pot, bytes, least };
    const charge = run.keep(weight + 2 * key.length + ENTRY_BYTES, { ttlMs, drop, limit });
    if (charge) this.#entries.set(key, { value: structuredClone(value), ends: this.#clock.now() + ttlMs, charge });
  }

  #forget(key: string): boolean {
    const kept = this.#entries.get(key);
    this.#entries.delete(key);
    kept?.charge.end();
    return !!kept;
  }
}

/** Bytes that a kept result needs in addition to its key and its value, for its entry and its charge. Measured. */
const ENTRY_BYTES = 1024;

function isFailure(value: unknown): boolean {
  return Object(value).isError === true && Array.isArray(Object(value).content);
}
