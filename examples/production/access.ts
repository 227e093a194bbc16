// The callers and their permissions. Each tenant has its own path, and a token is valid for the path of one tenant.
import type { Context } from "@x/mcp";
import { findPrincipal, refuseRequest } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import type { AdmitInfo } from "@x/mcp/types";
import { z } from "zod";
import { config } from "./config.ts";

export const path = "/tenants/:tenant/mcp";
export const pathSchema = z.object({ tenant: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/) });

export const people = oauth({
  resource: ({ tenant }) => `${config.origin}/tenants/${tenant}/mcp`,
  issuers: [config.issuer],
  scopes: ["tickets:read"], // Clients request these scopes first. Each handler lists the scopes that it needs.
  claims: z.looseObject({ roles: z.array(z.string()).default([]) }),
});

type Role = "agent" | "manager";
type Caller = Pick<Context, "principal" | "pathParams">;

/**
 * Returns the caller's roles at the tenant in the path. For the role "agent" at the tenant "acme", the claim `roles`
 * contains "acme:agent". The claim may also contain unrelated roles, because some authorization servers add roles of
 * their own.
 */
function readRoles({ principal, pathParams }: Caller): readonly string[] {
  const { tenant } = pathParams(pathSchema);
  const all = findPrincipal({ principal }, people)?.claims.roles ?? [];
  return all.filter((role) => role.startsWith(`${tenant}:`)).map((role) => role.slice(tenant.length + 1));
}

/**
 * Admits callers with at least one role at the tenant, such as "acme:member". A caller without a principal is the user
 * who runs the command line on this machine, because over HTTP, `auth` has already rejected requests without a
 * principal.
 */
export const admit = (caller: AdmitInfo) =>
  !caller.principal || readRoles(caller).length > 0 ||
  refuseRequest(403, { reason: "you are not a member of this tenant" });

/** Returns a value for the option `allow` of a handler: a function that tests whether the caller has a role. */
export const has = (role: Role) => (caller: Caller): boolean => readRoles(caller).includes(role);
