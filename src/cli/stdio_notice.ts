/**
 * The notice for a user who starts a stdio server in a terminal.
 */
import { toInstall, toProgram, toShell } from "./command.ts";
import { toConfigFlags } from "./install/deno_config.ts";
import { toName, toTargetUrl } from "./target_url.ts";

/**
 * Explains the wait for a client, because the terminal would stay empty. `options` choose an endpoint. `command` is the
 * command that serves the target, if it is not `serve`.
 */
export async function toStdioNotice(
  target: string | undefined,
  options: readonly string[],
  command?: string,
): Promise<string> {
  const name = target === undefined ? "demo" : toName(toTargetUrl(target));
  const url = target === undefined ? undefined : toTargetUrl(target);
  const path = url?.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : url;
  const operands = path === undefined ? [] : [...command === undefined ? [] : [command], path, ...options];
  const config = path !== undefined && /\.[cm]?[jt]sx?$/.test(path) ? await toConfigFlags(path) : [];
  const program = toProgram(path === undefined ? "none" : "all");
  const [starter, ...args] = [...program.slice(0, -1), ...config, ...program.slice(-1), ...operands];
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return `Serving ${target ?? "the demonstration"} over standard input and output. The server waits for a client.

To send a request, paste this line:
  ${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } })}

To use the server in a client, add this to the client's configuration:
  ${JSON.stringify({ mcpServers: { [name]: { command: starter, args } } })}
${
    target === undefined || command !== undefined
      ? ""
      : `Or let the install command add the server, with the permissions that it needs:\n  ` +
        `${toInstall(target, options)}\n`
  }
To use HTTP instead:
  ${toShell([...toProgram(), ...operands, "--http"])}

Press Ctrl-C to stop.`;
}
