/**
 * Reads the principal that your own code passes to `fetch`, for servers without `auth`.
 */
import type { Core } from "../../engine/core.ts";
import { EXPIRED, toChallengeHeaders } from "../../engine/auth.ts";
import type { Principal } from "../../call/context.ts";
import type { TransportName } from "../../call/observer.ts";
import { readPrincipal } from "../../call/principal.ts";
import type { ConnectionInfo } from "./access.ts";
import { refuse, toFault, toMessage } from "./refusals.ts";

export const FRONT = "fetch(request, { principal })";

export type ReadFront = typeof readFront;

/**
 * If the credentials of the principal have expired, returns a response with status 401. If the principal is invalid,
 * returns a response with status 500, because the code that called `fetch` has a bug.
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
