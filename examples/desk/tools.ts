import { tool, ToolError } from "@x/mcp";
import { z } from "zod";
import { store } from "./store.ts";

const title = z.string().regex(/^[\w-]+$/).describe("Letters, digits, _ and -");

export const write = tool({
  name: "write",
  title: "Write a note",
  description: "Writes a note",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  input: z.object({ title, text: z.string() }),
  services: { store },
  run({ title, text }, { services: { store }, server }) {
    const isNew = !store.has(title);
    store.set(title, text);
    if (isNew) server.listChanged("resources");
    else server.resourceUpdated(`note://${title}`);
    return `Wrote ${title}.`;
  },
});

/** Removes a note. The server shows this tool only to callers who have signed in. */
export const remove = tool({
  name: "remove",
  title: "Remove a note",
  description: "Removes a note",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
  tags: ["signed-in"],
  input: z.object({ title }),
  services: { store },
  run({ title }, { services: { store }, server }) {
    if (!store.delete(title)) throw new ToolError(`There is no note ${title}.`);
    server.listChanged("resources");
    return `Removed ${title}.`;
  },
});
