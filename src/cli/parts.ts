/**
 * The parts of the command line that are loaded only when a command needs them.
 *
 * Deno loads every module of a graph when the program starts, together with the packages they import, and adds these
 * packages to the lock file of the user's project. So the parts have computed specifiers, which no graph follows.
 *
 * @module
 */
import { platform } from "./platform.ts";
import { Problem } from "./problem.ts";

interface Parts {
  readonly "./call.ts": typeof import("./call.ts");
  readonly "./check.ts": typeof import("./check.ts");
  readonly "./completions.ts": typeof import("./completions.ts");
  readonly "./config/file_resources.ts": typeof import("./config/file_resources.ts");
  readonly "./config/folder.ts": typeof import("./config/folder.ts");
  readonly "./config/prompts.ts": typeof import("./config/prompts.ts");
  readonly "./config/required_permissions.ts": typeof import("./config/required_permissions.ts");
  readonly "./config/server.ts": typeof import("./config/server.ts");
  readonly "./config/server_definition.ts": typeof import("./config/server_definition.ts");
  readonly "./config/source.ts": typeof import("./config/source.ts");
  readonly "./demo.ts": typeof import("./demo.ts");
  readonly "./doctor.ts": typeof import("./doctor.ts");
  readonly "./help.ts": typeof import("./help.ts");
  readonly "./inspect.ts": typeof import("./inspect.ts");
  readonly "./inspector/inspector.ts": typeof import("./inspector/inspector.ts");
  readonly "./inspector/serve.ts": typeof import("./inspector/serve.ts");
  readonly "./install.ts": typeof import("./install.ts");
  readonly "./jsonc_edit.ts": typeof import("./jsonc_edit.ts");
  readonly "./new.ts": typeof import("./new.ts");
  readonly "./prompt.ts": typeof import("./prompt.ts");
  readonly "./read.ts": typeof import("./read.ts");
  readonly "./serve_http.ts": typeof import("./serve_http.ts");
  readonly "./serve_notice.ts": typeof import("./serve_notice.ts");
  readonly "./toml_edit.ts": typeof import("./toml_edit.ts");
  readonly "./try_entry.ts": typeof import("./try_entry.ts");
  readonly "./watch_target.ts": typeof import("./watch_target.ts");
  readonly "./wrap_help.ts": typeof import("./wrap_help.ts");
  readonly "./yaml_edit.ts": typeof import("./yaml_edit.ts");
}

/**
 * Loads a part, and with it the packages it imports.
 *
 * @throws {Problem} if one of them cannot be found.
 */
export async function importPart<Path extends keyof Parts>(path: Path): Promise<Parts[Path]> {
  // In a package that was compiled to JavaScript, the files have another suffix.
  const url = new URL(path.slice(0, -3) + import.meta.url.slice(-3), import.meta.url);
  try {
    return await import(url.href);
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    const remedy = platform.runtime === "bun" ? "install its packages" : "connect to fetch its packages once";
    throw new Problem(`Cannot load ${path} of the command line: ${state.trim()}; ${remedy}`);
  }
}
