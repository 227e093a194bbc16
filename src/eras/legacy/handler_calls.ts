/**
 * Finds the calls of requests, without their arguments. Streams, and requests to the client, keep these calls, so that
 * the server can check later whether another caller may make them.
 *
 * @module
 */
import { isId, isObject, type Params } from "../../protocol/jsonrpc.ts";
import type { HandlerCall } from "../../core/call/lives.ts";

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
