/**
 * Runs a tool again after a failure.
 *
 * @module
 */
import { delay } from "../kit/deadline.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { Step, SteppedTool } from "../core/visibility/run_steps.ts";
import { isFailure, type SelectErrors } from "./failures.ts";
import { checkNumbers } from "./numbers.ts";
import { makeStep, type SteppedRun } from "./step.ts";

/** Options of {@linkcode retry}. All options are optional. */
export interface RetryOptions {
  /** Maximum number of runs, including the first run. Defaults to 3. */
  readonly attempts?: number;
  /**
   * Maximum delay before the second run, in milliseconds. The maximum doubles for each further run. The actual delay is
   * random, between 0 and the maximum. Defaults to 200.
   */
  readonly delayMs?: number;
  /** Maximum delay before any run, in milliseconds. Defaults to 5000. */
  readonly maxDelayMs?: number;
  /**
   * Selects the errors after which the tool runs again. `errors` is not called for a `ToolError` or an `McpError`,
   * because these errors never cause another run. By default, the tool runs again after all other errors.
   */
  readonly errors?: SelectErrors;
  /**
   * Whether to allow retries of a tool that has neither `readOnlyHint: true` nor `idempotentHint: true`, although a
   * failed run may have had an effect. Defaults to `false`.
   */
  readonly unsafe?: boolean;
}

const OPTIONS: KnownOptions<keyof RetryOptions> = {
  names: { attempts: true, delayMs: true, maxDelayMs: true, errors: "function", unsafe: "boolean" },
  hints: { retries: "attempts", times: "attempts", minDelayMs: "delayMs", when: "errors", shouldRetry: "errors" },
};

/**
 * Creates retries for the `retry` option of a tool. If `run` fails, the library calls `run` again after a random delay.
 * The library does not call `run` again if the call was cancelled, has sent a request to the client or has used
 * `ctx.once`, or if the delay would exceed the call's timeout.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { retry } from "@x/mcp/handlers";
 *
 * const status = tool({
 *   name: "status",
 *   annotations: { readOnlyHint: true },
 *   retry: retry({ attempts: 4, delayMs: 100 }),
 *   run: async (_input, { signal }) => (await fetch("https://status.example.com", { signal })).text(),
 * });
 *
 * export default createServer({ name: "status", version: "1.0.0", handlers: [status] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid. `tool()` throws if the tool has neither annotation, unless
 * `unsafe` is `true`.
 */
export function retry(options: RetryOptions = {}): Step<"retry"> {
  checkOptions("make retries", options, OPTIONS);
  const { attempts = 3, delayMs = 200, maxDelayMs = 5000, errors, unsafe } = options;
  checkNumbers("make retries", { attempts, delayMs, maxDelayMs });
  const toDelay = (attempt: number) => Math.random() * Math.min(maxDelayMs, delayMs * 2 ** (attempt - 1));
  return makeStep("retry", (tool) => {
    const place = `tool ${JSON.stringify(tool.name)}`;
    checkRepeatable(place, tool, unsafe);
    return (run) => repeat(run, { place, attempts, errors, toDelay });
  });
}

function checkRepeatable(place: string, { annotations }: SteppedTool, unsafe: boolean | undefined): void {
  if (unsafe || annotations?.readOnlyHint === true || annotations?.idempotentHint === true) return;
  const remedy = "set annotations: { idempotentHint: true } or readOnlyHint: true, or retry({ unsafe: true })";
  throw new TypeError(`Cannot make ${place}: it is retried, but a second run may repeat its effect; ${remedy}`);
}

interface Rules {
  readonly place: string;
  readonly attempts: number;
  readonly errors?: SelectErrors;
  /** Returns the delay before the next run, in milliseconds. */
  readonly toDelay: (attempt: number) => number;
}

async function repeat(run: SteppedRun, { place, attempts, errors, toDelay }: Rules): Promise<unknown> {
  const { call, core: { ticker: { clock } }, next, usesRounds } = run;
  const began = clock.now();
  for (let attempt = 1;; attempt++) {
    try {
      return await next();
    } catch (error) {
      if (attempt >= attempts || usesRounds() || call.ended || !isFailure(error, errors, place)) throw error;
      const delayMs = toDelay(attempt);
      if (clock.now() + delayMs - began >= toTimeout(run)) throw error;
      await delay(delayMs, { signal: call.signal, clock }).catch(() => {});
      if (call.ended) throw error;
    }
  }
}

function toTimeout({ call, core: { limits } }: SteppedRun): number {
  return call.timeoutMs ?? limits.calls.timeoutMs;
}
