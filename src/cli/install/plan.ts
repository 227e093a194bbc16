/**
 * The steps of an installation between the command line and the configuration file.
 *
 * @module
 */
import type { InstallClient } from "./clients.ts";
import type { EntryTarget } from "./entry_check.ts";

/** Where the entry is written. */
export interface Destination {
  readonly client: InstallClient;
  readonly file: string;
  /** Whether others read the file, so that it must not contain secrets. */
  readonly isShared: boolean;
}

/** An entry before it has a name. */
export interface InstallPlan {
  /** The entry, for a server of this name. */
  readonly toEntry: (name: string) => object;
  /** The URL, or the command as the user would type it. */
  readonly summary: string;
  /** The name if the server reports none. */
  readonly defaultName: string;
  /** The command or URL that the check connects to. */
  readonly target: EntryTarget;
  /** Notes for the user. */
  readonly notes: readonly string[];
}
