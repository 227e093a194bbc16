/**
 * Runs calls: a slot, a deadline, middleware, and exactly one outcome.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call, Scope, Waiting } from "./call.ts";
import type { Ticker } from "./timers.ts";
import type { Context } from "./context.ts";
import type { Core, Outcome } from "./core.ts";
import type { Runner } from "./feature.ts";
import type { Limits } from "./limits.ts";

/**
 * Code around a call. It sees the call, calls `next` for the result, and returns it, another one, or throws.
 *
 * ```ts
 * import type { Middleware } from "@x/mcp";
 *
 * const timing: Middleware = async (call, next) => {
 *   const start = performance.now();
 *   const result = await next();
 *   console.error(call.method, performance.now() - start);
 *   return result;
 * };
 * ```
 */
export type Middleware = (call: Context, next: () => Promise<Result>) => Promise<Result>;

type Run = (call: Call, runner: Runner) => Result | Promise<Result>;

/** How a call ended; nothing if it was cancelled without an answer. */
type Ended = Outcome | undefined;

/** Folds middleware around what it wraps, once; the first is the outermost. */
export function fold<A extends readonly unknown[]>(
  middleware: readonly Middleware[],
  last: (call: Call, ...rest: A) => Result | Promise<Result>,
): (call: Call, ...rest: A) => Result | Promise<Result> {
  return middleware.reduceRight<(call: Call, ...rest: A) => Result | Promise<Result>>(
    (next, use) => (call, ...rest) => use(call, async () => await next(call, ...rest)),
    last,
  );
}

/** Makes the function that runs every call. */
export function createRun(
  { limits, ticker, report }: { limits: Limits; ticker: Ticker; report: Core["report"] },
  middleware: readonly Middleware[],
): { run: Core["run"]; stop(): void; idle(): Promise<void>; cancelAll(): void } {
  const invoke: Run = fold(middleware, (call, runner: Runner) => runner.run(call));
  // Calls that have a slot of their client and wait for one of the process, the oldest first.
  const queue = new Set<Waiting>();
  const busy = new Set<Scope>();
  const idlers: (() => void)[] = [];
  let taken = 0;
  let waiting = 0;
  let isOpen = true;
  let isHanding = false;

  function run(call: Call, runner: Runner): Ended | Promise<Ended> {
    if (call.ended) return;
    const { scope } = call;
    const isFull = scope.size >= limits.callsPerClient;
    const mustWait = isFull || taken >= limits.calls;
    // A queue that is full is a refusal, not a longer queue: what waits costs memory, and its client gives up anyway.
    const state = !isOpen
      ? "the server is closing"
      : mustWait && waiting >= limits.queue
      ? `too many run and wait (${isFull ? "callsPerClient" : "calls"}, queue)`
      : undefined;
    if (state) return { error: new McpError(BUSY, `Cannot run the call: ${state}`) };
    scope.add(call);
    busy.add(scope);
    if (!isFull) scope.size++;
    if (!mustWait) return start(call, runner);
    return new Promise((resolve) => wait(call, isFull, () => resolve(start(call, runner)), resolve));
  }

  // A call that waits is cancelled like one that runs, or it would run for a client that has gone.
  function wait(call: Call, isFull: boolean, go: Waiting, resolve: (ended: Ended) => void): void {
    const { scope } = call;
    waiting++;
    (isFull ? scope.waiting ??= new Set() : queue).add(go);
    call.onCancel = () => {
      if (!scope.waiting?.delete(go)) {
        queue.delete(go);
        scope.size--;
      }
      waiting--;
      leave(call);
      resolve(toCancelled(call));
    };
  }

  // What is over at once needs no promise, no alarm and nobody who waits for it.
  function start(call: Call, runner: Runner): Ended | Promise<Ended> {
    taken++;
    call.onCancel = undefined;
    let result;
    try {
      result = invoke(call, runner);
    } catch (error) {
      return end(call, { error: toMcpError(error, call) });
    }
    if (!(result instanceof Promise)) return end(call, { result });
    const running = result;
    return new Promise((resolve) => attend(call, running, resolve));
  }

  function attend(call: Call, running: Promise<Result>, resolve: (ended: Ended) => void): void {
    const alarm = limits.callMs === Infinity ? undefined : ticker.alarm(limits.callMs, () => {
      const text = `Cannot finish the call: it took longer than ${limits.callMs} ms (callMs)`;
      call.cancel(new DOMException(text, "TimeoutError"), new McpError(INTERNAL_ERROR, text));
    });
    let isOpen = true;
    const settle = (outcome?: Outcome) => {
      if (!isOpen) return;
      isOpen = false;
      if (alarm) ticker.drop(alarm);
      resolve(end(call, outcome));
    };
    // Not written where it is assigned: V8 takes a function that is for one that lives long, puts it where only a full
    // collection looks, and with it keeps all that belongs to the request.
    const onCancel = () => settle();
    call.onCancel = onCancel;
    running.then((result) => settle({ result }), (error) => settle({ error: toMcpError(error, call) }));
    if (call.ended) settle();
  }

  /** Gives the slot back; the outcome, unless the call was cancelled first. */
  function end(call: Call, outcome?: Outcome): Ended {
    const ended = call.ended ? toCancelled(call) : outcome;
    call.ended = true;
    call.scope.size--;
    taken--;
    leave(call);
    return ended;
  }

  // A slot that is free goes to the oldest call of its client, behind those that waited for the process before.
  function leave(call: Call): void {
    const { scope } = call;
    scope.remove(call);
    if (waiting) hand(scope);
    scope.onRoom?.();
    if (scope.size) return;
    busy.delete(scope);
    if (!busy.size) idlers.splice(0).forEach((idle) => idle());
  }

  function hand(scope: Scope): void {
    for (const go of scope.waiting ?? []) {
      if (scope.size >= limits.callsPerClient) break;
      scope.waiting?.delete(go);
      scope.size++;
      queue.add(go);
    }
    // A call that ends at once comes back here: one loop starts them all, or the stack would grow with the queue.
    if (isHanding) return;
    isHanding = true;
    for (const go of queue) {
      if (taken >= limits.calls) break;
      queue.delete(go);
      waiting--;
      go();
    }
    isHanding = false;
  }

  function toMcpError(error: unknown, call: Call): McpError {
    try {
      if (isMcpError(error)) return error;
      // A handler that stops because it was told to is no fault.
      if (call.ended && error === call.reason) return new McpError(INTERNAL_ERROR, "Cancelled");
    } catch {
      // A thrown proxy may throw when it is looked at, which must not cost the call its end.
    }
    return report(error, call);
  }

  return {
    run,
    stop: () => {
      isOpen = false;
    },
    idle: () => busy.size ? new Promise((resolve) => idlers.push(resolve)) : Promise.resolve(),
    cancelAll() {
      // What waits is not begun only to be cancelled.
      isHanding = true;
      const text = "Cannot finish the call: the server is closing";
      const error = new McpError(INTERNAL_ERROR, text);
      for (const scope of busy) scope.cancelAll(new DOMException(text, "AbortError"), error);
    },
  };
}

function toCancelled({ error }: Call): Ended {
  return error && { error };
}

/** The server has no room for the call now. Outside the range that the specification reserves. */
export const BUSY = -31_503;
