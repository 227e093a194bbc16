/**
 * Tells apps in this process who called.
 */
import type { Principal } from "../../library.ts";

const principals = new WeakMap<Request, Principal>();

/** Notes the caller of a request that this process sends to itself. */
export function setPrincipal(request: Request, principal: Principal | undefined): void {
  if (principal) principals.set(request, principal);
}

/**
 * Returns the caller on whose behalf `openapi` has sent a request to an app in this process. Returns `undefined` for an
 * anonymous caller, and for every other request, so a client cannot forge it, such as with a header.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { openapi, principalOf } from "@x/mcp/openapi";
 *
 * const app = { fetch: (request: Request) => new Response(principalOf(request)?.id ?? "nobody") };
 * const document = { openapi: "3.1.0", paths: { "/me": { get: { operationId: "whoami" } } } };
 *
 * export default createServer({ name: "me", version: "1.0.0", handlers: [openapi(document, { fetch: app.fetch })] });
 * ```
 */
export function principalOf(request: Request): Principal | undefined {
  return principals.get(request);
}
