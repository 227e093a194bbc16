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
    import("./config/file_resources.ts"),
    import("./config/folder.ts"),
    import("./config/prompts.ts"),
    import("./config/required_permissions.ts"),
    import("./config/server.ts"),
    import("./config/server_definition.ts"),
    import("./config/source.ts"),
    import("./demo.ts"),
    import("./doctor.ts"),
    import("./help.ts"),
    import("./wrap_help.ts"),
    import("./inspect.ts"),
    import("./inspector/inspector.ts"),
    import("./inspector/serve.ts"),
    import("./install.ts"),
    import("./jsonc_edit.ts"),
    import("./new.ts"),
    import("./prompt.ts"),
    import("./read.ts"),
    import("./serve_http.ts"),
    import("./serve_notice.ts"),
    import("./toml_edit.ts"),
    import("./try_entry.ts"),
    import("./watch_target.ts"),
    import("./yaml_edit.ts"),
  ]);
}
