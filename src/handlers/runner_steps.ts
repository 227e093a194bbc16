/**
 * Puts the steps of layers around the whole call of a handler: `limit`, `enter`, `around` and `result`.
 */
import type { Result } from "../protocol/jsonrpc.ts";
import { isPromiseLike, toHandled } from "../protocol/promises.ts";
import type { Call } from "../core/call/call.ts";
import { show } from "../core/call/known_options.ts";
import { compose, type Middleware } from "../core/call/middleware.ts";
import { wireRoom } from "../core/call/wire_room.ts";
import type { Timeout } from "../core/capacity/timers.ts";
import type { LayerEntry, RunnerSteps } from "../core/layers.ts";
import type { Runner, RunWithin } from "../core/visibility/feature.ts";
import { type Bound, type CallParts, StepCall, toCore, withState } from "./bound_layer.ts";
import type { AnySteps } from "./handler_layers.ts";

/** A layer that has the step `Name`. */
type With<Name extends keyof AnySteps> = Bound & { readonly steps: Required<Pick<AnySteps, Name>> };

/** Returns the function that puts the steps of all layers, and middleware of `around`, around a runner. */
export function toApply(layers: readonly Bound[], around: readonly Middleware[]): RunnerSteps["apply"] {
  const limits = layers.filter((bound): bound is With<"limit"> => !!bound.steps.limit);
  const enters = layers.filter((bound): bound is With<"enter"> => !!bound.steps.enter);
  const results = layers.filter((bound): bound is With<"result"> => !!bound.steps.result).reverse();
  const times = layers.flatMap(({ steps: { timeoutMs } }) => timeoutMs ?? []);
  const timeoutMs = times.length ? Math.min(...times) : undefined;
  const isEmpty = !limits.length && !enters.length && !results.length && !around.length && timeoutMs === undefined;
  if (isEmpty) return (runner) => runner;
  return (runner) => {
    const whole = compose(around, (call) => runner.run(call));
    return {
      ...runner,
      run: results.reduce((inner, bound) => withResult(inner, bound), whole),
      ...(enters.length || timeoutMs !== undefined) && {
        within: toEntering({ enters, timeoutMs, runner }),
      },
      ...limits.length && { check: (call: Call) => checkLimits(limits, call) },
    };
  };
}

function withResult(inner: Runner["run"], bound: With<"result">): Runner["run"] {
  const change = (result: Result, call: Call) => {
    const changed = withState(bound, call, (state) => bound.steps.result(result, new StepCall({ call, bound, state })));
    const received = { result, call, bound };
    return isPromiseLike(changed)
      ? Promise.resolve(changed).then((changed) => toChecked(changed, received))
      : toChecked(changed, received);
  };
  return (call) => {
    const result = inner(call);
    return result instanceof Promise ? result.then((result) => change(result, call)) : change(result, call);
  };
}

/** The result that a layer has received, and the layer. */
interface Received {
  readonly result?: Result;
  readonly call: Call;
  readonly bound: Bound;
}

/** Returns the result that a layer has received, or checks another result that the layer has returned. */
function toChecked(
  returned: unknown,
  { result, call, bound: { steps: { name } } }: Received,
): Result | Promise<Result> {
  if (result && (returned === undefined || returned === result)) return result;
  return wireRoom.open().then((wire) => wire.checkResult(call, returned, `the layer ${show(name)}`));
}

/** Asks the layers from `at` on whether a call may run. Throws the error that the client receives. */
function checkLimits(limits: readonly With<"limit">[], call: Call, from = 0): Promise<void> | undefined {
  for (const [at, bound] of limits.entries()) {
    if (at < from) continue;
    const returned: unknown = withState(
      bound,
      call,
      (state) => bound.steps.limit(new StepCall({ call, bound, state })),
    );
    if (!isPromiseLike(returned)) {
      requireNothing(returned, bound);
      continue;
    }
    return Promise.resolve(returned).then((returned) => {
      requireNothing(returned, bound);
      return checkLimits(limits, call, at + 1);
    });
  }
}

/** Throws for a value such as `false`, whose author may expect that it refuses the call. */
function requireNothing(returned: unknown, { steps: { name } }: Bound): void {
  if (returned === undefined) return;
  throw new TypeError(
    `Cannot run the call: limit of the layer ${show(name)} returned ${
      show(returned)
    }; throw an error to refuse a call, and return nothing to allow it`,
  );
}

/** The steps `enter` and the timeout of a handler. */
interface Entering {
  readonly enters: readonly With<"enter">[];
  readonly timeoutMs?: number;
  readonly runner: Runner;
}

function toEntering({ enters, timeoutMs, runner: { within } }: Entering): RunWithin {
  return (call, runner, executor) => {
    if (timeoutMs !== undefined) call.limitTime(timeoutMs);
    const begin = (runner: Runner) =>
      within ? within(call, runner, executor) : executor.invoke ? executor.invoke(call, runner) : runner.run(call);
    return enters.reduceRight<typeof begin>(
      (begin, bound) => (runner) => enter(bound, { call, runner, begin }),
      begin,
    )(runner);
  };
}

/** A call that enters a layer. */
interface Entered {
  readonly call: Call;
  readonly runner: Runner;
  /** Passes the call on to the layers within the layer, and to the handler. */
  readonly begin: (runner: Runner) => Result | Promise<Result>;
}

async function enter(bound: With<"enter">, { call, runner, begin }: Entered): Promise<Result> {
  const end = new HandlerEnd();
  let passed: Result | undefined;
  const next = async () => {
    try {
      return passed = await begin(end.watch(runner));
    } finally {
      end.settle();
    }
  };
  try {
    const returned = await withState(
      bound,
      call,
      (state) => bound.steps.enter(new StepEntry({ call, bound, state, ended: end.promise }), () => toHandled(next())),
    );
    return await toChecked(returned, { result: passed, call, bound });
  } finally {
    end.settle();
  }
}

/** See {@linkcode LayerEntry}. */
class StepEntry extends StepCall implements LayerEntry<never> {
  readonly #ended: Promise<void>;

  constructor({ ended, ...parts }: CallParts & { readonly ended: Promise<void> }) {
    super(parts);
    this.#ended = ended;
  }

  get ended(): Promise<void> {
    return this.#ended;
  }
}

/** Finds out when a handler has ended, which may be after the response or after the cancellation of its call. */
class HandlerEnd {
  readonly #ended = Promise.withResolvers<void>();
  readonly promise: Promise<void> = this.#ended.promise;
  #isRunning = false;

  /** Returns a runner whose handler is watched. */
  watch(runner: Runner): Runner {
    return {
      ...runner,
      run: (call) => {
        const passed = call.keepPassed();
        const result = runner.run(call);
        if (!(result instanceof Promise)) return result;
        this.#isRunning = true;
        const forget = this.#limit(call);
        const end = () => {
          forget();
          this.#ended.resolve();
        };
        // After a cancellation, the handler may still run, although its middleware does not wait for it.
        const settle = () => call.reason ? void Promise.allSettled(passed).then(end) : end();
        result.then(settle, settle);
        return result;
      },
    };
  }

  /** Ends the handler, unless it is running. */
  settle(): void {
    if (!this.#isRunning) this.#ended.resolve();
  }

  // Otherwise a handler that ignores its cancellation could use a place forever. Until its timeout it does, because
  // clients could start more handlers by cancelling calls.
  #limit(call: Call): () => void {
    const { ticker, limits: { calls } } = toCore(call);
    const { signal, timeoutMs = calls.timeoutMs } = call;
    const end = () => this.#ended.resolve();
    let timeout: Timeout | undefined;
    const onAbort = () => {
      if (Object(signal.reason).name === "TimeoutError") end();
      else timeout = ticker.startTimeout(timeoutMs, end);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    return () => {
      signal.removeEventListener("abort", onAbort);
      if (timeout) ticker.cancel(timeout);
    };
  }
}
