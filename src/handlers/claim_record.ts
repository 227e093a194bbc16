/**
 * The records of idempotency keys, and the errors of calls that cannot return a result because of them.
 *
 * @module
 */
import { INVALID_PARAMS, McpError, quote, toBusy } from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";

/** Stands for the input of a call. Two inputs are the same if either text is the same. */
export interface Fingerprint {
  /** Of the arguments. */
  readonly raw: string;
  /** Of the validated input, if it is plain data. */
  readonly valid?: string;
}

/** The format of records. Another version of the library may use another one. */
const FORMAT = 1;

/** What all records of a key have. */
interface Claimed {
  readonly v: typeof FORMAT;
  readonly input: Fingerprint;
  /** Id of the run that wrote it. */
  readonly claim: string;
}

/** The handler runs, in the process whose lease has the id `by`. */
export type RunningRecord = Claimed & { readonly by: string };

/** The handler has returned a result, or an extension has answered with a handle of this type. */
export type KeptRecord = Claimed & { readonly result: Result; readonly type?: string };

/** The handler has returned a result for which there was no room. */
export type LostRecord = Claimed & { readonly lost: true };

/** What is written down of a key. */
export type ClaimRecord = RunningRecord | KeptRecord | LostRecord;

/** Makes what all records of a run have. */
export function toClaimed(input: Fingerprint, claim: string): Claimed {
  return { v: FORMAT, input, claim };
}

/** Reads a record. Returns `undefined` if it has another format, or was sealed with another secret. */
export function readRecord(value: unknown): ClaimRecord | undefined {
  if (!isObject(value) || value.v !== FORMAT) return;
  // Only this file makes records, and only servers with the secret can seal them.
  return value as unknown as ClaimRecord;
}

/** Whether two inputs are the same. */
export function isSame(one: Fingerprint, other: Fingerprint): boolean {
  return one.raw === other.raw || one.valid !== undefined && one.valid === other.valid;
}

/** A call with a key, for messages. */
export interface Keyed {
  readonly key: string;
  readonly tool: { readonly place: string };
}

/** Creates the error for a key that was used with another input. */
export function toConflict({ key, tool: { place } }: Keyed): McpError {
  const words = `the idempotency key ${quote(key)} was used with other arguments; use a different key for each input`;
  return new McpError(INVALID_PARAMS, `Cannot run ${place}: ${words}`, { idempotencyKey: key });
}

/** Code of the error for a call if it is unknown whether it has run, or what it returned. */
const UNKNOWN = -31_409;

/** Creates the error for a key if it is unknown whether its handler has run. */
export function toUnknown({ key, tool: { place } }: Keyed): McpError {
  const words = `outcome unknown: the instance that ran the call with the idempotency key ${quote(key)} has ended ` +
    "before it kept a result; find out what the call has done, and use another key to run it again";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "unknown" });
}

/** Creates the error for a record that cannot be read. */
export function toUnreadable({ key, tool: { place } }: Keyed): McpError {
  const words = `outcome unknown: the record of the idempotency key ${quote(key)} was written by another version of ` +
    "the library or with another secret; find out what the call has done, and use another key to run it again";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "unknown" });
}

/** Creates the error for a key whose result was not kept. */
export function toUnkept({ key, tool: { place } }: Keyed): McpError {
  const words = `it has run with the idempotency key ${quote(key)}, but there was no room to keep its result; ` +
    "find out what the call has done";
  return new McpError(UNKNOWN, `Cannot run ${place}: ${words}`, { idempotencyKey: key, outcome: "done" });
}

/** Creates the error for a handle that the client cannot use. */
export function toForeignHandle({ key, tool: { place } }: Keyed): McpError {
  const words = `the call with the idempotency key ${quote(key)} continues in the background, and only a client that ` +
    "declares the extension gets its handle; declare the extension, or use another key";
  return new McpError(INVALID_PARAMS, `Cannot run ${place}: ${words}`, { idempotencyKey: key });
}

/** Creates the error for a store that does not answer. */
export function toStoreLost({ tool: { place } }: Keyed): McpError {
  return toBusy(
    `run ${place} with an idempotency key: the store does not answer, so it is unknown whether the call has run`,
  );
}

/** Creates the error for a client that has used too many keys. */
export function toFull({ tool: { place } }: Keyed): McpError {
  return toBusy(
    `run ${place} with another idempotency key: too many results of this client are kept (idempotency.bytes, memory)`,
  );
}
