/**
 * The interface of the registry's entries for tools and prompts.
 *
 * @module
 */
import type { FeatureParts, MapError } from "../core/visibility/feature_parts.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call/call.ts";
import type { HandlerExtensions } from "../core/visibility/feature.ts";
import type { RunnerSteps } from "../core/layers.ts";
import type { Filter } from "../core/visibility/guards.ts";
import type { Entry } from "../core/visibility/pagination.ts";
import type { Guarded } from "./filters.ts";

/** A tool or prompt in the registry, without type parameters, because its schemas validate the values at runtime. */
export interface Callable extends Entry, Guarded {
  readonly scopes?: readonly string[];
  readonly requires?: readonly string[];
  readonly extensions?: HandlerExtensions;
  readonly mapError?: MapError;
  readonly steps?: RunnerSteps;
  /** Runs the handler with a validated input, and encodes the value that the handler returns. */
  readonly invoke: (
    call: Call,
    ctx: undefined,
    input: unknown,
    core: FeatureParts,
    filter: Filter | undefined,
  ) => Result | Promise<Result>;
}
