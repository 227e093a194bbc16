/**
 * The responses to HTTP requests that are rejected before their message is served.
 */
import {
  BUSY,
  INVALID_REQUEST,
  isMcpError,
  type Limited,
  type McpError,
  REACHED,
} from "../../../core/protocol/errors.ts";
import { toFailure } from "../../../core/protocol/jsonrpc.ts";
import type { Principal } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import { type Reply, RETRY_AFTER } from "../../call/link.ts";
import type { RefusalReason, TransportName } from "../../call/observer.ts";

export interface Refusal extends Limited {
  readonly status: number;
  readonly message: string;
  /** The reason that the observer receives. */
  readonly reason: RefusalReason;
  readonly headers?: Reply["headers"];
  /** The code of the JSON-RPC error. Defaults to -32600 (invalid request). */
  readonly code?: number;
  readonly data?: unknown;
}

export interface Source {
  readonly transport: TransportName;
  readonly principal?: Principal;
}

const HTTP: Source = { transport: "http" };

export const JSON_HEADERS = { "content-type": "application/json" };

/** Reports the refusal to the observer. */
export function refuse(core: Core, refusal: Refusal, { transport, principal }: Source = HTTP): Response {
  core.observing?.refuse({ transport, principal, http: true }, { code: INVALID_REQUEST, ...refusal });
  return toRefusal(refusal);
}

/** A plain-text response, for clients that do not expect JSON-RPC. Reports the refusal to the observer. */
export function refuseInText(core: Core, refusal: Refusal, source: Source): Response {
  const { status, message, headers } = refusal;
  core.observing?.refuse({ ...source, http: true }, { ...refusal, code: undefined });
  return new Response(message, { status, headers });
}

/** Reports nothing to the observer. */
export function toRefusal(
  { status, message, headers, code = INVALID_REQUEST, data }: Omit<Refusal, "reason">,
): Response {
  const text = toFailure(undefined, { code, message, data });
  return new Response(text, { status, headers: { ...JSON_HEADERS, ...headers } });
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
  return isMcpError(error) && error.code === BUSY ? toOverload(error) : undefined;
}

export function toOverload({ message, [REACHED]: limits }: McpError): Refusal {
  return { status: 503, message, headers: RETRY_AFTER, reason: "limit", code: BUSY, [REACHED]: limits };
}

export const CLOSING: Refusal = {
  status: 503,
  message: toMessage("the server is closing; try again later"),
  headers: RETRY_AFTER,
  reason: "closing",
};

/** The refusal of a request to a server that lacks what it needs to serve, such as a secret. */
export const UNREADY: Refusal = {
  status: 503,
  message: toMessage("the server is not ready; the log of the server has the reason"),
  headers: RETRY_AFTER,
  reason: "fault",
};
