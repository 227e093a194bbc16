/**
 * An observer that logs events as newline-delimited JSON.
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type {
  AuthEvent,
  CallEvent,
  CloseEvent,
  FaultEvent,
  HandlersEvent,
  LimitEvent,
  Observer,
  RefusedEvent,
  ServiceEvent,
  SessionEvent,
  StoreEvent,
} from "../server/call/observer.ts";
import { toPrintableJson } from "../core/kit/printable.ts";
import { toTarget } from "./operation.ts";

/** A log record, before it becomes a line of JSON. */
export interface LogRecord {
  /** Time of the record, as an ISO 8601 date in UTC. */
  readonly time: string;
  /** Severity of the record. */
  readonly level: "info" | "warn" | "error";
  /** Name of the observer event, such as `call`. */
  readonly event: string;
  /** Fields of the event. */
  readonly [field: string]: unknown;
}

/** Options of {@linkcode jsonLog}. */
export interface JsonLogOptions {
  /**
   * Returns the record to write, for example without secrets, or with additional fields. Return `undefined` to omit the
   * line. If `redact` throws, the line is not written.
   */
  readonly redact?: (record: LogRecord) => LogRecord | undefined;
  /** Writes a line, without a line feed at its end. Defaults to `console.error`. */
  readonly write?: (line: string, record: LogRecord) => unknown;
  /**
   * Whether records contain texts that may quote arguments or data: error messages, URIs of resources, and reasons for
   * rejected credentials. Defaults to `false`.
   */
  readonly details?: boolean;
}

const OPTIONS: KnownOptions<keyof JsonLogOptions> = {
  names: { redact: "function", write: "function", details: "boolean" },
  hints: { filter: "redact", sink: "write", output: "write", verbose: "details" },
};

/** Maximum length of a text that a client can choose, in characters. */
const MAX_TEXT = 200;
/** Maximum number of stack frames per error. */
const MAX_FRAMES = 20;

/**
 * Creates an observer that writes one line of JSON for each call, refusal, reached limit, session, rejected credential,
 * unexpected error, and failure of a service or a store.
 *
 * Lines never contain arguments, results, tokens, headers or `requestState`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { jsonLog } from "@x/mcp/observe";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "greeter", version: "1.0.0", handlers: [hello], observer: jsonLog() });
 * ```
 *
 * @throws {TypeError} if an option is unknown or has the wrong type.
 */
export function jsonLog(options: JsonLogOptions = {}): Observer {
  checkOptions("create the log", options, OPTIONS);
  return new JsonLog(options);
}

class JsonLog implements Observer {
  readonly #redact?: JsonLogOptions["redact"];
  readonly #write: NonNullable<JsonLogOptions["write"]>;
  readonly #details: boolean;

  constructor({ redact, write = (line) => console.error(line), details = false }: JsonLogOptions) {
    this.#redact = redact;
    this.#write = write;
    this.#details = details;
  }

  call(event: CallEvent): unknown {
    const { outcome, method, subject, id, parent, durationMs, waitedMs, code, why, resultType, notes } = event;
    const level = outcome === "error" ? "warn" : "info";
    return this.#log("call", level, {
      method,
      name: toTarget(event),
      ...this.#details && { subject, message: event.message },
      outcome,
      code,
      why,
      resultType,
      notes,
      durationMs: round(durationMs),
      waitedMs: waitedMs ? round(waitedMs) : undefined,
      ...toCaller(event),
      peer: event.peer,
      revision: event.revision,
      client: event.client && `${event.client.name}/${event.client.version}`,
      session: event.session,
      id,
      parent,
      traceId: /^[\da-f]{2}-([\da-f]{32})-/.exec(event.traceparent ?? "")?.[1],
    });
  }

  refused(event: RefusedEvent): unknown {
    const { status, reason, code, limit, method } = event;
    const level = reason === "fault" ? "error" : "warn";
    const message = this.#details ? event.message : undefined;
    return this.#log("refused", level, { method, reason, status, code, limit, message, ...toCaller(event) });
  }

  fault({ id: errorId, error, server, method, subject, isUnawaited }: FaultEvent): unknown {
    const place = { server, method, name: method ? toTarget({ method, subject }) : subject };
    return this.#log("fault", "error", { ...place, errorId, isUnawaited, ...this.#describe(error) });
  }

  limit({ limit, handler, client }: LimitEvent): unknown {
    return this.#log("limit", "warn", { limit, handler, client });
  }

  session(event: SessionEvent): unknown {
    const { state, id, revision, why } = event;
    return this.#log("session", "info", { state, session: id, revision, why, ...toCaller(event) });
  }

  auth(event: AuthEvent): unknown {
    const { state, reason, status } = event;
    // Do not log accepted credentials, because the log line of each call already contains the id of the caller.
    if (state === "accepted") return;
    const detail = this.#details ? event.detail : undefined;
    return this.#log("auth", "warn", { state, reason, detail, status, ...toCaller(event) });
  }

  service({ name, state, error, durationMs }: ServiceEvent): unknown {
    const ms = durationMs === undefined ? undefined : round(durationMs);
    const isFailure = state === "failed";
    const described = isFailure ? this.#describe(error) : {};
    return this.#log("service", isFailure ? "error" : "info", { service: name, state, durationMs: ms, ...described });
  }

  store({ state, operation, error }: StoreEvent): unknown {
    const described = error === undefined ? {} : this.#describe(error);
    return this.#log("store", state === "recovered" ? "info" : "error", { state, operation, ...described });
  }

  handlers({ added, removed }: HandlersEvent): unknown {
    return this.#log("handlers", "info", { added, removed });
  }

  close({ durationMs }: CloseEvent): unknown {
    return this.#log("close", "info", { durationMs: round(durationMs) });
  }

  #log(event: string, level: LogRecord["level"], fields: Readonly<Record<string, unknown>>): unknown {
    const record = { time: new Date().toISOString(), level, event, ...mapValues(fields, cut) };
    const redacted: LogRecord | undefined = this.#redact ? this.#redact(record) : record;
    if (redacted === undefined) return;
    if (typeof redacted !== "object" || redacted === null || "then" in redacted) {
      throw new TypeError(
        "Cannot write a log line: redact did not return a record or undefined synchronously; return a record to write it",
      );
    }
    return this.#write(toPrintableJson(JSON.stringify(redacted)), redacted);
  }

  /** Includes the error message only if `details` is set, because the message may quote arguments. */
  #describe(error: unknown): Readonly<Record<string, unknown>> {
    try {
      if (!(error instanceof Error)) return { error: typeof error, message: this.#details ? String(error) : undefined };
      const { name, message, stack = "" } = error;
      const frames = `${stack}`.replace(`${message}`, "").split("\n").map((line) => line.trim())
        .filter(isFrame).slice(0, MAX_FRAMES);
      return { error: `${name}`, message: this.#details ? `${message}` : undefined, stack: frames };
    } catch {
      // The error cannot be read, because the author's code may throw any value, such as a proxy that throws.
      return { error: "an error that cannot be read" };
    }
  }
}

function toCaller({ transport, principal }: { readonly transport: string; readonly principal?: string }): object {
  return { transport, principal };
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function cut(value: unknown): unknown {
  return typeof value === "string" && value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
}

function mapValues(
  fields: Readonly<Record<string, unknown>>,
  map: (value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, map(value)]));
}

/**
 * Whether a line of a stack is a frame in the format of V8 or JavaScriptCore. The line must end with a position,
 * because a line of the error message may also begin with "at".
 */
function isFrame(line: string): boolean {
  return /^at (?:.*:\d{1,9}:\d{1,9}\)?|.*\((?:native(?: code)?|<anonymous>|index \d{1,9})\)|<anonymous>)$/.test(line) ||
    (line.includes("@") && /:\d{1,9}:\d{1,9}$/.test(line));
}
