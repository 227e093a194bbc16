// A server as one route of a larger application.
import { assertEquals, assertMatch } from "@std/assert";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Hono } from "hono";
import { type ConnectionInfo, createServer } from "../../mod.ts";
import { serve } from "../peers/runtime.ts";
import { toHello } from "../support/sessions.ts";
import { plainTool } from "../support/behaviour.ts";

const whoami = plainTool("whoami", async (ctx) => {
  await ctx.progress(1, { total: 1 });
  return `${ctx.principal?.id} at ${new URL(ctx.http?.url ?? "").pathname}`;
});

/** Creates an application with other routes that authenticates its callers. */
function createApp(path: string) {
  const mcp = createServer({ name: "mounted", version: "1.0.0", path, handlers: [whoami] });
  const app = new Hono<{ Variables: { user: string } }>();
  app.use(async (c, next) => {
    c.set("user", c.req.header("authorization")?.slice("Bearer ".length) ?? "nobody");
    await next();
    c.header("x-app", "hono");
  });
  app.get("/", (c) => c.text("Hello"));
  app.all(path, (c) => mcp.fetch(c.req.raw, { principal: { id: c.get("user") } }));
  return { app, close: mcp.close };
}

const eras = [["modern", { pin: "2026-07-28" }], ["legacy", "legacy"]] as const;
for (const [era, mode] of eras) {
  for (const path of ["/mcp", "/tools/v1/mcp"]) {
    Deno.test(`a client in the ${era} era can call a server that Hono mounts at ${path}`, async () => {
      await using stack = new AsyncDisposableStack();
      const { app, close } = createApp(path);
      const { host } = stack.use(serve({ fetch: async (request, info) => await app.fetch(request, info) }));
      stack.defer(close);
      const client = new Client({ name: "v2", version: "2.4.0" }, { versionNegotiation: { mode } });
      const requestInit = { headers: { authorization: "Bearer ada" } };
      await client.connect(new StreamableHTTPClientTransport(new URL(path, `http://${host}`), { requestInit }));
      stack.defer(() => client.close());
      const { content } = await client.callTool({ name: "whoami" });
      assertEquals(content, [{ type: "text", text: `ada at ${path}` }]);
    });
  }
}

const initialize = JSON.stringify(toHello());
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

Deno.test("the application keeps its other routes, and can change the server's responses", async () => {
  const { app, close } = createApp("/mcp");
  assertEquals(await (await app.request("/")).text(), "Hello");
  assertEquals((await app.request("/mcp/more", { method: "POST", headers, body: initialize })).status, 404);
  const response = await app.request("/mcp", { method: "POST", headers, body: initialize });
  assertEquals([response.status, response.headers.get("x-app")], [200, "hono"]);
  assertMatch(await response.text(), /"name":"mounted"/);
  await close();
});

Deno.test("a stream passes through the application's middleware without being buffered", async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const wait = plainTool("wait", async (ctx) => {
    await ctx.progress(1);
    await opened;
    return "done";
  });
  await using mcp = createServer({ name: "mounted", version: "1.0.0", handlers: [wait] });
  const app = new Hono();
  app.use(async (c, next) => {
    await next();
    c.header("x-app", "hono");
  });
  app.all("/mcp", (c) => mcp.fetch(c.req.raw));
  const prefix = "io.modelcontextprotocol/";
  const _meta = {
    [`${prefix}protocolVersion`]: "2026-07-28",
    [`${prefix}clientCapabilities`]: {},
    progressToken: "p",
  };
  const response = await app.request("/mcp", {
    method: "POST",
    headers: { ...headers, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "wait" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "wait", _meta } }),
  });
  assertEquals([response.headers.get("content-type"), response.headers.get("x-app")], ["text/event-stream", "hono"]);
  let text = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    // The call ends only after its progress has arrived.
    if (text.includes("notifications/progress")) open();
  }
  assertMatch(text, /"text":"done"/);
});

Deno.test("a server that gets the connection info accepts a caller on this machine", async () => {
  await using stack = new AsyncDisposableStack();
  const mcp = createServer({ name: "mounted", version: "1.0.0" });
  const app = new Hono<{ Bindings: ConnectionInfo }>();
  // Both runtimes pass the connection info to Hono, which exposes it as `c.env`.
  app.all("/mcp", (c) => mcp.fetch(c.req.raw, c.env));
  const { host } = stack.use(serve({ fetch: async (request, info) => await app.fetch(request, info) }));
  stack.defer(() => mcp.close());
  const response = await fetch(`http://${host}/mcp`, { method: "POST", headers, body: initialize });
  assertEquals(response.status, 200);
  assertMatch(await response.text(), /"name":"mounted"/);
});

Deno.test("without the connection info, a mounted server treats all callers as callers on this machine", async () => {
  await using mcp = createServer({ name: "mounted", version: "1.0.0", hosts: ["mcp.example.com"] });
  const app = new Hono<{ Bindings: ConnectionInfo }>();
  app.all("/mcp", (c) => mcp.fetch(c.req.raw, c.env));
  const ask = async (host: string, facts?: ConnectionInfo) => {
    const init = { method: "POST", headers: { ...headers, host }, body: initialize };
    return (await app.request(`http://${host}/mcp`, init, facts)).status;
  };
  assertEquals([await ask("localhost:8000"), await ask("mcp.example.com"), await ask("elsewhere.example")], [
    200,
    200,
    403,
  ]);
  const remote = { remoteAddr: { transport: "tcp", hostname: "203.0.113.5", port: 50_000 } };
  assertEquals(await ask("mcp.example.com", remote), 200);
  assertEquals(await ask("elsewhere.example", remote), 403);
});
