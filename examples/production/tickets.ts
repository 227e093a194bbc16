// The tools and resources for tickets.
import { resource, resourceLink, tool, ToolError } from "@x/mcp";
import { quota } from "@x/mcp/layers";
import { z } from "zod";
import { has } from "./access.ts";
import { tickets } from "./database.ts";

const Ticket = z.object({ id: z.number(), title: z.string(), state: z.string() });

export const ticket = resource({
  uri: "ticket://{id}",
  name: "ticket",
  description: "One ticket",
  scopes: ["tickets:read"],
  variables: z.object({ id: z.coerce.number().int() }),
  services: { tickets },
  read: ({ id }, { services: { tickets } }) => tickets.find(id),
});

const uriOf = (id: number): string => ticket.uri({ id: `${id}` });

export const list = tool({
  name: "list_tickets",
  title: "List tickets",
  description: "Lists the tickets in a state",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  scopes: ["tickets:read"],
  input: z.object({ state: z.enum(["open", "closed"]).default("open").describe("The state of the tickets") }),
  output: z.object({ tickets: z.array(Ticket) }),
  services: { tickets },
  run: async ({ state }, { services: { tickets } }) => ({ tickets: [...await tickets.list(state)] }),
});

// The quota of ten tickets per minute stops a model that calls the tool in a loop.
export const open = tool({
  name: "open_ticket",
  title: "Open a ticket",
  description: "Opens a ticket",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  scopes: ["tickets:read", "tickets:write"],
  input: z.object({ title: z.string().min(3).max(200).describe("What is wrong, in one line") }),
  use: [quota({ rate: { calls: 10, perMs: 60_000 }, timeoutMs: 5000 })],
  services: { tickets },
  async run({ title }, { services: { tickets } }) {
    const id = await tickets.open(title);
    return [`Opened ticket ${id}.`, resourceLink(uriOf(id))];
  },
});

// Only agents can see and call this tool.
export const close = tool({
  name: "close_ticket",
  title: "Close a ticket",
  description: "Closes a ticket",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scopes: ["tickets:read", "tickets:write"],
  allow: has("agent"),
  input: z.object({ id: z.number().int().describe("The number of the ticket") }),
  services: { tickets },
  run: async ({ id }, ctx) => {
    const { tickets } = ctx.services;
    if (!await tickets.find(id)) throw new ToolError("There is no such ticket.");
    if (!await tickets.close(id)) return "The ticket is already closed.";
    ctx.server.resourceUpdated(uriOf(id));
    return `Closed ticket ${id}.`;
  },
});
