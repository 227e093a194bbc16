/**
 * The responses to HTTP requests whose body is rejected.
 */
import { RETRY_AFTER } from "../../call/link.ts";
import { nameLimits } from "../../../core/protocol/errors.ts";
import type { Refusal } from "./refusals.ts";

/** The body is incomplete: the client disconnected, or code in front of the server has read or limited the body. */
export const INCOMPLETE: Refusal = {
  status: 400,
  message:
    "Cannot read the body: the body is incomplete; if the client stays connected, mount the server before body " +
    "parsers such as express.json(), and raise the body limit of the framework, such as BODY_SIZE_LIMIT of SvelteKit",
  reason: "body",
};

/** The refusal of a body if too many bytes are arriving on all connections, or if a memory limit is reached. */
export const TOO_MUCH_ARRIVING: Refusal = {
  status: 503,
  ...nameLimits(
    "Cannot read the body: too much data is arriving",
    "request.allBodiesBytes, memory.bytesPerClient, memory.bytes",
    "; send the request again later",
  ),
  headers: RETRY_AFTER,
  reason: "body",
};

export const TOO_LARGE: Refusal = {
  status: 413,
  ...nameLimits("Cannot read the body: the body is larger than the limit", "request.bodyBytes"),
  reason: "body",
};

/** The refusal of a body that arrives in many small pieces, because reading such a body takes too much CPU time. */
export const TOO_SMALL_PIECES: Refusal = {
  status: 400,
  message: "Cannot read the body: it arrived in too many small chunks; send larger chunks",
  reason: "body",
};

/**
 * Returns whether a body arrives in too many small pieces, because reading even a piece of one byte takes some
 * microseconds. `size` is the total size of the pieces so far, in bytes.
 */
export function hasSmallPieces(size: number, pieces: number): boolean {
  return pieces > MAX_PIECES && size / pieces < SMALLEST_PIECE;
}

/** Number of pieces after which a body is rejected if its average piece is smaller than {@linkcode SMALLEST_PIECE}. */
const MAX_PIECES = 10_000;
const SMALLEST_PIECE = 64;

/**
 * Returns whether a Content-Length header, or its absence, allows a body of at most `max` bytes. A header with a text
 * that is not a number, such as two equal lengths, allows no body.
 */
export function isWithin(length: string | null, max: number): boolean {
  return Number(length) <= max;
}

export function tooSlow(bodyMs: number): Refusal {
  return {
    status: 408,
    ...nameLimits(`Cannot read the body: the body did not arrive within ${bodyMs} ms`, "request.bodyMs"),
    reason: "body",
  };
}
