/**
 * Reads {@linkcode TaskOptions}.
 *
 * @module
 */
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";

/** Options of a task. All are optional. */
export interface TaskOptions {
  /**
   * Milliseconds for which the server waits for the result. If a call takes longer, it becomes a task. Until then,
   * questions of the handler belong to the call. Defaults to 0: every call becomes a task.
   */
  readonly after?: number;
  /**
   * Milliseconds for which a task and its result are kept, counted from its creation. The handler is cancelled at the
   * end of this time. Defaults to 3,600,000, an hour.
   */
  readonly ttlMs?: number;
  /** Milliseconds that the client should wait between two requests for the status. Defaults to 1000. */
  readonly pollIntervalMs?: number;
  /**
   * Whether the handler runs again if the process that ran it has ended: on another instance, or on this instance after
   * a restart. It gets the values of `ctx.once` and the answers of the first run. Defaults to `false`: such a task
   * fails.
   */
  readonly resume?: boolean | ResumeOptions;
  /**
   * Version of the handler. A task of another version is not resumed. Change it whenever the handler could not continue
   * with the values of its earlier version. Defaults to `""`.
   */
  readonly version?: string;
  /**
   * Whether a client must declare the extension. If it does not, the call fails with code -32021, or, in a session,
   * returns a result with `isError`. Defaults to `false`: without the extension, the handler runs as part of the call.
   */
  readonly required?: boolean;
}

/** How tasks are resumed. */
export interface ResumeOptions {
  /** Earlier values of `version` whose tasks the handler can continue, even if its schemas have changed. */
  readonly from?: readonly string[];
  /** Whether a task may be resumed after the credentials of its caller have expired. Defaults to `false`. */
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
    version: { findProblem: (version) => typeof version === "string" ? undefined : "is not a text" },
    required: "boolean",
  },
  hints: { ttl: "ttlMs", pollInterval: "pollIntervalMs", resumable: "resume" },
};

const RESUME_PROBLEM = 'must be true, false, or an object like { from: ["1"] }';

/**
 * Reads the options of a task.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
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

/** A year minus a day. Stores keep a value for at most a year, and a record is kept a little longer than its task. */
const MAX_MS = 31_449_600_000;
