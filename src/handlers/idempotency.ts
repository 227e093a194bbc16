/**
 * Reads the idempotency options of tools. The code that runs calls with a key is loaded when a client first calls such
 * a tool.
 *
 * @module
 */
import { Room } from "../protocol/room.ts";
import type { Binding } from "../core/call/container.ts";
import type { KnownOptions } from "../core/call/known_options.ts";
import type { Callable } from "./callable.ts";
import type { IdempotencyOptions, IdempotentTool } from "./idempotent_tool.ts";

/** The known fields of the `idempotency` option. */
export const IDEMPOTENCY: KnownOptions<keyof NonNullable<IdempotencyOptions["idempotency"]>> = {
  names: { key: "function", rerun: "boolean", ttlMs: true },
};

/**
 * Reads the options of a tool. Returns `undefined` if the tool has no idempotency keys.
 *
 * @throws {TypeError} if an option is invalid.
 */
export function readIdempotency(
  { idempotencyKey, idempotency }: IdempotencyOptions,
  tool: { readonly place: string; readonly name: string; readonly services?: Binding },
): IdempotentTool | undefined {
  const { key, rerun, ttlMs = 600_000 } = idempotency ?? { key: idempotencyKey };
  if (key && !(idempotency && idempotencyKey) && ttlMs > 0) {
    return { ...tool, key, rerun, ttlMs };
  }
  if (!idempotency) return;
  throw new TypeError(
    `Cannot make ${tool.place}: idempotency needs a key and a ttlMs above 0, and cannot be combined with idempotencyKey`,
  );
}

const room = new Room(() => import("./idempotent_call.ts"));

/** Returns a function that runs a tool at most once per key. */
export function runOnce(tool: IdempotentTool, invoke: Callable["invoke"]): Callable["invoke"] {
  return async (...given) => (await room.open()).runIdempotent(tool, invoke, given);
}
