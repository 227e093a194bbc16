/**
 * The rights to earlier calls: checks whether a caller may resume the stream of a call, or answer its questions.
 */
import { INVALID_PARAMS, isMcpError, type McpError, METHOD_NOT_FOUND } from "../../../core/protocol/errors.ts";
import type { Link } from "../../call/link.ts";
import type { HandlerCall } from "../../call/handler_call.ts";
import { checkHandler } from "../../engine/handler_check.ts";
import { type DialectParts, LegacyCall, SessionHome } from "./legacy_call.ts";
import { findSessionMethod } from "./session_methods.ts";
import type { Session } from "./session_state.ts";

/** The session, and the message or the GET request that refers to earlier calls. */
export interface Referring {
  readonly session: Session;
  readonly link: Link;
}

/**
 * Tests whether the caller could make all `calls` now, and read the resources that their handlers have read. If
 * `dependOnCaller` is true for `calls`, compare the callers too. Resolves to `false` if one of the handlers does not exist for the
 * caller, after it has called `onHidden`. Rejects with the error that the client would receive for a new call, such as
 * for a missing scope.
 */
export async function mayCall(
  parts: DialectParts,
  { session, link }: Referring,
  calls: readonly HandlerCall[],
  onHidden?: (error: McpError) => void,
): Promise<boolean> {
  const home = new SessionHome(parts, session);
  for (const { method, params = {}, reads } of calls) {
    const message = { kind: "request", id: 0, method, params, weight: 0 } as const;
    const call = new LegacyCall(home, link, message, session.client);
    // These methods have no handler, and their result is always empty.
    if (findSessionMethod(parts.engine, session, call)) continue;
    try {
      await checkHandler(call, { method, params, reads }, parts.engine);
    } catch (error) {
      if (!isHidden(error)) throw error;
      onHidden?.(error);
      return false;
    }
  }
  return true;
}

// Tests whether an error states that the handler does not exist for the caller.
function isHidden(error: unknown): error is McpError {
  return isMcpError(error) && (error.code === INVALID_PARAMS || error.code === METHOD_NOT_FOUND);
}
