// Serves the peer server over stdio, so that a client can start the server as a process.
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import server from "./server.ts";

await serveStdio(server);
