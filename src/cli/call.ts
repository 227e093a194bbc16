/**
 * `mcp call`: lists the tools of a server, or calls a tool.
 */
import { type ListedTool, McpError, type Params, type ToolResult } from "../client/client.ts";
import { isObject, parseJson } from "../core/kit/json.ts";
import { startTool } from "../extensions/tasks/client/tasks.ts";
import type { Args } from "./args.ts";
import { readArguments } from "./client/arguments.ts";
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
import { reportTask, waitForTask } from "./client/task_result.ts";
import { toLine } from "./client/terminal_text.ts";
import { printToolResult } from "./client/tool_result.ts";
import type { Command } from "./command.ts";
import { INVALID_PARAMS } from "./protocol.ts";

export const call: Command = {
  name: "call",
  summary: "Call a server's tool, or list its tools",
  usage: [
    "call [OPTIONS] SERVER [TOOL] [NAME=VALUE]...",
    "call [OPTIONS] SERVER TOOL '{\"NAME\": VALUE}'",
    "call [OPTIONS] [TOOL] [NAME=VALUE]... -- COMMAND...",
  ],
  description: [
    SERVER_DESCRIPTION,
    ARGUMENTS_DESCRIPTION,
    "If the server runs the call as a task, the command shows the task's status and waits for the result. Ctrl-C " +
    "cancels the task.",
    ELICITATION_DESCRIPTION,
  ],
  options: {
    ...INTERACTIVE_OPTIONS,
    task: {
      text:
        "If the server runs the call as a task, print the id of the task and do not wait for the result; see the task command",
    },
  },
  operands: "files",
  examples: [
    "call http://127.0.0.1:3000/mcp",
    "call http://127.0.0.1:3000/mcp add a=2 b=3",
    'call server.ts remove \'{"title": "old"}\' --answer sure=yes',
    "call chart title=Rain --output chart.png -- npx -y some-server",
  ],
  exitCodes: { 1: "The tool or the server reported an error", 130: "Stopped with Ctrl-C" },
  run: (args) => withInteractiveSession(args, "call", (session) => callTool(session, args)),
};

async function callTool(session: InteractiveSession, given: Args): Promise<number> {
  const { client, operands, request } = session;
  const { flags } = given;
  const [name, ...words] = operands;
  const tools = await request((options) => client.listTools(options));
  if (name === undefined) {
    await ("json" in flags ? writeJson(tools) : printNames(tools, "tools"));
    return 0;
  }
  const listed = tools.find((each) => each.name === name);
  const { inputSchema, reject } = listed
    ? { ...listed, reject: undefined }
    : await findUnlisted(session, { name, tools });
  const args = await readArguments(words, { action: `call ${toLine(name)}`, schema: Object(inputSchema) });
  const task = await request((options) => startTool(client, name, args, options)).catch((error) => {
    if (error instanceof McpError && error.code === INVALID_PARAMS) reject?.();
    throw error;
  });
  if (task.result) {
    if (task.result.isError && isUnknown(name, task.result.content)) reject?.();
    if ("task" in flags) reportLine("The server returned the result without creating a task.");
    return await printToolResult(task.result, given);
  }
  if (!("task" in flags)) return await waitForTask(task, session, { args: given, cancels: true });
  reportTask(task, session.name, given);
  await ("json" in flags ? writeJson(task.state ?? { taskId: task.id }) : writeText(task.id ?? ""));
  return 0;
}

/** Whether the result of a call says that there is no such tool. Servers of other libraries send no error instead. */
function isUnknown(name: string, content: ToolResult["content"] = []): boolean {
  const texts = content.map((block) => block.type === "text" ? block.text : "");
  return texts.some((text) => text.includes(`Tool ${name} not found`) || text.includes(`Unknown tool: ${name}`));
}

/** A tool that is not in the list. The server may have it nevertheless, because a provider need not list its tools. */
interface Unlisted {
  readonly inputSchema: ListedTool["inputSchema"];
  /**
   * Call this function if the server refuses the call.
   *
   * @throws {CliError} with a suggestion, unless the server's search has found the tool.
   */
  readonly reject: () => void;
}

/** Looks up a tool that is not in the list, with the search of the server, if any. */
async function findUnlisted(
  { client, request }: InteractiveSession,
  { name, tools }: { readonly name: string; readonly tools: readonly ListedTool[] },
): Promise<Unlisted> {
  const what = { verb: "call", kind: "tool" };
  const anything = { additionalProperties: true };
  const search = tools.find((each) => /(^|[_.-])search_tools$/.test(each.name));
  if (!search) return { inputSchema: anything, reject: () => findByName(tools, name, what) };
  const { content } = await request((options) => client.callTool(search.name, { query: name }, options));
  const lines = content.flatMap((block) => block.type === "text" ? block.text.split("\n") : []);
  const full = lines.map(parseObject).filter((each) => each !== undefined);
  const found = full.find((each) => each.name === name);
  if (found) return { inputSchema: Object(found.inputSchema), reject: () => {} };
  const others = lines.flatMap((line) => /^- ([\w.-]+)/.exec(line)?.[1] ?? []);
  const names = [...tools, ...full].map((each) => String(each.name));
  const remedy = `find the tool with ${toLine(search.name)}`;
  const known = [...names, ...others].map((name) => ({ name }));
  return { inputSchema: anything, reject: () => findByName(known, name, { ...what, remedy }) };
}

function parseObject(line: string): Params | undefined {
  const value = parseJson(line);
  return isObject(value) ? value : undefined;
}
