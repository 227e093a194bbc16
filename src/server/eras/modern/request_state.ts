/**
 * The sealed state that the client receives with questions and returns with its answers.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import { toCanonical } from "../../../core/protocol/canonical.ts";
import { INVALID_PARAMS, McpError, withLimits } from "../../../core/protocol/errors.ts";
import { isObject, type Params } from "../../../core/protocol/jsonrpc.ts";
import { sha256 } from "../../../core/kit/sha256.ts";
import type { Call } from "../../call/call.ts";
import type { Reads } from "../../call/handler_call.ts";
import type { Engine } from "../../engine/era.ts";
import type { Core } from "../../engine/core.ts";
import type { ForwardedRound } from "../../call/forward.ts";
import type { SingleUse } from "../../engine/single_use.ts";
import { openVersioned, sealVersioned } from "../../call/versioned_seal.ts";
import { warnOfForeign } from "../../call/foreign_values.ts";

/** The state of a call after a round of questions. */
export interface Round {
  readonly round: number;
  /** The questions that the client received, each with its key, its JSON text, and its name for the client if it differs. */
  readonly asked: readonly (readonly [key: string, question: string, name?: string])[];
  /** The accepted answers, each with its key and with the JSON text of its question. */
  readonly answered: readonly (readonly [key: string, question: string, answer: unknown])[];
  /** The values of `ctx.once`, with their keys. */
  readonly made: readonly (readonly [key: string, value: unknown])[];
  /** The values of `ctx.once` in the store, with their keys and sizes. `undefined` if there are none. */
  readonly stored?: readonly (readonly [key: string, id: string, bytes: number])[];
  /** The forwarded requests that have not ended, with their keys. `undefined` if there are none. */
  readonly forwarded?: readonly (readonly [key: string, round: ForwardedRound])[];
  /** The number of unusable answers to each question. `undefined` if the client gave no unusable answer. */
  readonly misfits?: readonly (readonly [key: string, count: number])[];
  /** Set if the state can be used only once. */
  readonly use?: SingleUse;
}

/** The sealed contents of `requestState`. */
interface State extends Round {
  /** The principal, method and parameters for which the state is valid, as text or as the digest of the text. */
  readonly bound: string;
  /** The resources that the handler has read, on which its stored values may depend. */
  readonly reads?: Reads;
  /** Time at which the state expires, in milliseconds since 1970. */
  readonly expires: number;
}

const PURPOSE = "requestState";

/**
 * Reads the client's answers, and the state of the round in which the server asked. Throws if the state is invalid.
 *
 * Returns `undefined` if the request has no `requestState`. Answers without a state are ignored, because only the state
 * shows to which question an answer belongs. Otherwise a client could reuse the user's consent to pay 10 for a payment
 * of 12.
 */
export async function openState(
  { core, scheduler }: Pick<Engine, "core" | "scheduler">,
  call: Call,
): Promise<{ answers: Params; before: Round } | undefined> {
  const answers = call.params.inputResponses ?? {};
  // `null` counts as absent, as in all requests, because serializers of some languages write absent members as `null`.
  const text = call.params.requestState ?? undefined;
  if (!isObject(answers)) throw refuse("inputResponses is not an object");
  if (text === undefined) return;
  if (typeof text !== "string") throw refuse("requestState is not a string");
  const { sealer, limits: { calls }, ticker } = core;
  const isShort = text.length <= 2 * Math.max(calls.stateBytes, calls.forwardedStateBytes);
  const opened = isShort ? await openVersioned(sealer, PURPOSE, text) : undefined;
  // The cast is safe, because only this server can seal values for `PURPOSE`, and each such value is a `State`.
  const state = opened as State | undefined;
  if (!state) {
    warnOfForeign(core, "a requestState", text);
    throw refuse("requestState was changed, or was created by another server or with another secret");
  }
  if (state.expires < ticker.clock.date()) {
    const expired = refuse("requestState has expired (calls.stateMs); call again without requestState");
    throw withLimits(expired, "calls.stateMs");
  }
  if (state.bound !== await toBond(call)) throw refuse("requestState belongs to another call");
  // Take a slot, because the `allow` of each resource decides again.
  if (state.reads) {
    await scheduler.prepareWith(call, () => call.host.callInner(call, { name: "repeatReads", given: [state.reads] }));
  }
  return { answers, before: state };
}

/** Seals a round. Throws if the call has had too many rounds, or if the sealed state is too long. */
export async function sealState(core: Core, call: Call, round: Round): Promise<string> {
  const { sealer, limits: { calls }, ticker } = core;
  if (round.round > calls.rounds) {
    const limit = "calls.rounds";
    throw withLimits(refuse(`the client has already been asked ${calls.rounds} times (${limit})`), limit);
  }
  const state: State = {
    ...round,
    reads: call.reads,
    bound: await toBond(call),
    expires: ticker.clock.date() + calls.stateMs,
  };
  const text = await sealVersioned(sealer, PURPOSE, state);
  if (round.forwarded) {
    if (text.length <= calls.forwardedStateBytes) return text;
    const limit = "calls.forwardedStateBytes";
    const error = new Error(
      "Cannot forward the questions: sealed together with the call's own values, the other server's requestState and " +
        `questions are longer than ${calls.forwardedStateBytes} bytes (${limit}); reduce what the other server keeps in ` +
        "its requestState",
    );
    throw withLimits(error, limit);
  }
  if (text.length <= calls.stateBytes) return text;
  const limit = "calls.stateBytes";
  const error = new Error(
    `Cannot ask the client: the sealed questions, answers and values of the call are longer than ${calls.stateBytes} ` +
      `bytes (${limit}); ask shorter questions`,
  );
  throw withLimits(error, limit);
}

async function toBond({ principal, method, params }: Call): Promise<string> {
  const { _meta, inputResponses: _responses, requestState: _state, ...rest } = params;
  // Sort the keys, because a client may send the same arguments again in another order.
  const text = JSON.stringify([principal?.id ?? null, method, toCanonical(rest)]);
  // Use a short text without a digest, because the state is encrypted anyway, and a digest takes as much CPU time as a
  // small call.
  if (text.length <= SHORT_BOND) return text;
  return await sha256(text);
}

/** Maximum length in characters of a bound text for which no digest is computed. */
const SHORT_BOND = 128;

/** Creates the error for an invalid state or answer. */
export function refuse(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot continue the call: ${state}`);
}
