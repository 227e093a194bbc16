/**
 * The tasks extension for clients: `callTool` waits for the result of a task, and another process can continue to wait
 * for a task by its id.
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 * import { resumeTask, startTool, taskClient } from "@x/mcp/client/tasks";
 *
 * const extensions = [taskClient()];
 *
 * export async function begin(url: string): Promise<string | undefined> {
 *   await using client = await connect(url, { extensions });
 *   return (await startTool(client, "report", { year: 2026 })).id; // store it
 * }
 *
 * export async function finish(url: string, id: string) {
 *   await using client = await connect(url, { extensions });
 *   return await resumeTask(client, id, { tool: "report" }).wait();
 * }
 * ```
 *
 * @see ext-tasks/specification/draft/tasks
 * @module
 */
export { taskClient, type TaskClientOptions } from "./task_client.ts";
export { TaskError, type TaskState, type TaskStatus } from "./task_state.ts";
export { resumeTask, type ResumeTaskOptions, startTool, type ToolTask } from "./tool_task.ts";
