/**
 * The options that enable and disable a server's capabilities.
 */
import type { ListName } from "./context.ts";
import { type KnownOptions, show } from "../../core/known_options.ts";

/** The capabilities that a server declares. */
export interface CapabilityOptions {
  /** Notifications when a list changes. Defaults to `true`. */
  readonly listChanged?: boolean;
  /** Subscriptions to resources. Defaults to `true`. */
  readonly subscribe?: boolean;
  /** Argument completion. Defaults to `true`. */
  readonly completions?: boolean;
  /** Log messages that the server sends to clients. Defaults to `true`. */
  readonly logging?: boolean;
  /**
   * Declares the `tools` capability even while the server has no tools, so that clients are notified when
   * `server.handlers.add` adds the first tool. A server with tools always declares the capability.
   */
  readonly tools?: true;
  /** Declares the `resources` capability even while the server has no resources. */
  readonly resources?: true;
  /** Declares the `prompts` capability even while the server has no prompts. */
  readonly prompts?: true;
}

/** {@linkcode CapabilityOptions} with the defaults filled in. */
export interface ReadCapabilities extends Required<Omit<CapabilityOptions, ListName>> {
  /** The lists whose capability is declared even while the list is empty. */
  readonly lists: readonly ListName[];
}

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
 * Merges the options with the defaults. @throws {TypeError} if `tools`, `resources` or `prompts` is `false`, because
 * the server would still serve the handlers.
 */
export function readCapabilities(options: CapabilityOptions = {}): ReadCapabilities {
  const { listChanged = true, subscribe = true, completions = true, logging = true } = options;
  const lists = LISTS.filter((name) => {
    const given: unknown = options[name];
    if (given === undefined || given === true) return given;
    throw new TypeError(
      `Cannot create a server: capabilities.${name} is ${show(given)}; set it to true, or omit it and add no ${name}`,
    );
  });
  return { listChanged, subscribe, completions, logging, lists };
}
