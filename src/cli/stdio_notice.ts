/**
 * What the terminal shows when a person starts a server over standard input and output.
 *
 * @module
 */
import { toInstall, toProgram, toShell } from "./command.ts";
import { toName, toTargetUrl } from "./load.ts";

/** Explains that the server waits for a client, because otherwise the terminal would stay empty. */
export function explainSilence(target: string | undefined): string {
  const name = target === undefined ? "demo" : toName(toTargetUrl(target));
  const url = target === undefined ? undefined : toTargetUrl(target);
  const path = url?.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : url;
  const operands = path === undefined ? [] : [path];
  const [command, ...args] = [...toProgram(path === undefined ? "none" : "all"), ...operands];
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return `This is ${
    target ?? "a demonstration server"
  }. It speaks MCP on standard input and output, and waits for a client.

To try it here, paste this line:
  ${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } })}

To give it to a client, put this into the client's configuration:
  ${JSON.stringify({ mcpServers: { [name]: { command, args } } })}
${target === undefined ? "" : `or have it put there, with no more permissions than it needs:\n  ${toInstall(target)}\n`}
To serve it over HTTP:
  ${toShell([...toProgram(), ...operands, "--http"])}

Ctrl-C ends it.`;
}
