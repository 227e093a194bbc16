/**
 * The record of a task, and what clients see of it.
 *
 * @see ext-tasks specification/draft/tasks (Tasks)
 * @module
 */
import type { ClientFacts, Params, Principal, Result } from "../library.ts";

/** Status of a task. The last three are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "cancelled" | "failed";

/** A request to the client that waits for its answer. */
export interface OpenQuestion {
  readonly method: string;
  readonly params: Params;
}

/** The error of a task that has failed. */
export interface TaskError {
  /** Code of the JSON-RPC error. */
  readonly code: number;
  /** What went wrong. */
  readonly message: string;
  /** Further facts. */
  readonly data?: unknown;
}

/** The caller of a task, without tokens. */
export interface StoredPrincipal {
  readonly id: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: number;
  readonly claims?: unknown;
}

/** What another run of the handler needs. It is dropped when the task has ended. */
export interface TaskWork {
  readonly params: Params;
  readonly principal?: StoredPrincipal;
  readonly client: ClientFacts;
  /** Stands for the name, the schemas and the version of the tool. */
  readonly hash: string;
  /** `version` of the attribute. */
  readonly version: string;
  /** Whether another instance may run the handler again. */
  readonly canResume: boolean;
  /** Whether it may do so after the credentials of the caller have expired. */
  readonly afterExpiry: boolean;
  /** Values of `once` that were made before the task began, as JSON. */
  readonly made: readonly (readonly [key: string, json: string])[];
  /** Questions without a valid answer, and those of which the answer was not looked at yet. */
  readonly questions: { readonly [key: string]: OpenQuestion };
  /** What clients have answered, by the key of the question. */
  readonly answers: { readonly [key: string]: unknown };
}

/** A task in the store. */
export interface TaskRecord {
  readonly id: string;
  /** Name of the tool. */
  readonly tool: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /** Id of the caller's principal. `undefined` if there is none: then any caller who knows the id of the task may use it. */
  readonly owner?: string;
  /** Id of the process that runs it. `null` if it waits for one. */
  readonly by: string | null;
  /** Prefix under which the process that runs it receives news. */
  readonly crew: string;
  /** How many processes have begun it. */
  readonly run: number;
  /** Whether a client listens to it, perhaps on another instance. */
  readonly isWatched?: boolean;
  /** `undefined` when it has ended. */
  readonly work?: TaskWork;
  readonly result?: Result;
  readonly error?: TaskError;
}

/** Tests for a task that has ended. */
export function isEnded({ status }: TaskRecord): boolean {
  return status === "completed" || status === "cancelled" || status === "failed";
}

/** Returns the questions that wait for an answer. */
export function toOpenQuestions({ work }: TaskRecord): Record<string, OpenQuestion> {
  const { questions = {}, answers = {} } = work ?? {};
  return Object.fromEntries(Object.entries(questions).filter(([key]) => !Object.hasOwn(answers, key)));
}

/** Returns the task as `tasks/get` shows it to a client with these capabilities. */
export function toDetailed(record: TaskRecord, capabilities?: ClientFacts["capabilities"]): Params {
  const open = Object.entries(toOpenQuestions(record));
  const status = record.work && open.length ? "input_required" : record.status;
  // The questions fit what the client could do when it called the tool. Another one may be able to do less.
  const shown = capabilities ? open.filter(([, { method }]) => CAPABILITY[method] in capabilities) : open;
  return {
    ...toTask(record, status),
    ...status === "input_required" && { inputRequests: Object.fromEntries(shown) },
    ...status === "completed" && { result: record.result },
    ...status === "failed" && { error: record.error },
  };
}

/** Returns the task as the response to the call shows it. */
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

/** The capability that each question needs. */
const CAPABILITY: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/** Returns the caller without anything that could be a secret: only its id, scopes, expiry and claims are kept. */
export function toStored(principal: Principal | undefined): StoredPrincipal | undefined {
  if (!principal) return;
  const { id, scopes, expiresAt, claims } = principal;
  return { id, scopes, expiresAt, claims };
}
