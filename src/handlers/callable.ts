/**
 * The interface of the registry's entries for tools and prompts.
 */
import type { RunnerSteps } from "../core/layers.ts";
import type { MapError } from "../core/visibility/feature_parts.ts";
import type { HandlerLayers, Invoke } from "../core/visibility/feature.ts";
import type { Entry } from "../core/visibility/pagination.ts";
import type { Guarded } from "./filters.ts";

/** A tool or prompt in the registry, without type parameters, because its schemas validate the values at runtime. */
export interface Callable extends Entry, Guarded {
  readonly scopes?: readonly string[];
  readonly requires?: readonly string[];
  readonly layers?: HandlerLayers;
  readonly mapError?: MapError;
  readonly steps?: RunnerSteps;
  readonly invoke: Invoke;
}
