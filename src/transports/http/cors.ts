/**
 * Lets web pages of other origins call the server from a browser.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 * @module
 */
import { type ConnectionInfo, readOrigins, toOrigin } from "./access.ts";

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
interface Grant {
  readonly credentials: boolean;
}

const ALLOWED = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, " +
  "mcp-session-id";
const EXPOSED = "mcp-session-id, www-authenticate, retry-after";
/** Seconds for which a browser need not ask again; more than two hours no browser takes. */
const MAX_AGE = "7200";

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

/** Puts the headers of the rule on what `fetch` answers, and answers the browser's question beforehand. */
export function withCors(
  rule: (origin: string) => Grant | undefined,
  fetch: (request: Request, info?: ConnectionInfo) => Promise<Response>,
): (request: Request, info?: ConnectionInfo) => Promise<Response> {
  return async (request, info) => {
    const origin = request.headers.get("origin");
    const grant = origin === null ? undefined : rule(origin);
    if (origin === null || !grant) return await fetch(request, info);
    const asks = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    const response = asks
      ? new Response(null, { status: 204, headers: toPreflight(request) })
      : await fetch(request, info);
    response.headers.set("access-control-allow-origin", origin);
    response.headers.set("access-control-expose-headers", EXPOSED);
    response.headers.append("vary", "origin");
    if (grant.credentials) response.headers.set("access-control-allow-credentials", "true");
    return response;
  };
}

// Headers that mirror a tool's parameters have names that only the tool knows: those that are asked for are granted.
function toPreflight(request: Request): Record<string, string> {
  const asked = (request.headers.get("access-control-request-headers") ?? "").toLowerCase().split(",");
  const mirrored = asked.map((name) => name.trim()).filter((name) => /^mcp-param-[\w!#$%&'*+.^`|~-]+$/.test(name));
  return {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": [ALLOWED, ...mirrored].join(", "),
    "access-control-max-age": MAX_AGE,
  };
}
