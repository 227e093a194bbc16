/**
 * Adds CORS headers to responses, and responds to preflight requests.
 */
import type { ConnectionInfo } from "./access.ts";
import type { Grant } from "./cors.ts";

const ALLOWED =
  "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id";
const EXPOSED = "mcp-session-id, www-authenticate, retry-after";
/**
 * Seconds for which browsers may cache a preflight response. Chromium caches preflight responses for at most two hours.
 */
const MAX_AGE = "7200";

/** The origins that may call the server, and the headers that their pages may send beside those of the protocol. */
export interface CorsParts {
  readonly rule: (origin: string) => Grant | undefined;
  readonly headers: readonly string[];
}

export function withCors(
  { rule, headers }: CorsParts,
  fetch: (request: Request, info?: ConnectionInfo) => Promise<Response>,
): (request: Request, info?: ConnectionInfo) => Promise<Response> {
  return async (request, info) => {
    const origin = request.headers.get("origin");
    const grant = origin === null ? undefined : rule(origin);
    if (origin === null || !grant) return await fetch(request, info);
    const asks = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    const response = asks
      ? new Response(null, { status: 204, headers: toPreflight(request, headers) })
      : await fetch(request, info);
    response.headers.set("access-control-allow-origin", origin);
    response.headers.set("access-control-expose-headers", EXPOSED);
    response.headers.append("vary", "origin");
    if (grant.credentials) response.headers.set("access-control-allow-credentials", "true");
    return response;
  };
}

// Allow every requested header that repeats a tool argument, because the names of these headers depend on the tool.
function toPreflight(request: Request, headers: readonly string[]): Record<string, string> {
  const asked = (request.headers.get("access-control-request-headers") ?? "").toLowerCase().split(",");
  const mirrored = asked.map((name) => name.trim()).filter((name) => /^mcp-param-[\w!#$%&'*+.^`|~-]+$/.test(name));
  return {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": [ALLOWED, ...headers, ...mirrored].join(", "),
    "access-control-max-age": MAX_AGE,
  };
}
