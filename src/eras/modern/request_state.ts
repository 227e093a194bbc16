/**
 * The sealed state that travels through the client between two rounds of a call.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import { toCanonical } from "../../protocol/canonical.ts";
import { INVALID_PARAMS, McpError } from "../../protocol/errors.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { toBase64Url } from "../../kit/base64.ts";
import type { Call } from "../../core/call/call.ts";
import type { Core } from "../../core/core.ts";
import type { SingleUse } from "../../core/single_use.ts";
import { openVersioned, sealVersioned } from "../../core/call/versioned_seal.ts";

/** The state of a call after a round. */
export interface Round {
  readonly round: number;
  /** The questions that were sent, as JSON text, by key. */
  readonly asked: readonly (readonly [key: string, question: string])[];
  /** The accepted answers, each with the JSON text of its question. */
  readonly answered: readonly (readonly [key: string, question: string, answer: unknown])[];
  /** The values of `ctx.once`, by key. */
  readonly made: readonly (readonly [key: string, value: unknown])[];
  /** The number of unusable answers by key. `undefined` if there were no unusable answers. */
  readonly misfits?: readonly (readonly [key: string, count: number])[];
  /** Set if the state may be used only once. */
  readonly use?: SingleUse;
}

/** The sealed contents. */
interface State extends Round {
  /** The principal, method and parameters that the state is bound to. */
  readonly bound: string;
  /** Time at which the state expires, in milliseconds since 1970. */
  readonly expires: number;
}

const PURPOSE = "requestState";

/**
 * Reads the answers that the client returned, and the round in which they were asked. Throws if the state is invalid.
 *
 * Returns `undefined` if there is no state, and ignores answers without a state, because only the state shows which
 * question an answer belongs to. Otherwise a client could reuse the consent to pay 10 for a payment of 12.
 */
export async function openState(core: Core, call: Call): Promise<{ answers: Params; before: Round } | undefined> {
  const { inputResponses: answers = {}, requestState: text } = call.params;
  if (!isObject(answers)) throw refuse("inputResponses is not an object");
  if (text === undefined) return;
  if (typeof text !== "string") throw refuse("requestState is not a string");
  const { sealer, limits: { calls }, ticker } = core;
  // The cast is safe, because only this server seals values for this purpose, and each value is a `State`.
  const state = (text.length <= calls.stateBytes * 2 ? await openVersioned(sealer, PURPOSE, text) : undefined) as
    | State
    | undefined;
  if (!state) throw refuse("requestState was changed, or made by another server or with another secret");
  if (state.expires < ticker.clock.date()) {
    throw refuse("requestState has expired (calls.stateMs); start again without it");
  }
  if (state.bound !== await toBond(call)) throw refuse("requestState belongs to another call");
  return { answers, before: state };
}

/** Seals a round. Throws if there were too many rounds, or if the sealed state is too long. */
export async function sealState(core: Core, call: Call, round: Round): Promise<string> {
  const { sealer, limits: { calls }, ticker } = core;
  if (round.round > calls.rounds) throw refuse(`the client was asked ${calls.rounds} times already (calls.rounds)`);
  const state: State = { ...round, bound: await toBond(call), expires: ticker.clock.date() + calls.stateMs };
  const text = await sealVersioned(sealer, PURPOSE, state);
  if (text.length <= calls.stateBytes) return text;
  throw new Error(
    `Cannot ask the client: the sealed questions, answers and values of the call are longer than ${calls.stateBytes} ` +
      "bytes (calls.stateBytes); ask shorter questions",
  );
}

async function toBond({ principal, method, params }: Call): Promise<string> {
  const { _meta, inputResponses: _responses, requestState: _state, ...rest } = params;
  // Sort the keys, because a client may send the same arguments with their keys in another order.
  const text = JSON.stringify([principal?.id ?? null, method, toCanonical(rest)]);
  // A short text needs no digest: the state is encrypted anyway, and computing a digest costs as much as a small call.
  if (text.length <= SHORT_BOND) return text;
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

/** Maximum length, in characters, of a bound text that is used without a digest. */
const SHORT_BOND = 128;

/** Creates the error for a state or an answer that is not valid. */
export function refuse(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot continue the call: ${state}`);
}
