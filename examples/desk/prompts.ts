import { prompt } from "@x/mcp";
import { z } from "zod";
import { note } from "./resources.ts";

/** Asks for a summary of a note. The handler reads the note's resource. */
export const summarize = prompt({
  name: "summarize",
  description: "Summarizes a note",
  input: z.object({ title: z.string() }),
  async run({ title }, { readResource }) {
    const [{ text }] = await readResource(note.uri({ title }));
    return `Summarize this note in one sentence:\n${text}`;
  },
});
