// A path with parameters. Each concrete path is a separate endpoint, which refuses the state of other endpoints.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, prompt, resource, service, tool, toolProvider } from "../../mod.ts";
import type { PathServerOptions, Server, ToolReturn } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { connectTest, fakeContext, McpError } from "../../src/testing/testing.ts";
import type { Connection, ConnectTestOptions } from "../../src/testing/testing.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { z } from "zod";
import { startSession } from "../hostile/unread.ts";
import { gate, plainTool, started, textOf, turn, until } from "../support/behaviour.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { toSessionRequest } from "../support/sessions.ts";

const pathSchema = z.object({ tenant: z.string().regex(/^[a-z ]+$/), floor: z.coerce.number().int() });
const path = "/tenants/:tenant/:floor/mcp";
type Params = z.infer<typeof pathSchema>;

const whoami = plainTool("whoami", ({ pathParams }) => {
  const { tenant, floor }: Params = pathParams(pathSchema);
  return `${tenant} on ${floor + 1}`;
});

/** Registers a test for both transports in both eras, with a client of one tenant. */
function tenants(
  name: string,
  run: (
    start: (options?: Partial<PathServerOptions<typeof pathSchema>>) => Server,
    join: (server: Server, tenant: string, options?: ConnectTestOptions) => Promise<Connection>,
    way: { readonly era: "modern" | "legacy"; readonly transport: "memory" | "http" | "pipe" },
  ) => Promise<void>,
): void {
  for (const era of ["modern", "legacy"] as const) {
    for (const transport of ["memory", "http", "pipe"] as const) {
      Deno.test(`${name} (${era} over ${transport})`, async () => {
        await using stack = new AsyncDisposableStack();
        const start = (options: Partial<PathServerOptions<typeof pathSchema>> = {}) => {
          const server = createServer({ name: "tenants", version: "1.0.0", path, pathSchema, ...options });
          stack.defer(() => server.close());
          return server;
        };
        const join = async (server: Server, tenant: string, options?: ConnectTestOptions) => {
          const way = { era, transport, pathParams: { tenant, floor: 1 } };
          return stack.use(await connectTest(server, { ...way, ...options }));
        };
        await run(start, join, { era, transport });
      });
    }
  }
}

function post(server: Server, pathname: string, init?: RequestInit): Promise<Response> {
  const request = toRequest("tools/list", {});
  return server.fetch(new Request(`http://localhost${pathname}`, init ?? request));
}

tenants("a source that fails for one tenant does not seem to come back for another", async (start, join) => {
  const faults: unknown[] = [];
  const broken = toolProvider({
    list(_cursor, { pathParams }) {
      if (pathParams(pathSchema).tenant === "acme") throw new Error("acme is down");
      return [];
    },
    find: () => undefined,
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
  const server = start({ handlers: [whoami, broken], observer });
  const [acme, bee] = [await join(server, "acme"), await join(server, "bee")];
  for (let i = 0; i < 2; i++) for (const client of [acme, bee]) assertEquals((await client.listTools()).length, 1);
  assertEquals(faults.map((error) => Object(error).message), ["acme is down"]);
});

tenants("handlers, allow and services read the converted parameters", async (start, join) => {
  const rooms = service("rooms", () => new Map<string, number>());
  const room = service("room", ({ ctx }) => `room of ${ctx.pathParams(pathSchema).tenant}`, { per: "call" });
  const greet = tool({
    name: "greet",
    services: { rooms, room },
    allow: ({ pathParams }) => pathParams(pathSchema).tenant === "acme",
    run: (_, ctx) => {
      ctx.services.rooms.set(ctx.pathParams(pathSchema).tenant, ctx.pathParams(pathSchema).floor);
      return ctx.services.room;
    },
  });
  const home = resource({ uri: "home:/", name: "home", read: (_, { pathParams }) => pathParams(pathSchema).tenant });
  const hello = prompt({ name: "hello", run: (_, { pathParams }) => `Hello ${pathParams(pathSchema).tenant}` });
  const server = start({ handlers: [whoami, greet, home, hello] });
  const [acme, bee] = [await join(server, "acme"), await join(server, "bee")];
  assertEquals(textOf(await acme.callTool("whoami")), "acme on 2");
  assertEquals(textOf(await bee.callTool("whoami")), "bee on 2");
  assertEquals(textOf(await acme.callTool("greet")), "room of acme");
  await assertRejects(() => bee.callTool("greet"), McpError, sentence('"greet"'));
  assertEquals((await bee.readResource("home:/")).contents[0].text, "bee");
  assertStringIncludes(JSON.stringify(await acme.getPrompt("hello")), "Hello acme");
});

tenants("handlers can depend on the path parameters, and are created once for each path", async (start, join) => {
  const made: string[] = [];
  const server = start({
    handlers: async ({ tenant, floor }) => {
      made.push(`${tenant} ${floor + 1}`);
      await Promise.resolve();
      return [whoami, tool({ name: `only_${tenant}`, run: (): ToolReturn => tenant })];
    },
  });
  const names = async (client: Connection) => (await client.listTools()).map(({ name }) => name);
  const [acme, bee, again] = await Promise.all(["acme", "bee", "acme"].map((tenant) => join(server, tenant)));
  assertEquals(await names(acme), ["whoami", "only_acme"]);
  assertEquals(await names(bee), ["whoami", "only_bee"]);
  assertEquals(await names(again), ["whoami", "only_acme"]);
  await assertRejects(() => bee.callTool("only_acme"), McpError, sentence('"only_acme"'));
  assertEquals(made.toSorted(), ["acme 2", "bee 2"]);
});

tenants("a change can reach the clients of one tenant or of all tenants", async (start, join) => {
  const note = resource({ uri: "note:/1", name: "note", read: () => "" });
  const touch = tool({ name: "touch", run: (_, { server }) => server.resourceUpdated("note:/1") });
  const fence = resource({ uri: "note:/2", name: "fence", read: () => "" });
  const server = start({ handlers: () => [note, touch, fence] });
  const [acme, bee] = [await join(server, "acme"), await join(server, "bee")];
  const filter = { toolsListChanged: true, resourceSubscriptions: ["note:/1", "note:/2"] };
  const [ofAcme, ofBee] = [await acme.subscribe(filter), await bee.subscribe(filter)];
  await acme.callTool("touch");
  await until(() => ofAcme.received.length === 1, "the tenant is notified of its own change");
  server.resourceUpdated("note:/2");
  await until(
    () => ofAcme.received.length === 2 && ofBee.received.length > 0,
    "the tenant is notified of a change for all tenants",
  );
  assertEquals(
    ofBee.received.map(({ params }) => params.uri),
    ["note:/2"],
    "the tenant was notified of another tenant's change",
  );
  const extra = tool({ name: "extra", run: () => "extra" });
  server.handlers.add(extra);
  await until(
    () => ofAcme.received.length === 3 && ofBee.received.length === 2,
    "the client is notified of the added tool",
  );
  assertEquals(textOf(await bee.callTool("extra")), "extra");
  server.handlers.remove(extra);
  await until(() => ofBee.received.length === 3, "the client is notified of the removed tool");
  await assertRejects(() => bee.callTool("extra"), McpError, sentence('"extra"'));
  server.listChanged("tools");
  await until(() => ofBee.received.length === 4, "the client is notified of the changed list");
  assertThrows(() => server.handlers.add(note), TypeError, sentence('resource "note:/1"'));
  assertEquals(server.handlers.list(), []);
});

tenants(
  "a service with a key has a value for each tenant, and a server-wide service is shared",
  async (start, join) => {
    const all = service("all", () => new Array<string>());
    const cart = service("cart", () => new Array<string>(), { per: (ctx) => ctx.principal?.id });
    const buy = tool({
      name: "buy",
      services: { all, cart },
      run: (_, { services }) => {
        services.all.push("milk");
        services.cart.push("milk");
        return `${services.cart.length} of ${services.all.length}`;
      },
    });
    const server = start({ handlers: () => [buy] });
    const principal = { id: "ada" };
    const [acme, bee] = [await join(server, "acme", { principal }), await join(server, "bee", { principal })];
    assertEquals(textOf(await acme.callTool("buy")), "1 of 1");
    assertEquals(textOf(await bee.callTool("buy")), "1 of 2");
    assertEquals(textOf(await acme.callTool("buy")), "2 of 3");
  },
);

tenants("closing the server ends the calls of all tenants", async (start, join) => {
  const { pass, open } = gate();
  let count = 0;
  const hold = tool({ name: "hold", run: async () => (count++, await pass, "held") });
  const server = start({ handlers: () => [hold], limits: { calls: { closeMs: 20 } } });
  const clients = [await join(server, "acme"), await join(server, "bee")];
  const calls = clients.map((client) => started(client.callTool("hold")));
  await until(() => count === 2, "both calls");
  await server.close();
  for (const call of calls) await assertRejects(() => call, Error);
  open();
});

Deno.test("a path for which `handlers` returns neither a list nor undefined gets an error", async () => {
  const odd: readonly unknown[] = [
    null,
    "",
    "note",
    false,
    true,
    0,
    {},
    new Set(),
    new Map(),
    [whoami].values(),
    whoami,
  ];
  for (const returned of odd) {
    for (const handlers of [() => returned, () => Promise.resolve(returned)]) {
      const faults: string[] = [];
      const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(`${error}`) };
      const about = { name: "tenants", version: "1.0.0", path, pathSchema, observer };
      await using server = createServer({ ...about, handlers: handlers as () => [] }); // The cast makes the wrong type compile.
      const response = await post(server, "/tenants/acme/1/mcp");
      assertEquals([response.status, faults.length], [500, 1], `${returned}`);
      assertEquals(faults[0], sentence("TypeError", "/tenants/acme/1/mcp"));
      await response.body?.cancel();
    }
  }
});

Deno.test("a path with invalid parameters gets the same response as an unknown path", async () => {
  let count = 0;
  await using server = createServer({
    name: "tenants",
    version: "1.0.0",
    path,
    pathSchema,
    handlers: ({ tenant }) => (count++, tenant === "nobody" ? undefined : [whoami]),
  });
  const unknown = await post(server, "/mcp");
  const expected = [unknown.status, await unknown.text()];
  assertEquals(expected[0], 404);
  const wrong = [
    "/tenants/ACME/1/mcp",
    "/tenants/acme/x/mcp",
    "/tenants/acme/1",
    "/tenants//1/mcp",
    "/tenants/nobody/1/mcp",
  ];
  const evil = [
    "/tenants/%2e%2e/1/mcp",
    "/tenants/a%2fb/1/mcp",
    "/tenants/a%00/1/mcp",
    `/tenants/${"a".repeat(2000)}/1/mcp`,
  ];
  for (const pathname of [...wrong, ...evil]) {
    const response = await post(server, pathname);
    assertEquals([response.status, await response.text()], expected, pathname);
  }
  assertEquals(count, 1, "the handlers function ran for an invalid path");
});

Deno.test("two spellings of a path identify one endpoint", async () => {
  let count = 0;
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers: () => (count++, [whoami]) });
  for (const spelling of ["a%20b", "%61%20b", "%61%20%62"]) {
    const response = await server.fetch(
      new Request(`http://localhost/tenants/${spelling}/1/mcp`, toRequest("tools/call", { name: "whoami" })),
    );
    assertStringIncludes(await response.text(), "a b on 2");
  }
  assertEquals(count, 1);
});

const PING = { jsonrpc: "2.0", id: 1, method: "ping" };

Deno.test("a session id, a request state and a cursor of one tenant are refused at another tenant", async () => {
  const ask = plainTool(
    "ask",
    async (ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: z.object({ ok: z.boolean() }) })).action,
  );
  const more = tool({ name: "more", run: () => "" });
  const secret = "a secret of at least thirty-two characters";
  for (const own of [undefined, secret]) {
    const limits = testLimits({ calls: { pageItems: 1 } });
    await using server = createServer({
      name: "t",
      version: "1",
      path,
      pathSchema,
      handlers: [ask, more],
      limits,
      secret: own,
    });
    const [here, there] = ["http://localhost/tenants/acme/1/mcp", "http://localhost/tenants/bee/1/mcp"];
    const session = await startSession(here, server.fetch);
    for (const [url, status] of [[here, 200], [there, 404]] as const) {
      const headers = { "mcp-session-id": session };
      assertEquals((await server.fetch(toSessionRequest(PING, headers, { url }))).status, status);
      const closing = await server.fetch(toSessionRequest(undefined, headers, { url, method: "DELETE" }));
      assertEquals(closing.status, url === here ? 204 : 404);
    }
    const send = async (url: string, method: string, rest: Record<string, unknown>) => {
      const capabilities = { elicitation: { form: {} } };
      const request = toRequest(method, {
        ...rest,
        _meta: { "io.modelcontextprotocol/clientCapabilities": capabilities },
      });
      return (await readReply(await server.fetch(new Request(url, request))));
    };
    const { result: { nextCursor: cursor } } = await send(here, "tools/list", {});
    assert(typeof cursor === "string");
    assertEquals((await send(here, "tools/list", { cursor })).result.tools.length, 1);
    assertEquals((await send(there, "tools/list", { cursor })).error.code, -32602);
  }
});

Deno.test("the least recently used path is evicted, its sessions can continue, and ended sessions stay ended", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Params) => (made.push(tenant), [whoami]);
  const limits = testLimits({ endpoints: { open: 2 } });
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers, limits });
  const toUrl = (tenant: string) => `http://localhost/tenants/${tenant}/1/mcp`;
  const ping = async (tenant: string, session: string, method = "POST") => {
    const init = { method, url: toUrl(tenant) };
    const message = method === "POST" ? PING : undefined;
    return (await server.fetch(toSessionRequest(message, { "mcp-session-id": session }, init))).status;
  };
  const [first, ended] = [
    await startSession(toUrl("acme"), server.fetch),
    await startSession(toUrl("acme"), server.fetch),
  ];
  assertEquals(await ping("acme", first), 200);
  assertEquals(await ping("acme", ended), 200);
  assertEquals(await ping("acme", ended, "DELETE"), 204);
  const bee = await startSession(toUrl("bee"), server.fetch);
  assertEquals(await ping("acme", first), 200);
  await startSession(toUrl("cat"), server.fetch); // evicts bee
  assertEquals(made, ["acme", "bee", "cat"]);
  assertEquals(await ping("bee", bee), 200); // evicts acme
  assertEquals(await ping("acme", first), 200);
  assertEquals(await ping("acme", ended), 404);
  assertEquals(made, ["acme", "bee", "cat", "bee", "acme"]);
});

Deno.test("a tenant with a running call, an open stream, a channel or a resumable call is not evicted", async () => {
  let held = gate();
  let count = 0;
  const hold = tool({ name: "hold", run: async (_, ctx) => (ctx.closeStream(), count++, await held.pass, "held") });
  const limits = testLimits({ endpoints: { open: 1 } });
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers: [hold], limits });
  const toUrl = (tenant: string) => `http://localhost/tenants/${tenant}/1/mcp`;
  const isBusy = async () => {
    const response = await server.fetch(new Request(toUrl("other"), toRequest("tools/list")));
    await response.body?.cancel();
    if (response.status === 503) assertEquals(response.headers.get("retry-after"), "1");
    return response.status === 503;
  };
  const hasRoom = () => until(async () => !await isBusy(), "the tenant was evicted");
  const mine = { pathParams: { tenant: "acme", floor: 1 } };
  assertEquals(await isBusy(), false);

  const client = await connectTest(server, mine);
  const call = client.callTool("hold");
  await until(() => count === 1, "the call");
  assert(await isBusy(), "a call");
  held.open();
  assertEquals(textOf(await call), "held");
  assertEquals(await isBusy(), false);

  held = gate();
  const session = await startSession(toUrl("acme"), server.fetch);
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hold" } };
  const url = toUrl("acme");
  const resumable = await server.fetch(toSessionRequest(message, { "mcp-session-id": session }, { url }));
  await resumable.text();
  await until(() => count === 2, "the second call");
  assert(await isBusy(), "the tenant of a call without a connection was evicted");
  held.open();
  await hasRoom();

  const subscription = await client.subscribe({ toolsListChanged: true });
  assert(await isBusy(), "a stream");
  await subscription.close();
  await hasRoom();

  const pipe = await connectTest(server, { ...mine, transport: "pipe" });
  assert(await isBusy(), "a channel");
  await pipe.close();
  await hasRoom();
});

Deno.test("limits apply to all tenants together", async () => {
  const { pass, open } = gate();
  let count = 0;
  const hold = tool({ name: "hold", run: async () => (count++, await pass, "held") });
  const limits = testLimits({ calls: { runningPerClient: 1, waiting: 4 }, connections: { sessions: 1 } });
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers: [hold], limits });
  const info = { principal: { id: "ada" } };
  const send = (tenant: string) =>
    server.fetch(
      new Request(`http://localhost/tenants/${tenant}/1/mcp`, toRequest("tools/call", { name: "hold" })),
      info,
    );
  let ended = 0;
  const calls = ["acme", "bee", "cat"].map((tenant) => send(tenant).finally(() => ended++));
  await until(() => ended > 0 && count > 0, "one call is refused and another call runs");
  await turn(10);
  assertEquals(count, 1);
  open();
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  assertEquals(statuses.filter((status) => status === 200).length, 2);
  assertEquals(statuses.filter((status) => status === 503 || status === 429).length, 1);
});

Deno.test("callers are authenticated before the server allocates memory for a path", async () => {
  const made: string[] = [];
  const auth = apiKey({ keys: { ada: "the-key-of-ada-0123456789" } });
  const handlers = ({ tenant }: Params) => (made.push(tenant), [whoami]);
  await using server = createServer({ name: "t", version: "1", path, pathSchema, auth, handlers });
  const refused = await post(server, "/tenants/acme/1/mcp");
  assertEquals(refused.status, 401);
  assertEquals(made, []);
  const headers = { authorization: "Bearer the-key-of-ada-0123456789" };
  await using client = await connectTest(server, { pathParams: { tenant: "acme", floor: 1 }, headers });
  assertEquals(textOf(await client.callTool("whoami")), "acme on 2");
  assertEquals((await post(server, "/tenants/acme/1/mcp", { method: "PUT", headers })).status, 405);
});

Deno.test("instances that share a store announce a change to all tenants", async () => {
  const note = resource({ uri: "note:/1", name: "note", read: () => "" });
  const shared = { store: memoryStore(), secret: "a secret of at least thirty-two characters" };
  const start = () => createServer({ name: "t", version: "1", path, pathSchema, handlers: () => [note], ...shared });
  const [here, there] = [start(), start()];
  const mine = { pathParams: { tenant: "acme", floor: 1 } };
  await using client = await connectTest(there, mine);
  await using other = await connectTest(here, mine);
  await other.readResource("note:/1");
  const subscription = await client.subscribe({ resourceSubscriptions: ["note:/1"] });
  here.resourceUpdated("note:/1");
  await until(() => subscription.received.length === 1, "the change");
  await here.close();
  await there.close();
});

Deno.test("over stdio, the path parameters are passed as an option, and missing parameters throw", async () => {
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers: [whoami] });
  const serve = async (values?: Record<string, unknown>) => {
    let written = "";
    const messages = [toRequest("tools/call", { name: "whoami" })].map((request) => request.text());
    const lines = (await Promise.all(messages)).map((text) => `${text}\n`).join("");
    const input = new Blob([lines]).stream();
    const output = (bytes: Uint8Array) => Promise.resolve(void (written += new TextDecoder().decode(bytes)));
    await serveStdio(server, { input, output, pathParams: values });
    return written;
  };
  assertStringIncludes(await serve({ tenant: "acme", floor: 4 }), "acme on 5");
  await assertRejects(() => serve(), TypeError, sentence(path));
  await assertRejects(() => serve({ tenant: "acme" }), TypeError, sentence("floor"));
  await assertRejects(() => serve({ tenant: "ACME", floor: 1 }), TypeError, sentence(path, "ACME"));
  const plain = createServer({ name: "plain", version: "1" });
  await assertRejects(() => serveStdio(plain, { pathParams: { a: 1 } }), TypeError, sentence("pathParams"));
});

Deno.test("mistakes in a path with parameters throw when the server is created", () => {
  const start = (options: Partial<PathServerOptions<typeof pathSchema>>) =>
    createServer({ name: "t", version: "1", ...options });
  for (const wrong of ["/:a/:a", "/x:a", "/:", "/:1", "/:a/*", "/{a}/:b", ":a"]) {
    assertThrows(() => start({ path: wrong }), TypeError, "", wrong);
  }
  assertThrows(() => start({ pathSchema }), TypeError, sentence("/mcp"));
  assertThrows(() => start({ handlers: () => [] }), TypeError, sentence("/mcp"));
});

Deno.test("ctx.pathParams refuses another schema, and a fake context returns the parameters that the test passes", async () => {
  const other = plainTool("other", ({ pathParams }) => pathParams(z.object({ tenant: z.string() })).tenant);
  const faults: unknown[] = [];
  const observer = { fault: ({ error }: { readonly error: unknown }) => faults.push(error) };
  await using server = createServer({ name: "t", version: "1", path, pathSchema, handlers: [other], observer });
  await using client = await connectTest(server, { pathParams: { tenant: "acme", floor: 1 } });
  assertEquals((await client.callTool("other")).isError, true);
  assertStringIncludes(String(faults[0]), sentence("ctx.pathParams("));
  assertEquals(other.run({}, fakeContext({ pathParams: { tenant: "acme" } })), "acme");
});
