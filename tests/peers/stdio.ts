// Serves the server for peers over stdio, so that a client can start it as a process.
import { serveStdio } from "../../src/transports/stdio/stdio.ts";
import server from "./server.ts";

await serveStdio(server);
