/**
 * The tasks extension for clients: `callTool` waits for tasks to end, and handles of tasks can be used in another
 * process.
 *
 * @see ext-tasks/specification/draft/tasks
 * @module
 */
export { taskClient, type TaskClientOptions } from "./task_client.ts";
export { TaskError, type TaskQuestion, type TaskState, type TaskStatus } from "./task_state.ts";
export { resumeTask, type ResumeTaskOptions, startTool, type ToolTask } from "./tool_task.ts";
