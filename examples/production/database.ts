// The tickets of all tenants in one SQLite file. SQL is only in this file, and every statement contains the tenant. The
// methods are asynchronous, so that a database on another machine can replace SQLite without changes in other files.
import { DatabaseSync } from "node:sqlite";
import { service } from "@x/mcp";
import { pathSchema } from "./access.ts";
import { config } from "./config.ts";

export interface Ticket {
  readonly id: number;
  readonly title: string;
  readonly state: string;
}

export interface Tickets {
  list(state: string): Promise<readonly Ticket[]>;
  find(id: number): Promise<Ticket | undefined>;
  /** Opens a ticket. Returns its number. */
  open(title: string): Promise<number>;
  /** Returns `false` if no open ticket has this number. */
  close(id: number): Promise<boolean>;
}

/** Opens a database that other processes can use at the same time. */
export function openDatabase(name: string): DatabaseSync {
  const db = new DatabaseSync(`${config.data}/${name}.db`);
  db.exec("PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL");
  return db;
}

// The server opens the database at startup, because `tickets` lists this service in `uses`, and closes the database
// after the last call.
const database = service("database", () => {
  const db = openDatabase("tickets");
  db.exec(`CREATE TABLE IF NOT EXISTS tickets (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open')`);
  return db;
}, { dispose: (db) => db.close() });

/** The tickets of the tenant in the path of the call. */
export const tickets = service("tickets", async ({ get, ctx }) => {
  return toTickets(await get(database), ctx.pathParams(pathSchema).tenant);
}, { per: "call", uses: [database] });

function toTickets(db: DatabaseSync, tenant: string): Tickets {
  const columns = "SELECT id, title, state FROM tickets WHERE tenant = ?";
  const close = "UPDATE tickets SET state = 'closed' WHERE tenant = ? AND id = ? AND state = 'open'";
  return {
    async list(state) {
      return await db.prepare(`${columns} AND state = ? ORDER BY id`).all(tenant, state).map(toTicket);
    },
    async find(id) {
      const row = await db.prepare(`${columns} AND id = ?`).get(tenant, id);
      return row && toTicket(row);
    },
    async open(title) {
      const insert = db.prepare("INSERT INTO tickets (tenant, title) VALUES (?, ?)");
      return Number((await insert.run(tenant, title)).lastInsertRowid);
    },
    async close(id) {
      return (await db.prepare(close).run(tenant, id)).changes === 1;
    },
  };
}

function toTicket({ id, title, state }: Record<string, unknown>): Ticket {
  return { id: Number(id), title: String(title), state: String(state) };
}
