/**
 * Tries what `install` writes: starts the server as the client will, or connects to it, and lists its tools.
 *
 * @module
 */
import { connect } from "../client/connect.ts";
import { RpcError } from "../client/rpc_error.ts";
import { toPrintableLine } from "../protocol/printable.ts";
import { Problem } from "./problem.ts";

/** What an entry leads to: a program with its variables, or a URL with its headers. */
export type Tried =
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** What was found. */
export interface Found {
  /** What the server calls itself. */
  readonly name?: string;
  /** What to tell the user. */
  readonly report: string;
}

const TIMEOUT_MS = 30_000;
const MOST_SHOWN = 20;
const MOST_ERRORS = 2000;
const NAME_LENGTH = 60;

/**
 * Connects, and lists the tools.
 *
 * @throws {Problem} if the server cannot be started or asked. One that wants a token is told: clients get theirs later.
 */
export async function tryEntry(target: string, tried: Tried): Promise<Found> {
  let errors = "";
  const options = {
    timeoutMs: TIMEOUT_MS,
    onWarning() {},
    onStderr(text: string) {
      errors = (errors + text).slice(-MOST_ERRORS);
    },
  };
  try {
    await using client = "url" in tried
      ? await connect(tried.url, { ...options, headers: tried.headers })
      : await connect({ ...tried, exitMs: 500 }, options);
    const tools = await client.listTools();
    return { name: client.server.info?.name, report: toReport(tools.map(({ name }) => name)) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error instanceof RpcError && error.status === 401 && "url" in tried) {
      return { report: "The server wants to know who you are (401), so its tools were not listed." };
    }
    const said = errors.trim();
    const state = `${"url" in tried ? "it does not answer" : "it does not start"}: ${toPrintableLine(error.message)}`;
    throw new Problem(
      `Cannot install ${target}: ${state}${said && `; it wrote:\n\n${said}\n\n`}${
        said ? "Fix" : "; fix"
      } that, or add --no-check`,
    );
  }
}

function toReport(names: readonly string[]): string {
  const shown = names.slice(0, MOST_SHOWN).map((name) => toPrintableLine(name.slice(0, NAME_LENGTH))).join(", ");
  const more = names.length > MOST_SHOWN ? ` and ${names.length - MOST_SHOWN} more` : "";
  const count = names.length === 1 ? "1 tool" : `${names.length} tools`;
  return names.length ? `It works: ${count}, ${shown}${more}.` : "It works, and has no tools.";
}
