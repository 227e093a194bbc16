/**
 * The steps of an installation between the command line and the configuration file.
 *
 * @module
 */
import type { InstallClient } from "./clients.ts";
import type { EntryTarget } from "./entry_check.ts";

/** The file to which the entry is written. */
export interface Destination {
  readonly client: InstallClient;
  readonly file: string;
  /** Whether other users can read the file. If so, the entry must not contain secrets. */
  readonly isShared: boolean;
}

/** The plan of an entry. The name of the entry may not be known yet. */
export interface InstallPlan {
  /** Returns the entry for a server with this name. */
  readonly toEntry: (name: string) => object;
  /** The URL, or the command as a user would type it. */
  readonly summary: string;
  /** The name of the entry if the server reports no name. */
  readonly defaultName: string;
  /** The command or URL to which the check connects. */
  readonly target: EntryTarget;
  /** Notes for the user. */
  readonly notes: readonly string[];
}
