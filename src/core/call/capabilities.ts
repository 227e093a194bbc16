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
   * Declares tools while there are none, so that clients learn of the first tool that `server.handlers.add` adds. While
   * there are tools, they are always declared.
   */
  readonly tools?: true;
  /** Declares resources while there are none. */
  readonly resources?: true;
  /** Declares prompts while there are none. */
  readonly prompts?: true;
}

/** Capabilities with their defaults. */
export interface ReadCapabilities extends Capabilities {
  /** Lists to declare while they are empty. */
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
