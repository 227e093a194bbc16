// Duplicate keys in a message: the last key counts, and every check uses the same value as the handler.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { readReply } from "../support/requests.ts";

const meta =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}';

function makeServer() {
  const ran: string[] = [];
  const make = (name: string) =>
    tool({ name, scopes: name === "admin" ? ["admin"] : [], run: () => void ran.push(name) });
  const server = createServer({ name: "s", version: "1.0.0", handlers: [make("free"), make("other"), make("admin")] });
  return { server, ran };
}

/** Messages with a duplicate key, each with the tool that its last key selects. */
const MESSAGES: readonly (readonly [text: string, tool: string])[] = [
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","name":"other",${meta}}}`, "other"],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"other",${meta}}}`, "other"],
  [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free",${meta}},"params":{"name":"other",${meta}}}`,
    "other",
  ],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","n\\u0061me":"other",${meta}}}`, "other"],
];

function toRequest(body: string, name: string): Request {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  return new Request("http://localhost/mcp", { method: "POST", headers, body });
}

Deno.test("HTTP: the headers must match the last key, which selects the tool", async () => {
  const { server, ran } = makeServer();
  for (const [body, name] of MESSAGES) {
    assertEquals((await server.fetch(toRequest(body, name))).status, 200, body);
    assertEquals(ran.splice(0), [name], body);
    const first = await server.fetch(toRequest(body, "free"));
    assertEquals([first.status, (await readReply(first)).error.code], [400, -32020], body);
    assertEquals(ran, []);
  }
  await server.close();
});

Deno.test("HTTP: the scopes of the tool with the last name are required", async () => {
  const { server, ran } = makeServer();
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","name":"admin",${meta}}}`;
  assertEquals((await server.fetch(toRequest(body, "admin"))).status, 403);
  assertEquals((await server.fetch(toRequest(body, "free"))).status, 400);
  assertEquals(ran, []);
  await server.close();
});

Deno.test("over a channel, the last key selects the tool, and the response has the last id", async () => {
  const { server, ran } = makeServer();
  const written: string[] = [];
  const pipe = openPipe(server, { write: (text) => void written.push(text) });
  for (const [body, name] of MESSAGES) {
    await pipe.receive(body.replace('"id":1', '"id":1,"id":2'));
    await pipe.idle();
    assertEquals(ran.splice(0), [name], body);
    assertStringIncludes(written.splice(0).join(), '"id":2');
  }
  pipe.close();
  await server.close();
});
