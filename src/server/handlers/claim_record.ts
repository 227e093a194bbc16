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

/** The handler has run, but its result exceeded a limit and was not kept, or the handler has failed while it ran. */
export type LostRecord = Claimed & { readonly lost: true; readonly failed?: boolean };

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
  readonly tool: { readonly place: string; readonly isPlanned?: boolean };
}

/** The words of errors about keys, and about plans, whose ids are keys. */
const WORDS = {
  key: {
    noun: "idempotency key",
    short: "key",
    a: "an idempotency key",
    another: "use another key",
    member: "idempotencyKey",
  },
  plan: { noun: "plan", short: "plan", a: "a plan", another: "make another plan", member: "plan" },
} as const;

type Words = (typeof WORDS)["key" | "plan"];

function toWords({ tool }: Pick<Keyed, "tool">): Words {
  return tool.isPlanned ? WORDS.plan : WORDS.key;
}

/** Error code of a call if the server does not know whether the handler has run, or which result it returned. */
const UNKNOWN = -31_409;

/** The errors of calls that cannot get the result stored for their key: the code, the text and the outcome. */
const ERRORS = {
  conflict: [
    INVALID_PARAMS,
    (key: string, { noun, another }: Words) =>
      `the ${noun} ${key} was already used with different arguments; ${another} for different arguments`,
  ],
  unknown: [
    UNKNOWN,
    (key: string, { noun, another }: Words) =>
      `the outcome of the call with the ${noun} ${key} is unknown, because the instance that ran the call ended ` +
      `before storing a result; find out what the call has done, and ${another} to run the call again`,
    "unknown",
  ],
  unreadable: [
    UNKNOWN,
    (key: string, { noun, short, another }: Words) =>
      `the outcome of the call with the ${noun} ${key} is unknown, because the record of the ${short} was written by ` +
      "another version of the library or of the server, or with another secret; find out what the call has done, and " +
      `${another} to run the call again`,
    "unknown",
  ],
  unkept: [
    UNKNOWN,
    (key: string, { noun }: Words) =>
      `a call with the ${noun} ${key} has already run, but the result was not kept, because a limit was reached; ` +
      "find out what the call has done",
    "done",
  ],
  failed: [
    UNKNOWN,
    (key: string, { noun, another }: Words) =>
      `a call with the ${noun} ${key} has already run, and has failed; find out what the call has done, and ${another} ` +
      "to run the call again",
    "unknown",
  ],
  /** The result is a handle of the type `type`, which the client cannot use. */
  foreign: [
    INVALID_PARAMS,
    (key: string, { noun, another }: Words, type: string) =>
      `the earlier call with the ${noun} ${key} returned a result of the type ${type}, which this client does ` +
      `not support; declare the extension that adds this result type, or ${another}`,
  ],
} as const;

export function toClaimError(keyed: Keyed, reason: keyof typeof ERRORS, type = ""): McpError {
  const { key, tool: { place } } = keyed;
  const [code, toState, outcome] = ERRORS[reason];
  const words = toWords(keyed);
  const state = toState(quote(key), words, quote(type));
  return new McpError(code, `Cannot run ${place}: ${state}`, { [words.member]: key, ...outcome && { outcome } });
}

/** The errors of calls that can be repeated later. */
const BUSY = {
  storeLost: ({ a }: Words) => `with ${a}: the store does not respond, so it is unknown whether the call has run`,
  /** Another instance has taken over the key before the handler started. */
  takenOver: ({ a }: Words) =>
    `with ${a}: another instance has taken over the call, because this instance could not renew its lease`,
  full: ({ noun }: Words) => `with another ${noun}: too many results of this client are kept`,
};

export function toBusyKey(keyed: Pick<Keyed, "tool">, reason: keyof typeof BUSY): McpError {
  const action = `run ${keyed.tool.place} ${BUSY[reason](toWords(keyed))}`;
  return toBusy(action, reason === "full" ? "idempotency.bytes, memory" : undefined);
}
