// Visibility by role: users sign in and see the tools of their roles. The claim `roles` of an access token contains the
// roles. Scripts use an API key instead of signing in. Environment variables contain the server's public URL, the
// issuer and the script's API key. Without an API key in the environment, no script can call tools.
import process from "node:process";
import { type Context, createServer, tool } from "@x/mcp";
import { allScopes, apiKey, findPrincipal, requirePrincipal } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import { z } from "zod";

const { MCP_RESOURCE = "http://localhost:3000/mcp", MCP_ISSUER = "https://login.example.com", SCRIPT_KEY } =
  process.env;

const roles = z.array(z.enum(["support", "finance"]));
const people = oauth({
  resource: MCP_RESOURCE,
  issuers: [MCP_ISSUER],
  // The schema rejects a token without roles, or with an unknown role.
  claims: z.looseObject({ roles, name: z.string().optional() }),
});
const scripts = apiKey({
  keys: { nightly: { key: SCRIPT_KEY ?? crypto.randomUUID(), scopes: allScopes } },
  header: "x-api-key",
});

type Role = z.infer<typeof roles>[number];
type Caller = Pick<Context, "principal">;

/** Returns a function that tests whether the caller has signed in and has one of these roles. */
const has = (...wanted: readonly Role[]) => (ctx: Caller): boolean =>
  findPrincipal(ctx, people)?.claims.roles.some((role) => wanted.includes(role)) === true;

const orders = new Map([["A-17", { item: "tea", price: 12, refunded: false }]]);

export const find = tool({
  name: "find_order",
  title: "Find an order",
  description: "Finds an order by its number",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ number: z.string() }),
  allow: has("support", "finance"),
  run: ({ number }) => orders.get(number) ?? "There is no such order.",
});

export const refund = tool({
  name: "refund",
  title: "Refund an order",
  description: "Refunds an order",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: z.object({ number: z.string() }),
  allow: has("finance"),
  run({ number }, ctx) {
    const { claims: { name = "Somebody" } } = requirePrincipal(ctx, people);
    const order = orders.get(number);
    if (!order) return "There is no such order.";
    order.refunded = true;
    return `${name} refunded ${number}.`;
  },
});

export const total = tool({
  name: "total",
  title: "Total",
  description: "Adds up all orders that are not refunded",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  allow: (ctx) => findPrincipal(ctx, scripts) !== undefined || has("finance")(ctx),
  run: () => [...orders.values()].reduce((sum, { price, refunded }) => refunded ? sum : sum + price, 0),
});

export default createServer({
  name: "orders",
  version: "1.0.0",
  auth: [people, scripts],
  handlers: [find, refund, total],
});
