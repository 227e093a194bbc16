// An app with an OpenAPI document, as a server: each operation is a tool, and reading a note is also a resource. The app
// answers in this process, and gets the caller with `principalOf`. Run `mcp examples/openapi.ts`.
import { createServer } from "@x/mcp";
import { openapi, principalOf } from "@x/mcp/openapi";

const notes = new Map([["1", "Buy milk"], ["2", "Call Ada"]]);

/** A web app, such as Hono or Elysia would make it. */
export async function fetch(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const id = /^\/notes\/([^/]+)$/.exec(pathname)?.[1];
  if (id !== undefined) {
    const text = notes.get(id);
    return text === undefined
      ? Response.json({ error: "There is no such note" }, { status: 404 })
      : Response.json({ text });
  }
  if (request.method === "POST") {
    const { text } = await request.json();
    const added = String(notes.size + 1);
    notes.set(added, text);
    const by = principalOf(request)?.id ?? "nobody";
    return Response.json({ id: added, by }, { status: 201, headers: { location: `/notes/${added}` } });
  }
  const found = [...notes].filter(([, text]) => text.includes(searchParams.get("text") ?? ""));
  return Response.json(found.map(([id, text]) => ({ id, text })));
}

/** The document of the app. Frameworks write it from their routes. */
export const document = {
  openapi: "3.1.0",
  info: { title: "Notes", version: "1.0.0" },
  paths: {
    "/notes": {
      get: {
        operationId: "listNotes",
        summary: "Lists the notes",
        parameters: [{ name: "text", in: "query", description: "Text in the note", schema: { type: "string" } }],
      },
      post: {
        operationId: "addNote",
        summary: "Adds a note",
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Note" } } },
        },
      },
    },
    "/notes/{id}": {
      get: {
        operationId: "readNote",
        summary: "Reads a note",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
      },
    },
  },
  components: {
    schemas: { Note: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } },
  },
};

const api = openapi(document, {
  fetch,
  as: ({ id }) => id === "readNote" ? "template" : "tool",
  // By its method alone, a POST could delete something, and an API could be open to everybody.
  transform: {
    listNotes: { annotations: { openWorldHint: false } },
    addNote: {
      name: "add_note",
      title: "Add a note",
      annotations: { destructiveHint: false, openWorldHint: false },
    },
  },
});

export default createServer({ name: "notes", version: "1.0.0", handlers: [api] });
