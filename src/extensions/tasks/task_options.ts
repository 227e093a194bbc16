/**
 * The options of `task()`, their validation and their defaults.
 */
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";

/** Options of `task()`. */
export interface TaskOptions {
  /**
   * Milliseconds for which the server waits for the result. A call that takes longer becomes a task. Until the call
   * becomes a task, the client answers the handler's elicitation and sampling requests as part of the call. Defaults to
   * 0: every call becomes a task.
   */
  readonly after?: number;
  /**
   * Milliseconds after its creation for which the server keeps a task and its result. If the handler is still running
   * after this time, the handler is cancelled. Defaults to 3,600,000 (one hour).
   */
  readonly ttlMs?: number;
  /** Milliseconds that clients should wait between two requests for the task's status. Defaults to 1000. */
  readonly pollIntervalMs?: number;
  /**
   * Whether the handler runs again if its process ends before the handler has finished. The handler then runs on
   * another instance, or on this instance after a restart. The new run receives the `ctx.once` values and the answers
   * of the earlier run. Defaults to `false`: the task fails if its process ends.
   */
  readonly resume?: boolean | ResumeOptions;
  /**
   * Version of the handler. Tasks that began with another version are not resumed, unless `resume.from` lists that
   * version. Change the version whenever the new handler could not continue with `ctx.once` values of the old handler.
   * Defaults to `""`.
   */
  readonly version?: string;
  /**
   * Whether calls from clients that do not declare the extension fail: with code -32021, or in a session with an
   * `isError` result. Defaults to `false`: for such clients, the handler runs as part of the call.
   */
  readonly required?: boolean;
}

/** Options for tasks that can resume. */
export interface ResumeOptions {
  /**
   * Earlier values of `version`. The handler can continue tasks that began with one of these versions, even if the
   * tool's schemas have changed.
   */
  readonly from?: readonly string[];
  /** Whether a task can resume after the caller's credentials have expired. Defaults to `false`. */
  readonly afterExpiry?: boolean;
}

/** The options with their defaults. */
export interface TaskRules {
  readonly after: number;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  readonly resume?: Required<ResumeOptions>;
  readonly version: string;
  readonly required: boolean;
}

const RESUME: KnownOptions<keyof ResumeOptions> = { names: { from: "texts", afterExpiry: "boolean" } };

const OPTIONS: KnownOptions<keyof TaskOptions> = {
  names: {
    after: { findProblem: (ms) => findProblem(ms, 0) },
    ttlMs: { findProblem: (ms) => findProblem(ms, 1) },
    pollIntervalMs: { findProblem: (ms) => findProblem(ms, 1) },
    resume: {
      findProblem: (resume) =>
        typeof resume === "boolean" || typeof resume === "object" && resume !== null ? undefined : RESUME_PROBLEM,
    },
    version: { findProblem: (version) => typeof version === "string" ? undefined : "is not a string" },
    required: "boolean",
  },
};

const RESUME_PROBLEM = 'must be true, false, or an object like { from: ["1"] }';

/** @throws {TypeError} if an option is unknown or invalid. */
export function readTaskOptions(options: TaskOptions): TaskRules {
  checkOptions("make a task", options, OPTIONS);
  const { after = 0, ttlMs = 3_600_000, pollIntervalMs = 1000, resume = false, version = "", required = false } =
    options;
  return { after, ttlMs, pollIntervalMs, version, required, resume: readResume(resume) };
}

function readResume(resume: boolean | ResumeOptions): Required<ResumeOptions> | undefined {
  if (typeof resume === "boolean") return resume ? { from: [], afterExpiry: false } : undefined;
  checkOptions("make a task that can resume", resume, RESUME);
  const { from = [], afterExpiry = false } = resume;
  return { from, afterExpiry };
}

function findProblem(ms: unknown, min: number): string | undefined {
  if (Number.isSafeInteger(ms) && Number(ms) >= min && Number(ms) <= MAX_MS) return;
  return `is ${
    typeof ms === "string" ? JSON.stringify(ms) : ms
  }; it must be a whole number of milliseconds from ${min} to ${MAX_MS}`;
}

/**
 * Maximum of `ttlMs`: a year minus a day. Stores keep values for at most a year, and a record is kept for a minute
 * longer than `ttlMs`.
 */
const MAX_MS = 31_449_600_000;
