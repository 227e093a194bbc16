/**
 * The command line and all its commands in one module graph. To use the command line offline, cache this module:
 *
 * ```sh
 * deno cache jsr:@x/mcp/cli
 * ```
 *
 * @module
 */

export { main } from "./main.ts";

/** Loads all modules that commands otherwise load on demand. */
export async function loadAll(): Promise<void> {
  await Promise.all([
    import("./bridge.ts"),
    import("./call.ts"),
    import("./check.ts"),
    import("./completions.ts"),
    import("./config/api.ts"),
    import("./config/client_file.ts"),
    import("./config/jsonc.ts"),
    import("./config/other_permissions.ts"),
    import("./config/other_servers.ts"),
    import("./config/prompts.ts"),
    import("./config/required_permissions.ts"),
    import("./config/schema.ts"),
    import("./config/server.ts"),
    import("./config/server_definition.ts"),
    import("./config/source.ts"),
    import("./demo.ts"),
    import("./doctor.ts"),
    import("./handler_files.ts"),
    import("./help.ts"),
    import("./import_graph.ts"),
    import("./inspect.ts"),
    import("./inspector/inspector.ts"),
    import("./inspector/serve.ts"),
    import("./install.ts"),
    import("./install/jsonc_edit.ts"),
    import("./load_error.ts"),
    import("./lock.ts"),
    import("./login.ts"),
    import("./logout.ts"),
    import("./misspellings.ts"),
    import("./module_type.ts"),
    import("./new.ts"),
    import("./openapi.ts"),
    import("./openapi/files.ts"),
    import("./openapi/survey.ts"),
    import("./own_imports.ts"),
    import("./pack.ts"),
    import("./pack/foreign_code.ts"),
    import("./permissions.ts"),
    import("./prompt.ts"),
    import("./read.ts"),
    import("./serve_http.ts"),
    import("./skills_folder.ts"),
    import("./event_log.ts"),
    import("./gateway.ts"),
    import("./stdio_notice.ts"),
    import("./install/toml_edit.ts"),
    import("./install/entry_check.ts"),
    import("./sign_in/command_sign_in.ts"),
    import("./sign_in/terminal_user_agent.ts"),
    import("./sign_in/token_folder.ts"),
    import("./lag_watch.ts"),
    import("./target_watcher.ts"),
    import("./task.ts"),
    import("./token.ts"),
    import("./install/yaml_edit.ts"),
  ]);
}
