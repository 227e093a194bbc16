/**
 * Implements `ctx.forward`: passes another server's questions to the client, and the client's answers back to that
 * server.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import { isRemoteError, quote } from "../../protocol/errors.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { startBackgroundTimer } from "../../runtime.ts";
import type { ForwardRetry } from "./context.ts";
import { FORM, type PreparedQuestion, type Question } from "./question.ts";
import { untilAborted } from "./until_aborted.ts";

/** The functions of a call that forwarding uses. */
export interface Forwarding {
  /** Computes a value once per call, like `ctx.once`. */
  once(key: string, make: () => unknown): Promise<unknown>;
  ask(question: PreparedQuestion): Promise<unknown>;
  readonly signal: AbortSignal;
  /** Number of requests that the handler has forwarded before this request. */
  readonly index: number;
}

const MAX_ROUNDS = 64;
const MAX_WAIT_MS = 5000;
/** Thrown inside `once`, so that the final result is not stored. */
const FINAL: unique symbol = Symbol("final");

/** Repeats a request until the result contains no question. Rethrows errors from the other server. */
export async function forward<R extends object>(
  call: Forwarding,
  send: (retry: ForwardRetry) => R | Promise<R>,
): Promise<R> {
  let retry: ForwardRetry = {};
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const sent: { result?: R } = {};
    const kept = await call.once(`forward ${call.index} ${round}`, async () => {
      const result = await sendOnce(send, retry);
      if (Object(result).resultType === "input_required") {
        const { inputRequests, requestState } = Object(result);
        return { inputRequests, requestState };
      }
      sent.result = result;
      throw FINAL;
    }).catch((error) => {
      if (error !== FINAL) throw error;
    });
    if (sent.result) return sent.result;
    retry = await answer(call, round, isObject(kept) ? kept : {});
  }
  throw new Error(
    `Cannot forward the request: the other server still requires input after ${MAX_ROUNDS} rounds, which is the limit`,
  );
}

async function sendOnce<R extends object>(
  send: (retry: ForwardRetry) => R | Promise<R>,
  retry: ForwardRetry,
): Promise<R> {
  let result: R;
  try {
    result = await send(retry);
  } catch (error) {
    throw isRemoteError(error) ? error.asOwn() : error;
  }
  if (isObject(result)) return result;
  throw new TypeError(
    "Cannot forward the request: send() did not return an object; return the result of the client's request",
  );
}

/**
 * Asks the client the other server's questions. If the result contains no question, waits before the request is
 * repeated.
 */
async function answer(call: Forwarding, round: number, { inputRequests, requestState }: Params): Promise<ForwardRetry> {
  if (!isObject(inputRequests)) {
    const wait = Promise.withResolvers<void>();
    const stop = startBackgroundTimer(wait.resolve, Math.min(100 * 2 ** round, MAX_WAIT_MS));
    await untilAborted(wait.promise, call.signal).finally(stop);
    return { requestState };
  }
  // Ask all questions before awaiting an answer, so that the client receives the questions together. The suffix
  // contains the round, because the other server may reuse a key for a different question in a later round.
  const prefix = call.index ? `${call.index + 1}: ` : "";
  const suffix = round ? ` (${round + 1})` : "";
  const asking = Object.entries(inputRequests).map(async ([key, question]) => {
    return [key, await call.ask(prepare(`${prefix}${key}${suffix}`, question))] as const;
  });
  return { inputResponses: Object.fromEntries(await Promise.all(asking)), requestState };
}

/**
 * Converts a question from the other server. Does not validate the answer, because the other server validates the
 * answer.
 */
function prepare(key: string, asked: unknown): PreparedQuestion {
  const { method, params = {} } = isObject(asked) ? asked : {};
  const need = isObject(params) ? findNeed(method, params) : undefined;
  if (!need) {
    throw new Error(
      `Cannot forward the question ${quote(key)}: the other server's request has an unknown method (${
        quote(method)
      }), or its params are invalid`,
    );
  }
  const question: Question = {
    ...need.question,
    read: (given) => isObject(given) ? { value: given } : { problem: "expected an object" },
  };
  return { key, requires: [need.capability], make: () => question };
}

function findNeed(method: unknown, params: Params) {
  switch (method) {
    case "elicitation/create":
      // Allow only http and https, because other schemes could run code or open files.
      if (params.mode === "url" && !/^https?:\/\/\S+$/i.test(String(params.url))) return;
      return { capability: params.mode === "url" ? "elicitation.url" : FORM, question: { method, params } } as const;
    case "sampling/createMessage": {
      const isPlain = params.tools === undefined && params.toolChoice === undefined;
      return { capability: isPlain ? "sampling" : "sampling.tools", question: { method, params } } as const;
    }
    case "roots/list":
      return { capability: "roots", question: { method, params } } as const;
  }
}
