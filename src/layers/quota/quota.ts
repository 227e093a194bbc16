/**
 * A layer that limits the time, the concurrency and the rate of calls, and the size of results.
 */
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../../server/call/call.ts";
import { toCall } from "../../server/call/find_call.ts";
import { isProgram, listRelays } from "../../server/call/relays.ts";
import { checkOptions, type KnownOptions, type OptionRule, show } from "../../core/known_options.ts";
import type { Layer, LayerCall, LayerEntry } from "../../server/engine/layers.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import { toCore } from "../../server/handlers/bound_layer.ts";
import { layer } from "../../server/handlers/layer.ts";
import { type Concurrency, Places } from "./concurrency.ts";
import { readLargeResults } from "./large_results.ts";
import { Buckets, type Rate, refuseRate } from "./rate.ts";
import { SharedRate } from "./shared_rate.ts";

/** Options of {@linkcode quota}, each of which is optional. */
export interface QuotaOptions {
  /**
   * Timeout of the handler and its middleware, in milliseconds. Time in a queue and time that the handler waits for the
   * client to answer a question do not count. `Infinity` means no limit. Defaults to the server's
   * `limits.calls.timeoutMs`.
   */
  readonly timeoutMs?: number;
  /**
   * Maximum number of calls that run at the same time, for all clients together. Further calls wait in a queue. If the
   * queue is full, calls fail with code -31503. Inner calls, such as with `ctx.callTool`, run in the slot of their handler.
   * Defaults to no limit.
   */
  readonly concurrency?: number | Concurrency;
  /**
   * Maximum rate of calls per client. Calls that exceed the rate fail with code -31429 and `data.retryAfterMs`, and
   * over HTTP with status 429 and `Retry-After`. A client is identified by its principal, otherwise by its IP address
   * (IPv6: the /56 network), otherwise by its connection. Defaults to no limit.
   */
  readonly rate?: Rate;
  /**
   * Whether `rate` applies to all instances together instead of each instance separately. This option needs a store.
   * The server then counts calls in fixed periods of `perMs`, which begin at the same time on all instances. Each call
   * requires one store operation. While the store does not respond, the rate applies to each instance separately.
   * Defaults to `false`.
   */
  readonly shared?: boolean;
  /** Maximum size of a result as JSON, in bytes. Defaults to the server's `limits.calls.resultBytes`. */
  readonly resultBytes?: number;
  /**
   * Maximum size of a result in tokens of a model: of its structured content or of its texts, whichever is larger, and of
   * its media. Only with `onLarge` `"refuse"` or `"more"`. Defaults to no limit.
   */
  readonly resultTokens?: number;
  /** Returns the number of tokens of a text, for `resultTokens`. Defaults to one token for four characters. */
  readonly countTokens?: (text: string) => number;
  /**
   * What the server does with a result that is larger than `resultBytes` or `resultTokens`. Defaults to `"refuse"`.
   *
   * - `"refuse"` responds with an error.
   * - `"cut"` truncates the text, and adds a note for the model.
   * - `"link"`, for tools only, keeps the result for `keepMs`, and responds with a link to a resource that the model
   *   reads in pages.
   * - `"more"`, for tools only, cuts a list between its items and text between its lines, keeps the rest for `keepMs`, and
   *   adds how to get the rest: with the same tool and the argument `more`. The rest of an output schema stays valid.
   */
  readonly onLarge?: "refuse" | "cut" | "link" | "more";
  /**
   * Returns the list to cut with `onLarge: "more"`: the list itself, within the structured content. Returns `undefined` for
   * a result without a list, which is then refused. Defaults to the only list in the structured content; several lists are
   * an error.
   */
  readonly items?: (structuredContent: never) => readonly unknown[] | undefined;
  /**
   * Returns the cursor with which the tool itself continues after an item. Set it if the tool has a cursor of its own.
   * Then the server keeps no rest, and replaces the cursor in the result. Without this option, a result with the cursor of
   * a next page is not cut.
   */
  readonly cursorAfter?: (item: never) => string;
  /** Milliseconds for which the server keeps a linked result, or the rest of a result. Defaults to 600,000. */
  readonly keepMs?: number;
  /**
   * Maximum size of all linked results and rests that the server keeps for a handler, in bytes. If the limit is exceeded, the
   * server evicts the oldest results. Defaults to 16 MiB.
   */
  readonly keepBytes?: number;
}

const POSITIVE: OptionRule = {
  test: (value) => typeof value === "number" && value > 0,
  remedy: "it must be a number above 0",
};

const AT_LEAST_ONE = {
  findProblem(value: unknown) {
    if (!(typeof value === "number" && value > 0)) return `is ${show(value)}; it must be a number above 0`;
    return value >= 1 ? undefined : `is ${value}; it must be at least 1`;
  },
};

const OPTIONS: KnownOptions<keyof QuotaOptions> = {
  names: {
    timeoutMs: POSITIVE,
    concurrency: {
      names: { calls: true, waiting: true } satisfies Record<keyof Concurrency, true>,
      hasOtherForms: true,
    },
    rate: {
      names: { calls: POSITIVE, perMs: POSITIVE, burst: AT_LEAST_ONE } satisfies Record<keyof Rate, OptionRule>,
      hints: { limit: "calls", max: "calls", windowMs: "perMs", interval: "perMs" },
    },
    shared: "boolean",
    resultBytes: POSITIVE,
    resultTokens: POSITIVE,
    countTokens: "function",
    onLarge: ["refuse", "cut", "link", "more"],
    items: "function",
    cursorAfter: "function",
    keepMs: POSITIVE,
    keepBytes: POSITIVE,
  },
  hints: { perMs: "rate.perMs", burst: "rate.burst" },
};

/**
 * Creates a layer that limits the calls of a handler: their time, concurrency and rate, and the size of their results.
 * Handlers with the same quota object share its rate and concurrency. The completions of these handlers have the same
 * limits, but separate counters.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { quota } from "@x/mcp/layers";
 *
 * const search = tool({
 *   name: "search",
 *   use: [quota({ timeoutMs: 5000, concurrency: 4, rate: { calls: 30, perMs: 60_000 } })],
 *   run: () => "nothing found",
 * });
 *
 * export default createServer({ name: "search", version: "1.0.0", handlers: [search] });
 * ```
 *
 * @throws {TypeError} if a limit is unknown or invalid. `tool()` and other factories throw if their handler cannot have
 * `onLarge`.
 */
export function quota(options: QuotaOptions): Layer {
  check(options);
  const { timeoutMs, rate, shared } = options;
  // All paths of a server share a state. With a state per path, a client could exceed the rate by using several paths.
  // Completion has a state of its own, because completion runs for each character that a user types.
  const slots = { call: {}, completion: {} };
  // The quota is named after its first handler. All instances use the same name, because they create the same handlers
  // in the same order.
  let first: string | undefined;
  return layer<unknown, unknown>((handler) => {
    const { kind, name } = handler;
    const named = first ??= `${kind} ${name}`;
    const isCompletion = kind === "completion";
    const slot = isCompletion ? slots.completion : slots.call;
    const counted = isCompletion ? `completion ${named}` : ` ${named}`;
    const open: Open = (core) => core.state.slot(slot, () => new Counters(options, core, counted));
    const hasPlaces = toConcurrency(options) !== undefined;
    return {
      name: "quota",
      timeoutMs,
      limit: rate || hasPlaces ? (call) => limit(call, open) : undefined,
      enter: rate && shared || hasPlaces ? (entry, next) => enter(entry, next, open) : undefined,
      ...isCompletion ? undefined : readLargeResults(options, handler),
    };
  });
}

type Open = (core: FeatureParts) => Counters;

function limit(limited: LayerCall, open: Open): void {
  const call = toCall(limited.ctx, "check a quota");
  const core = toCore(call);
  const counters = open(core);
  const isRelayed = counters.note(call);
  if (isRelayed && !isOfProgram(call)) return;
  const { places, buckets } = counters;
  // Check the queue first, because a call that can neither run nor wait must not use up a token.
  if (!isRelayed) places?.check(call, limited);
  const retryAfterMs = buckets?.consume(limited.client, core.ticker.clock.now());
  if (retryAfterMs) throw refuseRate(retryAfterMs, limited);
}

function enter(entry: LayerEntry, next: () => Promise<Result>, open: Open): Promise<Result> {
  const call = toCall(entry.ctx, "enter a quota");
  const counters = open(toCore(call));
  const isRelayed = counters.note(call);
  if (isRelayed && !isOfProgram(call)) return next();
  const { places, sharedRate } = counters;
  const start = () => places && !isRelayed ? places.run(call, entry, next) : next();
  return sharedRate ? countShared(sharedRate, entry, call).then(start) : start();
}

/** Whether a program makes the call, whose calls count towards rates like direct calls. The program has only one slot. */
function isOfProgram({ host: { outer } }: Call): boolean {
  return outer !== undefined && isProgram(outer);
}

async function countShared(rate: SharedRate, entry: LayerEntry, call: Call): Promise<void> {
  const { shared, ticker } = toCore(call);
  const { client, isInternal } = entry;
  // An internal call continues a call that was counted, such as a task that runs again. Do not use the store for a
  // client that is identified only by its connection, because all calls on a connection go to the same instance.
  if (!shared || isInternal || typeof client !== "string") return;
  const retryAfterMs = await rate.count(shared, call, { client, now: ticker.clock.date() });
  if (retryAfterMs) throw refuseRate(retryAfterMs, entry);
}

class Counters {
  readonly buckets?: Buckets;
  readonly sharedRate?: SharedRate;
  readonly places?: Places;
  /** The parameters of the calls that have come here. Layers of extensions replace calls, but not their parameters. */
  readonly #noted = new WeakSet<Params>();

  /** `name` is the same on all instances. */
  constructor(options: QuotaOptions, core: FeatureParts, name: string) {
    const { rate, shared } = options;
    const { clients } = core.limits.rates;
    if (rate) this.buckets = new Buckets(rate, clients);
    if (rate && shared) this.sharedRate = new SharedRate(rate, name, clients);
    const concurrency = toConcurrency(options);
    if (concurrency) this.places = new Places(concurrency, name);
  }

  /**
   * Notes that a call has come here. Returns whether a relay that has come here before passes it on: the relay has a slot,
   * counts towards the rate, and cannot be called back.
   */
  note(call: Call): boolean {
    const isRelayed = listRelays(call).some(({ params }) => this.#noted.has(params));
    this.#noted.add(call.params);
    return isRelayed;
  }
}

function toConcurrency({ concurrency }: QuotaOptions): Concurrency | undefined {
  if (concurrency === undefined || concurrency === Infinity) return;
  return typeof concurrency === "number" ? { calls: concurrency } : concurrency;
}

function check(options: QuotaOptions): void {
  checkOptions("make a quota", options, OPTIONS);
  const { concurrency, rate } = options;
  const { calls = Infinity, waiting = 1 } = typeof concurrency === "object" ? concurrency : { calls: concurrency };
  if (rate && (rate.calls === undefined || rate.perMs === undefined)) {
    throw new TypeError(
      "Cannot make a quota: rate lacks calls or perMs; set both, such as { calls: 10, perMs: 60_000 }",
    );
  }
  const { resultBytes, resultTokens, countTokens, onLarge, items, cursorAfter } = options;
  const refuse = (state: string) => new TypeError(`Cannot make a quota: ${state}`);
  if (onLarge === "more" && resultTokens === undefined && resultBytes === undefined) {
    throw refuse('onLarge is "more", but there is no limit; set resultTokens or resultBytes');
  }
  if (onLarge !== "more" && (items || cursorAfter)) {
    throw refuse(`${items ? "items" : "cursorAfter"} is only for onLarge: "more"; set onLarge, or omit it`);
  }
  if (countTokens && resultTokens === undefined) throw refuse("countTokens needs a limit; set resultTokens");
  if (resultTokens !== undefined && (onLarge === "cut" || onLarge === "link")) {
    throw refuse(`resultTokens is not for onLarge ${JSON.stringify(onLarge)}; use "more", or set resultBytes`);
  }
  const problem = AT_LEAST_ONE.findProblem(calls);
  if (problem !== undefined) throw new TypeError(`Cannot make a quota: concurrency.calls ${problem}`);
  if (options.shared && (!rate || rate.burst !== undefined)) {
    throw new TypeError("Cannot make a quota: shared needs a rate without burst; set rate, and omit rate.burst");
  }
  if (rate && rate.burst === undefined && rate.calls < 1) {
    throw new TypeError(`Cannot make a quota: rate.calls is ${rate.calls}; use at least 1, or set burst`);
  }
  if (!(waiting >= 0)) {
    throw new TypeError(
      `Cannot make a quota: concurrency.waiting is ${show(waiting)}; it must be a number of at least 0`,
    );
  }
}
