/**
 * Runs the server's `admit` option, which decides whether to accept a request before its handler is looked up.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { toNative } from "../../core/light_request.ts";
import { McpError, toBusy } from "../../core/protocol/errors.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import type { Implementation } from "../../core/protocol/types.ts";
import { type AuthRefusal, isRefusal, toChallengeHeaders } from "./auth.ts";
import { refusePathParams } from "../call/path_params.ts";
import type { ClientInfo, Principal, ReadPathParams } from "../call/context.ts";
import type { Core, Entering } from "./core.ts";
import { REPLY_HEADERS } from "../call/link.ts";
import type { TransportName } from "../call/observer.ts";

/** Facts about a request that the server's `admit` option accepts or refuses. */
export interface AdmitInfo {
  /** The transport. */
  readonly transport: TransportName;
  /**
   * The request's method, such as `initialize` or `tools/call`. `response` for a client's answer to a question of a
   * handler in a session. `GET` for an HTTP request that opens or resumes a stream, or opens a WebSocket.
   */
  readonly method: string;
  /** The authenticated caller, if any. */
  readonly principal?: Principal;
  /**
   * The HTTP request without credentials. `undefined` on other transports. Over WebSocket and HTTP+SSE, set only for
   * the request that opens the connection.
   */
  readonly http?: Request;
  /** Unverified facts that the client declares about itself. */
  readonly client: ClientInfo & { readonly info?: Implementation };
  /**
   * Returns the parameters of the server's path, like `ctx.pathParams` in a handler. To get typed values, pass the
   * schema from the server's `pathSchema` option. Compare the parameters with the principal, because the client chooses
   * the path.
   *
   * @throws {TypeError} if the path has no parameters.
   */
  readonly pathParams: ReadPathParams;
}

/**
 * Decides whether the server accepts a request. Returns `true`, or a refusal created by `refuseRequest()`. The server
 * also refuses the request if the function throws.
 */
export type Admit = (info: AdmitInfo) => true | AuthRefusal | Promise<true | AuthRefusal>;

/**
 * Runs the server's `admit` option for a request. Returns a promise only if the option is asynchronous. If the option
 * refuses the request, throws the error that the client receives.
 */
export function admit(core: Core, decide: Admit, entering: Entering): Promise<void> | undefined {
  const { method, link, client, pathParams = refusePathParams } = entering;
  const { transport, principal } = link;
  let decided: unknown;
  try {
    decided = decide({
      transport,
      method,
      principal,
      client,
      pathParams,
      get http() {
        return link.http && toNative(link.http.request);
      },
    });
  } catch (error) {
    throw core.report(error, { method });
  }
  if (isPromiseLike(decided)) return admitLater(core, decided, entering);
  check(core, decided, entering);
}

// Limits the time, because a request that is not a call, such as the answer to a question, has no timeout of its own.
async function admitLater(core: Core, deciding: PromiseLike<unknown>, entering: Entering): Promise<void> {
  const { ticker, limits: { calls: { timeoutMs: ms } } } = core;
  let decided: unknown;
  try {
    decided = await deadline(deciding, { ms, clock: ticker, onTimeout: () => LATE });
  } catch (error) {
    throw core.report(error, { method: entering.method });
  }
  if (decided === LATE) throw toBusy("serve the request: admit has not decided in time", "calls.timeoutMs");
  check(core, decided, entering);
}

/** The outcome of an `admit` that has not decided in time. */
const LATE = Symbol();

function check(core: Core, decided: unknown, { method, observed }: Entering): void {
  if (decided === true) return;
  if (!isRefusal(decided)) {
    const state = "admit did not return true or the result of refuseRequest()";
    throw core.report(new TypeError(`Cannot admit a request: ${state}`), { method });
  }
  if (observed) observed.reason = "admission";
  const { status, reason = "the server refused the request", challenges = [], retryAfterMs } = decided;
  const data = retryAfterMs === undefined ? undefined : { retryAfterMs };
  const error = new McpError(-31_000 - status, `Cannot serve the request: ${reason}`, data);
  throw Object.assign(error, { [REPLY_HEADERS]: toChallengeHeaders(challenges) });
}
