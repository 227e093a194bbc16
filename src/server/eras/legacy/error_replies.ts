/**
 * Creates the replies to rejected messages and failed calls, including the HTTP status.
 *
 * @see specification/2025-11-25/basic/transports
 */
import {
  BUSY,
  INTERNAL_ERROR,
  INVALID_REQUEST,
  isMcpError,
  McpError,
  REACHED,
  withLimits,
} from "../../../core/protocol/errors.ts";
import { type Id, type Incoming, toFailure } from "../../../core/protocol/jsonrpc.ts";
import { toScopeReply } from "../../engine/auth.ts";
import { isScopeError } from "../../call/scopes.ts";
import type { Core } from "../../engine/core.ts";
import { type Link, type Reply, REPLY_HEADERS, RETRY_AFTER, toHints } from "../../call/link.ts";
import type { RefusalReason, RequestReport } from "../../call/observer.ts";
import { downgradeError } from "./downgrade.ts";
import { toNoId } from "./versions.ts";

/** A rejected request. A GET or DELETE request has no message. `version` is the client's revision, if known. */
export interface RefusedRequest {
  readonly message?: Incoming;
  readonly version?: string | null;
}

export interface Refusal extends RefusedRequest {
  readonly status: number;
  /** The end of the message "Cannot serve the request: …". */
  readonly state: string;
  readonly reason: RefusalReason;
  /** The paths of the limits that the request exceeds. */
  readonly limits?: string;
}

/** The refusal of a request whose session id is unknown, or whose session has ended. */
export const UNKNOWN_SESSION = {
  status: 404,
  state: "the session is unknown or has ended; initialize again",
  reason: "session",
} as const;

/** Reports the refusal to the observer. */
export function refuse(core: Core, link: Link, { status, state, reason, limits, ...refused }: Refusal): Reply {
  const { message } = refused;
  const error = withLimits(new McpError(INVALID_REQUEST, `Cannot serve the request: ${state}`), limits);
  const method = message && "method" in message ? message.method : undefined;
  core.observing?.refuse(link, { ...toErrorInfo(error), status, reason, method });
  return { text: toFailure(toId(refused), error), status };
}

/** Whether a limit was reached, so that the client can retry the request. */
export function isBusy({ code }: McpError): boolean {
  return code === BUSY;
}

/** Rejects a request that the client can retry, because of a limit. Throws `error` if it is not an `McpError`. */
export function refuseBusy(core: Core, link: Link, refused: RefusedRequest, error: unknown): Reply {
  if (!isMcpError(error)) throw error;
  core.observing?.refuse(link, { ...toErrorInfo(error), status: 503, reason: "limit" });
  return { text: toFailure(toId(refused), error), status: 503, headers: RETRY_AFTER };
}

/**
 * Rejects a response or a GET request, with the HTTP status and the error that a rejected call gets from `admit` or
 * for a missing scope. Throws `error` if it is not an `McpError`.
 */
export function refuseAccess(core: Core, link: Link, refused: RefusedRequest, error: unknown): Reply {
  if (!isMcpError(error)) throw error;
  const hints = toHints(error);
  const isAdmission = REPLY_HEADERS in error;
  // The client can retry, because the call or its events may still exist.
  if (isBusy(error) && !isAdmission) return refuseBusy(core, link, refused, error);
  const isFault = error.code === INTERNAL_ERROR;
  const text = toFailure(toId(refused), error);
  const rejected = { text, status: isFault ? 500 : 400, ...isAdmission && hints };
  const isScope = isScopeError(error);
  const reply = isScope ? toScopeReply({ ...core, principal: link.principal }, error, rejected) : rejected;
  const reason = isAdmission ? "admission" : isFault ? "fault" : isScope ? "scope" : "session";
  core.observing?.refuse(link, { ...toErrorInfo(error), status: reply.status, reason });
  return reply;
}

/**
 * Creates the reply to a failed request, and reports the error to the observer. The HTTP status is 429 if a limit was
 * reached.
 */
export function toErrorReply(
  { id, method }: { readonly id: Id; readonly method: string },
  error: McpError,
  observed?: RequestReport,
): Reply {
  const known = downgradeError(method, error);
  const text = toFailure(id, known);
  const hints = toHints(error);
  const status = isBusy(error) && !(REPLY_HEADERS in error) ? 429 : hints?.status;
  observed?.fail(withLimits(known, error[REACHED]), status);
  return { text, ...hints, status };
}

export function toErrorInfo(error: ErrorInfo): ErrorInfo {
  const { code, message, [REACHED]: limits } = error;
  return { code, message, [REACHED]: limits };
}

type ErrorInfo = Pick<McpError, "code" | "message" | typeof REACHED>;

function toId({ message, version }: RefusedRequest): Id | null | undefined {
  return message?.kind === "request" ? message.id : toNoId(version);
}
