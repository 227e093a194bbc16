// Serves the server of the official conformance suite over stdio.
import everything from "../../examples/everything.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";

await serveStdio(everything);
