/**
 * Checks whether a caller may call a handler, without a call: when a client refers to the work of an earlier call, such
 * as a task.
 */
import { INVALID_PARAMS, McpError } from "../../core/protocol/errors.ts";
import { Call, deriveHome } from "../call/call.ts";
import { InFlight } from "../call/in_flight.ts";
import type { HandlerCall, Reads } from "../call/handler_call.ts";
import { hashCaller, readCaller, readHandler, UNKNOWN_CALLER } from "../call/reads.ts";
import { grant, type GrantParts } from "./grant.ts";

/**
 * Checks whether the caller of `outer` could call a handler now. Throws the error that the client would receive if the
 * handler or a resource that it has read does not exist for the caller, if the caller lacks a scope, or if it is unknown
 * which handlers are disabled.
 */
export async function checkHandler(outer: Call, checked: HandlerCall, parts: GrantParts): Promise<void> {
  await check(outer, checked, parts);
  if (checked.reads) await checkReads(outer, checked.reads, parts);
}

/** Throws the error that the client would receive if the caller of `outer` may not read a resource in `reads`. */
export async function checkReads(outer: Call, reads: Reads, parts: GrantParts): Promise<void> {
  if (typeof reads === "string") return await checkCaller(outer, reads, "the handler has read too many resources");
  for (const entry of reads) {
    const caller = readCaller(entry);
    if (caller === undefined) await check(outer, readHandler(entry), parts);
    else await checkCaller(outer, caller, "its output was made");
  }
}

async function checkCaller(outer: Call, caller: string, state: string): Promise<void> {
  if (caller !== UNKNOWN_CALLER && caller === await hashCaller(outer.principal)) return;
  throw new McpError(INVALID_PARAMS, `Cannot use the call: ${state} for another caller; call the handler again`);
}

async function check(outer: Call, checked: HandlerCall, parts: GrantParts): Promise<void> {
  // The caller may have cancelled the call while an earlier handler was checked.
  if (outer.reason) throw outer.reason;
  const call = new Probe(outer, checked);
  try {
    await grant(call, parts, "probe");
  } finally {
    call.end();
  }
}

/** A call that never runs. It has the caller of another call, and the handler about which `allow` decides. */
class Probe extends Call {
  constructor(outer: Call, { method, params = {} }: HandlerCall) {
    const { client, id, link } = outer;
    super(deriveHome(outer), link, { kind: "request", id, method, params, weight: 0 }, client, new InFlight());
  }

  notify(): undefined {}

  askClient(): Promise<never> {
    return Promise.reject(new TypeError("Cannot ask the client: the call only checks the caller"));
  }

  makeOnce(_key: string, make: () => unknown): Promise<unknown> {
    return Promise.resolve(make());
  }
}
