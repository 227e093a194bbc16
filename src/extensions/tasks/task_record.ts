/**
 * The stored record of a task, and its conversion to the results that clients receive.
 *
 * @see ext-tasks specification/draft/tasks (Tasks)
 */
import { isSameJson, toJsonText } from "../../server/call/json_copy.ts";
import type { Reads } from "../../server/call/handler_call.ts";
import { joinReads } from "../../server/call/reads.ts";
import { toAnswerable } from "./task_source.ts";
import type { ClientInfo, Params, Principal, Result } from "../../library.ts";

/** Status of a task. `completed`, `cancelled` and `failed` are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "cancelled" | "failed";

/** A request to the client. */
export interface OpenQuestion {
  readonly method: string;
  readonly params: Params;
}

/** The error of a task that has failed. */
export interface TaskFailure {
  /** Code of the JSON-RPC error. */
  readonly code: number;
  /** Description of the error. */
  readonly message: string;
  /** Additional data of the JSON-RPC error. */
  readonly data?: unknown;
}

/** The data that a further run of the handler needs. Removed when the task has ended. */
export interface TaskWork {
  readonly params: Params;
  /** The caller with all members. `undefined` if the caller has no principal, or if the task cannot resume. */
  readonly caller?: Principal;
  /** The sealed values that parts of the server have attached to the caller's principal, if any. */
  readonly attached?: string;
  /** Whether a caller without a principal has all scopes, because it started the server. */
  readonly hasAllScopes?: boolean;
  /** Identifies a caller without a principal, whose further runs count towards the limits of the same client. */
  readonly account?: string;
  /**
   * The value of `ctx.session()`, in a list that is empty if the value is `undefined`. Omitted if the task cannot
   * resume, or if the value could not be computed.
   */
  readonly session?: readonly [unknown?];
  readonly client: ClientInfo;
  /** Hash of the tool's name and schemas, and of the option `version`. */
  readonly hash: string;
  /** The option `version` when the task began. */
  readonly version: string;
  /** Whether the handler can run again after its process has ended. */
  readonly canResume: boolean;
  /** Whether the handler can run again after the caller's credentials have expired. */
  readonly afterExpiry: boolean;
  /** Values that `once` created before the call became a task, as JSON. Later values are in the journal. */
  readonly made: readonly (readonly [key: string, json: string])[];
  /** Questions that have no answer, or whose answer has not been validated yet. */
  readonly questions: { readonly [key: string]: OpenQuestion };
  /**
   * The first answers from clients by the question's key: valid answers, and answers that have not been validated yet.
   * `null` closes a question that the handler no longer asks.
   */
  readonly answers: { readonly [key: string]: unknown };
  /**
   * Answers to questions that already have an answer, in the order in which clients have sent them. If an answer is
   * invalid, the next answer to the same question replaces it.
   */
  readonly further?: readonly (readonly [key: string, value: unknown])[];
}

export interface TaskRecord {
  readonly id: string;
  readonly tool: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /**
   * Id of the caller's principal. If the caller had no principal, any caller without a principal who knows the task's
   * id can use the task.
   */
  readonly owner?: string;
  /** The resources that the handler has read, to which each caller who uses the task needs the rights. */
  readonly reads?: Reads;
  /** Id of the process that runs the task. `null` if no process runs it. */
  readonly by: string | null;
  /** Prefix under which the process that runs the task receives messages. */
  readonly crew: string;
  /** The number of processes that have run the task. */
  readonly run: number;
  /**
   * A random name under which the store records that the task has ended. Set if the task can resume. Only servers with
   * the secret can read it, so nobody else knows which of these records belongs to the task.
   */
  readonly mark?: string;
  /** Whether a client on any instance subscribes to the task. */
  readonly isWatched?: boolean;
  /** The data that a further run of the handler needs. `undefined` after the task has ended. */
  readonly work?: TaskWork;
  readonly result?: Result;
  readonly error?: TaskFailure;
}

/** Adds the resources that a run of the handler has read. `caller` is the hash of the run's caller. */
export function withReads(record: TaskRecord, more: Reads, caller: string): TaskRecord {
  const reads = joinReads(record.reads, more, caller);
  return reads === record.reads ? record : { ...record, reads };
}

export function isEnded({ status }: TaskRecord): boolean {
  return status === "completed" || status === "cancelled" || status === "failed";
}

export function isExpired({ createdAt, ttlMs }: TaskRecord, now: number): boolean {
  return createdAt + ttlMs < now;
}

/** Returns the milliseconds after which the time to live of a task is over. The result is at least 1. */
export function toTimeLeft({ createdAt, ttlMs }: TaskRecord, now: number): number {
  return Math.max(createdAt + ttlMs - now, 1);
}

export function toOpenQuestions({ work }: TaskRecord): Record<string, OpenQuestion> {
  const { questions = {}, answers = {} } = work ?? {};
  return Object.fromEntries(Object.entries(questions).filter(([key]) => !Object.hasOwn(answers, key)));
}

/** Returns the result of `tasks/get`. With `capabilities`, omits questions that the client cannot answer. */
export function toDetailed(record: TaskRecord, capabilities?: ClientInfo["capabilities"]): Params {
  const open = toOpenQuestions(record);
  const status = record.work && Object.keys(open).length ? "input_required" : record.status;
  return {
    ...toTask(record, status),
    ...status === "input_required" && { inputRequests: toAnswerable(open, capabilities) },
    ...status === "completed" && { result: record.result },
    ...status === "failed" && { error: record.error },
  };
}

/** Returns the fields that all results about a task contain. */
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

/**
 * Returns the reason why a principal and its attached values cannot be stored for a further run. Returns `undefined` if
 * they can be stored. A run with a part of the principal could have more rights than the first run, because a check
 * such as `if (principal.readOnly)` does not apply to a member that is missing.
 */
export function findStoreProblem(principal: Principal, attached = ""): string | undefined {
  const lost = Object.keys(principal).find((name) => !isJson(principal[name]));
  if (lost !== undefined) return `its member ${JSON.stringify(lost)} is not JSON data`;
  const length = JSON.stringify(principal).length + attached.length;
  if (length > MAX_PRINCIPAL) {
    return `with its attached values, it has ${length} characters of JSON, and the maximum is ${MAX_PRINCIPAL}`;
  }
}

function isJson(value: unknown): boolean {
  if (value === undefined) return true;
  const text = toJsonText(value);
  try {
    return text !== undefined && isSameJson(value, JSON.parse(text));
  } catch {
    // The value is nested too deeply to be compared.
    return false;
  }
}

/**
 * Maximum length of a stored principal as JSON, in characters. Every change of a task writes the principal again, so a
 * large principal would use up the client's share of the store. Tokens of common providers have less than 8,192
 * characters of claims.
 */
const MAX_PRINCIPAL = 32_768;
