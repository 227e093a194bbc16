/**
 * Lets web pages of other origins call the server from a browser.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 * @module
 */
import { readOrigins, toOrigin } from "./access.ts";

/** Pages of which origins may call. */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `"*"` is every page there is. */
  readonly origins: readonly string[] | "*";
  /** Whether the browser sends cookies and the like along. */
  readonly credentials?: boolean;
}

/**
 * `"none"` lets no page of another origin in. A function decides for one origin at a time.
 */
export type Cors = "none" | CorsOptions | ((origin: string) => boolean | { readonly credentials: boolean });

/** What a page was granted. */
export interface Grant {
  readonly credentials: boolean;
}

/** Makes the function that says what pages of an origin may do; nothing, if they may not call. Errors are reported. */
export function corsRule(
  cors: Cors = "none",
  report: (error: unknown) => unknown,
): (origin: string) => Grant | undefined {
  if (cors === "none") return () => undefined;
  if (typeof cors === "function") {
    return (origin) => {
      // A caller can write anything as its origin: a function that fails over it lets nobody in.
      try {
        const granted = cors(origin);
        if (granted === true) return { credentials: false };
        // A promise, which is no answer, has no such field: it must not let everybody in.
        if (granted && typeof granted.credentials === "boolean") return granted;
      } catch (error) {
        report(error);
      }
    };
  }
  const { origins, credentials = false } = cors;
  if (origins === "*" && credentials) {
    throw new TypeError(
      'Cannot set cors: credentials for every page ("*") would lend every user to every page; list origins',
    );
  }
  const known = origins === "*" ? undefined : readOrigins(origins);
  return (origin) => !known || known.includes(toOrigin(origin)) ? { credentials } : undefined;
}
