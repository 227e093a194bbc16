/**
 * `mcp task`: shows a task of a server, waits for its result, or cancels it.
 */
import { resumeTask, type TaskState } from "../extensions/tasks/client/tasks.ts";
import type { Args } from "./args.ts";
import { UsageError } from "./cli_error.ts";
import { type InteractiveSession, withInteractiveSession } from "./client/interactive_session.ts";
import { ELICITATION_DESCRIPTION, INTERACTIVE_OPTIONS, SERVER_DESCRIPTION } from "./client/server_options.ts";
import { waitForTask } from "./client/task_result.ts";
import { reportLine, writeJson, writeText } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";

const ACTIONS = ["get", "wait", "cancel"] as const;

export const task: Command = {
  name: "task",
  summary: "Show a server's task, wait for its result, or cancel it",
  usage: ["task get|wait|cancel [OPTIONS] SERVER ID", "task get|wait|cancel [OPTIONS] ID -- COMMAND..."],
  description: [
    "call --task prints the ID of the task. get prints the task's status, wait answers questions and prints the " +
    "result, and cancel asks the server to stop the task. After Ctrl-C, wait exits, and the task continues.",
    SERVER_DESCRIPTION,
    ELICITATION_DESCRIPTION,
  ],
  options: INTERACTIVE_OPTIONS,
  operands: ACTIONS,
  examples: [
    "task get http://127.0.0.1:3000/mcp 5e2f",
    "task wait http://127.0.0.1:3000/mcp 5e2f --answer sure=yes",
  ],
  exitCodes: { 1: "The tool or the server reported an error", 130: "Stopped with Ctrl-C" },
  async run(args) {
    const [word, ...operands] = args.operands;
    const action = ACTIONS.find((each) => each === word);
    if (!action) {
      throw new UsageError(
        `Cannot run task ${
          word ?? ""
        }: the action is not get, wait or cancel; write task get, task wait or task cancel, ` +
          "then SERVER and ID",
      );
    }
    const given = { ...args, operands };
    return await withInteractiveSession(given, action, (session) => useTask(session, given, action));
  },
};

async function useTask(session: InteractiveSession, args: Args, action: typeof ACTIONS[number]): Promise<number> {
  const { client, operands: [id, extra], request } = session;
  if (id === undefined) {
    throw new UsageError(`Cannot ${action} a task: no ID is named; write the ID that call --task prints`);
  }
  if (extra !== undefined) {
    throw new UsageError(
      `Cannot ${action} ${extra} and ${id}: task takes one ID; remove one of the two`,
    );
  }
  const handle = resumeTask(client, id);
  if (action === "wait") return await waitForTask(handle, session, { args, cancels: false });
  if (action === "cancel") {
    await request((options) => handle.cancel(options));
    reportLine("The command has asked the server to cancel the task.");
    return 0;
  }
  const state = await request((options) => handle.get(options));
  await ("json" in args.flags ? writeJson(toJson(state)) : writeText(toText(state)));
  return 0;
}

/** Returns the state as JSON, including the properties of errors that `JSON.stringify` omits. */
function toJson({ error, ...state }: TaskState): unknown {
  return error ? { ...state, error: { code: error.code, message: error.message, data: error.data } } : state;
}

function toText({ status, statusMessage, inputRequests, error }: TaskState): string {
  const lines = [
    `Status: ${status}`,
    ...statusMessage === undefined ? [] : [`Message: ${toLine(statusMessage, 2000)}`],
    ...Object.entries(inputRequests).map(([key, { method, params }]) =>
      `Question ${toLine(key)}: ${toLine(typeof params.message === "string" ? params.message : method, 2000)}`
    ),
    ...error ? [`Error: ${toLine(error.message, 2000)} (${error.code})`] : [],
  ];
  return lines.join("\n");
}
