// An API with an OpenAPI document as a server. Each user calls the API with their own key.
import { createServer, type Server } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { openapi } from "@x/mcp/openapi";
import { readFile } from "node:fs/promises";

/** The users: the key with which they call this server, and their key for the API. */
export interface User {
  readonly key: string;
  readonly apiKey: string;
}

export interface Settings {
  /** The users, by name. */
  readonly users: Readonly<Record<string, User>>;
  /** The URL of the API. */
  readonly baseUrl: string;
  readonly hosts?: readonly string[];
  /** Replaces `fetch` in tests. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

export async function create({ users, baseUrl, hosts, fetch }: Settings): Promise<Server> {
  const document = JSON.parse(await readFile(new URL("api.json", import.meta.url), "utf8"));
  const api = openapi(document, {
    baseUrl,
    fetch,
    // The id of a caller begins with the kind of its authentication.
    auth: { key: (ctx) => users[ctx.principal?.id.replace(/^apikey:/, "") ?? ""]?.apiKey },
  });
  const keys = Object.fromEntries(Object.entries(users).map(([name, { key }]) => [name, key]));
  return createServer({
    name: "tickets",
    version: "1.0.0",
    handlers: [api],
    auth: apiKey({ keys }),
    hosts,
  });
}
