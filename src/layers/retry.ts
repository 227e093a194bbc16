/**
 * Runs a tool again after a failure.
 */
import { delay } from "../core/kit/deadline.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { HandlerInfo, Layer, LayerRun } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import { isFailure, type SelectErrors } from "./failures.ts";
import { checkNumbers } from "./numbers.ts";

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
 * Creates a layer that runs a tool again after a failure. If `run` fails, the library calls `run` again after a random delay.
 * The library does not call `run` again if the call was cancelled, has sent a request to the client or has used
 * `ctx.once`, or if the delay would exceed the call's timeout.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { retry } from "@x/mcp/layers";
 *
 * const status = tool({
 *   name: "status",
 *   annotations: { readOnlyHint: true },
 *   use: [retry({ attempts: 4, delayMs: 100 })],
 *   run: async (_input, { signal }) => (await fetch("https://status.example.com", { signal })).text(),
 * });
 *
 * export default createServer({ name: "status", version: "1.0.0", handlers: [status] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid. `tool()` throws if the tool has neither annotation, unless
 * `unsafe` is `true`.
 */
export function retry(options: RetryOptions = {}): Layer {
  checkOptions("make retries", options, OPTIONS);
  const { attempts = 3, delayMs = 200, maxDelayMs = 5000, errors, unsafe } = options;
  checkNumbers("make retries", { attempts, delayMs, maxDelayMs });
  const toDelay = (attempt: number) => Math.random() * Math.min(maxDelayMs, delayMs * 2 ** (attempt - 1));
  return layer((handler) => {
    checkRepeatable(handler, unsafe);
    const { key: place } = handler;
    const rules = { place, attempts, errors, toDelay };
    return { name: "retry", rank: "repeat", run: (run, next) => repeat(run, next, rules) };
  });
}

function checkRepeatable({ key, kind, annotations }: HandlerInfo, unsafe: boolean | undefined): void {
  if (kind !== "tool") return;
  if (unsafe || annotations?.readOnlyHint === true || annotations?.idempotentHint === true) return;
  const remedy = "set annotations: { idempotentHint: true } or readOnlyHint: true, or retry({ unsafe: true })";
  throw new TypeError(`Cannot make ${key}: it is retried, but a second run may repeat its effect; ${remedy}`);
}

interface Rules {
  readonly place: string;
  readonly attempts: number;
  readonly errors?: SelectErrors;
  /** Returns the delay before the next run, in milliseconds. */
  readonly toDelay: (attempt: number) => number;
}

async function repeat(
  run: LayerRun,
  next: () => unknown,
  { place, attempts, errors, toDelay }: Rules,
): Promise<unknown> {
  const { ctx: { signal }, server: { clock }, timeoutMs } = run;
  const began = clock.now();
  for (let attempt = 1;; attempt++) {
    try {
      return await next();
    } catch (error) {
      if (attempt >= attempts || run.usesRounds || run.hasEnded || !isFailure(error, errors, place)) throw error;
      const delayMs = toDelay(attempt);
      if (clock.now() + delayMs - began >= timeoutMs) throw error;
      await delay(delayMs, { signal, clock }).catch(() => {});
      if (run.hasEnded) throw error;
    }
  }
}
