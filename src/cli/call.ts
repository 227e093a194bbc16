/**
 * `mcp call`: lists the tools of a server, or calls one.
 *
 * @module
 */
import type { ToolResult } from "../client/client.ts";
import type { Args } from "./args.ts";
import { readArguments } from "./client/arguments.ts";
import { type PrintableContent, saveContents, toPrintableBlock } from "./client/content_blocks.ts";
import { type InteractiveSession, withInteractiveSession } from "./client/interactive_session.ts";
import { printNames } from "./client/listing_text.ts";
import { findByName } from "./client/name_lookup.ts";
import {
  ARGUMENTS_DESCRIPTION,
  ELICITATION_DESCRIPTION,
  INTERACTIVE_OPTIONS,
  SERVER_DESCRIPTION,
} from "./client/server_options.ts";
import { reportLine, writeJson, writeText } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";

/** The command `call`. */
export const call: Command = {
  name: "call",
  summary: "Call a server's tool, or list its tools",
  usage: [
    "call [OPTIONS] SERVER [TOOL] [NAME=VALUE]...",
    "call [OPTIONS] SERVER TOOL '{\"NAME\": VALUE}'",
    "call [OPTIONS] [TOOL] [NAME=VALUE]... -- COMMAND...",
  ],
  description: [SERVER_DESCRIPTION, ARGUMENTS_DESCRIPTION, ELICITATION_DESCRIPTION],
  options: INTERACTIVE_OPTIONS,
  operands: "files",
  examples: [
    "call http://127.0.0.1:3000/mcp",
    "call http://127.0.0.1:3000/mcp add a=2 b=3",
    'call server.ts remove \'{"title": "old"}\' --answer sure=yes',
    "call chart title=Rain --output chart.png -- npx -y some-server",
  ],
  exitCodes: { 1: "The tool reported an error, or the server responded with one", 130: "Stopped with Ctrl-C" },
  run: (args) => withInteractiveSession(args, "call", (session) => callTool(session, args)),
};

async function callTool({ client, operands, request }: InteractiveSession, { flags }: Args): Promise<number> {
  const [name, ...words] = operands;
  const tools = await request((options) => client.listTools(options));
  if (name === undefined) {
    await ("json" in flags ? writeJson(tools) : printNames(tools, "tools"));
    return 0;
  }
  const tool = findByName(tools, name, { verb: "call", kind: "tool" });
  const args = await readArguments(words, { action: `call ${toLine(name)}`, schema: Object(tool.inputSchema) });
  const result = await request((options) => client.callTool(name, args, options));
  await ("json" in flags ? writeJson(result) : printResult(result));
  if ("output" in flags) await saveContents(toContents(result), flags.output);
  return result.isError === true ? 1 : 0;
}

function toContents({ content = [] }: Partial<ToolResult>): readonly PrintableContent[] {
  return content.map(toPrintableBlock);
}

async function printResult(result: ToolResult): Promise<void> {
  const contents = toContents(result);
  const { structuredContent } = result;
  if (contents.length) await writeText(contents.map(({ text }) => text).join("\n"));
  else if (structuredContent !== undefined) await writeText(JSON.stringify(structuredContent, null, 2));
  else {reportLine(
      result.isError === true ? "The tool failed and returned no content." : "The tool returned no content.",
    );}
}
