// Serves notes to a web page of another origin. The page is in `page/`, and `site.ts` serves it. With ISSUER, users sign
// in at this authorization server, and each user has their own notes.
//
//   deno run -A examples/browser/server.ts
//   bun examples/browser/server.ts
import process from "node:process";
import { type Context, createServer, tool } from "@x/mcp";
import { confirm } from "@x/mcp/layers";
import { oauth } from "@x/mcp/oauth";
import { serve } from "@x/mcp/serve";
import { webMcp } from "@x/mcp/web";
import { z } from "zod";

const { PORT = "8000", SITE = "http://127.0.0.1:5173", ISSUER } = process.env;

const notes = new Map<string | undefined, string[]>();
const notesOf = ({ principal }: Pick<Context, "principal">) => notes.get(principal?.id) ?? [];

const list = tool({
  name: "list_notes",
  title: "List notes",
  description: "Lists the notes",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: (_, ctx) => notesOf(ctx).join("\n") || "There are no notes.",
});

const add = tool({
  name: "add_note",
  title: "Add a note",
  description: "Adds a note",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: z.object({ text: z.string().min(1) }),
  run({ text }, ctx) {
    notes.set(ctx.principal?.id, [...notesOf(ctx), text]);
    if (!server.handlers.get("tool", clear.name)) server.handlers.add(clear); // notifies the page
    return "Added.";
  },
});

const clear = tool({
  name: "clear_notes",
  title: "Clear notes",
  description: "Deletes all notes",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  use: [confirm((_, ctx) => `Delete ${notesOf(ctx).length} notes?`)],
  run(_, ctx) {
    notes.delete(ctx.principal?.id);
    if (!notes.size) server.handlers.remove(clear);
    return "Deleted.";
  },
});

const server = createServer({
  name: "notes",
  version: "1.0.0",
  handlers: [list, add],
  cors: { origins: [SITE] },
  routes: [webMcp()],
  ...ISSUER
    ? { auth: oauth({ resource: `http://127.0.0.1:${PORT}/mcp`, issuers: [ISSUER], scopes: ["notes:read"] }) }
    : {},
});

const { url } = await serve(server, { port: Number(PORT) });
console.error(`Serving ${url} to pages of ${SITE}`);
