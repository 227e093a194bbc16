// A server for desktop clients, which start it over stdio. The user chooses the folder when installing the bundle.
import { createServer, tool, ToolError } from "@x/mcp";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import process from "node:process";
import { z } from "zod";

const folder = () => process.env.NOTES ?? ".";

async function list(): Promise<string[]> {
  const files = await readdir(folder(), { withFileTypes: true });
  return files.filter((file) => file.isFile() && file.name.endsWith(".md")).map(({ name }) => name);
}

const search = tool({
  name: "search_notes",
  title: "Search notes",
  description: "Returns the names of the notes that contain a text",
  input: z.object({ text: z.string().min(1) }),
  annotations: { readOnlyHint: true },
  async run({ text }) {
    const names = await list();
    const texts = await Promise.all(names.map((name) => readFile(join(folder(), name), "utf8")));
    return { names: names.filter((_, at) => texts[at].toLowerCase().includes(text.toLowerCase())) };
  },
});

const read = tool({
  name: "read_note",
  title: "Read a note",
  description: "Returns the text of a note",
  input: z.object({ name: z.string() }),
  annotations: { readOnlyHint: true },
  async run({ name }) {
    // A name with a path must not lead out of the folder.
    if (name !== basename(name) || !(await list()).includes(name)) throw new ToolError(`There is no note ${name}.`);
    return await readFile(join(folder(), name), "utf8");
  },
});

export default createServer({
  name: "notes",
  version: "1.0.0",
  title: "Notes",
  description: "Searches and reads the notes in a folder",
  handlers: [search, read],
});
