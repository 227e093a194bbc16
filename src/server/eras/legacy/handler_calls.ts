/**
 * Finds the calls of requests, without their arguments. Streams, and requests to the client, keep these calls, so that
 * the server can check later whether another caller may make them.
 */
import { isId, isObject, type Params } from "../../../core/protocol/jsonrpc.ts";
import type { HandlerCall, Reads } from "../../call/handler_call.ts";

/** Keeps only the parameters that name the handler, because streams outlive calls. */
export function toHandlerCall(method: string, params: Params = {}, reads?: Reads): HandlerCall {
  const named = pickNames(params);
  if (isObject(params.ref)) named.ref = pickNames(params.ref);
  return { method, params: named, ...reads && { reads } };
}

export function toHandlerCalls(items: readonly unknown[]): readonly HandlerCall[] {
  return items.flatMap((item) =>
    isObject(item) && typeof item.method === "string" && isId(item.id)
      ? toHandlerCall(item.method, isObject(item.params) ? item.params : undefined)
      : []
  );
}

/** Tests whether replies depend on more than the rights to a handler, such as lists of what the caller may see. */
export function dependOnCaller(calls: readonly HandlerCall[]): boolean {
  return calls.some(({ method }) => !OF_HANDLERS.includes(method) && !WITHOUT_CONTENT.includes(method));
}

/** The methods whose parameters name a handler, so that the server can check the rights of another caller. */
const OF_HANDLERS: readonly string[] = ["tools/call", "prompts/get", "resources/read", "completion/complete"];
/** The methods whose result is always empty. */
const WITHOUT_CONTENT: readonly string[] = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

function pickNames(params: Params): Record<string, unknown> {
  const named: Record<string, unknown> = {};
  for (const key of NAMES) if (typeof params[key] === "string") named[key] = params[key];
  return named;
}

/** The parameters by which methods find their handlers. The type is part of the `ref` of a completion. */
const NAMES = ["name", "uri", "type"] as const;
