// Serves until SIGTERM or Ctrl-C, and then waits for running calls: `deno run -A main.ts`, `bun main.ts` or `node
// main.ts`.
import { serve } from "@x/mcp/serve";
import { config } from "./config.ts";
import server from "./server.ts";

const { url } = await serve(server, { hostname: config.hostname, port: config.port });
console.log(`Serving ${url}`);
