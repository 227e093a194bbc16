/**
 * Requests and responses that cost less than those of the platform. On Node, a `Request` and a `Response` of the platform
 * take more CPU time than the rest of a call.
 */

/** Key of the {@linkcode LightParts} of a light request. */
export const LIGHT: unique symbol = Symbol("light");

/** The status and headers of a response. The headers must be valid, because a light response does not check them. */
export interface LightInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface LightParts {
  /** The class of responses that the listener of the request can send at a low cost. */
  readonly Response: new (body: string | null, init: LightInit) => Response;
  /**
   * Returns a request of the platform with the same URL, method, headers and signal, but without the body. Returns the
   * light request if the platform does not support its method, such as TRACE.
   */
  toNative(request: Request): Request;
}

export function createResponse(request: Request, body: string | null, init: LightInit): Response {
  const Light = findParts(request)?.Response ?? Response;
  return new Light(body, init);
}

/**
 * Returns the request to pass to the author's code. Neither `new Request()` nor `fetch()` accepts a light request, so the
 * author gets a request of the platform, without the body. Returns other requests unchanged.
 */
export function toNative(request: Request): Request {
  return findParts(request)?.toNative(request) ?? request;
}

/** Tests whether code of the author needs a copy of the request. */
export function isLight(request: Request): boolean {
  return findParts(request) !== undefined;
}

function findParts(request: Request): LightParts | undefined {
  return (request as { readonly [LIGHT]?: LightParts })[LIGHT]; // The cast is safe, because only light requests have the key.
}
