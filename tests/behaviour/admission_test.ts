// Tests of `admit`, connection events for observers, server log messages, and disabled capabilities.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import type { AdmitInfo } from "../../src/types.ts";
import type { CallEvent, NotificationEvent, RefusedEvent, SessionEvent } from "../../src/observe/observe.ts";
import { apiKey, refuseRequest } from "../../src/auth/auth.ts";
import { connectTest, type ConnectTestOptions, fakeClock, McpError } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const hello = tool({ name: "hello", run: () => "hello" });

async function fails(run: () => Promise<unknown>): Promise<McpError> {
  const error = await assertRejects(run);
  if (!(error instanceof McpError)) throw error;
  return error;
}

behaviour("admit decides on each request, with the facts known at the time of the request", async (connect, way) => {
  const facts: AdmitInfo[] = [];
  const refused: RefusedEvent[] = [];
  const seen: string[] = [];
  let isOpen = true;
  const { client } = await connect({
    handlers: [hello],
    admit(known) {
      facts.push(known);
      return isOpen || refuseRequest(503, { reason: "the shop is closed", retryAfterMs: 4200 });
    },
    use: [async ({ method }, next) => {
      seen.push(method);
      return await next();
    }],
    observer: { refused: (event) => refused.push(event) },
  });
  assertEquals(textOf(await client.callTool("hello")), "hello");
  const { method, transport, principal, http, client: declared } = facts.at(-1) ?? {};
  assertEquals(method, "tools/call");
  assertEquals(principal, undefined);
  assertEquals(!!http, way.transport !== "pipe");
  assertEquals(declared?.version, way.version);
  assertEquals(declared?.info, { name: "test", version: "1.0.0" });
  assert(transport);
  if (way.era === "legacy") assertEquals(facts[0].method, "initialize");
  isOpen = false;
  seen.length = 0;
  for (const run of [() => client.callTool("hello"), () => client.listTools(), () => client.request("no/such", {})]) {
    const { code, message, data } = await fails(run);
    assertEquals(code, -31503);
    assertEquals(message, sentence("the shop is closed"));
    assertEquals(data, { retryAfterMs: 4200 });
  }
  assertEquals(seen, []);
  const status = way.transport === "pipe" ? undefined : 503;
  assertEquals(refused.map(({ reason, status }) => [reason, status]), Array(3).fill(["admission", status]));
});

Deno.test("admit gets the path parameters, and can refuse a caller of another tenant", async () => {
  const pathSchema = z.object({ tenant: z.string() });
  await using server = createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/tenants/:tenant/mcp",
    pathSchema,
    auth: apiKey({ keys: { ada: { key: "ada-2f6c1e0b9d4a7853", tenant: "acme" } } }),
    handlers: [hello],
    admit: ({ principal, pathParams }) =>
      pathParams(pathSchema).tenant === (principal?.tenant ?? "local") || refuseRequest(403, { reason: "no member" }),
  });
  const headers = { authorization: "Bearer ada-2f6c1e0b9d4a7853" };
  const call = async (options: ConnectTestOptions) => {
    await using client = await connectTest(server, options);
    return textOf(await client.callTool("hello"));
  };
  for (const era of ["modern", "legacy"] as const) {
    assertEquals(await call({ era, transport: "http", path: "/tenants/acme/mcp", headers }), "hello");
    assertEquals(await call({ era, transport: "pipe", pathParams: { tenant: "local" } }), "hello");
    for (
      const options of [
        { era, transport: "http", path: "/tenants/globex/mcp", headers },
        { era, transport: "pipe", pathParams: { tenant: "globex" } },
      ] as const
    ) {
      const { code, message } = await fails(() => call(options));
      assertEquals([code, message], [-31403, sentence("no member")]);
    }
  }
});

Deno.test("if admit reads path parameters but the path has none, every request is refused, and the error is reported", async () => {
  const faults: unknown[] = [];
  await using server = createServer({
    name: "plain",
    version: "1.0.0",
    handlers: [hello],
    observer: { fault: ({ error }) => faults.push(error) },
    admit: ({ pathParams }) => pathParams().tenant === "acme" || refuseRequest(403),
  });
  await using client = await connectTest(server, { era: "modern" });
  assertEquals((await fails(() => client.callTool("hello"))).code, -32603);
  assertStringIncludes(String(faults[0]), sentence("TypeError"));
});

behaviour("admit can refuse a session, return a promise, or throw", async (connect, way) => {
  let decide: () => Promise<unknown> = () => Promise.resolve(true);
  // The types do not allow this return value.
  const { client, join, takeFaults } = await connect({ handlers: [hello], admit: async () => await decide() as true });
  assertEquals(textOf(await client.callTool("hello")), "hello");
  decide = () => Promise.resolve(refuseRequest(403));
  assertEquals((await fails(async () => await (await join()).callTool("hello"))).code, -31403);
  decide = () => Promise.reject(new Error("no database"));
  assertEquals((await fails(() => client.callTool("hello"))).code, -32603);
  decide = () => Promise.resolve(undefined);
  assertEquals((await fails(() => client.callTool("hello"))).code, -32603);
  assertEquals(takeFaults().map(({ error }) => String(error)), [
    "Error: no database",
    sentence("TypeError", "refuseRequest("),
  ]);
  if (way.transport === "pipe") return;
  const challenge = { scheme: "Bearer", params: { error: "step_up" } };
  decide = () => Promise.resolve(refuseRequest(401, { challenge }));
  await fails(() => client.callTool("hello"));
  if (way.transport === "http") {
    const lines = client.transcript.join("\n");
    assertStringIncludes(lines, "401");
  }
});

behaviour(
  "an observer is notified of initialize, of notifications, and when a session ends",
  async (connect, way) => {
    const calls: CallEvent[] = [];
    const heard: NotificationEvent[] = [];
    const sessions: SessionEvent[] = [];
    const { client, server } = await connect({
      handlers: [hello],
      observer: {
        call: (event) => calls.push(event),
        notification: (event) => heard.push(event),
        session: (event) => sessions.push(event),
      },
    });
    await client.callTool("hello");
    await client.notify("notifications/roots/list_changed", {});
    await client.notify(`notifications/${"x".repeat(230)}`, {});
    const isLegacy = way.era === "legacy";
    await until(() => heard.length === (isLegacy ? 3 : 2), "all notifications are reported");
    const methods = heard.map(({ method }) => method);
    assertEquals(methods.slice(-2), [
      "notifications/roots/list_changed",
      `notifications/${"x".repeat(230)}`.slice(0, 200),
    ]);
    // A notification without metadata or a session states no revision.
    const revision = way.transport === "pipe" && !isLegacy ? undefined : way.version;
    assertEquals(heard.map(({ revision }) => revision), heard.map(() => revision));
    if (isLegacy) {
      assertEquals(calls[0].method, "initialize");
      assertEquals(calls[0].client, { name: "test", version: "1.0.0" });
      assertEquals(methods[0], "notifications/initialized");
      assertEquals(heard[0].client, { name: "test", version: "1.0.0" });
      assertEquals(heard[0].session, sessions[0].id);
    }
    await client.close();
    await server.close();
    if (isLegacy) assertEquals(sessions.at(-1)?.state, "ended");
  },
);

behaviour(
  "server.log sends a message to the sessions whose log level includes the message",
  async (connect, way) => {
    const { client, join, server } = await connect({ handlers: [hello] });
    const other = await join(way.transport === "pipe" ? {} : { principal: { id: "ada" } });
    await client.callTool("hello");
    await other.callTool("hello");
    if (way.era === "legacy") await other.setLogLevel("error");
    const first = async (changes: AsyncIterable<unknown>) => {
      for await (const _ of changes) return;
    };
    const follow = (connection: typeof client) =>
      connection.received.flatMap(({ method, params }) =>
        method === "notifications/message" ? Object(params).data : []
      );
    await using subscription = await client.subscribe({ toolsListChanged: true });
    await using second = await other.subscribe({ toolsListChanged: true });
    server.log.debug("quiet");
    server.log.info({ text: "info" }, { logger: "db" });
    server.log.error("error");
    server.log.error("ada only", { to: ({ principal }) => principal?.id === "ada" });
    server.log.error(undefined);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    server.log.error(cycle);
    server.listChanged("tools");
    await first(subscription);
    await first(second);
    if (way.era === "modern") {
      assertEquals([follow(client), follow(other)], [[], []]);
    } else {
      const odd = ["undefined", sentence()];
      assertEquals(follow(client), [{ text: "info" }, "error", ...odd]);
      assertEquals(follow(other), ["error", ...way.transport === "pipe" ? [] : ["ada only"], ...odd]);
      const message = client.received.find(({ method }) => method === "notifications/message");
      assertEquals(message?.params, { level: "info", logger: "db", data: { text: "info" } });
    }
  },
  { perInstance: "log" },
);

behaviour("disabled capabilities are neither declared nor served", async (connect, way) => {
  const handlers = [
    tool({ name: "log", run: async (_, { log }) => void await log.error("loud") }),
    resource({ uri: "x://r", name: "r", read: () => "r" }),
    prompt({ name: "p", input: z.object({ a: z.string() }), complete: { a: () => ["a"] }, run: () => "p" }),
  ];
  const all = await connect({ handlers });
  const off = { listChanged: false, subscribe: false, completions: false, logging: false };
  const clock = fakeClock();
  const { client, server } = await connect(
    { handlers, capabilities: off, clock },
    way.era === "modern" ? { logLevel: "debug" } : {},
  );
  const discover = async (from: typeof client) =>
    from.handshake?.capabilities ?? (await from.request("server/discover", {})).capabilities;
  assertEquals(await discover(all.client), {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: { listChanged: true },
    completions: {},
    logging: {},
  });
  assertEquals(await discover(client), {
    tools: { listChanged: false },
    resources: { listChanged: false, subscribe: false },
    prompts: { listChanged: false },
  });
  await client.callTool("log");
  server.log.error("loud");
  server.listChanged("tools");
  server.handlers.add(hello);
  server.resourceUpdated("x://r");
  const unknown = ["completion/complete", ...way.era === "legacy" ? ["logging/setLevel", "resources/subscribe"] : []];
  for (const method of unknown) {
    assertEquals((await fails(() => client.request(method, { level: "info", uri: "x://r" }))).code, -32601);
  }
  // The server sends announcements on a timer. Without this advance of the clock, an announcement would arrive before
  // the response.
  await clock.advance(1000);
  await client.listTools();
  assertEquals(client.received, []);
});

Deno.test("an invalid value for a capability is refused", () => {
  const options = { name: "x", version: "1" };
  // The types do not allow these values.
  for (
    const capabilities of [{ tools: false }, { prompts: 1 }, { resources: null }, { tool: true }, {
      logging: 0,
    }] as unknown as { logging: boolean }[]
  ) {
    assertThrows(() => createServer({ ...options, capabilities }), TypeError, "capabilities.");
  }
});
