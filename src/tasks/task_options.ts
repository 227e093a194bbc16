/**
 * The options of the attribute that makes tasks of calls.
 *
 * @module
 */
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";

/** Options of a task. All are optional. */
export interface TaskOptions {
  /**
   * Milliseconds for which a call is answered like any other. A call that takes longer becomes a task. Until then, questions
   * are rounds of the call. Defaults to 0: every call becomes a task, and all its questions belong to the task.
   */
  readonly after?: number;
  /**
   * Milliseconds from its creation for which a task and its result are kept. The handler is cancelled at the end of this
   * time. Defaults to 3,600,000, an hour.
   */
  readonly ttlMs?: number;
  /** Milliseconds between two requests for the status that the client is asked to observe. Defaults to 1000. */
  readonly pollIntervalMs?: number;
  /**
   * Whether another instance, or this one after a restart, runs the handler again if the process that ran it has ended. The
   * values of `ctx.once` and the answers are those of the first run. Without it, such a task fails. Defaults to `false`.
   */
  readonly resume?: boolean | ResumeOptions;
  /**
   * Version of the handler. A task that another version has begun is not resumed. Raise it whenever a handler that runs
   * again could not go on with the values of the former one. Defaults to `""`.
   */
  readonly version?: string;
  /**
   * Whether clients that did not declare the extension are refused: with code -32021, and in a session with a result that
   * is an error. Otherwise the handler runs as part of their call. Defaults to `false`.
   */
  readonly required?: boolean;
}

/** How tasks are resumed. */
export interface ResumeOptions {
  /** Earlier values of `version` whose tasks the handler can continue. Its schemas may differ too. */
  readonly from?: readonly string[];
  /** Whether a task is resumed after the credentials of its caller have expired. Defaults to `false`. */
  readonly afterExpiry?: boolean;
}

/** Options with their defaults. */
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
    version: { findProblem: (version) => typeof version === "string" ? undefined : "is not a text" },
    required: "boolean",
  },
  hints: { ttl: "ttlMs", pollInterval: "pollIntervalMs", resumable: "resume" },
};

const RESUME_PROBLEM = 'must be true, false, or an object like { from: ["1"] }';

/** Reads the options of a task. Throws a `TypeError` for one that is unknown or wrong. */
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
  return `is ${String(ms)}; it must be a whole number of milliseconds from ${min} to ${MAX_MS}`;
}

/** A year less a day, because stores keep values for a year at most. */
const MAX_MS = 31_449_600_000;
