/**
 * Runs the server's `admit` option, which decides whether to accept a request before its handler is looked up.
 */
import { McpError } from "../../core/protocol/errors.ts";
import type { Implementation } from "../../core/protocol/types.ts";
import { type AuthRefusal, isRefusal, toChallengeHeaders } from "./auth.ts";
import { refusePathParams } from "../call/call.ts";
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
 * Runs the server's `admit` option for a request. If the option refuses the request, throws the error that the client
 * receives.
 */
export async function admit(core: Core, decide: Admit, entering: Entering): Promise<void> {
  const { method, link, client, pathParams = refusePathParams, observed } = entering;
  const { transport, principal } = link;
  let decided: unknown;
  try {
    decided = await decide({
      transport,
      method,
      principal,
      client,
      pathParams,
      get http() {
        return link.http?.request;
      },
    });
  } catch (error) {
    throw core.report(error, { method });
  }
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
