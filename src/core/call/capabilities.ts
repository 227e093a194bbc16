/**
 * The options that switch capabilities of a server on and off.
 *
 * @module
 */
import type { ListName } from "./context.ts";
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

/** The capabilities that a server declares. Switches are on by default. */
export interface CapabilityOptions extends Partial<Capabilities> {
  /**
   * Declares the `tools` capability even while the server has no tools, so that clients learn of the first tool that
   * `server.handlers.add` adds. A server with tools always declares the capability.
   */
  readonly tools?: true;
  /** Declares the `resources` capability even while the server has no resources. */
  readonly resources?: true;
  /** Declares the `prompts` capability even while the server has no prompts. */
  readonly prompts?: true;
}

/** Capabilities with their defaults. */
export interface ReadCapabilities extends Capabilities {
  /** Lists to declare even while they are empty. */
  readonly lists: readonly ListName[];
}

/** The names of {@linkcode CapabilityOptions}. */
export const CAPABILITIES: KnownOptions<keyof CapabilityOptions> = {
  names: {
    listChanged: "boolean",
    subscribe: "boolean",
    completions: "boolean",
    logging: "boolean",
    tools: true,
    resources: true,
    prompts: true,
  },
};

const LISTS: readonly ListName[] = ["tools", "resources", "prompts"];

/**
 * Merges the user's switches into the defaults.
 *
 * @throws {TypeError} if a list is switched off, because its handlers would be served all the same.
 */
export function readCapabilities(options: CapabilityOptions = {}): ReadCapabilities {
  const { listChanged = true, subscribe = true, completions = true, logging = true } = options;
  const lists = LISTS.filter((name) => {
    const given: unknown = options[name];
    if (given === undefined || given === true) return given;
    throw new TypeError(
      `Cannot create a server: capabilities.${name} is ${given}; set it to true, or leave it out and add no ${name}`,
    );
  });
  return { listChanged, subscribe, completions, logging, lists };
}
