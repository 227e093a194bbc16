// An MCP server in a Fastify app, on Node.
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import fastify from "fastify";
import { mcp } from "./server.ts";

const app = fastify();
const listener = getRequestListener(mcp.fetch);

app.get("/", () => "Hello");
app.register((scope, _options, done) => {
  // Remove the body parsers, because the MCP server reads the body itself.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _body, done) => done(null));
  scope.all("/mcp", async (request, reply) => {
    reply.hijack();
    await listener(request.raw, reply.raw);
  });
  done();
});

await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });

process.on("SIGTERM", async () => {
  await mcp.close();
  await app.close();
});
