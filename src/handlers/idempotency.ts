/**
 * Idempotency keys of tools: reads the options, and leads to what runs a key once. That part loads with the first call.
 *
 * @module
 */
import { Room } from "../protocol/room.ts";
import type { Binding } from "../core/call/container.ts";
import type { KnownOptions } from "../core/call/known_options.ts";
import type { HandlerExtensions } from "../core/visibility/feature.ts";
import type { Callable } from "./callable.ts";
import type { IdempotencyOptions, IdempotentTool } from "./idempotent_tool.ts";

/** The names of the option `idempotency`. */
export const IDEMPOTENCY: KnownOptions<keyof NonNullable<IdempotencyOptions["idempotency"]>> = {
  names: { key: "function", rerun: "boolean", ttlMs: true },
};

/**
 * Reads the options of a tool. Returns `undefined` if its calls have no keys.
 *
 * @throws {TypeError} if they are invalid.
 */
export function readIdempotency(
  { idempotencyKey, idempotency }: IdempotencyOptions,
  tool: { readonly place: string; readonly name: string; readonly services?: Binding },
): IdempotentTool | undefined {
  const { key, rerun = false, ttlMs = 600_000 } = idempotency ?? { key: idempotencyKey };
  if (key && !(idempotency && idempotencyKey) && Number.isFinite(ttlMs) && ttlMs > 0) {
    return { ...tool, key, rerun, ttlMs };
  }
  if (!idempotency) return;
  throw new TypeError(
    `Cannot make ${tool.place}: idempotency needs a key and a ttlMs above 0, and replaces idempotencyKey; write ` +
      "{ key: (input) => input.id }",
  );
}

const room = new Room(() => import("./idempotent_call.ts"));

/** Returns a function that runs a tool once per key. */
export function runOnce(tool: IdempotentTool, invoke: Callable["invoke"]): Callable["invoke"] {
  return async (call, ctx, value, core, filter) =>
    (await room.open()).runIdempotent(tool, { call, core, value, next: () => invoke(call, ctx, value, core, filter) });
}

/** Lets the extensions of a tool answer a repeated call with the handle that the first one got. */
export function keepHandles(extensions: HandlerExtensions | undefined): HandlerExtensions | undefined {
  const run = extensions?.run;
  return run && {
    ...extensions,
    run: async (...within) => (await room.open()).runWithHandle(run, ...within),
  };
}
