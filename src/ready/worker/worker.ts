/**
 * Runs CPU-bound handlers in worker threads, so that these handlers do not block other calls.
 *
 * ```ts ignore
 * import { tool } from "@x/mcp";
 * import { worker } from "@x/mcp/worker";
 * import { z } from "zod";
 * import type count from "./primes.ts";
 *
 * const primes = tool({
 *   name: "primes",
 *   input: z.object({ below: z.number().int() }),
 *   run: worker<typeof count>(new URL("./primes.ts", import.meta.url)),
 * });
 * ```
 *
 * @module
 */
import type { Context } from "../../server/call/context.ts";
import { checkOptions, type KnownOptions, type OptionRule } from "../../core/known_options.ts";
import type { WorkerHandler } from "./expose.ts";
import { findProcess, isCompiled } from "../../core/runtime.ts";
import { Pool, type WorkerPoolOptions } from "./pool.ts";

export { exposeWorker, type WorkerContext, type WorkerHandler } from "./expose.ts";
export type { WorkerPoolOptions } from "./pool.ts";

/** A `run` function for a tool, prompt or resource that runs its handler in a worker thread. */
export type WorkerRun<Handler extends WorkerHandler<never, unknown>> = (
  input: Parameters<Handler>[0],
  ctx: Context,
) => Promise<Awaited<ReturnType<Handler>>>;

const atLeast = (least: number): OptionRule => ({
  test: (value) => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= 0x7fffffff,
  remedy: `use a whole number from ${least} to 2147483647`,
});

const OPTIONS: KnownOptions<keyof WorkerPoolOptions> = {
  names: { size: atLeast(1), idleMs: atLeast(0), startMs: atLeast(0), stopMs: atLeast(0) },
  hints: { threads: "size", max: "size" },
};

/**
 * Returns a `run` function that runs the handler of another file in a pool of worker threads. The file must pass its
 * handler to {@linkcode exposeWorker}. The types of the input and the result come from the type parameter, which is the
 * type of the file's default export.
 *
 * The input and the result must be values that `structuredClone` can copy. A cancelled call rejects immediately, and
 * its thread is terminated if the handler does not stop. If a handler ends its thread, the call fails, and the next
 * call starts a new thread.
 *
 * Threads start only when calls need them. On Deno, an idle thread keeps the process alive.
 *
 * A compiled executable contains the file only if you list the file when you compile: `deno compile --include
 * primes.ts`, or `bun build --compile server.ts primes.ts`.
 *
 * @throws {TypeError} if the URL or an option is invalid, or a compiled executable does not contain the file.
 */
export function worker<Handler extends WorkerHandler<never, unknown> = WorkerHandler<never, unknown>>(
  url: URL,
  options: WorkerPoolOptions = {},
): WorkerRun<Handler> {
  if (!(url instanceof URL)) {
    throw new TypeError(
      'Cannot run a handler in a worker thread: the file is not a URL; use new URL("./file.ts", import.meta.url)',
    );
  }
  checkOptions("make a pool of worker threads", options, OPTIONS);
  if (isCompiled() && !isContained(url)) {
    throw new TypeError(
      `Cannot run ${url.href} in a worker thread: this executable does not contain the file; include the file when you compile the ` +
        "executable: `deno compile --include FILE` or `bun build --compile server.ts FILE`",
    );
  }
  const { size = Math.max(1, (navigator.hardwareConcurrency || 2) - 1) } = options;
  const { idleMs = 10_000, startMs = 30_000, stopMs = 250 } = options;
  const pool = new Pool(url, { size, idleMs, startMs, stopMs });
  // The cast is safe if the file's default export has the type `Handler`.
  return (input, ctx) => pool.run(input, ctx) as ReturnType<WorkerRun<Handler>>;
}

/** Tests whether a compiled executable contains a file. Bun compiles the file to `.js`. */
function isContained(url: URL): boolean {
  const fs = findProcess().getBuiltinModule("fs");
  const compiled = new URL(url.href.replace(/\.[cm]?[jt]sx?$/, ".js"));
  return url.protocol !== "file:" || fs.existsSync(url) || fs.existsSync(compiled);
}
