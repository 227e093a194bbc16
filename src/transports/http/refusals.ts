/**
 * The responses to HTTP requests that are rejected before their message is served.
 *
 * @module
 */
import { BUSY, INVALID_REQUEST, isMcpError } from "../../protocol/errors.ts";
import { toFailure } from "../../protocol/jsonrpc.ts";
import type { Principal } from "../../core/call/context.ts";
import type { Core } from "../../core/core.ts";
import { type Reply, RETRY_AFTER } from "../../core/call/link.ts";
import type { RefusalReason, TransportName } from "../../core/call/observer.ts";

/** The reason why a request is rejected, and the parts of the response. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** The reason that the observer receives. */
  readonly reason: RefusalReason;
  readonly headers?: Reply["headers"];
  /** The code of the JSON-RPC error. Defaults to -32600 (invalid request). */
  readonly code?: number;
}

/** The transport and caller of a rejected request. */
export interface Source {
  readonly transport: TransportName;
  readonly principal?: Principal;
}

const HTTP: Source = { transport: "http" };

export const JSON_HEADERS = { "content-type": "application/json" };

/** Creates the response to a rejected request, with a JSON-RPC error. Reports the refusal to the observer. */
export function refuse(core: Core, refusal: Refusal, { transport, principal }: Source = HTTP): Response {
  const { status, message, reason, code = INVALID_REQUEST } = refusal;
  core.observing?.refuse({ transport, principal, http: true }, { status, message, reason, code });
  return toRefusal(refusal);
}

/**
 * Creates a plain-text response to a rejected request, for clients that do not expect JSON-RPC. Reports the refusal to
 * the observer.
 */
export function refuseInText(core: Core, { status, message, reason, headers }: Refusal, source: Source): Response {
  core.observing?.refuse({ ...source, http: true }, { status, message, reason });
  return new Response(message, { status, headers });
}

/** Creates the response to a rejected request, with a JSON-RPC error. Reports nothing to the observer. */
export function toRefusal({ status, message, headers, code = INVALID_REQUEST }: Omit<Refusal, "reason">): Response {
  return new Response(toFailure(undefined, { code, message }), { status, headers: { ...JSON_HEADERS, ...headers } });
}

/** Reports an unexpected error, and creates the response to the request that caused the error. */
export function toFault(core: Core, error: unknown): Response {
  return new Response(toFailure(undefined, core.report(error)), { status: 500, headers: JSON_HEADERS });
}

/** Reports an unexpected error, and creates the reply to the message that caused the error. */
export function toFaultReply(core: Core, error: unknown): Reply {
  return { text: toFailure(undefined, core.report(error)), status: 200 };
}

export function toMessage(state: string): string {
  return `Cannot serve the request: ${state}`;
}

/** Returns the refusal for an error that a limit has caused. Returns `undefined` for other errors. */
export function findRefusal(error: unknown): Refusal | undefined {
  return isMcpError(error) && error.code === BUSY ? toOverload(error.message) : undefined;
}

/** Creates the refusal of a request that exceeds a limit. */
export function toOverload(message: string): Refusal {
  return { status: 503, message, headers: RETRY_AFTER, reason: "limit", code: BUSY };
}

/** The refusal of a request that arrives while the server is closing. */
export const CLOSING: Refusal = {
  status: 503,
  message: toMessage("the server is closing; try again later"),
  headers: RETRY_AFTER,
  reason: "closing",
};

/** The refusal of a body that is incomplete, because the client has disconnected. */
export const INCOMPLETE: Refusal = {
  status: 400,
  message: "Cannot read the body: the body is incomplete",
  reason: "body",
};

/** The refusal of a body if too many bytes are arriving on all connections, or if a memory limit is reached. */
export const TOO_MUCH_ARRIVING: Refusal = {
  status: 503,
  message:
    "Cannot read the body: too much data is arriving (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send the request again later",
  headers: RETRY_AFTER,
  reason: "body",
};

/** The refusal of a body that is larger than `request.bodyBytes`. */
export const TOO_LARGE: Refusal = {
  status: 413,
  message: "Cannot read the body: the body is larger than the limit (request.bodyBytes)",
  reason: "body",
};

/** The refusal of a body that arrives in many small pieces, because reading such a body takes too much CPU time. */
export const TOO_SMALL_PIECES: Refusal = {
  status: 400,
  message: "Cannot read the body: it arrived in too many small chunks; send larger chunks",
  reason: "body",
};

/** Creates the refusal of a body that did not arrive within `bodyMs` milliseconds. */
export function tooSlow(bodyMs: number): Refusal {
  return {
    status: 408,
    message: `Cannot read the body: the body did not arrive within ${bodyMs} ms (request.bodyMs)`,
    reason: "body",
  };
}
