// A server whose tool responds with a ticket. Run it with `deno run -A jsr:@x/mcp examples/tickets/server.ts --http`.
import { createServer, tool } from "@x/mcp";
import { slow, tickets } from "./tickets.ts";

const report = tool({
  name: "report",
  description: "Writes the report of the day",
  use: [slow(5_000)],
  async run() {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return "The report";
  },
});

export default createServer({ name: "office", version: "1.0.0", handlers: [tickets, report] });
