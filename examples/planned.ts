// A tool that deletes notes only as planned: the model first calls `plan_delete_notes`, which shows the notes that would
// be deleted, and then `delete_notes` with the plan. The user reads the plan in the question of `confirm`.
//
// Connect to it with `mcp inspect examples/planned.ts`.
import { createServer, tool } from "@x/mcp";
import { confirm, planned } from "@x/mcp/layers";
import { z } from "zod";

const notes = new Map([
  ["Milk", "shopping"],
  ["Bread", "shopping"],
  ["Call Ada", "calls"],
]);

const find = (tag: string) => [...notes].flatMap(([title, its]) => its === tag ? [title] : []);

const add = tool({
  name: "add_note",
  title: "Add a note",
  description: "Adds a note with a tag",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({ title: z.string(), tag: z.string() }),
  run: ({ title, tag }) => void notes.set(title, tag),
});

const remove = tool({
  name: "delete_notes",
  title: "Delete notes",
  description: "Deletes all notes with a tag",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({ tag: z.string() }),
  use: [confirm("Delete these notes?")],
  run: ({ tag }) => ({ deleted: find(tag).filter((title) => notes.delete(title)) }),
});

export default createServer({
  name: "notes",
  version: "1.0.0",
  handlers: [add, ...planned(remove, { plan: ({ tag }) => find(tag) })],
});
