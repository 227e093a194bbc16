/**
 * The record of a task, and the form in which clients get it.
 *
 * @see ext-tasks specification/draft/tasks (Tasks)
 * @module
 */
import type { ClientFacts, Params, Principal, Result } from "../library.ts";

/** Status of a task. The last three are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "cancelled" | "failed";

/** A request to the client that has no answer yet. */
export interface OpenQuestion {
  readonly method: string;
  readonly params: Params;
}

/** The error of a task that has failed. */
export interface TaskError {
  /** Code of the JSON-RPC error. */
  readonly code: number;
  /** Description of the error. */
  readonly message: string;
  /** Additional data of the JSON-RPC error. */
  readonly data?: unknown;
}

/** The caller of a task. It contains no tokens. */
export interface StoredPrincipal {
  readonly id: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: number;
  readonly claims?: unknown;
}

/** The data for another run of the handler. It is removed when the task has ended. */
export interface TaskWork {
  readonly params: Params;
  readonly principal?: StoredPrincipal;
  readonly client: ClientFacts;
  /** Identifies the name, the schemas and the version of the tool. */
  readonly hash: string;
  /** The option `version` of the task. */
  readonly version: string;
  /** Whether another instance may run the handler again. */
  readonly canResume: boolean;
  /** Whether the handler may run again after the credentials of the caller have expired. */
  readonly afterExpiry: boolean;
  /** Values of `once` that were made before the task began, as JSON. */
  readonly made: readonly (readonly [key: string, json: string])[];
  /** Questions without a valid answer, including questions whose answer has not been checked yet. */
  readonly questions: { readonly [key: string]: OpenQuestion };
  /** Answers of clients, by the key of the question. */
  readonly answers: { readonly [key: string]: unknown };
}

/** A task in the store. */
export interface TaskRecord {
  readonly id: string;
  /** Name of the tool. */
  readonly tool: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /** Id of the caller's principal. Without a principal, any caller who knows the id of the task may use it. */
  readonly owner?: string;
  /** Id of the process that runs the task. `null` if no process runs it. */
  readonly by: string | null;
  /** Prefix under which the process that runs the task receives messages. */
  readonly crew: string;
  /** The number of processes that have run the task. */
  readonly run: number;
  /** Whether a client subscribes to the task, on this instance or another. */
  readonly isWatched?: boolean;
  /** The data for another run. `undefined` after the end of the task. */
  readonly work?: TaskWork;
  readonly result?: Result;
  readonly error?: TaskError;
}

/** Whether a task has ended. */
export function isEnded({ status }: TaskRecord): boolean {
  return status === "completed" || status === "cancelled" || status === "failed";
}

/** Returns the questions that have no answer yet. */
export function toOpenQuestions({ work }: TaskRecord): Record<string, OpenQuestion> {
  const { questions = {}, answers = {} } = work ?? {};
  return Object.fromEntries(Object.entries(questions).filter(([key]) => !Object.hasOwn(answers, key)));
}

/** Returns the result of `tasks/get` for a client with these capabilities. */
export function toDetailed(record: TaskRecord, capabilities?: ClientFacts["capabilities"]): Params {
  const open = Object.entries(toOpenQuestions(record));
  const status = record.work && open.length ? "input_required" : record.status;
  // Omit questions for which the client lacks the capability. The client that called the tool had it, but a task may be
  // read by another client.
  const shown = capabilities ? open.filter(([, { method }]) => CAPABILITY[method] in capabilities) : open;
  return {
    ...toTask(record, status),
    ...status === "input_required" && { inputRequests: Object.fromEntries(shown) },
    ...status === "completed" && { result: record.result },
    ...status === "failed" && { error: record.error },
  };
}

/** Returns the fields of a task in the response to the call. */
export function toTask(record: TaskRecord, status: TaskStatus = record.status): Params {
  const { id, statusMessage, createdAt, updatedAt, ttlMs, pollIntervalMs } = record;
  return {
    taskId: id,
    status,
    ...statusMessage !== undefined && { statusMessage },
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs,
  };
}

/** The capability that a client needs for each kind of question. */
const CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** Returns the caller without possible secrets: only id, scopes, expiry and claims. */
export function toStored(principal: Principal | undefined): StoredPrincipal | undefined {
  if (!principal) return;
  const { id, scopes, expiresAt, claims } = principal;
  return { id, scopes, expiresAt, claims };
}
