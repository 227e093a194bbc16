/**
 * Runs a tool once per key, so that clients can repeat a call.
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Layer } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import type { Context } from "../library.ts";

/** Options of {@linkcode idempotent}. Only `key` is required. */
export interface IdempotentOptions<Input = unknown, Shared = unknown> {
  /**
   * Returns the key of a call, such as `({ orderId }) => orderId`, or `undefined` for a call without a key. `ctx` has no
   * services that live for one call.
   */
  readonly key: (input: Input, ctx: Context<Shared>) => string | undefined | Promise<string | undefined>;
  /**
   * Whether the next call with the key runs the handler again if the instance that ran the handler ended before it kept
   * a result. Use `ctx.idempotencyToken` to make a repeated effect safe, because the first run may have had the effect
   * already. Defaults to `false`: such a call fails with code -31409, because its outcome is unknown.
   */
  readonly rerun?: boolean;
  /** Milliseconds for which a key is remembered after its call. At most one year. Defaults to 600,000. */
  readonly ttlMs?: number;
}

const OPTIONS: KnownOptions<keyof IdempotentOptions> = {
  names: { key: "function", rerun: "boolean", ttlMs: true },
  hints: { keyOf: "key", idempotencyKey: "key" },
};

/**
 * Creates a layer that runs a tool once per idempotency key. If the same caller repeats a call with the same key and the
 * same input within ten minutes, the repeated call gets the result of the first call, even while the first call is still
 * running. With a store, the key is known to all instances. Errors are not kept. `idempotent(key)` is short for
 * `idempotent({ key })`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { idempotent } from "@x/mcp/layers";
 * import { z } from "zod";
 *
 * const pay = tool({
 *   name: "pay",
 *   input: z.object({ orderId: z.string() }),
 *   use: [idempotent(({ orderId }) => orderId)],
 *   run: ({ orderId }) => `Paid ${orderId}.`,
 * });
 *
 * export default createServer({ name: "shop", version: "1.0.0", handlers: [pay] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function idempotent<Input = unknown, Shared = unknown>(
  options: IdempotentOptions<Input, Shared> | IdempotentOptions<Input, Shared>["key"],
): Layer<Input, unknown, Shared> {
  const given = typeof options === "function" ? { key: options } : options;
  checkOptions("make idempotency keys", given, OPTIONS);
  const { key, rerun, ttlMs } = given;
  if (!key) throw new TypeError("Cannot make idempotency keys: key is missing; pass a function that returns the key");
  return layer<Input, unknown, undefined, Shared>(() => ({ name: "idempotent", key, rerun, ttlMs }));
}
