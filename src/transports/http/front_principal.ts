/**
 * Reads the principal that code in front of the server passes to `fetch`, for servers without `auth`.
 *
 * @module
 */
import type { Core } from "../../core/core.ts";
import { EXPIRED, toChallengeHeaders } from "../../core/auth.ts";
import type { Principal } from "../../core/call/context.ts";
import type { TransportName } from "../../core/call/observer.ts";
import { readPrincipal } from "../../core/call/principal.ts";
import type { ConnectionInfo } from "./access.ts";
import { refuse, toFault, toMessage } from "./refusals.ts";

/** Name of the place of such a principal, for errors. */
export const FRONT = "fetch(request, { principal })";

/** The type of {@linkcode readFront}. */
export type ReadFront = typeof readFront;

/**
 * Reads the principal of code in front. Returns the response if it cannot be used: 401 if its credentials have expired,
 * and else 500, because that code has made a mistake.
 */
export function readFront(
  core: Core,
  { info, transport }: { readonly info: ConnectionInfo | undefined; readonly transport: TransportName },
): Principal | Response | undefined {
  let principal;
  try {
    const given = info?.principal;
    if (given === undefined) return;
    principal = readPrincipal(given, FRONT);
  } catch (error) {
    return toFault(core, error);
  }
  if (principal.expiresAt === undefined || principal.expiresAt > core.ticker.clock.date()) return principal;
  const headers = toChallengeHeaders([{ scheme: "Bearer", params: { error: "invalid_token" } }]);
  return refuse(
    core,
    { status: 401, message: toMessage(EXPIRED), headers, reason: "authentication", code: -31_401 },
    { transport },
  );
}
