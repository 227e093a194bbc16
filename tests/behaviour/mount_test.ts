// Several servers on one port. Each server has its own state, and all servers share their services.
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Authentication, createServer, mount, type Server, service, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { type Connection, connectTest, McpError } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { startSession } from "../hostile/unread.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { toSessionRequest } from "../support/sessions.ts";

const ping = tool({ name: "ping", run: () => "pong" });
const whoami = tool({ name: "whoami", run: (_, ctx) => ctx.principal?.id ?? "nobody" });
const named = (name: string, more = {}) =>
  createServer({ name, version: "1.0.0", path: `/${name}/mcp`, handlers: [whoami], ...more });
const list = async (client: Connection) => (await client.listTools()).map(({ name }) => name);

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["memory", "http"] as const) {
    Deno.test(`each mounted server responds at its own path (${era} over ${transport})`, async () => {
      const auth = apiKey({ keys: { ada: "the-key-of-ada-0123456789" } });
      const tenants = createServer({ name: "tenants", version: "1.0.0", path: "/:tenant/mcp", handlers: [whoami] });
      await using app = mount([named("notes"), named("admin", { auth }), tenants], {
        handlers: [{ handlers: [ping], to: ["admin"] }],
      });
      await using notes = await connectTest(app, { era, transport, path: "/notes/mcp" });
      const headers = { authorization: "Bearer the-key-of-ada-0123456789" };
      await using admin = await connectTest(app, { era, transport, path: "/admin/mcp", headers });
      await using acme = await connectTest(app, { era, transport, path: "/acme/mcp" });
      assertEquals(await list(notes), ["whoami"]);
      assertEquals(await list(admin), ["whoami", "ping"]);
      assertEquals(textOf(await notes.callTool("whoami")), "nobody");
      assertEquals(textOf(await admin.callTool("whoami")), "apikey:ada");
      await assertRejects(async () => {
        await using stranger = await connectTest(app, { era, transport, path: "/admin/mcp" });
        await stranger.callTool("whoami");
      }, McpError);
      app.handlers.add(tool({ name: "all", run: () => "all" }));
      for (const client of [notes, admin, acme]) assertEquals(textOf(await client.callTool("all")), "all");
      const names = [notes, admin, acme].map(({ server }) => server.info?.name);
      // Without a handshake, the test kit's client does not learn the server's name.
      if (era === "legacy") assertEquals(names, ["notes", "admin", "tenants"]);
    });
  }
}

Deno.test("another path gets 404, and the response names no server", async () => {
  await using app = mount([named("notes"), named("admin")]);
  for (const path of ["/", "/mcp", "/notes", "/notes/mcp/", "/notes%2fmcp"]) {
    const response = await app.fetch(new Request(`http://localhost${path}`, { method: "POST" }));
    const text = await response.text();
    assertEquals([response.status, /notes|admin/.test(text)], [404, false], text);
  }
  assertEquals((await app.fetch(new Request("http://localhost/notes/mcp?a=b"))).status, 406);
});

Deno.test("a session of one server is refused by another server", async () => {
  const secret = "a secret of at least thirty-two characters";
  await using app = mount([named("notes", { secret }), named("admin", { secret })]);
  const id = await startSession("http://localhost/notes/mcp", app.fetch);
  for (const [path, status] of [["/notes/mcp", 200], ["/admin/mcp", 404]] as const) {
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    const url = `http://localhost${path}`;
    const response = await app.fetch(toSessionRequest(ping, { "mcp-session-id": id }, { url }));
    assertEquals(response.status, status);
  }
});

Deno.test("mounted servers share their services, which are disposed when the last server has closed", async () => {
  const events: string[] = [];
  const db = service("db", () => (events.push("made"), new Map<string, string>()), {
    dispose: () => void events.push("disposed"),
  });
  const cart = service("cart", () => new Array<string>(), { per: () => "everybody" });
  const put = tool({
    name: "put",
    services: { db, cart },
    run: (_, { services }) => {
      services.db.set(String(services.db.size), "");
      services.cart.push("");
      return `${services.db.size} ${services.cart.length}`;
    },
  });
  const [notes, admin] = [named("notes", { handlers: [put] }), named("admin")];
  const app = mount([notes, admin], { handlers: [{ handlers: [put], to: ["admin"] }] });
  await app.ready();
  assertEquals(events, ["made"]);
  await using one = await connectTest(app, { path: "/notes/mcp" });
  await using two = await connectTest(app, { path: "/admin/mcp" });
  assertEquals(textOf(await one.callTool("put")), "1 1");
  assertEquals(textOf(await two.callTool("put")), "2 1", "a service with a key was shared");
  await notes.close();
  assertEquals(events, ["made"]);
  assertEquals(textOf(await two.callTool("put")), "3 2");
  await app.close();
  assertEquals(events, ["made", "disposed"]);
});

Deno.test("mount throws for servers that cannot be mounted together", () => {
  const at = (name: string, path: string) => named(name, { path });
  assertThrows(() => mount([]), TypeError, sentence());
  assertThrows(
    () => mount([named("a"), at("b", "/a/mcp")]),
    TypeError,
    sentence("b", "/a/mcp", "a"),
  );
  assertThrows(
    () => mount([at("a", "/:x/mcp"), at("b", "/:y/mcp")]),
    TypeError,
    sentence("b", "/:y/mcp", "/:x/mcp", "a"),
  );
  assertThrows(
    () => mount([named("a"), named("b")], { handlers: [{ handlers: [ping], to: ["c"] }] }),
    TypeError,
    sentence('"c"', "a, b"),
  );
  const twice = named("twice");
  mount([twice]);
  assertThrows(() => mount([twice]), TypeError, sentence());
  const other = createServer({ name: "other", version: "1.0.0", path: "/other/mcp" });
  assertThrows(() => mount([other, twice]), TypeError, sentence());
  assertThrows(() => mount([other], { handlers: [{ handlers: [], to: ["nobody"] }] }), TypeError, sentence('"nobody"'));
  // Neither failed call has changed the server, so it can still be mounted.
  assertEquals(mount([other]).servers, [other]);
});

Deno.test("the routes of each server's authentication are served without credentials", async () => {
  const route = (name: string): Authentication => ({
    authenticate: () => undefined,
    routes: [{ path: `/.well-known/${name}`, fetch: () => new Response(name) }],
  });
  await using app = mount([named("notes", { auth: route("notes") }), named("admin", { auth: route("admin") })]);
  for (const name of ["notes", "admin"]) {
    const response = await app.fetch(new Request(`http://localhost/.well-known/${name}`));
    assertEquals([response.status, await response.text()], [200, name]);
    assertEquals((await app.fetch(new Request(`http://localhost/${name}/mcp`, { method: "POST" }))).status, 401);
  }
});

Deno.test("other transports serve a single server, and refuse the mounted servers with an error that names them", async () => {
  await using app = mount([named("notes"), named("admin")]);
  const [notes] = app.servers;
  const several = sentence("notes", "admin");
  assertThrows(() => webSocket(app), TypeError, several);
  assertThrows(() => httpSse(app), TypeError, several);
  await assertRejects(() => serveStdio(app), TypeError, several);
  await assertRejects(() => connectTest(app, { transport: "pipe" }), TypeError, several);
  await using client = await connectTest(notes, { transport: "pipe" });
  assertEquals(await list(client), ["whoami"]);
  const sockets = webSocket(notes, { path: "/notes/ws" });
  const fetch: Server["fetch"] = (request, info) =>
    request.headers.has("upgrade") ? sockets.fetch(request, info) : app.fetch(request, info);
  const response = await fetch(new Request("http://localhost/notes/ws", { headers: { upgrade: "websocket" } }));
  assertStringIncludes(await response.text(), "upgrade");
});
