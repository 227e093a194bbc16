// A server that stores separate notes for each user. The server accepts tokens from the test authorization servers.
import process from "node:process";
import { createServer, type Server, tool } from "@x/mcp";
import { requirePrincipal } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import { z } from "zod";

const variable = (name: string) => process.env[name] ?? "";

const notes = new Map<string, string[]>();

const annotations = { readOnlyHint: true };

const add = tool({
  name: "add",
  title: "Add",
  annotations: { destructiveHint: false },
  description: "Adds a note",
  input: z.object({ text: z.string().describe("The note") }),
  scopes: ["notes:write"],
  run({ text }, ctx) {
    const { id } = requirePrincipal(ctx);
    const own = notes.get(id) ?? [];
    notes.set(id, own);
    return own.push(text);
  },
});

const list = tool({
  name: "list",
  title: "List",
  annotations,
  description: "Lists the notes of the caller",
  scopes: ["notes:read"],
  run: (_, ctx) => (notes.get(requirePrincipal(ctx).id) ?? []).join(", ") || "none",
});

const whoami = tool({
  name: "whoami",
  title: "Who",
  annotations,
  description: "Says who calls",
  run: (_, ctx) => requirePrincipal(ctx).id,
});

const issuers = variable("NOTES_ISSUERS").split(" ");

const auth = oauth({
  resource: variable("NOTES_RESOURCE"),
  issuers,
  scopes: ["notes:read"],
  introspection: { issuer: issuers[0], clientId: "resource-server", clientSecret: "resource-server-secret" },
});

export default createServer({
  name: "notes",
  version: "1.0.0",
  auth,
  handlers: [add, list, whoami],
}) satisfies Server;
