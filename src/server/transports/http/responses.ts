/**
 * Creates the response to a request whose message was served.
 */
import { INTERNAL_ERROR } from "../../../core/protocol/errors.ts";
import { type Reply, RETRY_AFTER } from "../../call/link.ts";
import type { LightInit } from "../../../core/light_request.ts";
import { STREAM_HEADERS } from "./event_stream.ts";
import type { Exchange, ExchangeParts, Rest } from "./exchange.ts";
import { JSON_HEADERS, toFaultReply, toRefusal } from "./refusals.ts";

/**
 * Maximum length in characters of a response that is passed to the runtime as one string. The kernel accepts a response
 * of this length even if the client reads nothing, so that a string needs less memory than a stream. For an unread list
 * of 77 KB, measurements gave 31 KiB on Deno and 2 KiB on Bun as a string, but 167 KiB and 6 KiB as a stream. A string
 * also takes only a third of the CPU time.
 */
const LARGE = 131_072;

export interface Outlet {
  readonly parts: ExchangeParts;
  readonly respond: (response: Response) => void;
}

/**
 * Responds to a request with its reply, or with a stream if a stream opens before the reply. Calls `outlet.respond`
 * instead of returning a promise, because `fetch` has already created a promise.
 */
export function respondTo(exchange: Exchange, reply: Reply | Promise<Reply>, outlet: Outlet): void {
  exchange.whenOpen((body) => outlet.respond(new Response(body, { headers: toHeaders(exchange) })));
  if (reply instanceof Promise) finishLater(exchange, reply, outlet);
  else finish(exchange, reply, outlet);
}

async function finishLater(exchange: Exchange, reply: Promise<Reply>, outlet: Outlet): Promise<void> {
  let last: Reply;
  try {
    last = await reply;
  } catch (error) {
    last = toFaultReply(outlet.parts.core, error);
  }
  finish(exchange, last, outlet);
}

function finish(exchange: Exchange, reply: Reply, { parts, respond }: Outlet): void {
  const rest = exchange.finish(reply);
  if (rest) respond(toLast(exchange, rest, parts));
}

function toHeaders(exchange: Exchange): HeadersInit {
  return exchange.streams ? STREAM_HEADERS : JSON_HEADERS;
}

function toLast(exchange: Exchange, { reply, events }: Rest, parts: ExchangeParts): Response {
  const { text, status, headers } = reply;
  if (events !== undefined) return toComplete(exchange, events, { parts, headers: STREAM_HEADERS });
  if (text === undefined) return exchange.createResponse(null, { status: status ?? 202, headers });
  const all = headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS;
  return toComplete(exchange, text, { parts, status, headers: all });
}

// Sends a large body in slices, because a runtime would buffer the whole body until the client reads it.
function toComplete(
  exchange: Exchange,
  body: string,
  { parts, ...init }: LightInit & Pick<Outlet, "parts">,
): Response {
  if (body.length <= LARGE) return exchange.createResponse(body, init);
  let isRefused = false;
  const onLost = () => {
    isRefused = true;
  };
  const sliced = parts.streams.create({ account: () => exchange.account, onLost, signal: exchange.signal });
  sliced.push(body);
  sliced.end();
  if (!isRefused) return new Response(sliced.toBody(), init);
  const message = "Cannot send the result: the client has too much unread data (memory.bytesPerClient, memory.bytes)";
  return toRefusal({ status: 503, message, headers: RETRY_AFTER, code: INTERNAL_ERROR });
}
