/**
 * Leads to the guards and encoders of a handler.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call.ts";
import type { Binding } from "../core/container.ts";
import type { Core } from "../core/core.ts";
import type { Filter, HandlerGuards } from "../core/guards.ts";

/** A handler that may have guards. */
export interface Guarded {
  readonly guards?: HandlerGuards;
  /** Services of the handler. */
  readonly services?: Binding;
}

/** One run of a handler. */
export interface FilteredRun {
  readonly call: Call;
  readonly core: Core;
  /** The validated input. */
  readonly value: unknown;
  /** Runs the handler with a guarded input. */
  readonly next: (value: unknown, filter: Filter) => Result | Promise<Result>;
}

/** Runs a handler within its guards and encoders. Loaded on demand, because most servers have none. */
export async function runGuarded(guarded: Guarded, run: FilteredRun): Promise<Result> {
  const { runFiltered } = await import("./filters.ts");
  return await runFiltered(guarded, run);
}
