/**
 * The reasons why a request body is not read.
 *
 * @module
 */
import { type Reply, RETRY_AFTER } from "../../core/link.ts";

/** The reason why a body was not read. */
export interface Unread {
  readonly status: number;
  readonly message: string;
  readonly headers?: Reply["headers"];
}

/** The response to an incomplete body, whose client disconnected. */
export const INCOMPLETE: Unread = { status: 400, message: "Cannot read the body: it is incomplete" };

/** The rejection of a body that did not arrive in time. */
export function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (request.bodyMs)` };
}

/** The rejection of a body while too many bytes are arriving. */
export const TOO_MUCH_ARRIVING: Unread = {
  status: 503,
  message:
    "Cannot read the body: too much data is arriving (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send it again",
  headers: RETRY_AFTER,
};

/** The rejection of a body over the limit. */
export const TOO_LARGE: Unread = {
  status: 413,
  message: "Cannot read the body: it is larger than the server accepts (request.bodyBytes)",
};

/** The rejection of a body that costs more than its bytes, because it comes in very many pieces. */
export const TOO_SMALL_PIECES: Unread = {
  status: 400,
  message: "Cannot read the body: it comes in too many small pieces",
};
