// A server with a path for each tenant, in place of examples/workers/server.ts.
import { createServer, type Server, tool } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
// @ts-ignore: only Workers have this module.
import { env } from "cloudflare:workers";
import { z } from "zod";

const pathSchema = z.object({ tenant: z.string() });

let servers = 0;

export function create(): Server {
  const number = ++servers;
  const which = tool({
    name: "which_server",
    run: () => `${number}`,
    allow: ({ principal, pathParams }) => principal?.tenant === pathParams(pathSchema).tenant,
  });
  const count = tool({ name: "count_servers", run: () => `${servers}` });
  const keys = {
    ada: { key: env.ADA_KEY, tenant: "acme" },
    eve: { key: env.EVE_KEY, tenant: "acme" },
    bob: { key: env.BOB_KEY, tenant: "globex" },
  };
  const path = "/tenants/:tenant/mcp";
  const auth = apiKey({ keys });
  return createServer({ name: "tenants", version: "1.0.0", path, pathSchema, auth, handlers: [which, count] });
}
