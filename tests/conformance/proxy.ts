// A server that serves everything of the server at MCP_UPSTREAM. `deno task conformance --proxy` tests it.
import process from "node:process";
import { createServer } from "@x/mcp";
import { proxy } from "@x/mcp/proxy";

const { MCP_UPSTREAM = "" } = process.env;

export default createServer({ name: "gateway", version: "1.0.0", handlers: [proxy(MCP_UPSTREAM)] });
