// Stores the notes of a team in a SQLite database. Each user has an API key, and can read, change and watch only their
// own notes. Environment variables contain the keys and the path of the database. Use the default keys only to try the
// example, because the keys are public.
import { DatabaseSync } from "node:sqlite";
import process from "node:process";
import { type Context, createServer, resource, resourceLink, service, tool, ToolError } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { z } from "zod";

const { ADA_KEY = "ada-demo-key-0123", BOB_KEY = "bob-demo-key-0123", NOTES_DB = "team_notes.db" } = process.env;
const keys = { ada: { key: ADA_KEY, user: "ada" }, bob: { key: BOB_KEY, user: "bob" } };

function userOf({ principal }: Pick<Context, "principal">): string {
  if (typeof principal?.user === "string") return principal.user;
  throw new ToolError("Each note belongs to a user. Connect over HTTP with an API key.");
}

/** The notes of one user, read and written through one connection. */
class Notes {
  readonly connection: DatabaseSync;
  readonly user: string;

  constructor(connection: DatabaseSync, user: string) {
    this.connection = connection;
    this.user = user;
  }

  titles(text = ""): string[] {
    const where = "where user = ? and instr(lower(text), lower(?)) order by title";
    return this.#find(where, text).map(({ title }) => String(title));
  }

  read(title: string): string | undefined {
    const [row] = this.#find("where user = ? and title = ?", title);
    return row && String(row.text);
  }

  write(title: string, text: string): void {
    this.connection.prepare("insert or replace into notes values (?, ?, ?)").run(this.user, title, text);
  }

  remove(title: string): void {
    this.connection.prepare("delete from notes where user = ? and title = ?").run(this.user, title);
  }

  #find(where: string, value: string) {
    return this.connection.prepare(`select title, text from notes ${where}`).all(this.user, value);
  }
}

function open(): DatabaseSync {
  const connection = new DatabaseSync(NOTES_DB);
  // With `wal`, readers do not wait for writers.
  connection.exec("pragma busy_timeout = 2000; pragma journal_mode = wal");
  return connection;
}

/**
 * The connection for reads, and the queue for transactions. Transactions run one at a time, because SQLite allows only
 * one writer.
 */
export const database = service("database", () => {
  const reader = open();
  reader.exec("create table if not exists notes (user text, title text, text text, primary key (user, title))");
  return { reader, last: Promise.resolve() };
}, { dispose: ({ reader }) => reader.close() });

/** The caller's notes, for reads only. */
export const mine = service("mine", async ({ get, key = "" }) => new Notes((await get(database)).reader, key), {
  per: userOf,
});

/** The current call's turn in the queue of transactions. */
const turn = service("turn", async ({ get }) => {
  const queue = await get(database);
  const before = queue.last;
  const { promise, resolve } = Promise.withResolvers<void>();
  queue.last = promise;
  await before;
  return resolve;
}, { per: "call", dispose: (end) => end() });

/**
 * The caller's notes within a transaction that ends with the call. Each transaction has its own connection. Otherwise,
 * a handler that continues after its call was cancelled could write in another call's transaction.
 */
export const transaction = service("transaction", async ({ get, ctx }) => {
  await get(turn);
  const notes = new Notes(open(), userOf(ctx));
  notes.connection.exec("begin immediate");
  return notes;
}, {
  per: "call",
  dispose({ connection }, end) {
    using _ = connection;
    connection.exec(end === "result" ? "commit" : "rollback");
  },
});

export const note = resource({
  uri: "note://{user}/{title}",
  name: "note",
  services: { mine },
  // `note` is undefined for list requests. Other users get the error of a missing note, and no notifications of
  // changes.
  allow: ({ principal }, note) => !note || note.user === principal?.user,
  list: ({ services: { mine } }) => mine.titles().map((title) => ({ uri: uriOf(mine, title), name: title })),
  read: ({ title }, { services: { mine } }) => mine.read(title),
});

const uriOf = ({ user }: Notes, title: string): string => note.uri({ user, title });

/** Notifies subscribers after the transaction was committed. Does nothing if the transaction was rolled back. */
function announce(ctx: Pick<Context, "defer" | "server">, uri: string): void {
  ctx.defer((end) => end === "result" && ctx.server.resourceUpdated(uri));
}

export const write = tool({
  name: "write",
  title: "Write a note",
  description: "Writes a note, or replaces it",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: z.object({ title: z.string().regex(/^[\w-]{1,64}$/), text: z.string().max(10_000) }),
  services: { notes: transaction },
  run: ({ title, text }, ctx) => {
    const { notes } = ctx.services;
    notes.write(title, text);
    announce(ctx, uriOf(notes, title));
    return [`Saved ${title}.`, resourceLink(uriOf(notes, title))];
  },
});

export const search = tool({
  name: "search",
  title: "Search notes",
  description: "Finds notes that contain a text",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ text: z.string().min(1) }),
  services: { mine },
  run({ text }, { services: { mine } }) {
    const titles = mine.titles(text);
    if (!titles.length) return "Nothing found.";
    return [`Found: ${titles.join(", ")}`, ...titles.map((title) => resourceLink(uriOf(mine, title)))];
  },
});

export const remove = tool({
  name: "remove",
  title: "Remove a note",
  description: "Removes a note, if the user agrees",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: z.object({ title: z.string() }),
  requires: ["elicitation"],
  services: { mine },
  run: async ({ title }, ctx) => {
    if (ctx.services.mine.read(title) === undefined) throw new ToolError("There is no such note.");
    const answer = await ctx.elicit("sure", { message: `Remove the note ${title}?`, schema: z.object({}) });
    if (answer.action !== "accept") return "The user keeps the note.";
    // Begin the transaction after the user's answer. Otherwise, all other transactions would wait for the answer.
    const notes = await ctx.get(transaction);
    notes.remove(title);
    announce(ctx, uriOf(notes, title));
    return "Removed.";
  },
});

export default createServer({
  name: "team-notes",
  version: "1.0.0",
  auth: apiKey({ keys }),
  handlers: [write, search, remove, note],
});
