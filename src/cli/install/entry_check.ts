/**
 * Checks an entry before `mcp install` writes the entry. Starts or connects to the server, and lists the tools.
 */
import { connect, McpError } from "../../client/client.ts";
import { toPrintableLine } from "../../core/kit/printable.ts";
import { CliError } from "../cli_error.ts";
import { findConnectionProblem, findEndpoint } from "../client/server_errors.ts";

/** A command and its environment. `cwd` defaults to the working directory. */
export interface EntryCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The server to which an entry refers: a command, or a URL with headers. */
export type EntryTarget =
  | EntryCommand
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> };

export interface EntryCheck {
  /** The name that the server reports. */
  readonly name?: string;
  /** A sentence for the user about the server's tools. */
  readonly report: string;
}

/** Milliseconds that the server may take to respond. */
const TIMEOUT_MS = 30_000;
/** Milliseconds that the server may take to exit after the check. */
const EXIT_MS = 500;
/** Maximum number of tools in the report. */
const MAX_TOOLS = 20;
/** Maximum length of a tool's name in the report, in characters. */
const MAX_NAME = 60;
/** Maximum number of characters to print from the end of the server's standard error. */
const MAX_STDERR = 2000;

/**
 * Connects to the server and lists the tools. A server that requires authentication passes the check, because the
 * client authenticates itself when it connects.
 *
 * @throws {CliError} if the server does not start or respond.
 */
export async function checkEntry(name: string, target: EntryTarget): Promise<EntryCheck> {
  let stderr = "";
  const options = {
    timeoutMs: TIMEOUT_MS,
    onWarning() {},
    onStderr(text: string) {
      stderr = (stderr + text).slice(-2 * MAX_STDERR);
    },
  };
  try {
    await using client = "url" in target
      ? await connect(target.url, { ...options, headers: target.headers })
      : await connect({ ...target, env: { ...target.env, NO_COLOR: "1" }, exitMs: EXIT_MS }, options);
    const tools = await client.listTools();
    return { name: client.server.info?.name, report: toReport(tools.map(({ name }) => name)) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof McpError && error.status === 401 && "url" in target) {
      return { report: "The server requires authentication (401), so the command did not list the tools." };
    }
    const endpoint = error instanceof McpError && "url" in target ? findEndpoint(error, target.url) : undefined;
    if (endpoint !== undefined) {
      throw new CliError(`Cannot install ${name}: there is no MCP endpoint at this URL; use ${endpoint}`);
    }
    const problem = findConnectionProblem(error);
    if (problem) {
      const state = toPrintableLine(problem.state);
      throw new CliError(
        `Cannot install ${name}: the server does not respond: ${state}; ${problem.remedy}, or add --no-check`,
      );
    }
    const action = "url" in target ? "respond" : "start";
    const state = `the server does not ${action}: ${toPrintableLine(error.message)}`;
    const output = dropRepetition(stderr.trim()).slice(-MAX_STDERR);
    const remedy = output ? `; output of the server:\n\n${output}\n\nFix the server` : "; fix the server";
    throw new CliError(`Cannot install ${name}: ${state}${remedy}, or add --no-check`);
  }
}

/**
 * Removes repeated output. If the server exits, the client starts the server again to try the handshake, and the server
 * prints the same output again.
 */
function dropRepetition(output: string): string {
  const middle = Math.ceil(output.length / 2);
  const half = output.slice(middle).trim();
  return output.slice(0, middle).trim() === half ? half : output;
}

function toReport(names: readonly string[]): string {
  const shown = names.slice(0, MAX_TOOLS).map((name) => toPrintableLine(name.slice(0, MAX_NAME))).join(", ");
  const more = names.length > MAX_TOOLS ? ` and ${names.length - MAX_TOOLS} more` : "";
  const count = names.length === 1 ? "1 tool" : `${names.length} tools`;
  return names.length ? `The server works: ${count}, ${shown}${more}.` : "The server works, but has no tools.";
}
