// The calculator of calc.ts, over stdio only. Clients start it with `deno run examples/stdio.ts`.
import { serveStdio } from "@x/mcp/stdio";
import server from "./calc.ts";

await serveStdio(server);
