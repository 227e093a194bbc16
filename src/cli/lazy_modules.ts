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

/** The modules by path. `cli.ts` lists the same ones. */
interface Modules {
  readonly "./call.ts": typeof import("./call.ts");
  readonly "./check.ts": typeof import("./check.ts");
  readonly "./completions.ts": typeof import("./completions.ts");
  readonly "./config/file_resources.ts": typeof import("./config/file_resources.ts");
  readonly "./config/folder.ts": typeof import("./config/folder.ts");
  readonly "./config/glob.ts": typeof import("./config/glob.ts");
  readonly "./config/jsonc.ts": typeof import("./config/jsonc.ts");
  readonly "./config/prompts.ts": typeof import("./config/prompts.ts");
  readonly "./config/required_permissions.ts": typeof import("./config/required_permissions.ts");
  readonly "./config/schema.ts": typeof import("./config/schema.ts");
  readonly "./config/server.ts": typeof import("./config/server.ts");
  readonly "./config/server_definition.ts": typeof import("./config/server_definition.ts");
  readonly "./config/source.ts": typeof import("./config/source.ts");
  readonly "./demo.ts": typeof import("./demo.ts");
  readonly "./doctor.ts": typeof import("./doctor.ts");
  readonly "./endpoint_paths.ts": typeof import("./endpoint_paths.ts");
  readonly "./handler_files.ts": typeof import("./handler_files.ts");
  readonly "./help.ts": typeof import("./help.ts");
  readonly "./import_graph.ts": typeof import("./import_graph.ts");
  readonly "./inspect.ts": typeof import("./inspect.ts");
  readonly "./inspector/inspector.ts": typeof import("./inspector/inspector.ts");
  readonly "./inspector/serve.ts": typeof import("./inspector/serve.ts");
  readonly "./install.ts": typeof import("./install.ts");
  readonly "./install/jsonc_edit.ts": typeof import("./install/jsonc_edit.ts");
  readonly "./load_error.ts": typeof import("./load_error.ts");
  readonly "./new.ts": typeof import("./new.ts");
  readonly "./permissions.ts": typeof import("./permissions.ts");
  readonly "./prompt.ts": typeof import("./prompt.ts");
  readonly "./read.ts": typeof import("./read.ts");
  readonly "./serve_http.ts": typeof import("./serve_http.ts");
  readonly "./stdio_notice.ts": typeof import("./stdio_notice.ts");
  readonly "./install/toml_edit.ts": typeof import("./install/toml_edit.ts");
  readonly "./install/entry_check.ts": typeof import("./install/entry_check.ts");
  readonly "./target_watcher.ts": typeof import("./target_watcher.ts");
  readonly "./install/yaml_edit.ts": typeof import("./install/yaml_edit.ts");
}

/**
 * Loads a module and the packages it imports.
 *
 * @throws {CliError} if a package cannot be loaded.
 */
export async function importModule<Path extends keyof Modules>(path: Path): Promise<Modules[Path]> {
  // In a package that was compiled to JavaScript, the file extension differs.
  const url = new URL(path.slice(0, -3) + import.meta.url.slice(-3), import.meta.url);
  try {
    return await import(url.href);
  } catch (error) {
    const { toPlain } = await import("./client/terminal_text.ts");
    const state = toPlain(error instanceof Error ? error.message : error);
    const remedy = platform.runtime === "bun"
      ? "install its packages"
      : "connect to the network once to download its packages";
    throw new CliError(`Cannot load ${path} of the command line: ${state.trim()}; ${remedy}`);
  }
}
