// The calculator over stdio only, for a client that starts `deno run examples/stdio.ts`.
import { serveStdio } from "@x/mcp/stdio";
import server from "./calc.ts";

await serveStdio(server);
