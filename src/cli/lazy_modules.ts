/**
 * Loads modules of the command line when a command needs them.
 *
 * Deno loads every module of a graph at startup, with the packages they import, and adds these packages to the lock file
 * of the user's project. The specifiers here are computed, so that the modules are not part of the graph.
 *
 * @module
 */
import { platform } from "./platform.ts";
import { CliError } from "./cli_error.ts";

/**
 * Loads a module and the packages it imports. `path` is relative to this folder, and `cli.ts` lists it too. `Module`
 * is the type of the module, as in `importModule<typeof import("./call.ts")>("./call.ts")`: a table of all types in this
 * file would put every module that uses this file into an import circle.
 *
 * @throws {CliError} if a package cannot be loaded.
 */
export async function importModule<Module>(path: string): Promise<Module> {
  // In a package that was compiled to JavaScript, the file extension differs.
  const url = new URL(path.slice(0, -3) + import.meta.url.slice(-3), import.meta.url);
  try {
    return await import(url.href);
  } catch (error) {
    const { toPlain } = await import("./client/terminal_text.ts");
    const state = toPlain(error instanceof Error ? error.message : error);
    const remedy = platform.runtime === "deno"
      ? "connect to the network once to download its packages"
      : "install its packages";
    throw new CliError(`Cannot load ${path} of the command line: ${state.trim()}; ${remedy}`);
  }
}
