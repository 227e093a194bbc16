// Creates the server, with the handlers of the other files in a group.
import { createServer, group } from "@x/mcp";
import * as prompts from "./prompts.ts";
import * as resources from "./resources.ts";
import * as tools from "./tools.ts";

const notes = group("notes", [tools, resources, prompts].flatMap((handlers) => Object.values(handlers)));

const server = createServer({ name: "desk", version: "1.0.0", handlers: [notes] });
server.handlers.disable({ tag: "signed-in" }, ({ principal }) => principal === undefined);

export default server;
