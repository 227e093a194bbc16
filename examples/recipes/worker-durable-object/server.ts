// The MCP server of worker.ts. Each user has a list of notes, and gets a notification when a note is added.
import { createServer, resource, type Server, tool } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { z } from "zod";

/** The storage of a Durable Object, as far as the server uses it. */
export interface Storage {
  get(key: string): Promise<string[] | undefined>;
  put(key: string, value: string[]): Promise<void>;
}

export interface Settings {
  /** The key of each user, by name. */
  readonly keys: Readonly<Record<string, string>>;
  readonly secret: string;
  readonly hosts?: readonly string[];
  /** Missing in front of the objects, which serves no requests itself. */
  readonly storage?: Storage;
}

/** Creates a server. Each Durable Object needs a server of its own, because objects cannot share I/O. */
export function create({ keys, secret, hosts, storage }: Settings): Server {
  const read = async () => await storage?.get("notes") ?? [];

  const notes = resource({ name: "notes", uri: "notes://all", read: async () => (await read()).join("\n") });

  const addNote = tool({
    name: "add_note",
    title: "Add a note",
    description: "Adds a note, after the user has confirmed it",
    input: z.object({ text: z.string().min(1) }),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    run: async ({ text }, ctx) => {
      const schema = z.object({ sure: z.boolean() });
      const answer = await ctx.elicit("sure", { message: `Add the note "${text}"?`, schema });
      if (!answer.content?.sure) return "Not added.";
      await storage?.put("notes", [...await read(), text]);
      ctx.server.resourceUpdated("notes://all");
      return "Added.";
    },
  });

  return createServer({
    name: "notes",
    version: "1.0.0",
    handlers: [notes, addNote],
    auth: apiKey({ keys }),
    hosts,
    secret,
  });
}
