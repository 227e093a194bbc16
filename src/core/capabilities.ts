/**
 * Switches for what a server declares and does.
 *
 * @module
 */
import type { KnownOptions } from "./known_options.ts";

/** The optional capabilities of a server. */
export interface Capabilities {
  /** Notifications of changed lists. */
  readonly listChanged: boolean;
  /** Subscriptions to resources. */
  readonly subscribe: boolean;
  /** Completion of arguments. */
  readonly completions: boolean;
  /** Log messages for clients. */
  readonly logging: boolean;
}

/** Any part of {@linkcode Capabilities}. Others are on. */
export type CapabilityOptions = Partial<Capabilities>;

/** The names of {@linkcode CapabilityOptions}. */
export const CAPABILITIES: KnownOptions<keyof Capabilities> = {
  names: { listChanged: "boolean", subscribe: "boolean", completions: "boolean", logging: "boolean" },
};

/** Merges the user's switches into the defaults. */
export function readCapabilities(
  { listChanged = true, subscribe = true, completions = true, logging = true }: CapabilityOptions = {},
): Capabilities {
  return { listChanged, subscribe, completions, logging };
}
