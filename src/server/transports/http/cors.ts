/**
 * CORS rules for web pages from other origins that call the server from a browser.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 */
import { isToken } from "../../../core/kit/http_token.ts";
import { quote } from "../../../core/protocol/errors.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import { isStrayPromise } from "../../../core/protocol/promises.ts";
import { readOrigins } from "./access_options.ts";
import { toOrigin } from "./address.ts";

/** Options for cross-origin access. */
export interface CorsOptions {
  /** The allowed origins, such as `https://app.example.com`. `"*"` allows every origin. */
  readonly origins: readonly string[] | "*";
  /** Whether browsers may send cookies and other credentials. Defaults to `false`. */
  readonly credentials?: boolean;
  /**
   * Names of further request headers that pages may send, such as `traceparent`. Pages may always send the headers of
   * the protocol and the headers in which the server's `auth` reads credentials. Defaults to no further headers.
   */
  readonly headers?: readonly string[];
}

/** Access from other origins. `"none"` allows no other origin. A function returns whether an origin is allowed. */
export type Cors = "none" | CorsOptions | ((origin: string) => boolean | { readonly credentials: boolean });

/**
 * Returns the names in `cors.headers`.
 *
 * @throws {TypeError} if a name is not a header name.
 */
export function readCorsHeaders(cors: Cors = "none"): readonly string[] {
  const { headers = [] }: Partial<CorsOptions> = Object(cors);
  for (const name of headers) {
    if (!isToken(name)) {
      throw new TypeError(`Cannot create a server: ${quote(name)} in cors.headers is not a header name`);
    }
  }
  return headers;
}

export interface Grant {
  readonly credentials: boolean;
}

/**
 * Creates a function that returns the permissions of an origin, or `undefined` if pages from this origin may not call
 * the server.
 *
 * @throws {TypeError} if the option names no origins.
 */
export function corsRule(
  cors: Cors = "none",
  report: (error: unknown) => unknown,
): (origin: string) => Grant | undefined {
  if (cors === "none") return () => undefined;
  if (typeof cors === "function") {
    return (origin) => {
      // If the function throws, do not allow the origin. A caller can send any text as its origin.
      try {
        const granted = cors(origin);
        if (granted === true) return { credentials: false };
        if (granted === false) return;
        if (typeof Object(granted).credentials === "boolean") return { credentials: granted.credentials };
        const state = isStrayPromise(granted) ? "a promise" : "neither a boolean nor { credentials }";
        throw new TypeError(`Cannot apply cors: the function returned ${state}; return true, false or { credentials }`);
      } catch (error) {
        report(error);
      }
    };
  }
  // Check the type, because a JavaScript program can pass any value.
  const given: unknown = isObject(cors) ? cors.origins : undefined;
  if (given !== "*" && !Array.isArray(given)) {
    throw new TypeError(
      'Cannot create a server: cors has no list of origins; set cors to { origins: ["https://app.example.com"] }, { origins: "*" }, a function or "none"',
    );
  }
  const { origins, credentials = false } = cors;
  if (origins === "*" && credentials) {
    throw new TypeError(
      "Cannot create a server: cors allows credentials from all origins, so any web page could send requests as its visitor; list the origins",
    );
  }
  const known = origins === "*" ? undefined : readOrigins(origins);
  return (origin) => !known || known.includes(toOrigin(origin)) ? { credentials } : undefined;
}
