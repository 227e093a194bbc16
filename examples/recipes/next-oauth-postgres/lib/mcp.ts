// The MCP server: users sign in with OAuth, their notes are in PostgreSQL, and instances share a store there.
import { createServer, tool } from "@x/mcp";
import { requirePrincipal } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import { health } from "@x/mcp/observe";
import { postgresStore } from "@x/mcp/stores/postgres";
import pg from "pg";
import { z } from "zod";

const { DATABASE_URL, MCP_ISSUER, MCP_RESOURCE, MCP_SECRET } = process.env;

// `next build` loads this file without the values of production, so nothing connects before the first request.
const pool = new pg.Pool({ connectionString: DATABASE_URL });
let created: Promise<unknown> | undefined;

async function query<Row extends pg.QueryResultRow>(text: string, values: readonly string[]): Promise<Row[]> {
  created ??= pool.query("CREATE TABLE IF NOT EXISTS notes (owner text, text text, at timestamptz DEFAULT now())")
    .catch((error: unknown) => {
      created = undefined;
      throw error;
    });
  await created;
  return (await pool.query<Row>(text, [...values])).rows;
}

const list = tool({
  name: "list_notes",
  title: "List notes",
  description: "Returns the notes of the user, the newest first",
  scopes: ["notes:read"],
  annotations: { readOnlyHint: true },
  run: async (_input, ctx) => {
    const rows = await query<{ text: string }>(
      "SELECT text FROM notes WHERE owner = $1 ORDER BY at DESC LIMIT 50",
      [requirePrincipal(ctx).id],
    );
    return { notes: rows.map(({ text }) => text) };
  },
});

const add = tool({
  name: "add_note",
  title: "Add a note",
  description: "Adds a note of the user",
  scopes: ["notes:read", "notes:write"],
  input: z.object({ text: z.string().min(1) }),
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  run: async ({ text }, ctx) => {
    await query("INSERT INTO notes (owner, text) VALUES ($1, $2)", [requirePrincipal(ctx).id, text]);
    return "Added.";
  },
});

const resource = MCP_RESOURCE ?? "http://localhost:3000/mcp";

export const mcp = createServer({
  name: "notes",
  version: "1.0.0",
  handlers: [list, add],
  auth: oauth({
    resource,
    issuers: MCP_ISSUER ? [MCP_ISSUER] : ["https://login.example.com"],
    scopes: ["notes:read"],
  }),
  secret: MCP_SECRET,
  store: DATABASE_URL ? postgresStore(() => new pg.Pool({ connectionString: DATABASE_URL })) : undefined,
  hosts: [new URL(resource).hostname],
  routes: [health()],
});
