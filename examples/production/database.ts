// The tickets of all tenants in one SQLite file. SQL is only in this file, and every statement contains the tenant.
import { DatabaseSync } from "node:sqlite";
import { service } from "@x/mcp";
import { params } from "./access.ts";
import { config } from "./config.ts";

export interface Ticket {
  readonly id: number;
  readonly title: string;
  readonly state: string;
}

/** Opens a database that other processes may open at the same time. */
export function openDatabase(name: string): DatabaseSync {
  const db = new DatabaseSync(`${config.data}/${name}.db`);
  db.exec("PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL");
  return db;
}

// Opened when the server starts, and closed after its last call.
const database = service("database", () => {
  const db = openDatabase("tickets");
  db.exec(`CREATE TABLE IF NOT EXISTS tickets (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open')`);
  return db;
}, { dispose: (db) => db.close() });

/** The tickets of the tenant to which the caller's path belongs. */
export class Tickets {
  readonly db: DatabaseSync;
  readonly tenant: string;

  constructor(db: DatabaseSync, tenant: string) {
    this.db = db;
    this.tenant = tenant;
  }

  list(state: string): readonly Ticket[] {
    const rows = this.db.prepare("SELECT id, title, state FROM tickets WHERE tenant = ? AND state = ? ORDER BY id");
    return rows.all(this.tenant, state).map(toTicket);
  }

  find(id: number): Ticket | undefined {
    const row = this.db.prepare("SELECT id, title, state FROM tickets WHERE tenant = ? AND id = ?").get(
      this.tenant,
      id,
    );
    return row && toTicket(row);
  }

  open(title: string): number {
    const { lastInsertRowid } = this.db.prepare("INSERT INTO tickets (tenant, title) VALUES (?, ?)")
      .run(this.tenant, title);
    return Number(lastInsertRowid);
  }

  close(id: number): boolean {
    const update = this.db.prepare(
      "UPDATE tickets SET state = 'closed' WHERE tenant = ? AND id = ? AND state = 'open'",
    );
    return update.run(this.tenant, id).changes === 1;
  }
}

function toTicket({ id, title, state }: Record<string, unknown>): Ticket {
  return { id: Number(id), title: String(title), state: String(state) };
}

export const tickets = service("tickets", async ({ get, ctx }) => {
  return new Tickets(await get(database), ctx.route(params).tenant);
}, { per: "call" });
