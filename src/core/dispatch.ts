/**
 * Runs calls: a slot, a deadline, middleware, and exactly one outcome.
 *
 * @module
 */
import { INTERNAL_ERROR, McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call, Scope } from "./call.ts";
import type { Ticker } from "./clock.ts";
import type { Context } from "./context.ts";
import type { Core, Outcome } from "./core.ts";
import type { Method } from "./handler.ts";
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

type Run = (call: Call, method: Method) => Result | Promise<Result>;

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
): { run: Core["run"]; readonly running: Set<Scope>; stop(): void; idle(): Promise<void> } {
  const invoke: Run = fold(middleware, (call, method: Method) => method.run(call));
  const queue: (() => void)[] = [];
  const running = new Set<Scope>();
  const idlers: (() => void)[] = [];
  let taken = 0;
  let isOpen = true;

  function run(call: Call, method: Method): Promise<Outcome | undefined> {
    if (!isOpen) return Promise.resolve({ error: new McpError(BUSY, "Cannot run the call: the server is closing") });
    if (call.scope.size >= limits.callsPerClient) return wait(call, method, call.scope.waiting, "callsPerClient");
    if (taken >= limits.calls) return wait(call, method, queue, "calls");
    return start(call, method);
  }

  // A queue that is full is a refusal, not a longer queue: what waits costs memory, and its client gives up anyway.
  function wait(call: Call, method: Method, line: (() => void)[], limit: string): Promise<Outcome | undefined> {
    if (line.length < limits.queue) return new Promise((resolve) => line.push(() => resolve(run(call, method))));
    return Promise.resolve({
      error: new McpError(BUSY, `Cannot run the call: too many run and wait (${limit}, queue)`),
    });
  }

  function start(call: Call, method: Method): Promise<Outcome | undefined> {
    if (call.ended) return Promise.resolve(undefined);
    taken++;
    return new Promise((resolve) => {
      const { scope } = call;
      scope.add(call);
      running.add(scope);
      const alarm = limits.callMs === Infinity ? undefined : ticker.alarm(limits.callMs, () => {
        const text = `Cannot finish the call: it took longer than ${limits.callMs} ms (callMs)`;
        call.cancel(new DOMException(text, "TimeoutError"), new McpError(INTERNAL_ERROR, text));
      });
      let open = true;
      const end = (outcome?: Outcome) => {
        if (!open) return;
        open = false;
        call.ended = true;
        if (alarm) ticker.drop(alarm);
        scope.remove(call);
        if (!scope.size) running.delete(scope);
        taken--;
        scope.waiting.shift()?.();
        queue.shift()?.();
        if (!taken) idlers.splice(0).forEach((idle) => idle());
        resolve(outcome);
      };
      call.onCancel = (error) => end(error && { error });
      let result;
      try {
        result = invoke(call, method);
      } catch (error) {
        return end({ error: toMcpError(error, call) });
      }
      if (!(result instanceof Promise)) return end({ result });
      result.then((result) => end({ result }), (error) => end({ error: toMcpError(error, call) }));
    });
  }

  function toMcpError(error: unknown, call: Call): McpError {
    if (error instanceof McpError) return error;
    // A handler that stops because it was told to is no fault.
    return call.ended && error === call.reason ? new McpError(INTERNAL_ERROR, "Cancelled") : report(error, call);
  }

  return {
    run,
    running,
    stop: () => {
      isOpen = false;
    },
    idle: () => taken ? new Promise((resolve) => idlers.push(resolve)) : Promise.resolve(),
  };
}

/** The server has no room for the call now. Outside the range that the specification reserves. */
export const BUSY = -31_503;
