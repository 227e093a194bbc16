// The server for peers over stdio, for a client that starts a process.
import { serveStdio } from "../../src/transports/stdio/stdio.ts";
import server from "./server.ts";

await serveStdio(server);
