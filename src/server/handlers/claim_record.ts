/**
 * The records of idempotency keys, and the errors for calls that cannot get the result stored for their key.
 */
import { INVALID_PARAMS, McpError, quote, toBusy } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Reads } from "../call/handler_call.ts";
import type { EncodedValue } from "../visibility/guards.ts";

/** Two inputs count as the same if either their raw texts or their validated texts are equal. */
export interface Fingerprint {
  /** Digest of the arguments as sent. */
  readonly raw: string;
  /** Digest of the validated input. `undefined` if the input is not plain data. */
  readonly valid?: string;
}

/** The version of the record format. A record with another format was written by another version of the library. */
const FORMAT = 1;

interface Claimed {
  readonly v: typeof FORMAT;
  readonly input: Fingerprint;
  /** Id of the run that wrote the record. */
  readonly claim: string;
}

/** The handler is running in the process whose lease has the id `by`. */
export type RunningRecord = Claimed & { readonly by: string };

/**
 * The handler has returned a result, or an extension has answered the call with a handle, such as a task. `type` is the
 * result type of the handle.
 */
type ResultRecord = Claimed & { readonly result: Result; readonly type?: string };

/** The handler has returned a value that the output guards process in each call. */
type ValueRecord = Claimed & { readonly encoded: EncodedValue };

/** The handler has returned, or an extension has answered the call. */
export type KeptRecord = (ResultRecord | ValueRecord) & {
  /** The handlers that the handler has called, if not every caller may call them. */
  readonly reads?: Reads;
};

/** The handler has run, but its result exceeded a limit and was not kept. */
export type LostRecord = Claimed & { readonly lost: true };

export type ClaimRecord = RunningRecord | KeptRecord | LostRecord;

export function toClaimed(input: Fingerprint, claim: string): Claimed {
  return { v: FORMAT, input, claim };
}

/** Reads a record. Returns `undefined` if it has another format, or was sealed with another secret. */
export function readRecord(value: unknown): ClaimRecord | undefined {
  if (!isObject(value) || value.v !== FORMAT) return;
  // The cast is safe, because only this file creates records, and only servers with the secret can seal them.
  return value as unknown as ClaimRecord;
}

/** Whether a call with the key gets what the record contains. */
export function isKept(record: ClaimRecord): record is KeptRecord {
  return "result" in record || "encoded" in record;
}

export function isSame(one: Fingerprint, other: Fingerprint): boolean {
  return one.raw === other.raw || one.valid !== undefined && one.valid === other.valid;
}

export interface Keyed {
  readonly key: string;
  readonly tool: { readonly place: string };
}

/** Error code of a call if the server does not know whether the handler has run, or which result it returned. */
const UNKNOWN = -31_409;

/** The errors of calls that cannot get the result stored for their key: the code, the text and the outcome. */
const ERRORS = {
  conflict: [
    INVALID_PARAMS,
    (key: string) =>
      `the idempotency key ${key} was already used with different arguments; use another key for different arguments`,
  ],
  unknown: [
    UNKNOWN,
    (key: string) =>
      `the outcome of the call with the idempotency key ${key} is unknown, because the instance that ran the call ended ` +
      "before storing a result; find out what the call has done, and use another key to run the call again",
    "unknown",
  ],
  unreadable: [
    UNKNOWN,
    (key: string) =>
      `the outcome of the call with the idempotency key ${key} is unknown, because the record of the key was written by ` +
      "another version of the library or of the server, or with another secret; find out what the call has done, and " +
      "use another key to run the call again",
    "unknown",
  ],
  unkept: [
    UNKNOWN,
    (key: string) =>
      `a call with the idempotency key ${key} has already run, but the result was not kept, because a limit was reached; ` +
      "find out what the call has done",
    "done",
  ],
  /** The result is a handle of the type `type`, which the client cannot use. */
  foreign: [
    INVALID_PARAMS,
    (key: string, type: string) =>
      `the earlier call with the idempotency key ${key} returned a result of the type ${type}, which this client does ` +
      "not support; declare the extension that adds this result type, or use another key",
  ],
} as const;

export function toClaimError({ key, tool: { place } }: Keyed, reason: keyof typeof ERRORS, type = ""): McpError {
  const [code, toWords, outcome] = ERRORS[reason];
  const words = toWords(quote(key), quote(type));
  return new McpError(code, `Cannot run ${place}: ${words}`, { idempotencyKey: key, ...outcome && { outcome } });
}

/** The errors of calls that can be repeated later. */
const BUSY = {
  storeLost: "with an idempotency key: the store does not respond, so it is unknown whether the call has run",
  /** Another instance has taken over the key before the handler started. */
  takenOver: "with an idempotency key: another instance has taken over the call, because this instance could not " +
    "renew its lease",
  full: "with another idempotency key: too many results of this client are kept",
};

export function toBusyKey({ tool: { place } }: Keyed, reason: keyof typeof BUSY): McpError {
  return toBusy(`run ${place} ${BUSY[reason]}`, reason === "full" ? "idempotency.bytes, memory" : undefined);
}
