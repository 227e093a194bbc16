// Facts about a running server that tools such as the inspector read: its endpoints, how to connect to an endpoint, and
// its development mode.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type Context, createServer, mount, prompt, resource, resourceLink, type Server, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { connect } from "../../src/client/client.ts";
import { isServer, listEndpoints, listWarnings } from "../../src/host.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, gate, textOf, until } from "../support/behaviour.ts";
import { makeFolder, removeFolder } from "../support/copies.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { collectWarnings } from "../support/warnings.ts";

const schema = { type: "object", properties: { ok: { type: "boolean" } } } as const;
const noisy = tool({
  name: "noisy",
  async run(_input, ctx: Context) {
    await ctx.progress(1);
    await ctx.elicit("sure", { message: "?", schema });
    return "done";
  },
});
const ping = tool({ name: "ping", run: () => "pong" });
const base = { version: "1.0.0", handlers: [ping, noisy] };
const plain = (more = {}) => closeAtEnd(createServer({ name: "plain", ...base, ...more }));
const tenants = () =>
  closeAtEnd(createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/tenants/:tenant/rooms/:room/mcp",
    handlers: ({ tenant, room }) => [tool({ name: "where", run: () => `${tenant} ${room}` })],
  }));
const describe = (server: Server) =>
  listEndpoints(server).map(({ name, path, params, hasAuth }) => ({ name, path, params, hasAuth }));

Deno.test("a server has one endpoint", () => {
  const server = plain();
  assertEquals(describe(server), [{ name: "plain", path: "/mcp", params: [], hasAuth: false }]);
  assert(listEndpoints(server)[0].server === server);
  const auth = apiKey({ keys: { ada: "the-key-of-ada-0123456789" } });
  assertEquals(describe(plain({ auth, path: "/a/mcp" })), [
    { name: "plain", path: "/a/mcp", params: [], hasAuth: true },
  ]);
});

Deno.test("a mount has the endpoints of its servers, in order", () => {
  const auth = apiKey({ keys: { ada: "the-key-of-ada-0123456789" } });
  const servers = [plain({ auth }), tenants()];
  const whole = mount(servers);
  const path = "/tenants/:tenant/rooms/:room/mcp";
  assertEquals(describe(whole), [
    { name: "plain", path: "/mcp", params: [], hasAuth: true },
    { name: "tenants", path, params: ["tenant", "room"], hasAuth: false },
  ]);
  assert(listEndpoints(whole).every(({ server }, i) => server === servers[i]));
});

Deno.test("an endpoint with parameters has a path and a server for each combination of values", async () => {
  const [endpoint] = listEndpoints(tenants());
  const params = { tenant: "a b", room: "1" };
  assertEquals(endpoint.toPath(params), "/tenants/a%20b/rooms/1/mcp");
  await using client = await connect(await endpoint.enter(params));
  assertEquals(textOf(await client.callTool("where")), "a b 1");
  const wrong: readonly Readonly<Record<string, string>>[] = [{ tenant: "a" }, { tenant: "a", room: ".." }];
  for (const values of wrong) {
    assertThrows(() => endpoint.toPath(values), TypeError, "room");
    await assertRejects(() => endpoint.enter(values), TypeError, "room");
  }
  await assertRejects(() => endpoint.enter(), TypeError, sentence("/tenants/:tenant/rooms/:room/mcp"));
});

Deno.test("connecting to an endpoint without parameters fails if parameters are passed", async () => {
  const [endpoint] = listEndpoints(plain());
  assertEquals(endpoint.toPath({}), "/mcp");
  assertThrows(() => endpoint.toPath({ tenant: "a" }), TypeError, sentence("tenant"));
  await assertRejects(() => endpoint.enter({ tenant: "a" }), TypeError, sentence("pathParams"));
  await using client = await connect(await endpoint.enter());
  assertEquals(textOf(await client.callTool("ping")), "pong");
});

Deno.test("develop() enables development warnings, and `development: false` keeps them disabled", async () => {
  for (const [development, count] of [[undefined, 1], [false, 0]] as const) {
    await using server = mount([plain({ development })]);
    const [endpoint] = listEndpoints(server);
    const warn = async () => {
      const onElicit = () => ({ action: "accept", content: { ok: true } }) as const;
      await using client = await connect(await endpoint.enter(), { onElicit });
      return await collectWarnings(() => client.callTool("noisy", {}, { onProgress: () => {} }));
    };
    assertEquals((await warn()).length, 0);
    endpoint.develop();
    await endpoint.load();
    assertEquals((await warn()).length, count);
  }
});

Deno.test("isServer() accepts a server that another copy of the library created", async () => {
  const folder = await makeFolder();
  try {
    const copy: typeof import("../../mod.ts") = await import(new URL("mod.ts", folder).href);
    const server = copy.createServer({ name: "copied", version: "1.0.0", path: "/copied/:id/mcp" });
    assert(isServer(server) && isServer(copy.mount([server])));
    assertEquals(describe(server), [{ name: "copied", path: "/copied/:id/mcp", params: ["id"], hasAuth: false }]);
  } finally {
    await removeFolder(folder);
  }
});

Deno.test("isServer() accepts only servers", () => {
  assertEquals([plain(), tenants(), mount([plain()])].map(isServer), [true, true, true]);
  const server = plain();
  const others = [undefined, null, "server", [], [server], {}, { fetch: server.fetch }, ping, () => server];
  assertEquals(others.map(isServer), others.map(() => false));
});

Deno.test("a tool that returns only a resource link gets a warning, because some clients drop links", () => {
  const uris = ["a://a", "a://b"];
  const only: Record<string, () => unknown> = {
    arrow: () => resourceLink("a://a"),
    block: () => {
      const [uri] = uris.map((uri) => uri);
      return resourceLink(uri);
    },
    list: () => uris.map((uri) => resourceLink(uri)),
    method() {
      return uris.map((uri) => resourceLink(uri));
    },
  };
  const fine: Record<string, () => unknown> = {
    text: () => ["Saved.", resourceLink("a://a")],
    texts: () => ["Found:", ...uris.map((uri) => resourceLink(uri))],
    block: () => {
      const link = resourceLink("a://a");
      return [link.name, link];
    },
    object: () => ({ content: [resourceLink("a://a")], structuredContent: { uris } }),
    number: () => 5,
  };
  const make = (all: Record<string, () => unknown>) =>
    createServer({
      name: "s",
      version: "1",
      handlers: Object.entries(all).map(([name, run]) => tool({ name, run: run as () => string })),
    });
  assertEquals(
    listWarnings(make(only)).map(({ place, state }) => [place, state]),
    ["arrow", "block", "list", "method"].map((name) => [`tool ${name}`, sentence("link", "text")]),
  );
  assertEquals(listWarnings(make(fine)), []);
});

Deno.test("a handler that uses sampling, roots or log messages gets a warning, because the protocol deprecates them", () => {
  const logger = { info: (_: string) => {}, sample: (_: readonly number[]) => 1, log: (_: string) => {} };
  const log = logger;
  const ask = { messages: [], maxTokens: 1 };
  const handlers = [
    tool({ name: "sample", run: async (_, ctx) => (await ctx.sample("q", ask)).model }),
    tool({
      name: "destructured",
      run: async (_, { sample, log }) => (await log.info("a"), (await sample("q", ask)).model),
    }),
    prompt({ name: "roots", run: async (ctx) => JSON.stringify(await Object(ctx).roots()) }),
    resource({
      uri: "a://log",
      name: "log",
      async read(_uri, { log }) {
        await log.warning("a");
        return "";
      },
    }),
    // A bundler renames a parameter that hides another variable.
    tool({
      name: "bundled",
      run: async (_, { sample: sample2, log: log2 }) => (await log2.info("a"), (await sample2("q", ask)).model),
    }),
    tool({ name: "fine", run: () => (log.info("a"), console.log.name, logger.log("sample"), logger.sample([1])) }),
    tool({ name: "question", run: (_, { elicit }) => elicit.name }),
  ];
  const server = createServer({ name: "s", version: "1", handlers });
  assertEquals(
    listWarnings(server).map(({ place, state }) => [place, state]),
    [
      ["tool sample", sentence("sampling")],
      ["tool destructured", sentence("sampling")],
      ["tool destructured", sentence("log messages")],
      ["prompt roots", sentence("roots")],
      ["resource a://log", sentence("log messages")],
      ["tool bundled", sentence("sampling")],
      ["tool bundled", sentence("log messages")],
    ],
  );
});

// The statistics of a server, and `await using` with a server.

behaviour("stats count running and waiting calls, and their bytes", async (connect, { transport }) => {
  const { pass, open } = gate();
  const wait = tool({ name: "wait", run: () => pass.then(() => "") });
  const { client, server } = await connect({
    handlers: [wait],
    limits: testLimits({ calls: { running: 1, runningPerClient: 1, waiting: 8 } }),
  });
  const { running, waiting, isClosing } = server.stats();
  assertEquals({ running, waiting, isClosing }, { running: 0, waiting: 0, isClosing: false });
  const calls = [client.callTool("wait"), client.callTool("wait")];
  await until(() => server.stats().waiting === 1, "a call waits");
  const busy = server.stats();
  assertEquals(busy.running, 1);
  assert(busy.bytes > 0, `${busy.bytes} bytes over ${transport}`);
  open();
  await Promise.all(calls);
  await until(() => server.stats().running === 0, "no call runs");
  assertEquals(server.stats().waiting, 0);
}, { perInstance: "limits" });

behaviour("stats report that the server is closing while a call runs", async (connect) => {
  const { pass, open } = gate();
  const wait = tool({ name: "wait", run: () => pass.then(() => "") });
  const { client, server } = await connect({ handlers: [wait] });
  const call = client.callTool("wait");
  await until(() => server.stats().running === 1, "the call runs");
  const closed = server.close();
  const { running, isClosing } = server.stats();
  assertEquals({ running, isClosing }, { running: 1, isClosing: true });
  open();
  await call;
  await closed;
  assertEquals(server.stats().running, 0);
}, { perInstance: "limits" });

behaviour("stats count sessions and streams", async (connect, { era }) => {
  const { client, server } = await connect();
  await using subscription = await client.subscribe({ toolsListChanged: true });
  await until(() => server.stats().streams === 1, "the stream is open");
  assertEquals(server.stats().sessions, era === "legacy" ? 1 : 0);
  await subscription.close();
  await client.close();
  await until(() => server.stats().streams === 0, "the stream has ended");
}, { transports: ["http"], perInstance: "limits" });

Deno.test("stats count concrete paths, and the stats of a mount are sums over its servers", async () => {
  const { pass, open } = gate();
  const wait = tool({ name: "wait", run: () => pass.then(() => "") });
  const options = { version: "1.0.0", handlers: [wait] };
  const tenants = createServer({ ...options, name: "tenants", path: "/tenants/:tenant/mcp" });
  const plain = createServer({ ...options, name: "plain" });
  await using both = mount([tenants, plain]);
  await using acme = await connectTest(tenants, { pathParams: { tenant: "acme" } });
  await using client = await connectTest(plain);
  const calls = [acme.callTool("wait"), client.callTool("wait")];
  await until(() => both.stats().running === 2, "both calls run");
  assertEquals([tenants.stats().running, tenants.stats().paths, plain.stats().paths], [1, 1, 0]);
  assertEquals([both.stats().paths, both.stats().isClosing], [1, false]);
  open();
  await Promise.all(calls);
  await plain.close();
  assertEquals([both.stats().isClosing, tenants.stats().isClosing], [true, false]);
});

Deno.test("await using closes a server once, at the end of the block", async () => {
  const closed: string[] = [];
  const observer = (name: string) => ({ close: () => void closed.push(name) });
  const make = (name: string, path = "/mcp") =>
    createServer({ name, version: "1.0.0", path, observer: observer(name) });
  {
    await using one = make("one");
    await using two = make("two");
    await two.close();
    assertEquals([closed.join(), one.stats().isClosing], ["two", false]);
  }
  assertEquals(closed, ["two", "one"]);
  {
    await using _both = mount([make("three"), make("four", "/four")]);
  }
  assertEquals(closed.slice(2).toSorted(), ["four", "three"]);
});
