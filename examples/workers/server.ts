// The MCP server of worker.ts. Each user has a list of notes, and gets a notification when a note is added.
import { createServer, resource, type Server, tool } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { env } from "cloudflare:workers";
import { z } from "zod";

/** Creates a server. Each Durable Object needs a server of its own, because objects cannot share I/O. */
export function create(): Server {
  const texts: string[] = []; // in production, store the notes in the storage of the object

  const notes = resource({ name: "notes", uri: "notes://all", read: () => texts.join("\n") });

  const addNote = tool({
    name: "add_note",
    title: "Add a note",
    description: "Adds a note, after the user has confirmed it",
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    input: z.object({ text: z.string().min(1) }),
    run: async ({ text }, ctx) => {
      const answer = await ctx.elicit("confirm", {
        message: `Add the note "${text}"?`,
        schema: z.object({ sure: z.boolean() }),
      });
      if (answer.action !== "accept" || !answer.content.sure) return "Not added.";
      texts.push(text);
      ctx.server.resourceUpdated("notes://all");
      return `Added note ${texts.length}.`;
    },
  });

  return createServer({
    name: "notes",
    version: "1.0.0",
    handlers: [notes, addNote],
    auth: apiKey({ keys: { ada: env.ADA_KEY, bob: env.BOB_KEY } }),
    hosts: ["notes.example.workers.dev"],
    secret: env.MCP_SECRET,
  });
}
