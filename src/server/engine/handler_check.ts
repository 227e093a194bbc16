/**
 * Checks whether a caller may call a handler, without a call: when a client refers to the work of an earlier call, such
 * as a task.
 */
import { INVALID_PARAMS, McpError } from "../../core/protocol/errors.ts";
import { Call, type CallHome, deriveHost } from "../call/call.ts";
import { InFlight } from "../call/in_flight.ts";
import type { HandlerCall, Reads } from "../call/handler_call.ts";
import { hashCaller, readCaller, readHandler, UNKNOWN_CALLER } from "../call/reads.ts";
import type { Core } from "./core.ts";
import { findGranted } from "./recheck.ts";
import type { Registry } from "../visibility/registry.ts";

/** The parts of the server that {@linkcode checkHandler} uses. */
export interface CheckParts {
  readonly core: Core;
  readonly registry: Registry;
}

/**
 * Checks whether the caller of `outer` could call a handler now. Throws the error that the client would receive if the
 * handler or a resource that it has read does not exist for the caller, if the caller lacks a scope, or if it is unknown
 * which handlers are disabled. Does not check capabilities, because a client that only reads the result of an earlier
 * call answers no questions.
 */
export async function checkHandler(outer: Call, checked: HandlerCall, parts: CheckParts): Promise<void> {
  await check(outer, checked, parts);
  if (checked.reads) await checkReads(outer, checked.reads, parts);
}

/**
 * Checks whether the caller of `outer` may read resources that a handler has read. Throws the error that the client
 * would receive.
 */
export async function checkReads(outer: Call, reads: Reads, parts: CheckParts): Promise<void> {
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

async function check(outer: Call, checked: HandlerCall, { core, registry }: CheckParts): Promise<void> {
  // The caller may have cancelled the call while an earlier handler was checked.
  if (outer.reason) throw outer.reason;
  const call = new Probe(outer, checked);
  try {
    await call.untilCancelled(findGranted(call, core, registry));
  } finally {
    call.end();
  }
}

/** A call that never runs. It has the caller of another call, and the handler about which `allow` decides. */
class Probe extends Call {
  readonly #outer: Call;

  constructor(outer: Call, { method, params = {} }: HandlerCall) {
    const { client, id, link } = outer;
    super(toHome(outer), link, { kind: "request", id, method, params, weight: 0 }, client, new InFlight());
    this.#outer = outer;
  }

  override get sessionId(): string | undefined {
    return this.#outer.sessionId;
  }

  notify(): undefined {}

  askClient(): Promise<never> {
    return Promise.reject(new TypeError("Cannot ask the client: the call only checks the caller"));
  }

  makeOnce(_key: string, make: () => unknown): Promise<unknown> {
    return Promise.resolve(make());
  }
}

function toHome(outer: Call): CallHome {
  const host = deriveHost(outer.host, { reruns: undefined });
  return { host, session: () => outer.session, subject: (call) => outer.home.subject?.(call) };
}
