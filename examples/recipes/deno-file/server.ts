// A server in one file, for Deno. Its notes are in the file notes.json.
import { createServer, tool, ToolError } from "@x/mcp";
import { z } from "zod";

const path = Deno.env.get("NOTES") ?? "notes.json";

async function read(): Promise<Record<string, string>> {
  const text = await Deno.readTextFile(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return "{}";
    throw error;
  });
  return JSON.parse(text);
}

const readNote = tool({
  name: "read_note",
  title: "Read a note",
  description: "Returns a note by its title, or the titles of all notes",
  input: z.object({ title: z.string().optional() }),
  annotations: { readOnlyHint: true },
  async run({ title }) {
    const notes = await read();
    if (title === undefined) return { titles: Object.keys(notes) };
    if (!Object.hasOwn(notes, title)) throw new ToolError(`There is no note ${title}.`);
    return notes[title];
  },
});

const writeNote = tool({
  name: "write_note",
  title: "Write a note",
  description: "Writes a note, and replaces a note with the same title",
  input: z.object({ title: z.string().min(1), text: z.string() }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ title, text }) {
    await Deno.writeTextFile(path, JSON.stringify({ ...await read(), [title]: text }));
    return `Wrote ${title}.`;
  },
});

export default createServer({ name: "notes", version: "1.0.0", handlers: [readNote, writeNote] });
