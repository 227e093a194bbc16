// Serves the server at the URL in UPSTREAM through a proxy.
import process from "node:process";
import { createServer } from "@x/mcp";
import { proxy } from "@x/mcp/proxy";

const { UPSTREAM = "" } = process.env;

export default createServer({
  name: "gateway",
  version: "1.0.0",
  capabilities: { logging: true },
  handlers: [proxy(UPSTREAM)],
});
