/**
 * Finds the call to which a context belongs.
 */
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import { CALL } from "../../core/internals.ts";

/** Returns `undefined` for a copy of a context, or for the context of a unit test. */
export function findCall(ctx: Pick<Context<unknown>, "principal">): Call | undefined {
  // The cast is safe: a context with services refers to its call, a context without services is the call, and the check
  // below finds any other object.
  const call: Partial<Call> = Reflect.get(ctx, CALL) ?? ctx as Partial<Call>;
  // Do not read the account, because its getter fails after the request has ended on some runtimes.
  return call.link && "account" in call.link ? call as Call : undefined; // The cast is safe, because only a call has such a link.
}

/** @throws {TypeError} if the context belongs to no call. `purpose` is what fails. */
export function toCall(ctx: Context<unknown>, purpose: string): Call {
  const call = findCall(ctx);
  if (call) return call;
  throw new TypeError(`Cannot ${purpose}: ctx does not belong to a call; pass the context of a request`);
}
