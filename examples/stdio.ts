// The calculator of calc.ts, over stdio only. Clients start the server with `deno run examples/stdio.ts`.
import { serveStdio } from "@x/mcp/stdio";
import server from "./calc.ts";

await serveStdio(server);
