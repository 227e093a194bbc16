// A long-running tool. Clients that support tasks get a task handle immediately. Other clients wait for the response.
import { tool } from "@x/mcp";
import { task } from "@x/mcp/tasks";
import { z } from "zod";
import { has } from "./access.ts";
import { tickets } from "./database.ts";

export const report = tool({
  name: "report",
  title: "Report",
  description: "Writes a report about all tickets, which takes a while",
  scopes: ["tickets:read"],
  allow: has("manager"),
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({}),
  // After a crash, another process runs the handler again, with the `once` values of the first run.
  use: [task({ resume: true, pollIntervalMs: 500, version: "1" })],
  services: { tickets },
  async run(_, ctx) {
    const counts: Record<string, number> = {};
    for (const [at, state] of ["open", "closed"].entries()) {
      await ctx.progress(at, { total: 2, message: `Counting ${state} tickets` });
      counts[state] = await ctx.once(state, async () => (await ctx.services.tickets.list(state)).length);
    }
    return `${counts.open} open, ${counts.closed} closed`;
  },
});
