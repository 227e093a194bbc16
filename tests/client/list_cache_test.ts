// A client keeps lists for as long as the server allows, and forgets them when they change.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { type Client, connect, type ConnectOptions } from "../../src/client/client.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { discovered, fakeHttp, fakePipe, fault, type Heard, type Message, ok, url } from "./fakes.ts";

/** The results of a modern server. `list` returns the fields of each list. */
type List = (message: Message, lists: number) => Readonly<Record<string, unknown>>;

const EMPTY = { tools: [], prompts: [], resources: [], resourceTemplates: [] };
const PUBLIC = { ttlMs: 60_000, cacheScope: "public" };
const PRIVATE = { ttlMs: 60_000, cacheScope: "private" };

/** Creates a modern server over HTTP that counts the requests for lists. */
function toLists(list: List, more: (heard: Heard) => Response | undefined = () => undefined) {
  const lists: string[] = [];
  const { fetch } = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    const other = more(heard);
    if (other) return other;
    if (!heard.method?.endsWith("/list")) return ok(heard, { content: [] });
    lists.push(heard.method);
    return ok(heard, { resultType: "complete", ...EMPTY, ...list(heard, lists.length) });
  });
  return { lists, connect: (options: ConnectOptions = {}) => connect(url, { fetch, ...options }) };
}

const ALL: readonly (readonly [method: string, list: (client: Client) => Promise<readonly unknown[]>])[] = [
  ["tools/list", (client) => client.listTools()],
  ["prompts/list", (client) => client.listPrompts()],
  ["resources/list", (client) => client.listResources()],
  ["resources/templates/list", (client) => client.listResourceTemplates()],
];

Deno.test("each list is kept within ttlMs, and requested again afterwards", async () => {
  for (const [method, list] of ALL) {
    const server = toLists(() => PUBLIC);
    await using client = await server.connect();
    for (let at = 0; at < 3; at++) await list(client);
    assertEquals(server.lists, [method]);
  }
  const server = toLists(() => ({ ...PUBLIC, ttlMs: 1 }));
  await using client = await server.connect();
  await client.listTools();
  await until(async () => {
    await client.listTools();
    return server.lists.length > 1;
  }, "the list is requested again");
});

Deno.test("a list without a valid ttlMs is requested each time", async () => {
  for (const ttlMs of [undefined, 0, -1, "60000", null, NaN]) {
    const server = toLists(() => ({ ...PUBLIC, ttlMs }));
    await using client = await server.connect();
    for (let at = 0; at < 2; at++) await client.listTools();
    assertEquals(server.lists.length, 2, `${ttlMs}`);
  }
});

Deno.test("a list is kept only while all its pages are fresh, and the pages are kept together", async () => {
  for (const last of [PUBLIC, { ttlMs: 0 }, { ...PUBLIC, cacheScope: "private" }]) {
    const server = toLists(({ params }) =>
      params.cursor === undefined
        ? { ...PUBLIC, tools: [{ name: "a", inputSchema: { type: "object" } }], nextCursor: "2" }
        : { ...last, tools: [{ name: "b", inputSchema: { type: "object" } }] }
    );
    await using client = await server.connect();
    for (let at = 0; at < 2; at++) {
      assertEquals((await client.listTools()).map(({ name }) => name), ["a", "b"]);
    }
    assertEquals(server.lists.length, last === PUBLIC ? 2 : 4);
  }
});

Deno.test("a change of a kept list does not change later results", async () => {
  const server = toLists(() => ({ ...PUBLIC, tools: [{ name: "a", inputSchema: { type: "object" } }] }));
  await using client = await server.connect();
  for (let at = 0; at < 3; at++) {
    const [listed] = await client.listTools();
    assertEquals(listed.inputSchema, { type: "object" });
    Object.assign(listed.inputSchema, { additionalProperties: false });
  }
  assertEquals(server.lists.length, 1);
});

Deno.test("a notification forgets its lists, also if it arrives during the request, and before a callback lists again", async () => {
  let send = (_: object) => {};
  let listed = 0;
  let isSlow = false;
  const pending: (() => void)[] = [];
  const pipe = fakePipe(({ id, method = "" }, say) => {
    send = say;
    if (method === "server/discover") {
      return say({ id, result: { supportedVersions: ["2026-07-28"], capabilities: { tools: {}, resources: {} } } });
    }
    if (!method.endsWith("/list")) return;
    listed++;
    const reply = () => say({ id, result: { resultType: "complete", ...EMPTY, ...PUBLIC } });
    if (isSlow) pending.push(reply);
    else reply();
  });
  const relisted: Promise<unknown>[] = [];
  await using client = await connect(pipe as never, { onNotification: () => void relisted.push(client.listTools()) });
  for (let at = 0; at < 2; at++) for (const [, list] of ALL) await list(client);
  assertEquals(listed, 4);
  send({ method: "notifications/tools/list_changed" });
  await until(() => relisted.length === 1, "the notification");
  await relisted[0];
  assertEquals(listed, 5, "only the list of tools is requested");
  for (const [, list] of ALL) await list(client);
  assertEquals(listed, 5);
  send({ method: "notifications/resources/list_changed" });
  await until(() => relisted.length === 2, "the notification");
  for (const [, list] of ALL) await list(client);
  assertEquals(listed, 7, "both lists of resources are requested");
  // The list that is being requested may be older than the change.
  isSlow = true;
  send({ method: "notifications/prompts/list_changed" });
  await until(() => relisted.length === 3, "the notification");
  const listing = client.listPrompts();
  await until(() => pending.length === 1, "the request");
  send({ method: "notifications/prompts/list_changed" });
  await until(() => relisted.length === 4, "the notification");
  isSlow = false;
  pending[0]();
  await listing;
  await client.listPrompts();
  assertEquals(listed, 9);
});

Deno.test("private lists are kept only with fixed credentials, and used only with the same token", async () => {
  const server = toLists(() => PRIVATE);
  // The function `fetch` of this client could send each request with other credentials.
  await using varying = await server.connect();
  for (let at = 0; at < 3; at++) await varying.listTools();
  assertEquals(server.lists.length, 3);
  const { fetch } = globalThis;
  const http = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    server.lists.push(String(heard.headers.get("authorization")));
    return ok(heard, { resultType: "complete", ...EMPTY, ...PRIVATE });
  });
  globalThis.fetch = (...given) => http.fetch(new Request(...given));
  try {
    const direct = async (options: ConnectOptions, between = () => {}) => {
      server.lists.length = 0;
      await using client = await connect(url, options);
      for (let at = 0; at < 3; at++) {
        await client.listTools();
        between();
      }
      return [...server.lists];
    };
    assertEquals(await direct({}), ["null"]);
    assertEquals(await direct({ headers: { authorization: "Bearer a" } }), ["Bearer a"]);
    assertEquals((await direct({ use: [(request, next) => next(request)] })).length, 3);
    assertEquals(await direct({ auth: { token: () => "a" } }), ["Bearer a"]);
    let user = 0;
    assertEquals(await direct({ auth: { token: () => `user${user}` } }, () => void user++), [
      "Bearer user0",
      "Bearer user1",
      "Bearer user2",
    ]);
    // A token function that fails must not open the list of an earlier user.
    let isBroken = false;
    await using client = await connect(url, {
      auth: { token: () => isBroken ? Promise.reject(new Error("signed out")) : "a" },
    });
    await client.listTools();
    isBroken = true;
    await assertRejects(() => client.listTools(), Error, "signed out");
  } finally {
    globalThis.fetch = fetch;
  }
});

Deno.test("options that change a request, and request(), always ask the server", async () => {
  const server = toLists(() => PUBLIC);
  await using client = await server.connect();
  await client.listTools({ timeoutMs: 60_000, signal: new AbortController().signal });
  await client.listTools();
  assertEquals(server.lists.length, 1);
  await client.listTools({ headers: { "x-user": "ada" } });
  await client.listTools({ meta: { a: 1 } });
  await client.listTools({ roots: [] });
  await client.request("tools/list");
  assertEquals(server.lists.length, 5);
  await assertRejects(() => client.listTools({ signal: AbortSignal.abort(new Error("stopped")) }), Error, "stopped");
  await client.close();
  await assertRejects(() => client.listTools(), DOMException);
});

Deno.test("a list is requested again after the server did not know the subject of a request", async () => {
  const server = toLists(
    () => PUBLIC,
    (heard) =>
      heard.method === "tools/call" ? fault(heard, heard.params.name === "gone" ? -32602 : -32603, 400) : undefined,
  );
  await using client = await server.connect();
  await client.listTools();
  await assertRejects(() => client.callTool("busy"), Error);
  await client.listTools();
  assertEquals(server.lists.length, 1);
  await assertRejects(() => client.callTool("gone"), Error);
  await client.listTools();
  assertEquals(server.lists.length, 2);
});

Deno.test("a list that needed answers, or that is too large, is not kept", async () => {
  const asks = { resultType: "input_required", requestState: "s" };
  const server = toLists(({ params }) => params.requestState === undefined ? { ...PUBLIC, ...asks } : PUBLIC);
  await using client = await server.connect();
  for (let at = 0; at < 2; at++) await client.listTools();
  assertEquals(server.lists.length, 4);
  const inputSchema = { type: "object", description: "x".repeat(5 * 1024 * 1024) };
  const large = toLists(() => ({ ...PUBLIC, tools: [{ name: "a", inputSchema }] }));
  await using other = await large.connect();
  for (let at = 0; at < 2; at++) await other.listTools();
  assertEquals(large.lists.length, 2);
});

Deno.test("the output schemas of kept tools stay known", async () => {
  const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const tools = [{ name: "a", inputSchema: { type: "object" }, outputSchema }];
  const server = toLists(() => ({ ...PUBLIC, tools }));
  await using client = await server.connect();
  for (let at = 0; at < 2; at++) {
    await client.listTools();
    await assertRejects(() => client.callTool("a"), Error);
  }
});

Deno.test("a test client requests each list, and sees changes that the server did not announce", async () => {
  const handlers = [tool({ name: "b", run: () => "" })];
  await using server = createServer({ name: "s", version: "1.0.0", ttlMs: 60_000, cacheScope: "public", handlers });
  await using client = await connectTest(server);
  await using kept = await connect(server);
  for (const each of [client, kept]) assertEquals((await each.listTools()).length, 1);
  server.handlers.add(tool({ name: "a", run: () => "" }));
  assertEquals((await client.listTools()).length, 2);
  assertEquals((await kept.listTools()).length, 1);
});
