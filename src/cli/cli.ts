/**
 * The command line as one graph of modules. `deno cache jsr:@x/mcp/cli` stores all of it, with the packages it needs,
 * so that it runs offline.
 *
 * @module
 */
export { main } from "./main.ts";

/** Loads every part of the command line, which otherwise are loaded only when a command needs them. */
export async function loadAll(): Promise<void> {
  await Promise.all([
    import("./call.ts"),
    import("./check.ts"),
    import("./completions.ts"),
    import("./config/build.ts"),
    import("./config/file_resources.ts"),
    import("./config/folder.ts"),
    import("./config/needs.ts"),
    import("./config/prompts.ts"),
    import("./config/server.ts"),
    import("./config/source.ts"),
    import("./demo.ts"),
    import("./doctor.ts"),
    import("./help.ts"),
    import("./help_layout.ts"),
    import("./inspect.ts"),
    import("./inspector/inspector.ts"),
    import("./inspector/serve.ts"),
    import("./install.ts"),
    import("./jsonc_edit.ts"),
    import("./new.ts"),
    import("./prompt.ts"),
    import("./read.ts"),
    import("./serve_http.ts"),
    import("./stdio_notice.ts"),
    import("./toml_edit.ts"),
    import("./entry_check.ts"),
    import("./target_watcher.ts"),
    import("./yaml_edit.ts"),
  ]);
}
