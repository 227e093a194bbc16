/**
 * `mcp bridge`: connects a client that supports only stdio to a server over HTTP.
 */
import { bridgeLines } from "../client/bridge_lines.ts";
import { lock } from "../client/client.ts";
import { guardConsole } from "../host.ts";
import { type Args, rejectRest } from "./args.ts";
import { UsageError, withAction } from "./cli_error.ts";
import { SERVER_OPTIONS } from "./client/server_options.ts";
import { reportLine } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";
import { readHeaders } from "./header_flags.ts";
import { platform } from "./platform.ts";
import { readServerUrl } from "./sign_in/sign_in_facts.ts";
import { createAuth, SIGN_IN_OPTIONS } from "./sign_in/sign_in_options.ts";

export const bridge: Command = {
  name: "bridge",
  summary: "Connect a client that supports only stdio to a server over HTTP",
  usage: ["bridge [OPTIONS] URL"],
  description: [
    "The command passes on all messages unchanged, in both directions and in every protocol revision. The client " +
    "starts the command as a server over stdio; mcp install adds the command to the client's configuration.",
    "If the server requires a sign-in, the command opens the browser. If no browser is available, run mcp login first.",
  ],
  options: {
    header: SERVER_OPTIONS.header,
    ...SIGN_IN_OPTIONS,
    lock: { value: "FILE", text: "Hide what has changed since mcp lock wrote this file", completion: "files" },
    server: { value: "NAME", text: "Key of the server in the lock file, if the file has several servers" },
  },
  examples: ["bridge https://mcp.example.com/mcp", "bridge https://mcp.example.com/mcp --lock ~/mcp.lock.json"],
  exitCodes: { 130: "Stopped with Ctrl-C" },
  run: runBridge,
};

async function runBridge(args: Args): Promise<number> {
  rejectRest(args, "bridge");
  const url = readServerUrl(args.operands, "bridge");
  if (platform.terminal.isAt("input")) {
    throw new UsageError(`Cannot bridge ${url}: standard input is a terminal; let the client start this command`);
  }
  guardConsole();
  const headers = readHeaders(args.all.header);
  const onWarning = (text: string) => reportLine(toLine(text, 2000));
  const { lock: file, server } = args.flags;
  const toLock = (path: string) => [lock(platform.toPath(path), { server, onWarning })];
  const use = file === undefined ? [] : await withAction(`Cannot bridge ${url}`, () => toLock(file));
  const stop = platform.abortOnSignal();
  const { signal } = stop.controller;
  const lines = { input: platform.terminal.input(), output: platform.terminal.write, signal };
  // Sign in even without a terminal: the client starts the bridge without a terminal, and the sign-in needs only a
  // browser.
  const auth = createAuth(args, headers, { isForced: true });
  await bridgeLines(lines, { url, headers, auth, onWarning, use });
  return stop.exitCode;
}
