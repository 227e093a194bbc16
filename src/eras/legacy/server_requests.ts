/**
 * Requests from the server to the client, and their responses.
 *
 * @see specification/2025-11-25/client/elicitation
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import { type Response, toNotification } from "../../protocol/jsonrpc.ts";
import type { Call } from "../../core/call/call.ts";
import type { Core } from "../../core/core.ts";
import type { Question } from "../../core/call/question.ts";
import type { SharedSession } from "../../core/store.ts";
import { downgradeQuestion } from "./downgrade.ts";

/** The pending requests to a session's client. */
export class ServerRequests {
  readonly #core: Core;
  readonly #waiting = new Map<string | number, (answer: Response) => void>();
  readonly #shared?: SharedSession;
  #last: number;

  /** `asked` is the number of the last request that the client has received in an earlier session. */
  constructor(core: Core, shared?: SharedSession, asked = 0) {
    this.#core = core;
    this.#shared = shared;
    this.#last = asked;
  }

  /** The number of the last request. A later session must not use it again, because its answer may still arrive. */
  get asked(): number {
    return this.#last;
  }

  /** Whether a request waits for its response. */
  get waits(): boolean {
    return this.#waiting.size > 0;
  }

  /** Passes a response to its pending request. Returns `false` if the response matches no pending request. */
  answer(response: Response): boolean {
    const resolve = this.#waiting.get(response.id);
    resolve?.(response);
    return !!resolve;
  }

  // Create the ids one after another, so that the server sends requests in the order in which handlers make them.
  #makeId(shared: SharedSession): Promise<string> {
    const make = () => shared.makeQuestionId();
    return this.#id = this.#id.then(make, make);
  }

  #id: Promise<string> = Promise.resolve("");

  /**
   * Sends a request over the call's stream, and waits for the response. Throws if the client returns an error or an
   * invalid answer, or does not answer in time.
   */
  async ask(call: Call, question: Question): Promise<unknown> {
    const { client, link, signal } = call;
    const { params, restore = (answer: unknown) => answer } = downgradeQuestion(question, client);
    if (!link.streams) {
      throw new McpError(INVALID_PARAMS, "Cannot ask the client: its Accept header does not list text/event-stream");
    }
    const { limits: { calls }, ticker } = this.#core;
    // If instances share a session, seal the id: the instance that receives the response opens the id to find the
    // instance that sent the request.
    const id = this.#shared ? await this.#makeId(this.#shared) : `ask-${++this.#last}`;
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
    this.#waiting.set(id, resolve);
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
