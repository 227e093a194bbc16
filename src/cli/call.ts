/**
 * `mcp call server tool …`: calls a tool.
 *
 * @module
 */
import type { ToolResult } from "../protocol/types.ts";
import type { Args } from "./args.ts";
import { ARGUMENTS_USAGE, readArguments } from "./client/arguments.ts";
import { savePieces, toPiece } from "./client/content_blocks.ts";
import {
  ASKING_FLAGS,
  ASKING_OFFERS,
  ASKING_USAGE,
  type Conversation,
  withConversation,
} from "./client/interactive_session.ts";
import { showNames } from "./client/listing_text.ts";
import { toLine } from "./client/terminal_text.ts";
import { writeJson, writeText } from "./client/terminal_output.ts";
import { findNamed } from "./client/name_lookup.ts";
import type { Command } from "./command.ts";

/** Lists the tools of a server, or calls one. */
export const call: Command = {
  name: "call",
  summary: "List the tools of a server, or call one",
  usage: `call server [tool] [name=value … | '{"name": value}'] [flags]
call [flags] [tool] [name=value …] -- command …

${ARGUMENTS_USAGE}

${ASKING_USAGE}

Ctrl-C cancels the call, and the exit code is 130.

For example:
  call http://127.0.0.1:3000/mcp
  call http://127.0.0.1:3000/mcp add a=2 b=3
  call server.ts remove '{"title": "old"}' --answer sure=yes
  call chart title=Rain --output chart.png -- npx -y some-server`,
  flags: ASKING_FLAGS,
  offers: ASKING_OFFERS,
  fails: "if the tool says that it failed, or the server answers with an error",
  run: (args) => withConversation(args, "call", (conversation) => callTool(conversation, args)),
};

async function callTool({ client, operands, ask }: Conversation, { flags }: Args): Promise<number> {
  const [name, ...words] = operands;
  const tools = await ask((options) => client.listTools(options));
  if (name === undefined) {
    await ("json" in flags ? writeJson(tools) : showNames(tools));
    return 0;
  }
  const tool = findNamed(tools, name, { verb: "call", kind: "tool" });
  const args = await readArguments(words, { what: `call ${toLine(name)}`, schema: Object(tool.inputSchema) });
  const result = await ask((options) => client.callTool(name, args, options));
  await ("json" in flags ? writeJson(result) : showResult(result));
  if ("output" in flags) await savePieces(toPieces(result), flags.output);
  return result.isError === true ? 1 : 0;
}

function toPieces({ content = [] }: Partial<ToolResult>) {
  return content.map(toPiece);
}

async function showResult(result: ToolResult): Promise<void> {
  const pieces = toPieces(result);
  const { structuredContent } = result;
  if (pieces.length) await writeText(pieces.map(({ text }) => text).join("\n"));
  else if (structuredContent !== undefined) await writeText(JSON.stringify(structuredContent, null, 2));
}
