// A protected server that listens on a port: each user sees only their own notes, in both eras and over every
// transport.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { requirePrincipal } from "../../src/auth/auth.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { connect } from "../../src/client/client.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { canUpgrade, openPort } from "../peers/runtime.ts";
import { TestIssuer } from "../support/issuer.ts";

const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;

function createNotes(resource: string, issuers: readonly TestIssuer[]): Server {
  const notes = new Map<string, string[]>();
  const auth = oauth({ resource, issuers: issuers.map(({ name }) => name), scopes: ["notes:read"] });
  const list = tool({
    name: "list",
    scopes: ["notes:read"],
    run: (_, ctx) => (notes.get(requirePrincipal(ctx).id) ?? []).join(),
  });
  const write = tool({
    name: "write",
    scopes: ["notes:read", "notes:write"],
    input: TEXT,
    run({ text }, ctx) {
      const { id } = requirePrincipal(ctx);
      notes.set(id, [...notes.get(id) ?? [], text]);
      return "Written.";
    },
  });
  return createServer({ name: "notes", version: "1.0.0", auth, handlers: [list, write] });
}

Deno.test("users with tokens from different issuers see only their own notes, in both eras", async () => {
  await using one = await TestIssuer.start({ alg: "RS256" });
  await using two = await TestIssuer.start({
    path: "/realms/b",
    wellKnown: "/realms/b/.well-known/openid-configuration",
  });
  // The `resource` option needs the port, so the test listens first and creates the server afterwards.
  const served: Server[] = [];
  await using port = await openPort({ fetch: (request, info) => served[0].fetch(request, info) });
  const url = `http://${port.host}/mcp`;
  const server = createNotes(url, [one, two]);
  served.push(server);
  for (const revisions of [["2026-07-28"], ["2025-11-25"]]) {
    const join = async (issuer: TestIssuer, sub: string, scope: string) => {
      const token = await issuer.sign({ claims: { aud: url, sub, scope } });
      return await connect(url, { revisions, headers: { authorization: `Bearer ${token}` } });
    };
    const all = "notes:read notes:write";
    const users = await Promise.all([join(one, "ada", all), join(one, "eve", all), join(two, "ada", all)]);
    for (const [index, user] of users.entries()) await user.callTool("write", { text: `${revisions} of ${index}` });
    for (const [index, user] of users.entries()) {
      const [content] = (await user.callTool("list")).content ?? [];
      const text = "text" in content ? String(content.text) : "";
      assert(text.endsWith(`${revisions} of ${index}`), text);
      assertEquals(text.includes(`of ${(index + 1) % 3}`), false);
    }
    const reader = await join(one, "ada", "notes:read");
    const error = await assertRejects(() => reader.callTool("write", { text: "x" }));
    assertEquals((error as { status?: number }).status, 403);
    for (const user of [...users, reader]) await user.close();
    await assertRejects(() => connect(url, { revisions }), Error);
  }
  assertEquals([one.keyFetches, two.keyFetches], [1, 1]);
  const metadata = await fetch(`http://${port.host}/.well-known/oauth-protected-resource/mcp`);
  assertEquals((await metadata.json()).resource, url);
  await server.close();
});

Deno.test("WebSocket and HTTP+SSE accept tokens too, and refuse a token in the query", async () => {
  await using issuer = await TestIssuer.start();
  const resource = "https://mcp.example.com/mcp";
  const token = await issuer.sign();
  const server = createNotes(resource, [issuer]);
  const stream = httpSse(server);
  const headers = { authorization: `Bearer ${token}` };
  assertEquals((await stream.fetch(new Request("http://localhost/sse"))).status, 401);
  assertEquals((await stream.fetch(new Request(`http://localhost/sse?access_token=${token}`))).status, 400);
  const opened = await stream.fetch(new Request("http://localhost/sse", { headers }));
  assertEquals(opened.status, 200);
  await opened.body?.cancel();
  const upgrade = {
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "x",
  };
  const query = new Request(`http://localhost/ws?access_token=${token}`, { headers: upgrade });
  for (const socket of canUpgrade ? [webSocket(server)] : []) {
    assertEquals((await socket.fetch(new Request("http://localhost/ws", { headers: upgrade }))).status, 401);
    assertEquals((await socket.fetch(query)).status, 400);
  }
  await server.close();
});
