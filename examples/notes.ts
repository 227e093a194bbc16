// Notes that a model can write, search and read: tools, resources, a prompt, completion, progress and an elicitation.
import { createServer, prompt, resource, resourceLink, tool, ToolError } from "@x/mcp";
import { z } from "zod";

const notes = new Map<string, string>([
  ["shopping", "Milk, bread, a birthday present for Ada"],
  ["ideas", "A clock that runs backwards on Sundays"],
]);

const title = z.string().regex(/^[\w-]+$/).describe("Letters, digits, _ and -");

/** Returns all titles that begin with the text that the user has typed. */
function completeTitle(value: string): string[] {
  return [...notes.keys()].filter((title) => title.startsWith(value));
}

// Each note is a resource. The handler creates the list of notes for each list request.
const note = resource({
  uri: "note://{title}",
  name: "note",
  description: "One note",
  complete: { title: completeTitle },
  list: () => [...notes.keys()].map((title) => ({ uri: `note://${title}`, name: title })),
  read: ({ title }) => notes.get(title), // If it returns undefined, the client gets the error for a missing resource.
});

const write = tool({
  name: "write",
  title: "Write a note",
  description: "Writes a note. Overwrites an existing note only if the user agrees.",
  input: z.object({ title, text: z.string() }),
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  run: async ({ title, text }, ctx) => {
    if (notes.has(title)) {
      const schema = z.object({ overwrite: z.boolean().describe("Lose what is there now?") });
      const answer = await ctx.elicit("overwrite", { message: `There is a note ${title}.`, schema });
      if (answer.action !== "accept" || !answer.content.overwrite) throw new ToolError("The user keeps the old note.");
    }
    notes.set(title, text); // Write after the last question, because this function runs again after each answer.
    const uri = note.uri({ title });
    ctx.server.resourceUpdated(uri);
    return [`Saved ${title}.`, resourceLink(uri)]; // Some clients pass only the text to the model.
  },
});

const search = tool({
  name: "search",
  title: "Search notes",
  description: "Finds notes that contain a text",
  input: z.object({ text: z.string().min(1) }),
  output: z.object({ titles: z.array(z.string()) }),
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: async ({ text }, ctx) => {
    const titles: string[] = [];
    let seen = 0;
    for (const [title, body] of notes) {
      await ctx.progress(++seen, { total: notes.size, message: title });
      if (body.toLowerCase().includes(text.toLowerCase())) titles.push(title);
    }
    return { titles };
  },
});

const summarize = prompt({
  name: "summarize",
  description: "Asks for a summary of one note",
  input: z.object({ title: z.string() }),
  complete: { title: completeTitle },
  run: ({ title }) => `Summarize this note in one sentence:\n\n${notes.get(title) ?? "(there is no such note)"}`,
});

export default createServer({
  name: "notes",
  version: "1.0.0",
  instructions: "Search before you write: the note may be there already.",
  handlers: [search, write, note, summarize],
});
