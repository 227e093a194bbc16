/**
 * Requests from the server to the client, and their responses.
 *
 * @see specification/2025-11-25/client/elicitation
 */
import { INVALID_PARAMS, McpError, quote } from "../../../core/protocol/errors.ts";
import { type Response, toNotification } from "../../../core/protocol/jsonrpc.ts";
import type { Call } from "../../call/call.ts";
import type { Principal } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import type { HandlerCall } from "../../call/handler_call.ts";
import type { Question } from "../../call/question.ts";
import { downgradeQuestion } from "./downgrade.ts";
import { toHandlerCall } from "./handler_calls.ts";

interface Waiting {
  readonly asking: Asking;
  readonly resolve: (answer: Response) => void;
}

/** The call whose handler has sent a request to the client, and the caller of this call. */
export interface Asking {
  readonly call: HandlerCall;
  readonly principal?: Principal;
}

/** Creates the ids of requests in a session that several instances serve. */
interface QuestionIds {
  makeQuestionId(call: HandlerCall): Promise<string>;
}

export class ServerRequests {
  readonly #core: Core;
  // Bound: `calls.running`, because a handler waits for each request.
  readonly #waiting = new Map<string | number, Waiting>();
  readonly #ids?: QuestionIds;
  /** Number of responses whose sender is being checked. */
  checking = 0;

  constructor(core: Core, ids?: QuestionIds) {
    this.#core = core;
    this.#ids = ids;
  }

  get waits(): boolean {
    return this.#waiting.size > 0;
  }

  /** Returns `undefined` if the response matches no pending request. */
  find({ id }: Response): Asking | undefined {
    return this.#waiting.get(id)?.asking;
  }

  /** Passes a response to its pending request, if any. The sender must have the rights to the call that waits. */
  answer(response: Response): void {
    this.#waiting.get(response.id)?.resolve(response);
  }

  // Create the ids one after another, so that the server sends requests in the order in which handlers make them.
  #makeId(ids: QuestionIds, call: HandlerCall): Promise<string> {
    const make = () => ids.makeQuestionId(call);
    return this.#id = this.#id.then(make, make);
  }

  #id: Promise<string> = Promise.resolve("");

  /** Throws if the client returns an error or an invalid answer, or does not answer in time. */
  async ask(call: Call, question: Question): Promise<unknown> {
    const { client, link } = call;
    const signal = question.signal ? AbortSignal.any([call.signal, question.signal]) : call.signal;
    const { params, restore = (answer: unknown) => answer } = downgradeQuestion(question, client);
    if (!link.streams) {
      throw new McpError(INVALID_PARAMS, "Cannot ask the client: its Accept header does not list text/event-stream");
    }
    const { limits: { calls }, ticker } = this.#core;
    const asking = { call: toHandlerCall(call.method, call.params, call.reads), principal: call.principal };
    // If several instances can receive the response, seal the id: the instance that receives the response opens the id
    // to find the instance that sent the request. Other ids are random, so that a response to an earlier session on the same
    // connection never matches.
    const id = this.#ids ? await this.#makeId(this.#ids, asking.call) : `ask-${crypto.randomUUID()}`;
    if (signal.aborted) throw new McpError(INVALID_PARAMS, "Cannot ask the client: the call was cancelled");
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const cancel = (reason: string) => {
      link.send(toNotification("notifications/cancelled", { requestId: id, reason }));
      reject(new McpError(INVALID_PARAMS, `Cannot get an answer from the client: ${reason}`));
    };
    const onAbort = () => cancel("the call was cancelled");
    const timeout = ticker.startTimeout(
      calls.answerMs,
      () => {
        this.#core.observing?.reach("calls.answerMs", call.account?.key);
        cancel(`the answer took longer than ${calls.answerMs} ms (calls.answerMs)`);
      },
    );
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(id, { asking, resolve });
    try {
      link.send(JSON.stringify({ jsonrpc: "2.0", id, method: question.method, params }));
      const { result, error } = await promise;
      // Do not pass on the client's error code, because the client would take the code for an error of its own call.
      // Some codes make clients start a new session, and other codes make clients retry the call.
      if (error) throw refuse(`it is the error ${error.code}, ${quote(error.message)}`, error);
      const checked = await question.read(restore(result));
      if (checked.problem === undefined) return checked.value;
      throw refuse(checked.problem);
    } finally {
      this.#waiting.delete(id);
      ticker.cancel(timeout);
      signal.removeEventListener("abort", onAbort);
    }
  }
}

function refuse(problem: string, data?: unknown): McpError {
  return new McpError(INVALID_PARAMS, `Cannot use the client's answer: ${problem}`, data);
}
