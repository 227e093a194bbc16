/**
 * Middleware that wraps a client's requests.
 */
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { Notification } from "./message.ts";
import type { RequestHandler, ServerRequest } from "./answer_options.ts";

/** A request that middleware receives and can change. */
export interface ClientRequest {
  /** The method, such as `tools/call`. */
  readonly method: string;
  /** The parameters, without the fields that the client adds for the protocol revision. */
  readonly params: Params;
  /** Additional HTTP headers. `null` removes a header. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** Aborts when the request is cancelled or times out. */
  readonly signal: AbortSignal;
}

/** Functions that observe what the server sends while it processes a request. They work the same way in both eras. */
export interface ResponseHooks {
  /**
   * Called with each notification that belongs to the request. In a session over stdio or WebSocket, also called with
   * notifications that may belong to another request that is running.
   */
  readonly onNotification?: (notification: Notification) => void;
  /**
   * Called with each elicitation, sampling or roots request that the server needs for the request. The returned result is
   * sent to the server. `answer(question)` gets the result from the next outer middleware, and in the end from the
   * callbacks of the client. Not called if the program has set `rounds: false`.
   *
   * In a session over stdio or WebSocket, requests with this function run one after another, because the server does not
   * say for which request it asks.
   */
  readonly onQuestion?: (
    question: ServerRequest,
    answer: (question?: ServerRequest) => Promise<unknown>,
  ) => unknown;
}

/**
 * A function that wraps a request, and returns the result. `next(request)` sends a request, such as a changed copy of
 * the original request, and returns the server's result. The function can call `next` several times, for example to
 * retry. `hooks` observe what the server sends before the result.
 */
export type ClientMiddleware = (
  request: ClientRequest,
  next: (request?: ClientRequest, hooks?: ResponseHooks) => Promise<Result>,
) => Result | Promise<Result>;

/** The first function is the outermost. `hooks` are those of outer functions, the innermost first. */
export async function runMiddleware(
  use: readonly ClientMiddleware[],
  request: ClientRequest,
  send: (request: ClientRequest, hooks: readonly ResponseHooks[]) => Promise<Result>,
  hooks: readonly ResponseHooks[] = [],
): Promise<Result> {
  const [first, ...rest] = use;
  if (!first) return await send(request, hooks);
  const next = (changed = request, added?: ResponseHooks) =>
    runMiddleware(rest, changed, send, added ? [added, ...hooks] : hooks);
  const result: unknown = await first(request, next);
  if (isObject(result)) return result;
  throw new TypeError(
    `Cannot finish ${request.method}: a function in the option use returned no result; return the result of next()`,
  );
}

/** Returns a function that passes a question through the hooks, to `answer`. `undefined` if no hook has `onQuestion`. */
export function hookAnswer(hooks: readonly ResponseHooks[], answer: RequestHandler): RequestHandler | undefined {
  const asking = hooks.flatMap(({ onQuestion }) => onQuestion ?? []);
  if (!asking.length) return;
  return asking.reduceRight<RequestHandler>((outer, onQuestion) => async (question, signal) => {
    const result = await onQuestion(question, async (changed = question) => await outer(changed, signal));
    if (isObject(result)) return result;
    throw new TypeError(
      `Cannot answer ${question.method}: onQuestion returned no result; return the result of answer(), or a result such ` +
        'as { action: "decline" }',
    );
  }, answer);
}
