/**
 * The records of idempotency keys, and the errors for calls that cannot get the result stored for their key.
 */
import { INVALID_PARAMS, McpError, quote, toBusy } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Reads } from "../call/handler_call.ts";
import type { EncodedValue } from "../visibility/guards.ts";

/**
 * Identifies the input of a call. Two inputs count as the same if either their raw texts or their validated texts are
 * equal.
 */
export interface Fingerprint {
  /** Digest of the arguments as sent. */
  readonly raw: string;
  /** Digest of the validated input. `undefined` if the input is not plain data. */
  readonly valid?: string;
}

/** The version of the record format. A record with another format was written by another version of the library. */
const FORMAT = 1;

/** The fields that all records of a key have. */
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

/** The record of a key, as stored. */
export type ClaimRecord = RunningRecord | KeptRecord | LostRecord;

/** Creates the fields that all records of a run have. */
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

/** A key and its tool, for error messages. */
export interface Keyed {
  readonly key: string;
  readonly tool: { readonly place: string };
}

/** Creates the error for a key that was used with another input. */
export function toConflict({ key, tool: { place } }: Keyed): McpError {
  const words = `the idempotency key ${
    quote(key)
  } was already used with different arguments; use another key for different arguments`;
  return new McpError(INVALID_PARAMS, `Cannot run ${place}: ${words}`, { idempotencyKey: key });
}

/** Error code of a call if the server does not know whether the handler has run, or which result it returned. */
const UNKNOWN = -31_409;

/** Creates the error for a key if the server does not know whether the handler has run. */
export function toUnknown({ key, tool: { place } }: Keyed): McpError {
  const words =
    `the outcome of the call with the idempotency key ${
      quote(key)
    } is unknown, because the instance that ran the call ended ` +
    "before storing a result; find out what the call has done, and use another key to run the call again";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "unknown" });
}

/** Creates the error for a record that cannot be read, or that a server with other output guards has written. */
export function toUnreadable({ key, tool: { place } }: Keyed): McpError {
  const words =
    `the outcome of the call with the idempotency key ${
      quote(key)
    } is unknown, because the record of the key was written by ` +
    "another version of the library or of the server, or with another secret; find out what the call has done, and " +
    "use another key to run the call again";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "unknown" });
}

/** Creates the error for a key whose result was not kept. */
export function toUnkept({ key, tool: { place } }: Keyed): McpError {
  const words =
    `a call with the idempotency key ${
      quote(key)
    } has already run, but the result was not kept, because a limit was reached; ` +
    "find out what the call has done";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "done" });
}

/** Creates the error for a call whose result is a handle that the client cannot use. */
export function toForeignHandle({ key, tool: { place } }: Keyed, type: string): McpError {
  const words =
    `the earlier call with the idempotency key ${quote(key)} returned a result of the type ${quote(type)}, which ` +
    "this client does not support; declare the extension that adds this result type, or use another key";
  return new McpError(INVALID_PARAMS, `Cannot run ${place}: ${words}`, { idempotencyKey: key });
}

/** Creates the error for a call during which the store does not respond. */
export function toStoreLost({ tool: { place } }: Keyed): McpError {
  return toBusy(
    `run ${place} with an idempotency key: the store does not respond, so it is unknown whether the call has run`,
  );
}

/** Creates the error for a call whose key another instance has taken over before the handler started. */
export function toTakenOver({ tool: { place } }: Keyed): McpError {
  return toBusy(
    `run ${place} with an idempotency key: another instance has taken over the call, because this instance could not renew its lease`,
  );
}

/** Creates the error for a client that has used too many keys. */
export function toFull({ tool: { place } }: Keyed): McpError {
  return toBusy(
    `run ${place} with another idempotency key: too many results of this client are kept`,
    "idempotency.bytes, memory",
  );
}
