/**
 * Sends each HTTP request at most once.
 */
import { deno } from "./runtime.ts";

/** The global `fetch`, with the body of {@linkcode toInitOnce}. */
export async function fetchOnce(url: string | URL, init: RequestInit = {}): Promise<Response> {
  return await globalThis.fetch(url, await toInitOnce(init));
}

/**
 * Returns the options of a request whose body Deno sends at most once. If a reused connection is cut, Deno sends the
 * request again on another connection, unless its body is a stream or a blob. A server that has already run a call, or
 * redeemed a code or a refresh token, would receive it twice.
 */
export function toInitOnce(init: RequestInit): RequestInit | Promise<RequestInit> {
  const { body } = init;
  if (!deno || body === undefined || body === null || body instanceof Blob || body instanceof ReadableStream) {
    return init;
  }
  // A response converts all kinds of bodies, but takes longer than a blob of a text. The blob has the media type.
  const isTyped = typeof body === "string" && new Headers(init.headers).has("content-type");
  if (isTyped) return { ...init, body: new Blob([body]) };
  return new Response(body).blob().then((body) => ({ ...init, body }));
}
