/**
 * Loads modules of the command line when a command needs them.
 *
 * At startup, Deno loads all modules in the module graph and their packages, and adds these packages to the lock file
 * of the user's project. The specifiers here are computed, so that the graph does not contain the modules.
 */
import { toState } from "../core/kit/error_state.ts";
import { platform } from "./platform.ts";
import { CliError } from "./cli_error.ts";

/**
 * Loads a module and the packages that it imports. `path` is relative to this folder. `cli.ts` must also import the
 * module. `Module` is the type of the module, as in `importModule<typeof import("./call.ts")>("./call.ts")`. This file
 * has no table of these types, because the table would create a circular import for each module that uses this file.
 *
 * @throws {CliError} if a package cannot be loaded.
 */
export async function importModule<Module>(path: string): Promise<Module> {
  // Use the extension of this file, because the extension is `.js` in a package that was compiled to JavaScript.
  const url = new URL(path.slice(0, -3) + import.meta.url.slice(-3), import.meta.url);
  try {
    return await import(url.href);
  } catch (error) {
    const { toPlain } = await import("./client/terminal_text.ts");
    const state = toPlain(error instanceof Error ? error.message : error);
    const remedy = platform.runtime === "deno"
      ? "connect to the network once, to download the packages of this module"
      : "install its packages";
    throw new CliError(`Cannot load ${path} of the command line: ${toState(state)}; ${remedy}`);
  }
}
