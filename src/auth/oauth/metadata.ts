/**
 * Serves the protected resource metadata (RFC 9728), from which clients learn the authorization servers.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
import type { AuthRoute, PathInfo } from "../../server/engine/auth.ts";

/** An endpoint that serves the metadata of one resource. */
export interface MetadataRoute extends AuthRoute {
  /** Responds to GET and HEAD with the metadata, and to preflight requests. */
  readonly fetch: (request: Request) => Response;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/**
 * Returns the metadata URL of a resource: inserts the well-known path between the host and the path of the resource.
 */
export function toMetadataUrl({ origin, pathname, search }: URL): string {
  return `${origin}${WELL_KNOWN}${pathname === "/" ? "" : pathname}${search}`;
}

/**
 * Creates the metadata endpoints for a server with a single resource. If `atRoot` is set, also serves the metadata at
 * the well-known path without the path of the resource.
 */
export function fixedRoutes(
  resource: URL,
  { json, atRoot }: { readonly json: string; readonly atRoot: boolean },
): readonly MetadataRoute[] {
  const fetch = ({ method }: Request) => respond(method, json);
  const path = new URL(toMetadataUrl(resource)).pathname;
  const paths = atRoot && path !== WELL_KNOWN ? [path, WELL_KNOWN] : [path];
  return paths.map((path) => ({ path, fetch }));
}

/**
 * Creates the metadata endpoint for a path with parameters. `toJson` returns the metadata of one concrete path.
 */
export function pathRoutes(path: string, toJson: (info: PathInfo) => string): readonly AuthRoute[] {
  return [{ path: WELL_KNOWN + path, fetch: ({ method }, info) => respond(method, toJson(info)) }];
}

// Allow web pages of any origin to read the metadata. MCP clients in browsers send additional headers, so the browser
// sends a preflight request first.
const OPEN = { "access-control-allow-origin": "*" };
const PREFLIGHT = {
  ...OPEN,
  "access-control-allow-methods": "GET",
  "access-control-allow-headers": "*",
  "access-control-max-age": "86400",
};

/** Responds to a request for public metadata. */
export function respond(method: string, json: string): Response {
  if (method === "GET" || method === "HEAD") {
    return new Response(method === "GET" ? json : null, { headers: { ...OPEN, "content-type": "application/json" } });
  }
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: PREFLIGHT });
  return new Response(null, { status: 405, headers: { ...OPEN, allow: "GET, HEAD, OPTIONS" } });
}
