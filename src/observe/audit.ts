/**
 * Writes an audit log: a record of each call before its handler runs, and a record of the call's outcome.
 */
import type { Context } from "../server/call/context.ts";
import { readNotes } from "../server/call/given.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { type Middleware, onlyMethodsAndExtensions } from "../server/call/middleware.ts";
import { isQuestion } from "../server/call/question.ts";
import { printFault } from "../core/kit/error_log.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";

/** Fields that the intent and the outcome of a call have in common. */
export interface AuditSubject {
  /** Id of the call, which is the same in its intent and its outcome. */
  readonly id: string;
  /** Time of the record, as an ISO 8601 date in UTC. */
  readonly time: string;
  /** Id of the authenticated caller, if any. */
  readonly principal?: string;
  /** Method of the call: `tools/call`, `resources/read`, `prompts/get`, or a method of an extension. */
  readonly method: string;
  /**
   * Name of the tool or the prompt, URI of the resource, or the parameter that names the subject of an extension's
   * method, such as the id of a task. The value is as the client sent it.
   */
  readonly subject?: string;
}

/** The record that is written before a handler runs. */
export interface AuditIntent extends AuditSubject {
  /** Distinguishes the intent from the outcome. */
  readonly phase: "intent";
  /** Name and version that the client sent, if any. The server cannot verify the name and version. */
  readonly client?: { readonly name: string; readonly version: string };
  /** Parameters of the server's path, such as the tenant, if the path has parameters. */
  readonly route?: unknown;
  /** A copy of the arguments, or of an extension method's parameters, as the client sent them, before validation. */
  readonly arguments?: unknown;
  /** The texts that layers have noted about the call, by name. `arguments` has no argument of the same name. */
  readonly notes?: Readonly<Record<string, string>>;
}

/** The record that is written after the handler has run. */
export interface AuditOutcome extends AuditSubject {
  /** Distinguishes the outcome from the intent. */
  readonly phase: "outcome";
  /**
   * How the call ended: with a result, with a result whose `isError` is `true`, with questions to the client, with an
   * error, or by cancellation. After `input_required`, the client sends the request again with its answers. The new
   * request has its own records.
   */
  readonly outcome: "result" | "tool_error" | "input_required" | "error" | "cancelled";
  /** Code of the JSON-RPC error, if the call ended with an error. */
  readonly code?: number;
  /** Milliseconds from the intent to the end of the call. */
  readonly durationMs: number;
}

/** A record of {@linkcode audit}. */
export type AuditRecord = AuditIntent | AuditOutcome;

/** Options of {@linkcode audit}. */
export interface AuditOptions {
  /** Writes a record. The call waits until the returned promise has settled. */
  readonly write: (record: AuditRecord) => unknown;
  /**
   * Returns the intent to write, for example without some arguments. The outcome gets the `subject` and `principal` of
   * the returned intent.
   */
  readonly redact?: (intent: AuditIntent) => AuditIntent;
  /**
   * What happens if an intent cannot be written. With `fail`, the call fails without running the handler. With
   * `continue`, the error is printed, and the handler runs. Defaults to `fail`.
   */
  readonly onError?: "fail" | "continue";
}

const OPTIONS: KnownOptions<keyof AuditOptions> = {
  names: { write: "function", redact: "function", onError: ["fail", "continue"] },
  hints: { sink: "write", log: "write", filter: "redact" },
};

/**
 * Creates middleware that records which callers call tools, read resources, get prompts and call methods of extensions,
 * such as an answer to a task or its cancellation. For each call, it writes an intent before the handler runs, and an
 * outcome after the call has ended. The middleware does not run for list requests, because clients could then no longer
 * share a cached list: middleware for a list gives the list the cache scope `"private"`.
 *
 * If the intent of a call cannot be written, the call fails, unless `onError` is `"continue"`. If the outcome cannot be
 * written, the error is only printed, because the handler has already run.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { audit } from "@x/mcp/observe";
 *
 * const log = audit({
 *   redact: (intent) => ({ ...intent, arguments: undefined }),
 *   write: (record) => console.error(JSON.stringify(record)),
 * });
 * const pay = tool({ name: "pay", run: () => "paid" });
 * export default createServer({ name: "bank", version: "1.0.0", handlers: [pay], use: [log] });
 * ```
 *
 * @throws {TypeError} if `write` is missing, or an option is unknown or has the wrong type.
 */
export function audit(options: AuditOptions): Middleware {
  checkOptions("audit calls", options, OPTIONS);
  if (!options.write) throw new TypeError("Cannot audit calls: write is missing; pass a function that stores a record");
  const log = new AuditLog(options);
  const audit: Middleware = async (call, next) => {
    const since = performance.now();
    const { id, method, principal, subject } = await log.begin(call);
    const end = (outcome: AuditOutcome["outcome"], code?: number) =>
      log.end({
        phase: "outcome",
        id,
        time: now(),
        method,
        principal,
        subject,
        outcome,
        code,
        durationMs: toMs(since),
      });
    try {
      const result = await next();
      const { isError, resultType } = result;
      await end(isError === true ? "tool_error" : resultType === "input_required" ? resultType : "result");
      return result;
    } catch (error) {
      if (isQuestion(error)) await end("input_required");
      else await end(call.signal.aborted ? "cancelled" : "error", readCode(error));
      throw error;
    }
  };
  return onlyMethodsAndExtensions(AUDITED, audit);
}

/** The methods of the protocol that run a handler of the server's author. */
const AUDITED = ["tools/call", "resources/read", "prompts/get"];

class AuditLog {
  readonly #options: AuditOptions;
  /** Whether writing the last record failed. Of several consecutive failures, only the first is printed. */
  #isFailing = false;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  /** Writes the intent of a call. Returns the fields for the outcome of the call. */
  async begin(call: Context): Promise<AuditSubject> {
    const subject = toSubject(call);
    let intent: AuditIntent | undefined;
    try {
      intent = this.#redact(toIntent(call, subject));
      await this.#options.write(intent);
      this.#isFailing = false;
      return intent;
    } catch (error) {
      if (this.#options.onError !== "continue") {
        throw new Error("Cannot run the call: its audit record could not be written", { cause: error });
      }
      this.#print("intent", subject.id, error);
      if (intent) return intent;
      // `redact` has failed, so omit the fields that it might have removed.
      const { id, time, method } = subject;
      return { id, time, method };
    }
  }

  /** Writes the outcome of a call. Never throws. */
  async end(outcome: AuditOutcome): Promise<void> {
    try {
      await this.#options.write(outcome);
      this.#isFailing = false;
    } catch (error) {
      this.#print("outcome", outcome.id, error);
    }
  }

  #redact(intent: AuditIntent): AuditIntent {
    const { redact } = this.#options;
    if (!redact) return intent;
    const redacted: unknown = redact(intent);
    if (!isObject(redacted) || "then" in redacted) {
      throw new TypeError(
        "Cannot write an audit record: redact did not return a record synchronously; return the record",
      );
    }
    const { id, time, method } = intent;
    return { ...redacted, phase: "intent", id, time, method };
  }

  #print(phase: string, id: string, error: unknown): void {
    if (!this.#isFailing) printFault(`in the audit log, which lacks the ${phase} of ${id}`, error);
    this.#isFailing = true;
  }
}

function toSubject({ method, principal }: Context): AuditSubject {
  return { id: crypto.randomUUID(), time: now(), method, principal: principal?.id };
}

function toIntent(call: Context, about: AuditSubject): AuditIntent {
  const { client: { info } } = call;
  const { subject, given } = AUDITED.includes(about.method) ? readHandlerCall(call) : readExtensionCall(call);
  const notes = readNotes(call);
  const isNoted = (name: string) => notes !== undefined && Object.hasOwn(notes, name);
  const args = notes && isObject(given)
    ? Object.fromEntries(Object.entries(given).filter(([name]) => !isNoted(name)))
    : given;
  return {
    phase: "intent",
    ...about,
    subject: typeof subject === "string" ? subject : undefined,
    client: info && { name: info.name, version: info.version },
    route: readRoute(call),
    // Copy the arguments, because `redact` may change them.
    arguments: args === undefined ? undefined : structuredClone(args),
    ...notes && { notes },
  };
}

function readHandlerCall({ method, params: { name, uri, arguments: given } }: Context): Audited {
  return { subject: method === "resources/read" ? uri : name, given };
}

function readExtensionCall(call: Context): Audited {
  const { _meta, ...given } = call.params;
  // The context of middleware is the call, which knows the parameter that names its subject.
  return { subject: Reflect.get(call, "subject"), given };
}

interface Audited {
  readonly subject: unknown;
  readonly given: unknown;
}

function readRoute({ pathParams }: Context): unknown {
  try {
    return pathParams();
  } catch {
    // `pathParams` throws if the path of the server has no parameters.
  }
}

function readCode(error: unknown): number | undefined {
  const code = isObject(error) ? error.code : undefined;
  return typeof code === "number" ? code : undefined;
}

function now(): string {
  return new Date().toISOString();
}

function toMs(since: number): number {
  return Math.round((performance.now() - since) * 1000) / 1000;
}
