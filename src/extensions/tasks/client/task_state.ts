/**
 * Reads and validates the state of a task in a server's messages.
 *
 * @see ext-tasks/specification/draft/tasks (Tasks)
 */
import { INTERNAL_ERROR, McpError } from "../../../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../../../core/protocol/jsonrpc.ts";
import { toPrintableLine } from "../../../core/kit/printable.ts";

/** The status of a task. `completed`, `failed` and `cancelled` are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** The state of a task, as the server last reported it. */
export interface TaskState {
  /** The id of the task. */
  readonly taskId: string;
  /** The status of the task. */
  readonly status: TaskStatus;
  /** Describes the current work, or why the task has ended. */
  readonly statusMessage?: string;
  /** Time at which the task was created, in ISO 8601. */
  readonly createdAt?: string;
  /** Time at which the task last changed, in ISO 8601. */
  readonly lastUpdatedAt?: string;
  /** Milliseconds after its creation for which the server keeps the task. `undefined` if the server sends no time. */
  readonly ttlMs?: number;
  /** Milliseconds between two polls that the server suggests. */
  readonly pollIntervalMs?: number;
  /**
   * The open elicitation, sampling and roots requests by key, if the task waits for answers. Pass the answers to `answer`.
   */
  readonly inputRequests: Readonly<
    Record<string, {
      /** The method, such as `elicitation/create`. */
      readonly method: string;
      /** The parameters of the request. */
      readonly params: Params;
    }>
  >;
  /** The result of a completed task. */
  readonly result?: Result;
  /** The error of a failed task. */
  readonly error?: McpError;
}

/** The error if a task has ended without a result, or if the client could not get the task's state. */
export class TaskError extends Error {
  /** The class name, `TaskError`. */
  override readonly name = "TaskError";
  /** The id of the task. Pass the id to `resumeTask` to wait for the task again. */
  readonly taskId: string;

  /** Creates an error for the task with the id `taskId`. Escapes `message`, which can contain text from the server. */
  constructor(taskId: string, message: string, options?: ErrorOptions) {
    super(toPrintableLine(message), options);
    this.taskId = taskId;
  }
}

const STATUSES: readonly TaskStatus[] = ["working", "input_required", "completed", "failed", "cancelled"];
/** Maximum number of input requests in one state. */
const MAX_QUESTIONS = 100;
/** Maximum number of characters in a status message. */
const MAX_MESSAGE = 10_000;

export function hasEnded({ status }: Pick<TaskState, "status">): boolean {
  return status !== "working" && status !== "input_required";
}

/**
 * Reads the result of `tasks/get`.
 *
 * @throws {TaskError} if the result is not a valid state of the task with this id.
 */
export function readTask(value: Params, taskId: string): TaskState {
  const refuse = (problem: string) => new TaskError(taskId, `Cannot read the state of the task ${taskId}: ${problem}`);
  const status = STATUSES.find((each) => each === value.status);
  if (value.taskId !== taskId) throw refuse("the server sent the state of another task");
  if (!status) throw refuse("the server sent an invalid status");
  const result = status === "completed" ? value.result : {};
  if (!isObject(result)) throw refuse("the task is completed, but has no result");
  const { resultType = "complete" } = result;
  // No extension would finish a result of another type.
  if (resultType !== "complete") throw refuse("the task is completed, but its result is not complete");
  const { statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = value;
  return {
    taskId,
    status,
    ...typeof statusMessage === "string" && { statusMessage: statusMessage.slice(0, MAX_MESSAGE) },
    ...typeof createdAt === "string" && { createdAt },
    ...typeof lastUpdatedAt === "string" && { lastUpdatedAt },
    ...isPositive(ttlMs) && { ttlMs },
    ...isPositive(pollIntervalMs) && { pollIntervalMs },
    inputRequests: status === "input_required" ? readQuestions(value.inputRequests, refuse) : {},
    ...status === "completed" && { result: { ...result, resultType } },
    ...status === "failed" && { error: readError(value.error, statusMessage) },
  };
}

function readQuestions(value: unknown, refuse: (problem: string) => TaskError): TaskState["inputRequests"] {
  const questions = Object.entries(isObject(value) ? value : {});
  if (questions.length > MAX_QUESTIONS) {
    throw refuse(`the task has ${questions.length} open input requests; at most ${MAX_QUESTIONS} are accepted`);
  }
  return Object.fromEntries(questions.map(([key, asked]) => {
    if (!isObject(asked) || typeof asked.method !== "string") throw refuse(`the input request ${key} has no method`);
    return [key, { method: asked.method, params: isObject(asked.params) ? asked.params : {} }];
  }));
}

function readError(value: unknown, statusMessage: unknown): McpError {
  const { code, message = statusMessage, data } = isObject(value) ? value : {};
  return new McpError(
    Number.isInteger(code) ? Number(code) : INTERNAL_ERROR,
    typeof message === "string" ? message : "The task failed",
    data,
    {},
  );
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && value > 0;
}
