/**
 * Switches for what a server declares and does.
 *
 * @module
 */

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

/** Merges the user's switches into the defaults. */
export function readCapabilities(options: CapabilityOptions = {}): Capabilities {
  const can = { listChanged: true, subscribe: true, completions: true, logging: true };
  for (const [name, value] of Object.entries(options)) {
    if (name in can && typeof value === "boolean") continue;
    throw new TypeError(
      `Cannot create a server: capabilities.${name} is ${value}; set any of ${Object.keys(can).join(", ")} to false`,
    );
  }
  return { ...can, ...options };
}
