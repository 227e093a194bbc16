// What inner calls, lists and endpoints of tenants cost in comparison with plain requests.
import { assert, assertEquals } from "@std/assert";
import {
  type Context,
  createServer,
  type Handler,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  type Server,
  service,
  tool,
  toolProvider,
} from "../../mod.ts";
import { compareCosts } from "../support/cost.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { openSession, toSessionRequest } from "../support/sessions.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { patch } from "../support/patch.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { cache, circuit, guard, quota, retry } from "../../src/layers/layers.ts";
import { asTools } from "../../src/ready/ready.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { listErrors } from "../support/made_errors.ts";
import { testServer } from "../support/test_server.ts";

const repeat = async (times: number, run: (time: number) => Promise<unknown>) => {
  for (let time = 0; time < times; time++) await run(time);
};

/** Compares costs like {@linkcode compareCosts}, but only once the engine has compiled the code of all runs. */
const compareWarm: typeof compareCosts = async (runs, isFine, options) => {
  await repeat(WARM_UP, async () => {
    for (const run of Object.values<() => unknown>(runs)) await run();
  });
  return await compareCosts(runs, isFine, options);
};

/** The number of runs before the comparison. */
const WARM_UP = 20;

/** The number of tools in a list of several pages. */
const TOOLS = 1000;

function listTools(allow?: () => boolean): Server {
  const input = { type: "object", properties: { text: { type: "string", description: "What to look for" } } } as const;
  const handlers = Array.from(
    { length: TOOLS },
    (_, at) =>
      tool({ name: `search_${at}`, description: `Searches the archive ${at}`, input, allow, run: () => "found" }),
  );
  return createServer({ name: "archives", version: "1.0.0", handlers });
}

/** Reads all pages of the list. Does not parse them, because that would take longer than what is measured. */
async function readList(server: Server): Promise<number> {
  let length = 0;
  let cursor: string | undefined;
  do {
    const response = await server.fetch(toRequest("tools/list", cursor === undefined ? {} : { cursor }));
    const text = await response.text();
    length += text.length;
    cursor = /"nextCursor":"([^"]*)"/.exec(text)?.[1];
  } while (cursor !== undefined);
  return length;
}

Deno.test("a list of 1,000 tools with allow costs at most three times as much as one without", async () => {
  await using open = listTools();
  await using decided = listTools(() => true);
  const length = await readList(open);
  // The cache scopes differ.
  const read = (server: Server) => async () => assert(Math.abs(await readList(server) - length) < 100);
  const costs = await compareWarm(
    { open: read(open), decided: read(decided) },
    (costs) => costs.decided <= 3 * costs.open,
  );
  assertEquals(costs, undefined);
});

Deno.test("100 inner calls cost at most as much as 55 requests", async () => {
  const add = tool({ name: "add", run: () => "3" });
  const many = tool({
    name: "many",
    run: async (_input, ctx) => {
      await repeat(100, () => ctx.callTool("add"));
      return "done";
    },
  });
  await using server = createServer({ name: "calc", version: "1.0.0", handlers: [add, many] });
  const call = async (name: string) => {
    const { result } = await readReply(await server.fetch(toRequest("tools/call", { name })));
    assert(!result.isError);
  };
  const costs = await compareWarm(
    { requests: () => repeat(55, () => call("add")), inner: () => call("many") },
    (costs) => costs.inner <= costs.requests,
  );
  assertEquals(costs, undefined);
});

const add = tool({ name: "add", run: () => "3" });

/** Returns a function that makes a call as a listener passes it on, with the header `Host`. */
async function toCaller(server: Server): Promise<(host: string, path?: string) => Promise<void>> {
  const request = toRequest("tools/call", { name: "add" });
  const { method } = request;
  const headers = Object.fromEntries(request.headers);
  const body = await request.text();
  return async (host, path = "/mcp") => {
    const init = { method, headers: { ...headers, host }, body };
    const response = await server.fetch(new Request(`http://${host}${path}`, init));
    await response.text();
    assertEquals(response.status, 200);
  };
}

Deno.test("a call costs about the same with 1,000 hosts as with one host", async () => {
  const hosts = Array.from({ length: 1000 }, (_, at) => `t${at}.example.com`);
  const create = () => createServer({ name: "calc", version: "1.0.0", handlers: [add], hosts });
  await using one = create();
  await using many = create();
  const [callOne, callMany] = [await toCaller(one), await toCaller(many)];
  const costs = await compareWarm(
    {
      one: () => repeat(1000, () => callOne(hosts[0])),
      many: () => repeat(1000, (time) => callMany(hosts[time])),
    },
    (costs) => costs.many <= 1.25 * costs.one,
  );
  assertEquals(costs, undefined);
});

Deno.test("a call of a path with a parameter costs little more than a call of a path without one", async () => {
  await using plain = createServer({ name: "calc", version: "1.0.0", handlers: [add] });
  await using tenants = createServer({ name: "calc", version: "1.0.0", handlers: [add], path: "/tenants/:tenant/mcp" });
  const [callPlain, callTenant] = [await toCaller(plain), await toCaller(tenants)];
  const costs = await compareWarm(
    {
      plain: () => repeat(500, () => callPlain("localhost")),
      tenants: () => repeat(500, (time) => callTenant("localhost", `/tenants/t${time % 5}/mcp`)),
    },
    (costs) => costs.tenants <= 1.3 * costs.plain,
  );
  assertEquals(costs, undefined);
});

// The cost of notifying many clients of one change.

const LISTENERS = 100;
const URI = "note://1";
const NEWS = "notifications/resources/updated";

type Read = () => Promise<string>;

function toReader(response: Response): Read {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return async () => {
    while (!text.includes(NEWS)) {
      const read = await reader?.read();
      if (!read || read.done) throw new Error(`The stream ended after ${text}`);
      text += read.value;
    }
    await reader?.cancel();
    return text;
  };
}

async function listen(server: Server): Promise<Read> {
  const params = { notifications: { resourceSubscriptions: [URI] } };
  return toReader(await server.fetch(toRequest("subscriptions/listen", params)));
}

async function openStream(server: Server): Promise<Read> {
  const session = { "mcp-session-id": await openSession(server) };
  const message = { jsonrpc: "2.0", id: 2, method: "resources/subscribe", params: { uri: URI } };
  await (await server.fetch(toSessionRequest(message, session))).text();
  return toReader(await server.fetch(toSessionRequest(undefined, session)));
}

/** Counts how many values are serialized as JSON while `work` runs. */
async function countWrites(work: () => Promise<void>): Promise<number> {
  const { stringify } = JSON;
  let count = 0;
  using _patched = patch(JSON, {
    stringify: new Proxy(stringify, {
      apply(write, self, args) {
        count++;
        return Reflect.apply(write, self, args);
      },
    }),
  });
  await work();
  return count;
}

for (const [name, open] of [["subscriptions", listen], ["streams of sessions", openStream]] as const) {
  Deno.test(`a notification for ${LISTENERS} ${name} is serialized once`, async () => {
    const clock = fakeClock();
    const server = testServer({
      clock,
      handlers: [resource({ uri: URI, name: "1", read: () => "1" })],
      limits: { connections: { streamsPerClient: LISTENERS } },
    });
    const listeners: Read[] = [];
    for (let i = 0; i < LISTENERS; i++) listeners.push(await open(server));
    let texts: string[] = [];
    const count = await countWrites(async () => {
      server.resourceUpdated(URI);
      await clock.advance(20);
      texts = await Promise.all(listeners.map((read) => read()));
    });
    assertEquals(texts.filter((text) => text.includes(URI)).length, LISTENERS);
    assertEquals(count, 1);
  });
}

// A call that succeeds makes no error in case it is needed, because each error gets a stack.

const reads = { readOnlyHint: true };
const sum = tool({ name: "add", annotations: reads, run: () => ({ sum: 3 }) });
const allowed = tool({ name: "allowed", allow: () => Promise.resolve(true), run: () => "allowed" });
const greet = prompt({ name: "greet", run: () => "Hello" });
const readme = resource({ uri: "docs://readme", name: "readme", read: () => "text" });
const page = resource({
  uri: "docs://pages/{id}",
  name: "page",
  list: () => [{ uri: "docs://pages/1", name: "1" }],
  read: ({ id }) => id,
  complete: { id: () => ["1"] },
});
const found = tool({ name: "found", run: () => "found" });
const foundPrompt = prompt({ name: "found", run: () => "found" });
const providers = [
  toolProvider({ list: () => [found], find: (name) => name === "found" ? found : undefined }),
  promptProvider({ list: () => [foundPrompt], find: (name) => name === "found" ? foundPrompt : undefined }),
  resourceProvider({ scheme: "archive", name: "archive", list: () => ({ resources: [] }), read: () => "text" }),
];
const layered = tool({
  name: "layered",
  annotations: reads,
  use: [
    quota({ rate: { calls: 1000, perMs: 1000 }, concurrency: 5 }),
    guard({ input: [(input) => input], output: [(output) => output] }),
    retry(),
    circuit(),
    cache({ ttlMs: 1000 }),
  ],
  run: () => "layered",
});
const opened = service("opened", () => ({}), { per: "call" });
const served = tool({ name: "served", services: { opened }, run: () => "served" });

const INNER: Readonly<Record<string, (ctx: Context) => Promise<unknown>>> = {
  callTool: (ctx) => ctx.callTool("add"),
  callAllowed: (ctx) => ctx.callTool("allowed"),
  callFound: (ctx) => ctx.callTool("found"),
  getPrompt: (ctx) => ctx.getPrompt("greet"),
  readResource: (ctx) => ctx.readResource("docs://readme"),
  readPage: (ctx) => ctx.readResource("docs://pages/7"),
  list: (ctx) => ctx.list("tools"),
  complete: (ctx) => ctx.complete({ type: "ref/resource", uri: "docs://pages/{id}" }, { name: "id", value: "" }),
  once: (ctx) => ctx.once("key", () => 1),
};
const inner = Object.entries(INNER).map(([name, run]) =>
  tool({
    name,
    run: async (_input, ctx) => {
      await run(ctx);
      return "done";
    },
  })
);

const handlers: readonly Handler[] = [sum, allowed, greet, readme, page, ...providers, layered, served, ...inner];

/** The requests of a client. Each of them succeeds. */
const requests: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  ...Object.fromEntries(
    ["add", "allowed", "found", "layered", "served", ...Object.keys(INNER)].map((name) =>
      [name, (client: Client) => client.callTool(name)] as const
    ),
  ),
  "call_tool": (client) => client.callTool("call_tool", { name: "add" }),
  "call_tool with an allow": (client) => client.callTool("call_tool", { name: "allowed" }),
  "call_tool with a provider": (client) => client.callTool("call_tool", { name: "found" }),
  "call_read_only_tool": (client) => client.callTool("call_read_only_tool", { name: "add" }),
  "search_tools": (client) => client.callTool("search_tools", { query: "add" }),
  "read_resource": (client) => client.callTool("read_resource", { uri: "docs://readme" }),
  "tools/list": (client) => client.listTools(),
  "prompts/list": (client) => client.listPrompts(),
  "resources/list": (client) => client.listResources(),
  "prompts/get": (client) => client.getPrompt("greet"),
  "prompts/get of a provider": (client) => client.getPrompt("found"),
  "resources/read": (client) => client.readResource("docs://readme"),
  "resources/read of a template": (client) => client.readResource("docs://pages/3"),
  "resources/read of a provider": (client) => client.readResource("archive://3"),
};

for (const version of ["2026-07-28", "2025-06-18"] as const) {
  for (const hasMiddleware of [false, true]) {
    Deno.test(`requests that succeed make no error (${version}${hasMiddleware ? ", middleware" : ""})`, async () => {
      const server = testServer({
        handlers: [...handlers, asTools(), toolSearch()],
        use: hasMiddleware ? [(_call, next) => next()] : [],
      });
      const fetch = async (url: string | URL | Request, init?: RequestInit) =>
        await server.fetch(new Request(url, init));
      await using client = await connect("http://localhost/mcp", { fetch, revisions: [version] });
      const made: Record<string, readonly string[]> = {};
      for (const [name, send] of Object.entries(requests)) {
        const isFine = async () => assert(Object(await send(client)).isError !== true, name);
        // The first call may load code, which may try in vain to use optional parts of the runtime.
        await isFine();
        const errors = await listErrors(isFine);
        if (errors.length) made[name] = errors;
      }
      assertEquals(made, {});
      // Otherwise the test would not see errors at all.
      assert((await listErrors(() => client.callTool("unknown").catch(() => {}))).length > 0);
    });
  }
}
