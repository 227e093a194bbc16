/**
 * A circuit breaker: stops running a tool that fails repeatedly.
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Layer, LayerRun } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { type Clock, isQuestion, ToolError } from "../library.ts";
import { isFailure, type SelectErrors } from "./failures.ts";
import { checkNumbers } from "./numbers.ts";

/** Options of {@linkcode circuit}. All options are optional. */
export interface CircuitOptions {
  /** Number of consecutive failures of a client that open the circuit. Defaults to 5. */
  readonly failures?: number;
  /**
   * Milliseconds between test calls while the circuit is open: of each client that has failed, and of all other clients
   * together. Defaults to 10,000.
   */
  readonly retryMs?: number;
  /**
   * Selects the errors that count as failures. `errors` is not called for a `ToolError` or an `McpError`, because these
   * errors never count. By default, all other errors count. A timeout always counts. A test call that fails with an error
   * that does not count closes the circuit.
   */
  readonly errors?: SelectErrors;
}

const OPTIONS: KnownOptions<keyof CircuitOptions> = {
  names: { failures: true, retryMs: true, errors: "function" },
  hints: { threshold: "failures", resetMs: "retryMs", resetTimeout: "retryMs", when: "errors" },
};

/**
 * Creates a layer that is a circuit breaker around a tool. Tools with the same circuit breaker object share its
 * state. After `failures` consecutive failures of a client, the circuit is open for this client: calls fail immediately
 * with an error that tells the model when to try again. Every `retryMs`, one call runs the tool as a test. If the test
 * call succeeds, or fails with an error that is not a failure, the circuit closes. A call that ends with a question to the
 * client is not a test.
 *
 * The circuit opens for all clients if at least three clients fail, each of which counts for at most a third of
 * `failures`, and no call of any client has succeeded in the last `retryMs`. The success of any client closes it for all.
 * A client is identified as for a quota: by its principal, otherwise by its IP address (IPv6: the /56 network),
 * otherwise by its connection. Failures of clients without a principal do not open the circuit for principals.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { circuit } from "@x/mcp/layers";
 *
 * const search = tool({
 *   name: "search",
 *   use: [circuit({ failures: 3, retryMs: 5000 })],
 *   run: async (_input, { signal }) => (await fetch("https://search.example.com", { signal })).text(),
 * });
 *
 * export default createServer({ name: "search", version: "1.0.0", handlers: [search] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function circuit(options: CircuitOptions = {}): Layer {
  checkOptions("make a circuit breaker", options, OPTIONS);
  const { failures = 5, retryMs = 10_000, errors } = options;
  checkNumbers("make a circuit breaker", { failures, retryMs });
  const key = {};
  const open: Guard["open"] = ({ slot, clock }) => slot(key, () => new Breaker({ failures, retryMs, clock }));
  return layer(({ name, key: place }) => {
    const guarding = { name, place, errors, failures, open };
    return { name: "circuit", rank: "break", run: (run, next) => guard(run, next, guarding) };
  });
}

interface Guard {
  readonly name: string;
  readonly place: string;
  readonly failures: number;
  readonly errors?: SelectErrors;
  readonly open: (server: LayerRun["server"]) => Breaker;
}

async function guard(
  run: LayerRun,
  next: () => unknown,
  { name, place, errors, failures, open }: Guard,
): Promise<unknown> {
  const { client, ctx: { signal }, server } = run;
  const breaker = open(server);
  const { waitMs, undo } = breaker.check(client);
  if (waitMs) {
    run.reachLimit("handler.circuit");
    const seconds = Math.ceil(waitMs / 1000);
    throw new ToolError(`${name} is not available: it failed ${failures} times in a row; try again in ${seconds} s`);
  }
  // Count a timeout when it occurs, because a handler that ignores its cancellation may never end.
  const onAbort = () => {
    if (signal.reason?.why === "timeout") breaker.fail(client);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const value = await next();
    if (!run.hasEnded) breaker.succeed(client);
    return value;
  } catch (error) {
    // Do not count the error of a cancelled call, because the cancellation may have caused the error.
    if (!run.hasEnded) {
      if (isQuestion(error)) undo?.();
      else if (isFailure(error, errors, place)) breaker.fail(client);
      else if (undo) breaker.succeed(client);
    }
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Maximum number of clients of each kind whose failures are known. Beyond it, the failures of the client whose last
 * failure is the oldest are forgotten, so that no client pays for the failures of another client. A stranger with more
 * than this number of /56 networks can make the server forget, and then more calls of clients without a principal run.
 */
const MAX_CLIENTS = 1000;

/** Number of clients that must fail before the circuit opens for all clients. */
const SEVERAL = 3;

type ClientKey = LayerRun["client"];

class Breaker {
  // A stranger has as many addresses as it likes. Therefore the failures of clients without a principal never open the
  // circuit for principals.
  readonly #principals: Group;
  readonly #others: Group;

  constructor(bounds: Bounds) {
    this.#principals = new Group(bounds);
    this.#others = new Group(bounds);
  }

  check(client: ClientKey): Admission {
    return this.#toGroup(client).check(client);
  }

  fail(client: ClientKey): void {
    this.#toGroup(client).fail(client);
  }

  /**
   * The success of any client shows that the tool works. A client with inputs that always succeed can therefore keep
   * the circuit closed during a partial outage, but only for clients that have not yet failed `failures` times
   * themselves.
   */
  succeed(client: ClientKey): void {
    this.#principals.succeed(client);
    this.#others.succeed(client);
  }

  #toGroup(client: ClientKey): Group {
    return typeof client === "string" && client.startsWith("principal ") ? this.#principals : this.#others;
  }
}

interface Admission {
  /** 0 if the call may run, otherwise the milliseconds until the client's next test call. */
  readonly waitMs: number;
  /**
   * Allows the test call again. Set if the call is a test call. A call that ends with a question uses it, because the
   * client sends the answers in another call, which would have to wait for the next test call, and end with the next
   * question.
   */
  readonly undo?: () => void;
}

interface Bounds {
  readonly failures: number;
  readonly retryMs: number;
  readonly clock: Clock;
}

/** Allows one test call per `retryMs`. */
interface Tests {
  /** Time of the next test call, in milliseconds of the monotonic clock. */
  nextAt: number;
}

/** A client that has failed since its last success, or that has had a test call. */
interface Failing extends Tests {
  /** Number of its consecutive failures. */
  failures: number;
  /** The number of its failures since the last success of any client. */
  streak: number;
  /** Value of `#successes` at its last failure. */
  successes: number;
}

/**
 * The failures of one kind of client.
 *
 * The circuit opens for a single client after its own consecutive failures, and closes with its own success. It opens for
 * all clients if several clients fail and no call has succeeded in the last `retryMs`, and closes for all with the success of any client.
 *
 * Clients that act together can open the circuit for all while no other client calls the tool, which takes three
 * accounts. They cannot keep it open: as long as the circuit is open, each client that has failed has test calls of its
 * own, and one call per `retryMs` belongs to clients that have not failed. Its success closes the circuit. To take this
 * call from the other clients takes a new account per `retryMs`, because an account that has failed once no longer counts
 * as such a client.
 */
class Group {
  readonly #bounds: Bounds;
  readonly #clients = new BoundedMap<ClientKey, Failing>({ full: "evict", max: MAX_CLIENTS });
  /** Whether the circuit is open for all clients. */
  #isOpen = false;
  /** The test calls of clients that have not failed, while the circuit is open for all clients. */
  readonly #newcomers: Tests = { nextAt: -Infinity };
  /** Number of successes of all clients. */
  #successes = 0;
  /** Time of the last success of any client, in milliseconds of the monotonic clock. */
  #succeededAt = -Infinity;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  check(client: ClientKey): Admission {
    const failing = this.#clients.get(client);
    if (!this.#isOpen && (failing?.failures ?? 0) < this.#bounds.failures) return { waitMs: 0 };
    const tests: Tests = failing ?? this.#newcomers;
    const now = this.#now();
    const before = tests.nextAt;
    if (now < before) return { waitMs: before - now };
    const nextAt = now + this.#bounds.retryMs;
    // From now on, the client has its own test calls, even if this call neither fails nor succeeds, such as a call that
    // the client cancels. Otherwise it could take each test call of the clients that have not failed.
    const own: Tests = failing ?? this.#welcome(client);
    const all = new Set([tests, own]);
    for (const each of all) each.nextAt = nextAt;
    const undo = () => {
      // Leave a time that a failure, a success or another test call has set since then.
      for (const each of all) if (each.nextAt === nextAt) each.nextAt = before;
    };
    return { waitMs: 0, undo };
  }

  #welcome(client: ClientKey): Failing {
    const own = { failures: 0, streak: 0, successes: this.#successes, nextAt: -Infinity };
    this.#clients.set(client, own);
    return own;
  }

  fail(client: ClientKey): void {
    const now = this.#now();
    const successes = this.#successes;
    const last = this.#clients.get(client);
    this.#clients.set(client, {
      failures: (last?.failures ?? 0) + 1,
      streak: last?.successes === successes ? last.streak + 1 : 1,
      successes,
      nextAt: now + this.#bounds.retryMs,
    });
    if (!this.#isOpen && now - this.#succeededAt >= this.#bounds.retryMs) this.#isOpen = this.#isOutage();
  }

  succeed(client: ClientKey): void {
    this.#successes++;
    this.#succeededAt = this.#now();
    // The outage has caused the failures of all clients, so that no client has to wait any longer.
    if (this.#isOpen) this.#clients.clear();
    else this.#clients.delete(client);
    this.#isOpen = false;
    this.#newcomers.nextAt = -Infinity;
  }

  // Count at most a third of the failures for each client, so that a single client cannot cause the outage.
  #isOutage(): boolean {
    const failing = [...this.#clients.values()].filter(({ streak, successes }) =>
      streak > 0 && successes === this.#successes
    );
    const { failures } = this.#bounds;
    const sum = failing.reduce((sum, { streak }) => sum + Math.min(streak, Math.ceil(failures / SEVERAL)), 0);
    return failing.length >= SEVERAL && sum >= failures;
  }

  #now(): number {
    return this.#bounds.clock.now();
  }
}
