/**
 * The interface of the registry's entries for tools and prompts.
 */
import type { MapError } from "../visibility/feature_parts.ts";
import type { Invoke } from "../visibility/feature.ts";
import type { Entry } from "../visibility/pagination.ts";
import type { Guarded } from "./filters.ts";

/** A tool or prompt in the registry, without type parameters, because its schemas validate the values at runtime. */
export interface Callable extends Entry, Guarded {
  readonly scopes?: readonly string[];
  readonly requires?: readonly string[];
  readonly mapError?: MapError;
  readonly invoke: Invoke;
}
