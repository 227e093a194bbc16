/**
 * The rights to a stream: finds the calls whose replies a stream carries, and checks whether a caller may resume the
 * stream.
 *
 * @module
 */
import { INVALID_PARAMS, isMcpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import { isId, isObject, type Params } from "../../protocol/jsonrpc.ts";
import type { Link } from "../../core/call/link.ts";
import type { HandlerCall } from "../../core/call/lives.ts";
import { checkHandler } from "../../core/handler_check.ts";
import { type DialectParts, LegacyCall, SessionHome } from "./legacy_call.ts";
import { findSessionMethod } from "./session_methods.ts";
import type { Session } from "./session_state.ts";

/** Returns the call of a request. Keeps only the parameters that name the handler, because streams outlive calls. */
export function toHandlerCall(method: string, params: Params = {}): HandlerCall {
  const named = pickNames(params);
  if (isObject(params.ref)) named.ref = pickNames(params.ref);
  return { method, params: named };
}

/** Returns the calls of the requests in a batch. */
export function toHandlerCalls(items: readonly unknown[]): readonly HandlerCall[] {
  return items.flatMap((item) =>
    isObject(item) && typeof item.method === "string" && isId(item.id)
      ? toHandlerCall(item.method, isObject(item.params) ? item.params : undefined)
      : []
  );
}

function pickNames(params: Params): Record<string, unknown> {
  const named: Record<string, unknown> = {};
  for (const key of NAMES) if (typeof params[key] === "string") named[key] = params[key];
  return named;
}

/** The parameters by which methods find their handlers. The type is part of the `ref` of a completion. */
const NAMES = ["name", "uri", "type"] as const;

/** The session and the request with which a client resumes a stream. */
export interface Resuming {
  readonly session: Session;
  readonly link: Link;
}

/**
 * Tests whether the caller could make all `calls` now. Resolves to `false` if one of the handlers does not exist for the
 * caller. Rejects with the error that the client would receive for a new call, such as for a missing scope.
 */
export async function mayResume(
  parts: DialectParts,
  { session, link }: Resuming,
  calls: readonly HandlerCall[],
): Promise<boolean> {
  const home = new SessionHome(parts, session);
  for (const { method, params = {} } of calls) {
    const message = { kind: "request", id: 0, method, params, weight: 0 } as const;
    const call = new LegacyCall(home, link, message, session.client);
    // These methods have no handler, and their result is always empty.
    if (findSessionMethod(parts.engine, session, call)) continue;
    try {
      await checkHandler(call, { method, params }, parts.engine);
    } catch (error) {
      if (isHidden(error)) return false;
      throw error;
    }
  }
  return true;
}

// Tests whether an error states that the handler does not exist for the caller.
function isHidden(error: unknown): boolean {
  return isMcpError(error) && (error.code === INVALID_PARAMS || error.code === METHOD_NOT_FOUND);
}
