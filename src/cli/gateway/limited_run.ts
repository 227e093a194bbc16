/**
 * Runs the gateway in a process of Deno that can start only the programs, and reach only the hosts, that its file names.
 */
import { type Args, toList } from "../args.ts";
import { toEntry, toOwnReads } from "../command.ts";
import { findOtherPermissions } from "../config/other_permissions.ts";
import type { EntryTexts } from "../config/other_servers.ts";
import { joinPermissions, KINDS, type Permissions, toDenoFlags } from "../permissions.ts";
import { platform } from "../platform.ts";
import { deno } from "../runtime_globals.ts";
import { sendSignal } from "../../core/kit/signals.ts";
import type { ClientFile, ListedServer } from "../config/client_file.ts";

/** The exit code after SIGINT. */
const SIGINT = 130;

/** Set in the environment of a process that {@linkcode runLimited} starts. */
const LAUNCHER = "MCP_GATEWAY_LAUNCHER";

/** Whether this process has all permissions. The user has limited any other process, and another one would have more. */
export function isUnlimited(): boolean {
  return KINDS.every((name) => {
    const { state, partial } = deno?.permissions.querySync({ name }) ?? {};
    return state === "granted" && !partial;
  });
}

/** Exits with the process that has started this one, which passes signals on, and may be killed. */
export function followLauncher(): void {
  const isPermitted = deno?.permissions.querySync({ name: "env", variable: LAUNCHER }).state === "granted";
  if (isPermitted && platform.env(LAUNCHER) !== undefined) platform.onParentEnd(() => platform.exit(143));
}

/** Runs the command again with the permissions of its file. Returns its exit code. */
export async function runLimited(
  { flags: { host = "127.0.0.1", port = "3000", lock }, operands: [file], all }: Args,
  { path, servers }: ClientFile,
  toTexts: (server: ListedServer) => EntryTexts,
): Promise<number> {
  let permissions: Permissions = {
    read: [path, ...[file, ...lock === undefined ? [] : [lock]].map(platform.toPath), ...toOwnReads()],
    env: [...toList(all.env), LAUNCHER],
    // The listener needs the same permission as a connection.
    net: [`${host.includes(":") ? `[${host}]` : host}:${port}`],
  };
  for (const server of servers) {
    const found = await findOtherPermissions(server.entry, toTexts(server));
    permissions = joinPermissions(permissions, found);
  }
  if (!deno) throw new Error("Cannot limit the gateway: only Deno has permissions");
  const args = ["run", "--no-prompt", ...toDenoFlags(permissions), toEntry(), ...platform.args];
  const child = new deno.Command(deno.execPath(), {
    args,
    env: { [LAUNCHER]: "1" },
    stdin: "inherit",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  // In a terminal, the child gets Ctrl-C too, and would take another signal as the request to exit immediately.
  const isAtTerminal = (["input", "output", "errors"] as const).some(platform.terminal.isAt);
  platform.onSignal((code) => isAtTerminal && code === SIGINT || sendSignal(child, "SIGTERM"));
  return (await child.status).code;
}
