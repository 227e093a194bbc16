// The callers and their permissions. Each tenant has its own path, and a token is valid for a single path.
import type { Context } from "@x/mcp";
import { findPrincipal } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import { z } from "zod";
import { config } from "./config.ts";

export const path = "/tenants/:tenant/mcp";
export const params = z.object({ tenant: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/) });

const roles = z.array(z.enum(["agent", "manager"]));

export const people = oauth({
  resource: ({ tenant }) => `${config.origin}/tenants/${tenant}/mcp`,
  issuers: [config.issuer],
  scopes: ["tickets:read"], // Clients request these scopes first. Each handler lists the scopes that it needs.
  claims: z.looseObject({ roles: roles.default([]) }),
});

type Role = z.infer<typeof roles>[number];

/** Returns a function for the option `allow` of a handler. It tests whether the caller has a role. */
export const has = (role: Role) => (ctx: Pick<Context, "principal">): boolean =>
  findPrincipal(ctx, people)?.claims.roles.includes(role) === true;
