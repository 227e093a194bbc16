/**
 * The types of an installation's plan, which `install` makes from its options before it changes the configuration file.
 */
import type { InstallClient } from "./clients.ts";
import type { EntryTarget } from "./entry_check.ts";

/** The configuration file to which `install` writes the entry. */
export interface Destination {
  readonly client: InstallClient;
  readonly file: string;
  /** Whether other users can read the file. If so, the entry must not contain secrets. */
  readonly isShared: boolean;
  /** The folder of the project to which a shared file belongs. */
  readonly project?: string;
}

/** The plan for an entry. The name of the entry may not be known yet, because the server may report it. */
export interface InstallPlan {
  /** Returns the entry for a server with this name. */
  readonly toEntry: (name: string) => object;
  /** The URL, or the command as a user would type it in a shell. */
  readonly summary: string;
  /** The name of the entry if the user sets no name and the server reports no name. */
  readonly defaultName: string;
  /** The command that the check starts, or the URL to which it connects. */
  readonly target: EntryTarget;
  readonly notes: readonly string[];
}
