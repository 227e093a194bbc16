// A server over stdio for tests: with sessions if SESSIONS is set. `crash` ends the process.
import process from "node:process";
import { createServer, tool } from "@x/mcp";
import { serveStdio } from "@x/mcp/stdio";

const form = { type: "object", properties: { by: { type: "string" } } } as const;

const book = tool({
  name: "book",
  run: async (_input, ctx) => `booked by ${(await ctx.elicit("who", { message: "Who?", schema: form })).content?.by}`,
});
const crash = tool({ name: "crash", run: () => process.exit(3) });
const pid = tool({ name: "pid", run: () => String(process.pid) });

await serveStdio(createServer({
  name: "booking",
  version: "1.0.0",
  revisions: process.env.SESSIONS ? ["2025-11-25"] : ["2026-07-28"],
  handlers: [book, crash, pid],
}));
