/**
 * Waits for tasks, and prints their results in the terminal.
 */
import type { ToolTask } from "../../extensions/tasks/client/tasks.ts";
import type { Args } from "../args.ts";
import { toProgram, toShell } from "../command.ts";
import { platform } from "../platform.ts";
import type { InteractiveSession } from "./interactive_session.ts";
import { reportLine } from "./terminal_output.ts";
import { printToolResult } from "./tool_result.ts";

/** Milliseconds that cancelling a task may take after Ctrl-C. */
const CANCEL_MS = 1500;

/** Waits for a task and prints its result. With `cancels`, Ctrl-C cancels the task. Returns the exit code. */
export async function waitForTask(
  task: ToolTask,
  { request, signal, name }: InteractiveSession,
  { args, cancels }: { readonly args: Args; readonly cancels: boolean },
): Promise<number> {
  try {
    return await printToolResult(await request((options) => task.wait(options)), args);
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    if (signal.aborted && cancels) await task.cancel({ timeoutMs: CANCEL_MS }).catch(() => {});
    else if (signal.aborted || isLate) {
      reportLine(`The task continues. To wait for the task: ${toWaitCommand(task, name, args)}`);
    }
    throw error;
  }
}

export function reportTask(task: ToolTask, name: string, args: Args): void {
  if (platform.terminal.isAt("errors")) {
    reportLine(`The server runs the call as a task. To wait for the task: ${toWaitCommand(task, name, args)}`);
  }
}

function toWaitCommand({ id = "" }: ToolTask, name: string, { rest, all }: Args): string {
  const headers = (all.header ?? []).map((header) => `--header=${header.replace(/=.*/s, "=…")}`);
  const words = rest ? [id, "--", ...rest] : [name, id];
  return toShell([...toProgram(), "task", "wait", ...headers, ...words]);
}
