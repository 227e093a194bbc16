// A stdio server with a search, which a test starts as a process.
import { createServer, tool } from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";

const add = tool({ name: "add", description: "Adds an item", run: () => "added" });

await serveStdio(createServer({ name: "fixture", version: "1.0.0", handlers: [add, toolSearch()] }));
