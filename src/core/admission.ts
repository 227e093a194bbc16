/**
 * Admission: decides whether a request may enter, before the server looks up its handler.
 *
 * @module
 */
import { McpError } from "../protocol/errors.ts";
import type { Implementation } from "../protocol/types.ts";
import { type AuthRefusal, isRefusal, toChallengeHeaders } from "./auth.ts";
import type { ClientFacts, Principal } from "./call/context.ts";
import type { Core, Entering } from "./core.ts";
import { REPLY_HEADERS } from "./call/link.ts";
import type { TransportName } from "./call/observer.ts";

/** Facts about a request that wants to enter. */
export interface AdmitFacts {
  /** The transport. */
  readonly transport: TransportName;
  /** Method of the request, such as `initialize` or `tools/call`. */
  readonly method: string;
  /** The authenticated caller, if any. */
  readonly principal?: Principal;
  /** The HTTP request without credentials. `undefined` on other transports. */
  readonly http?: Request;
  /** Facts that the client declares about itself. They are not verified. */
  readonly client: ClientFacts & { readonly info?: Implementation };
}

/**
 * Decides whether a request may enter. Returns `true`, or a refusal created by `refuseRequest()`. If the function
 * throws, the server refuses the request too.
 */
export type Admit = (facts: AdmitFacts) => true | AuthRefusal | Promise<true | AuthRefusal>;

/** Runs the server's `admit` option for a request. Throws the error for the client if the request may not enter. */
export async function admit(core: Core, decide: Admit, { method, link, client, observed }: Entering): Promise<void> {
  const { transport, principal } = link;
  let decided: unknown;
  try {
    decided = await decide({
      transport,
      method,
      principal,
      client,
      get http() {
        return link.http?.request;
      },
    });
  } catch (error) {
    throw core.report(error, { method });
  }
  if (decided === true) return;
  if (!isRefusal(decided)) {
    throw core.report(new TypeError("Cannot admit a request: admit returned neither true nor refuseRequest()"), {
      method,
    });
  }
  if (observed) observed.reason = "admission";
  const { status, reason = "the request is not admitted", challenges = [], retryAfterMs } = decided;
  const data = retryAfterMs === undefined ? undefined : { retryAfterMs };
  const error = new McpError(-31_000 - status, `Cannot serve the request: ${reason}`, data);
  throw Object.assign(error, { [REPLY_HEADERS]: toChallengeHeaders(challenges) });
}
