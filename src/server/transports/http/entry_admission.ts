/**
 * Runs the server's `admit` option for a request that opens a WebSocket or an HTTP+SSE stream.
 */
import { isMcpError } from "../../../core/protocol/errors.ts";
import type { ClientInfo } from "../../call/context.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { toHints } from "../../call/link.ts";
import type { TransportName } from "../../call/observer.ts";
import type { PipeServer } from "../channel.ts";
import type { Caller } from "./caller.ts";
import type { Refusal } from "./refusals.ts";

/** The facts about a client that has sent no message yet. */
const NOBODY: ClientInfo = { version: "", capabilities: {} };

/**
 * Returns the refusal if the server's `admit` option refuses the caller, otherwise `undefined`. `served` is the server
 * to which the caller connects.
 */
export async function findEntryRefusal(
  served: PipeServer,
  caller: Caller,
  transport: TransportName,
): Promise<Refusal | undefined> {
  const core = served[INTERNALS].served?.engine.core;
  if (!core?.admit) return;
  const { principal, seen = caller } = caller;
  try {
    await core.admit({
      method: "GET",
      link: { transport, principal, http: seen },
      client: NOBODY,
      pathParams: core.pathParams,
    });
  } catch (error) {
    const known = isMcpError(error) ? error : core.report(error);
    const { code, message } = known;
    const hints = toHints(known);
    return hints
      ? { message, code, status: hints.status ?? 403, headers: hints.headers, reason: "admission" }
      : { message, code, status: 500, reason: "fault" };
  }
}
