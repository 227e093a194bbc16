// Serves the server of the client tests over HTTP. Prints its origin.
import { startHttpServer } from "../../src/testing/http_server.ts";
import { createLibrary } from "./server.ts";

const server = createLibrary();
console.log(startHttpServer((request) => server.fetch(request)).origin);
