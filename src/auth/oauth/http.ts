/**
 * Sends requests to authorization servers, with a timeout and a maximum size for responses.
 */
import { isObject, parseJson } from "../../core/kit/json.ts";
import { isLoopback } from "../../core/kit/loopback_host.ts";
import { readText, type TextResponse } from "../../core/kit/body_pieces.ts";

/** Sends a request, like the global `fetch`. */
export type Send = (url: string, init: RequestInit) => Promise<Response>;

export interface JsonResponse {
  readonly status: number;
  /** The body, or an empty object if the body is not a JSON object. */
  readonly json: Readonly<Record<string, unknown>>;
}

/** Timeout in milliseconds for a single request, or for all requests that load the metadata of an issuer. */
export const TIMEOUT_MS = 5000;
/** Maximum size of a response body in bytes. */
const MAX_BYTES = 512 * 1024;
const TEXT = {
  maxBytes: MAX_BYTES,
  toError: () => new Error(`the response is longer than ${MAX_BYTES} bytes`),
};

/** Does not follow redirects, because a redirect could lead to any server. */
export async function sendText(send: Send, url: string, init: RequestInit): Promise<TextResponse> {
  const signal = init.signal ?? AbortSignal.timeout(TIMEOUT_MS);
  return await readText(send(url, { ...init, signal, redirect: "manual" }), { ...TEXT, signal });
}

export async function sendJson(send: Send, url: string, init: RequestInit): Promise<JsonResponse> {
  const headers = new Headers(init.headers);
  headers.set("accept", "application/json");
  const { status, text } = await sendText(send, url, { ...init, headers });
  const json = parseJson(text);
  return { status, json: isObject(json) ? json : {} };
}

/** Returns `undefined` unless the URL uses https, or http on loopback. */
export function readSecureUrl(text: unknown): URL | undefined {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (!url || url.username || url.password || url.href.includes("#")) return;
  return url.protocol === "https:" || url.protocol === "http:" && isLoopback(url.hostname) ? url : undefined;
}
