/**
 * A circuit breaker: stops running a tool that fails repeatedly.
 *
 * @module
 */
import type { Ticker } from "../core/capacity/timers.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { Call } from "../core/call/call.ts";
import { ToolError } from "../protocol/errors.ts";
import type { Step } from "../core/visibility/run_steps.ts";
import { isFailure, type SelectErrors } from "./failures.ts";
import { checkNumbers } from "./numbers.ts";
import { makeStep, type SteppedRun } from "./step.ts";

/** Options of {@linkcode circuit}. All options are optional. */
export interface CircuitOptions {
  /** Number of consecutive failures that open the circuit. Defaults to 5. */
  readonly failures?: number;
  /** Milliseconds between test calls while the circuit is open. Defaults to 10,000. */
  readonly retryMs?: number;
  /**
   * Selects the errors that count as failures. `errors` is not called for a `ToolError` or an `McpError`, because these
   * errors never count. By default, all other errors count. A timeout always counts.
   */
  readonly errors?: SelectErrors;
}

const OPTIONS: KnownOptions<keyof CircuitOptions> = {
  names: { failures: true, retryMs: true, errors: "function" },
  hints: { threshold: "failures", resetMs: "retryMs", resetTimeout: "retryMs", when: "errors" },
};

/**
 * Creates a circuit breaker for the `circuit` option of a tool. Tools with the same circuit breaker object share its
 * state. After `failures` consecutive failures, the circuit is open: calls fail immediately with an error that tells
 * the model when to try again. Every `retryMs`, one call runs the tool as a test. If the test call succeeds, the
 * circuit closes.
 *
 * If all failures come from one client, the circuit opens only for this client. At most half of the failures that open
 * the circuit for all clients can come from the same client.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { circuit } from "@x/mcp/handlers";
 *
 * const search = tool({
 *   name: "search",
 *   circuit: circuit({ failures: 3, retryMs: 5000 }),
 *   run: async (_input, { signal }) => (await fetch("https://search.example.com", { signal })).text(),
 * });
 *
 * export default createServer({ name: "search", version: "1.0.0", handlers: [search] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function circuit(options: CircuitOptions = {}): Step<"circuit"> {
  checkOptions("make a circuit breaker", options, OPTIONS);
  const { failures = 5, retryMs = 10_000, errors } = options;
  checkNumbers("make a circuit breaker", { failures, retryMs });
  const key = {};
  const open: Breaker["open"] = ({ state, ticker }) => state.slot(key, () => new Streak({ failures, retryMs, ticker }));
  return makeStep("circuit", ({ name }) => (run) => guard(run, { name, errors, failures, open }));
}

interface Breaker {
  readonly name: string;
  readonly failures: number;
  readonly errors?: SelectErrors;
  readonly open: (core: FeatureParts) => Streak;
}

async function guard({ call, core, next }: SteppedRun, { name, errors, failures, open }: Breaker): Promise<unknown> {
  const place = `tool ${JSON.stringify(name)}`;
  const streak = open(core);
  const waitMs = streak.check(call);
  if (waitMs) {
    core.observing?.reach("handler.circuit", call.link.account.key, place);
    const seconds = Math.ceil(waitMs / 1000);
    throw new ToolError(`${name} is not available: it failed ${failures} times in a row; try again in ${seconds} s`);
  }
  // Count a timeout when it occurs, because a handler that ignores its cancellation may never end.
  const { signal } = call;
  const onAbort = () => {
    if (call.why === "timeout") streak.fail(call);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const value = await next();
    if (!call.ended) streak.clear();
    return value;
  } catch (error) {
    // Do not count the error of a cancelled call, because the cancellation may have caused the error.
    if (!call.ended && isFailure(error, errors, place)) streak.fail(call);
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Maximum number of clients whose failures are counted separately. The failures of all further clients are counted
 * together.
 */
const MAX_CLIENTS = 1000;

/** Counts the failures on one server since the last success. */
class Streak {
  readonly #failures: number;
  readonly #retryMs: number;
  readonly #ticker: Ticker;
  /** Number of failures, keyed by client. */
  readonly #counts = new Map<unknown, number>();
  /** Time of the next test call, in milliseconds of the monotonic clock. */
  #nextAt = 0;

  constructor({ failures, retryMs, ticker }: { failures: number; retryMs: number; ticker: Ticker }) {
    this.#failures = failures;
    this.#retryMs = retryMs;
    this.#ticker = ticker;
  }

  /**
   * Returns 0 if the call may run, otherwise the milliseconds until the next test call. If the circuit is open, a call
   * that may run is the test call.
   */
  check(call: Call): number {
    if (!this.#isOpen(toClient(call))) return 0;
    const now = this.#ticker.clock.now();
    if (now < this.#nextAt) return this.#nextAt - now;
    this.#nextAt = now + this.#retryMs;
    return 0;
  }

  fail(call: Call): void {
    const client = toClient(call);
    const key = this.#counts.has(client) || this.#counts.size < MAX_CLIENTS ? client : undefined;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#nextAt = this.#ticker.clock.now() + this.#retryMs;
  }

  /** Closes the circuit, and sets all failure counts to 0. */
  clear(): void {
    this.#counts.clear();
  }

  // Failures of a single client must not open the circuit for all other clients.
  #isOpen(client: unknown): boolean {
    if ((this.#counts.get(client) ?? 0) >= this.#failures) return true;
    const most = Math.ceil(this.#failures / 2);
    let sum = 0;
    for (const count of this.#counts.values()) sum += Math.min(count, most);
    return this.#counts.size > 1 && sum >= this.#failures;
  }
}

function toClient({ link: { account } }: Call): unknown {
  return account.turnKey;
}
