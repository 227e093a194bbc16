// A stdio server whose observer counts. When its input ends, the server prints the totals as JSON on standard error.
import { serveStdio } from "@x/mcp/stdio";
import { metrics } from "./metrics.ts";
import { createCounted } from "./metrics_server.ts";

const observer = metrics();
const server = createCounted(observer);
await serveStdio(server, { drainMs: 500 });
await server.close();
console.error(JSON.stringify(observer.totals()));
