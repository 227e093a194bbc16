/**
 * Quotas of individual handlers: limits on the time, concurrency and rate of calls, and on the size of results.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { quota } from "@x/mcp/quota";
 *
 * const search = tool({
 *   name: "search",
 *   quota: quota({ timeoutMs: 5000, concurrency: 4, rate: { calls: 30, perMs: 60_000 } }),
 *   run: () => "nothing found",
 * });
 *
 * export default createServer({ name: "search", version: "1.0.0", handlers: [search] });
 * ```
 *
 * @module
 */
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import type { Runner, RunWithin } from "../core/visibility/feature.ts";
import type { LimitedHandler, Quota } from "../core/visibility/quota.ts";
import { toClientKey } from "../core/call/client_key.ts";
import { INTERNALS } from "../core/call/internals.ts";
import { checkOptions, type KnownOptions, show } from "../core/call/known_options.ts";
import { type Concurrency, Places } from "./concurrency.ts";
import { type LargeResults, readLargeResults } from "./large_results.ts";
import { Buckets, type Rate, refuseRate, takeToken } from "./rate.ts";
import { SharedRate } from "./shared_rate.ts";

export type { Quota } from "../core/visibility/quota.ts";
export type { Concurrency } from "./concurrency.ts";
export type { Rate } from "./rate.ts";

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
   * queue is full, calls fail with code -31503. Defaults to no limit.
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
   * What the server does with a result that is larger than `resultBytes`. Defaults to `"refuse"`.
   *
   * - `"refuse"` responds with an error.
   * - `"cut"` truncates the text, and adds a note for the model.
   * - `"link"`, for tools only, keeps the result for `keepMs`, and responds with a link to a resource that the model
   *   reads in pages.
   */
  readonly onLarge?: "refuse" | "cut" | "link";
  /** Milliseconds for which the server keeps a linked result. Defaults to 600,000. */
  readonly keepMs?: number;
  /**
   * Maximum size of all linked results that the server keeps for a handler, in bytes. If the limit is exceeded, the
   * server evicts the oldest results. Defaults to 16 MiB.
   */
  readonly keepBytes?: number;
}

const OPTIONS: KnownOptions<keyof QuotaOptions> = {
  names: {
    timeoutMs: true,
    concurrency: {
      names: { calls: true, waiting: true } satisfies Record<keyof Concurrency, true>,
      hasOtherForms: true,
    },
    rate: { names: { calls: true, perMs: true, burst: true } satisfies Record<keyof Rate, true> },
    shared: "boolean",
    resultBytes: true,
    onLarge: ["refuse", "cut", "link"],
    keepMs: true,
    keepBytes: true,
  },
  hints: { rateLimit: "rate", perMs: "rate.perMs", burst: "rate.burst" },
};

/**
 * Creates a quota for the `quota` option of a handler. Handlers with the same quota object share its rate and
 * concurrency.
 *
 * @throws {TypeError} if a limit is unknown or invalid.
 */
export function quota(options: QuotaOptions): Quota {
  check(options);
  // Completion has a state of its own, because completion runs for each character that a user types. All paths of a
  // server share a state. With a state per path, a client could exceed the rate by using several paths.
  const keys = { call: {}, completion: {} };
  // The quota is named after its first handler. All instances use the same name, because they create the same handlers
  // in the same order.
  let name: string | undefined;
  const find = (core: FeatureParts, group: string, key: string): State => {
    const make = () => new State(options, core, { key: `${group}${key}`, name: `${group} ${name}` });
    return core.state.slot(group ? keys.completion : keys.call, make);
  };
  return {
    [INTERNALS]: {
      bind(handler) {
        name ??= `${handler.kind} ${handler.key}`;
        const large = handler.kind === "completion" ? undefined : readLargeResults(options, handler);
        return {
          also: large?.also,
          apply: (runner, core) => {
            const state = find(core, handler.kind === "completion" ? "completion" : "", handler.key);
            return { ...runner, ...limited(runner, { options, handler, state, core, large }) };
          },
        };
      },
    },
  };
}

/** The state of a quota on one server. */
class State {
  readonly buckets?: Buckets;
  readonly sharedRate?: SharedRate;
  readonly places?: Places;

  constructor(
    { rate, shared, concurrency }: QuotaOptions,
    core: FeatureParts,
    { key, name }: { readonly key: string; readonly name: string },
  ) {
    const { clients } = core.limits.rates;
    if (rate) this.buckets = new Buckets(rate, clients);
    if (rate && shared) this.sharedRate = new SharedRate(rate, name, clients);
    if (concurrency !== undefined && concurrency !== Infinity) {
      this.places = new Places(typeof concurrency === "number" ? { calls: concurrency } : concurrency, core, key);
    }
  }
}

/** Parameters of {@linkcode limited}. */
interface Parts {
  readonly options: QuotaOptions;
  readonly handler: LimitedHandler;
  readonly state: State;
  readonly core: FeatureParts;
  readonly large?: LargeResults;
}

/** Returns methods that enforce the limits. They replace the methods of `runner`. */
function limited(runner: Runner, { options, handler: { place }, state, core, large }: Parts): Partial<Runner> {
  const { buckets, sharedRate, places } = state;
  const { shared } = core;
  const outer = runner.within;
  const run: Runner["run"] = large
    ? (call) => {
      const result = runner.run(call);
      return result instanceof Promise
        ? result.then((result) => large.fit(result, call, core))
        : large.fit(result, call, core);
    }
    : (call) => runner.run(call);
  const within: RunWithin = (call, runner, executor) => {
    call.limitTime(options.timeoutMs);
    const begin = (runner: Runner) =>
      outer ? outer(call, runner, executor) : executor.invoke ? executor.invoke(call, runner) : runner.run(call);
    const start = () => places ? places.run(call, runner, begin) : begin(runner);
    // An extension's call continues a call that was counted, such as a task that runs again.
    const isCounted = call.internal && !call.host.outer;
    const client = shared && sharedRate && !isCounted && toClientKey(call);
    // Do not use the store for a client that is identified only by its connection, because all calls on a connection go
    // to the same instance.
    if (!shared || !sharedRate || typeof client !== "string") return start();
    return sharedRate.take(shared, call, { client, now: core.ticker.clock.date() }).then((retryAfterMs) => {
      if (retryAfterMs) throw refuseRate(retryAfterMs, call, core, place);
      return start();
    });
  };
  return {
    run,
    within,
    check(call) {
      // Check the queue first, because a call that can neither run nor wait must not use up a token.
      places?.check(call, place);
      if (buckets) takeToken(buckets, call, core, place);
    },
  };
}

function check(options: QuotaOptions): void {
  checkOptions("make a quota", options, OPTIONS);
  const { timeoutMs, concurrency, rate, resultBytes, keepMs, keepBytes } = options;
  const { calls, waiting = 1 } = typeof concurrency === "object" ? concurrency : { calls: concurrency };
  const numbers = {
    timeoutMs,
    "concurrency.calls": calls,
    "rate.calls": rate?.calls,
    "rate.perMs": rate?.perMs,
    "rate.burst": rate?.burst,
    resultBytes,
    keepMs,
    keepBytes,
  };
  if (rate && (rate.calls === undefined || rate.perMs === undefined)) {
    throw new TypeError(
      "Cannot make a quota: rate lacks calls or perMs; set both, such as { calls: 10, perMs: 60_000 }",
    );
  }
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined || typeof value === "number" && value > 0) continue;
    throw new TypeError(`Cannot make a quota: ${name} is ${show(value)}; it must be a number above 0`);
  }
  for (const [name, value] of Object.entries({ "concurrency.calls": calls, "rate.burst": rate?.burst })) {
    if (value === undefined || value >= 1) continue;
    throw new TypeError(`Cannot make a quota: ${name} is ${value}; it must be at least 1`);
  }
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
