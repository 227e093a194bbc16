// A server in the style of FastMCP for TypeScript: parameters are schemas of several libraries, `execute` functions
// return text, content blocks, files or nothing, and handlers report progress through the second argument.
import { type } from "arktype";
import * as v from "valibot";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { z } from "zod";
import { type Context, createServer, prompt, resource, type Server, tool, ToolError } from "../../../mod.ts";

const notes = new Map<string, { text: string; at: Date }>();

const addParameters = z.object({ title: z.string(), text: z.string(), tags: z.array(z.string()).default([]) });
async function add({ title, text, tags }: z.infer<typeof addParameters>, { progress }: Context) {
  await progress(1, { total: 2 });
  notes.set(title, { text: [text, ...tags.map((tag) => `#${tag}`)].join(" "), at: new Date("2026-01-01T00:00:00Z") });
  await progress(2, { total: 2 });
}

const findParameters = type({ word: "string", "limit?": "number" });
function find({ word, limit }: typeof findParameters.infer) {
  const found = [...notes].filter(([, { text }]) => text.includes(word)).slice(0, limit);
  return new Map(found);
}

const pictureParameters = toStandardJsonSchema(v.object({ title: v.string(), size: v.optional(v.number(), 2) }));
function picture({ title, size }: { title: string; size: number }) {
  if (!notes.has(title)) throw new ToolError(`No note ${title}; try find`);
  return [`The picture of ${title}`, new Blob([new Uint8Array(size)], { type: "image/png" })];
}

async function* lines() {
  for (const [title] of notes) yield await Promise.resolve(title);
}
const download = () => new Response("title,text\n", { headers: { "content-type": "text/csv" } });
const load = () => Promise.resolve({ text: [...notes.keys()].join("\n") });

export const noteServer: Server = createServer({
  name: "notes",
  version: "1.0.0",
  lenientArguments: true,
  handlers: [
    tool({ name: "add", input: addParameters, run: add }),
    tool({ name: "find", input: findParameters, run: find }),
    tool({ name: "picture", input: pictureParameters, run: picture }),
    tool({ name: "lines", run: lines }),
    tool({ name: "download", run: download }),
    resource({ uri: "notes://all", name: "all", read: async (uri) => ({ uri, ...await load() }) }),
    prompt({ name: "summarize", input: { title: z.string() }, run: ({ title }) => `Summarize ${title}` }),
  ],
});
