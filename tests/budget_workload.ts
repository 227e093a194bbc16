// Sends as many tools/call requests as the first argument says to a server in this process.
import { createServer, tool } from "../mod.ts";
import { z } from "zod";

const input = z.object({ a: z.number(), b: z.number() });
const add = tool({ name: "add", input, run: (args) => String(JSON.stringify(args)) });
const server = createServer({ name: "calc", version: "1.0.0", handlers: [add] });

const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "add",
    arguments: { a: 1, b: 2 },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "budget", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});
const headers = {
  host: "127.0.0.1:8000",
  "content-length": `${body.length}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "add",
};

for (let i = 0; i < Number(Deno.args[0]); i++) {
  const response = await server.fetch(new Request("http://127.0.0.1:8000/mcp", { method: "POST", headers, body }));
  const { result } = await response.json();
  if (result?.content?.[0]?.text !== '{"a":1,"b":2}') throw new Error(`Cannot count: ${JSON.stringify(result)}`);
}
