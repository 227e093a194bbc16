/**
 * Serves `initialize`, which opens a session.
 *
 * @see specification/2025-11-25/basic/lifecycle
 */
import { INVALID_REQUEST, isMcpError, McpError } from "../../../core/protocol/errors.ts";
import { type Request, toFailure, toSuccess } from "../../../core/protocol/jsonrpc.ts";
import { observeRequest } from "../../engine/observed_call.ts";
import type { Outcome } from "../../visibility/feature.ts";
import { type Link, type Reply, toHints, toSilent } from "../../call/link.ts";
import type { RequestReport } from "../../call/observer.ts";
import { readSessionData } from "../../call/session_data.ts";
import { toErrorReply } from "./error_replies.ts";
import { readOffer, toAgreement } from "./handshake.ts";
import { type DialectParts, LegacyCall, SessionHome } from "./legacy_call.ts";
import type { Session, SessionInfo } from "./session_state.ts";

export interface ReceivedRequest {
  readonly message: Request;
  readonly link: Link;
}

/** The steps before and after the negotiation of a session, which depend on the transport. */
export interface SessionOpening {
  /** Returns whether the request belongs to a session that is already open. */
  readonly prepare?: () => Promise<boolean>;
  /** Returns the response headers. */
  open(client: SessionInfo, home: Pick<Session, "data">): Headers | undefined | Promise<Headers | undefined>;
}

type Headers = Reply["headers"];

interface Agreeing {
  readonly client: SessionInfo;
  /** Receives the value that the server's `sessionData` function returns. */
  readonly home: Pick<Session, "data">;
  readonly observed?: RequestReport;
}

/** Negotiates a session. Then calls `open`, which opens the session and returns the response headers. */
export async function initialize(
  parts: DialectParts,
  received: ReceivedRequest,
  { prepare, open }: SessionOpening,
): Promise<Reply> {
  const { message, link } = received;
  const { core } = parts.engine;
  const observed = observeRequest(core, message, link);
  // Wait for the connection to other instances. Over HTTP, the first request after `initialize` connects to the other
  // instances.
  const ready = link.http ? undefined : parts.engine.changes.connect?.();
  try {
    if (ready) await ready;
    if (prepare && await prepare()) {
      throw new McpError(INVALID_REQUEST, "Cannot initialize: this session is already initialized");
    }
    const client = readOffer(message.params, parts.versions);
    observed?.identify(client);
    await core.admit?.({ method: message.method, link, client, pathParams: core.pathParams, observed });
    const runs = core.hasMiddleware || core.sessionData;
    if (!runs) observed?.start();
    const home: Pick<Session, "data"> = {};
    const outcome = runs
      ? await agree(parts, received, { client, home, observed })
      : { result: toAgreement(parts.engine, client, link) };
    if (!outcome) {
      observed?.cancel();
      return {};
    }
    // Respond with status 200, because status 400 makes clients fall back to the HTTP+SSE transport.
    if (outcome.error) return toErrorReply(message, outcome.error, observed);
    const opened = open(client, home);
    const headers = opened instanceof Promise ? await opened : opened;
    observed?.succeed(outcome.result);
    return { text: toSuccess(message.id, JSON.stringify(outcome.result)), headers };
  } catch (error) {
    const known = isMcpError(error) ? error : core.report(error, { method: message.method });
    const { status = 400, headers } = toHints(known) ?? {};
    observed?.fail(known, status);
    return { text: toFailure(message.id, known), status, headers };
  }
}

// Middleware must not start a stream, because the response headers must contain the session id, which does not exist
// yet.
async function agree(
  parts: DialectParts,
  { message, link }: ReceivedRequest,
  { client, home, observed }: Agreeing,
): Promise<Outcome> {
  const { core, scheduler } = parts.engine;
  const { http, headers, version } = link;
  const call = new LegacyCall(
    new SessionHome(parts, home),
    { ...toSilent(link), http, headers, version },
    message,
    client,
  );
  if (observed) call.observe(observed, undefined);
  const run = () => {
    const data = readSessionData(core, call);
    if (data !== undefined) home.data = [data];
    return toAgreement(parts.engine, client, link);
  };
  return await scheduler.run(call, { run });
}
