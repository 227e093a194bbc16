// An MCP server on AWS Lambda, behind API Gateway, a function URL or a load balancer.
import process from "node:process";
import { createServer, tool } from "@x/mcp";
import { Hono } from "hono";
import { getConnInfo, handle } from "hono/aws-lambda";

const hello = tool({ name: "hello", description: "Says hello", run: () => "Hello from Lambda!" });

const mcp = createServer({
  name: "hello",
  version: "1.0.0",
  handlers: [hello],
  streams: false, // Lambda sends only complete responses.
  hosts: ["mcp.example.com"],
  secret: process.env.MCP_SECRET, // Without it, other instances reject sessions with HTTP 404.
  limits: { calls: { timeoutMs: 25_000 } }, // API Gateway waits at most 30 seconds
});

const app = new Hono();
app.all("/mcp", (c) => mcp.fetch(c.req.raw, { remoteAddr: { hostname: getConnInfo(c).remote.address } }));

export const handler = handle(app);
