// An endpoint for each tenant at /tenants/:tenant/mcp. Each tenant has its own notes in one SQLite file. TENANTS_DB is
// the path of the file.
import { createServer, resource, service, tool } from "@x/mcp";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";

const pathSchema = z.object({ tenant: z.string().regex(/^[a-z][a-z0-9-]{0,30}$/) });

// One database for all tenants. Handlers access the database only through the service `notes`.
const db = service("db", () => {
  const db = new DatabaseSync(process.env.TENANTS_DB ?? ":memory:");
  db.exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, text TEXT NOT NULL)");
  return db;
}, { dispose: (db) => db.close() });

// The notes of the tenant in the path of the call. All SQL is here, and every statement filters by tenant.
const notes = service("notes", async ({ get, ctx }) => {
  const sql = await get(db);
  const { tenant } = ctx.pathParams(pathSchema);
  return {
    add: (text: string) =>
      Number(sql.prepare("INSERT INTO notes (tenant, text) VALUES (?, ?)").run(tenant, text).lastInsertRowid),
    list: () =>
      sql.prepare("SELECT id, text FROM notes WHERE tenant = ? ORDER BY id").all(tenant)
        .map(({ id, text }) => `${id}: ${text}`),
    find: (id: number) => {
      const row = sql.prepare("SELECT text FROM notes WHERE tenant = ? AND id = ?").get(tenant, id);
      return row && String(row.text);
    },
    clear: () => Number(sql.prepare("DELETE FROM notes WHERE tenant = ?").run(tenant).changes),
  };
}, { per: "call" });

const whoami = tool({
  name: "whoami",
  title: "Who am I?",
  description: "Returns the name of the tenant",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: (_, { pathParams }) => pathParams(pathSchema).tenant,
});

const addNote = tool({
  name: "add_note",
  title: "Add a note",
  description: "Adds a note",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: z.object({ text: z.string().min(1) }),
  services: { notes },
  run: ({ text }, { services: { notes } }) => `Added note ${notes.add(text)}.`,
});

const listNotes = tool({
  name: "list_notes",
  title: "List notes",
  description: "Lists all notes of the tenant",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  services: { notes },
  run: (_, { services: { notes } }) => notes.list().join("\n") || "There are no notes.",
});

// Only the tenant "acme" can see and call this tool.
const clearNotes = tool({
  name: "clear_notes",
  title: "Clear notes",
  description: "Removes all notes of the tenant",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  services: { notes },
  run: (_, { services: { notes } }) => `Removed ${notes.clear()} notes.`,
});

const note = resource({
  uri: "note://{id}",
  name: "note",
  variables: z.object({ id: z.coerce.number().int() }),
  services: { notes },
  read: ({ id }, { services: { notes } }) => notes.find(id),
});

export default createServer({
  name: "tenants",
  version: "1.0.0",
  path: "/tenants/:tenant/mcp",
  pathSchema,
  handlers: ({ tenant }) => [whoami, addNote, listNotes, note, ...tenant === "acme" ? [clearNotes] : []],
});
