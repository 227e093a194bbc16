// Serves the server of the client tests over HTTP.
import { serveProcess } from "../support/http_process.ts";
import { createLibrary } from "./server.ts";

const server = createLibrary();
serveProcess((request) => server.fetch(request));
