// A server behind a proxy that is down, slow, hanging or hostile.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, McpError, prompt, type Server, tool } from "../../mod.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, gate, started, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { createUpstream, type Era } from "./fixture.ts";

const say = (name: string, text = name) => tool({ name, run: () => text });
const names = (listed: readonly { readonly name: string }[]) => listed.map(({ name }) => name);

/** A way to a server that can be interrupted. */
class Line {
  server: Server;
  isUp = true;
  /** Called after each request has reached the server. */
  onReached = (_method: string) => {};
  readonly methods: string[] = [];

  constructor(server: Server) {
    this.server = server;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    if (!this.isUp) throw new TypeError("connection refused");
    const { method = "" } = request.method === "POST" ? await request.clone().json() : {};
    this.methods.push(method);
    const response = await this.server.fetch(request);
    this.onReached(method);
    return response;
  };

  proxy(options: ProxyOptions = {}) {
    return proxy("http://localhost/mcp", { name: "up", fetch: this.fetch, ...options });
  }

  count(method: string): number {
    return this.methods.filter((each) => each === method).length;
  }
}

function each(
  name: string,
  run: (...given: [...Parameters<Parameters<typeof behaviour>[1]>, Era]) => Promise<void>,
): void {
  for (const behind of ["modern", "legacy"] as const) {
    behaviour(`${name}, in front of ${behind}`, (connect, way) => run(connect, way, behind), {
      transports: ["http"],
      perInstance: "handlers",
    });
  }
}

each(
  "a server that is down at the start appears when it comes up, and calls say so in words",
  async (connect, _, behind) => {
    const clock = fakeClock();
    const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
    line.isUp = false;
    const { client, server, takeFaults } = await connect({
      clock,
      handlers: [line.proxy({ prefix: "up_" }), say("own")],
    });
    assertEquals(names(await client.listTools()), ["own"]);
    const { isError, content } = await client.callTool("up_far");
    assertEquals([isError, Object(content[0]).text], [true, sentence("cannot be reached")]);
    assert(takeFaults().length > 0);
    await using subscription = await client.subscribe({ toolsListChanged: true });
    line.isUp = true;
    await until(async () => {
      await clock.advance(1000);
      return subscription.received.length > 0;
    }, "the change was announced");
    assertEquals(names(await client.listTools()), ["own", "up_far"]);
    assertEquals(textOf(await client.callTool("up_far")), "far");
    takeFaults();
    await server.close();
    await line.server.close();
  },
);

each(
  "the last known list serves while the server is down, and the next call after that works",
  async (connect, _, behind) => {
    const line = new Line(createUpstream(behind, { handlers: [say("far"), prompt({ name: "p", run: () => "p" })] }));
    const { client, server, takeFaults } = await connect({ handlers: [line.proxy(), say("own")] });
    assertEquals(names(await client.listTools()), ["own", "far"]);
    assertEquals(names(await client.listPrompts()), ["p"]);
    line.isUp = false;
    assertEquals((await client.callTool("far")).isError, true);
    assertEquals(names(await client.listTools()), ["own", "far"]);
    assertEquals(names(await client.listPrompts()), ["p"]);
    await assertRejects(() => client.getPrompt("p"), Error, sentence("up"));
    line.isUp = true;
    assertEquals(textOf(await client.callTool("far")), "far");
    takeFaults();
    await server.close();
    await line.server.close();
  },
);

each(
  "a call whose answer is lost is not sent again, and other requests are repeated once",
  async (connect, _, behind) => {
    let runs = 0;
    const pay = tool({ name: "pay", run: () => `paid ${++runs}` });
    const line = new Line(createUpstream(behind, { handlers: [pay, prompt({ name: "p", run: () => "p" })] }));
    const { client, server, takeFaults } = await connect({ handlers: [line.proxy()] });
    await client.listTools();
    await client.listPrompts();
    let isLost = true;
    line.onReached = (method) => {
      if (!/^(tools\/call|prompts\/get)$/.test(method) || !isLost) return;
      isLost = false;
      throw new TypeError("connection reset");
    };
    const lost = await client.callTool("pay");
    assertEquals([lost.isError, textOf(lost), runs], [true, sentence("may have run"), 1]);
    isLost = true;
    const { messages } = await client.getPrompt("p");
    assertEquals([messages[0].content, line.count("prompts/get")], [{ type: "text", text: "p" }, 2]);
    assertEquals(textOf(await client.callTool("pay")), "paid 2");
    takeFaults();
    await server.close();
    await line.server.close();
  },
);

each("a name that was never listed waits for the first list", async (connect, _, behind) => {
  const { pass, open } = gate();
  const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
  const { fetch } = line;
  const slow = async (request: Request) => {
    const response = await fetch(request);
    if (line.methods.at(-1) === "tools/list") await pass;
    return response;
  };
  const { client, server } = await connect({ handlers: [line.proxy({ fetch: slow })] });
  const call = client.callTool("far");
  await until(() => line.count("tools/list"), "the list was requested");
  open();
  assertEquals(textOf(await call), "far");
  await assertRejects(() => client.callTool("near"), McpError, "Unknown tool");
  await server.close();
  await line.server.close();
});

each("a slow list serves the last known one", async (connect, _, behind) => {
  const line = new Line(createUpstream(behind, { handlers: [say("far")], capabilities: { listChanged: false } }));
  let pass = Promise.resolve();
  const slow = async (request: Request) => {
    await pass;
    return await line.fetch(request);
  };
  const { client, server } = await connect({ handlers: [line.proxy({ fetch: slow })] });
  assertEquals(names(await client.listTools()), ["far"]);
  const held = gate();
  pass = held.pass;
  assertEquals(names(await client.listTools()), ["far"]);
  held.open();
  await server.close();
  await line.server.close();
});

each("a list is loaded again if the server cannot announce its changes", async (connect, _, behind) => {
  const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
  const fetch = async (request: Request) => {
    const { method = "" } = request.method === "POST" ? await request.clone().json() : {};
    const isStream = request.method === "GET" || method === "subscriptions/listen";
    return isStream ? new Response(null, { status: 405 }) : await line.fetch(request);
  };
  const { client, server, takeFaults } = await connect({ handlers: [line.proxy({ fetch })] });
  assertEquals(names(await client.listTools()), ["far"]);
  line.server.handlers.add(say("new"));
  assertEquals(names(await client.listTools()), ["far", "new"]);
  takeFaults();
  await server.close();
  await line.server.close();
});

each("`required` makes ready() fail without the server", async (connect, _, behind) => {
  const line = new Line(createUpstream(behind));
  line.isUp = false;
  const server = createServer({
    name: "gateway",
    version: "1.0.0",
    handlers: [line.proxy({ required: true })],
    observer: { fault() {} },
  });
  await assertRejects(() => server.ready(), Error, sentence("cannot be reached"));
  line.isUp = true;
  await server.ready();
  await server.close();
  await line.server.close();
  await connect();
});

each("a store keeps the list for a server that starts while the other one is down", async (connect, _, behind) => {
  const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
  const store = memoryStore();
  const first = await connect({ store, secret: "a secret of at least 32 characters", handlers: [line.proxy()] });
  assertEquals(names(await first.client.listTools()), ["far"]);
  line.isUp = false;
  const second = await connect({ store, secret: "a secret of at least 32 characters", handlers: [line.proxy()] });
  assertEquals(names(await second.client.listTools()), ["far"]);
  assertEquals((await second.client.callTool("far")).isError, true);
  second.takeFaults();
  await first.server.close();
  await second.server.close();
  second.takeFaults();
  await line.server.close();
});

each("timeoutMs does not count the time in which the user thinks", async (connect, _, behind) => {
  const clock = fakeClock();
  const form = { type: "object", properties: {} } as const;
  const ask = tool({
    name: "ask",
    run: async (_input, ctx) => (await ctx.elicit("who", { message: "?", schema: form })).action,
  });
  const hang = tool({
    name: "hang",
    run: (_input, ctx) => new Promise<string>((_, reject) => ctx.signal.onabort = () => reject(ctx.signal.reason)),
  });
  const line = new Line(createUpstream(behind, { handlers: [ask, hang] }));
  const { client, server } = await connect({ clock, handlers: [line.proxy({ timeoutMs: 20_000 })] }, {
    async onElicit() {
      await clock.advance(30_000);
      return { action: "cancel" };
    },
    timeoutMs: 60_000,
  });
  assertEquals(textOf(await client.callTool("ask")), "cancel");
  const { isError, content } = await advanceUntil(clock, 1000, client.callTool("hang"));
  assertEquals([isError, Object(content[0]).text], [true, sentence("did not respond within")]);
  await server.close();
  await line.server.close();
});

each("a server that refuses the credentials is named in words", async (connect, _, behind) => {
  const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
  let isRefused = false;
  const fetch = async (request: Request) => isRefused ? new Response("no", { status: 401 }) : await line.fetch(request);
  const { client, server, takeFaults } = await connect({ handlers: [line.proxy({ fetch })] });
  await client.listTools();
  isRefused = true;
  const { isError, content } = await client.callTool("far");
  assertEquals([isError, Object(content[0]).text], [true, sentence("refuses the credentials")]);
  assert(takeFaults().length);
  isRefused = false;
  await server.close();
  await line.server.close();
});

each("a huge list costs a bounded part of it, and a flood of changes is announced once", async (connect, _, behind) => {
  const listed = Array.from({ length: 12_000 }, (_, at) => ({ name: `t${at}`, inputSchema: { type: "object" } }));
  const line = new Line(createUpstream(behind));
  const fetch = async (request: Request) => {
    const { method, id } = request.method === "POST" ? await request.clone().json() : { method: "", id: 0 };
    if (method !== "tools/list") return await line.fetch(request);
    return Response.json({
      jsonrpc: "2.0",
      id,
      result: { tools: listed, resultType: "complete", ttlMs: 0, cacheScope: "private" },
    });
  };
  line.server.handlers.add(say("any"));
  const { client, server, takeFaults } = await connect({ handlers: [line.proxy({ fetch })] });
  const tools = await client.listTools();
  assertEquals(tools.length, 10_000);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("exceeds")]);
  await using subscription = await client.subscribe({ toolsListChanged: true });
  listed.splice(1);
  for (let at = 0; at < 50; at++) line.server.handlers.add(say(`more_${at}`));
  await until(() => subscription.received.length, "the change was announced");
  assertEquals(names(await client.listTools()), ["t0"]);
  await server.close();
  await line.server.close();
});

each(
  "an idle connection of a caller is closed after five minutes, and opens again",
  async (connect, { era }, behind) => {
    const clock = fakeClock();
    const line = new Line(createUpstream(behind, { handlers: [say("far")] }));
    const { client, server } = await connect({
      clock,
      auth: () => ({ id: "ada" }),
      handlers: [line.proxy({ headers: () => ({ "x-key": "ada" }) })],
    });
    assertEquals(textOf(await client.callTool("far")), "far");
    const opened = () => line.count("initialize") + line.count("server/discover");
    const before = opened();
    assertEquals(textOf(await client.callTool("far")), "far");
    assertEquals(opened(), before);
    await clock.advance(5 * 60_000 + 1000);
    assertEquals(textOf(await client.callTool("far")), "far");
    assert(opened() > before, `${era}: ${line.methods}`);
    await server.close();
    await line.server.close();
  },
);

each(
  "three servers, of which one is down, one hangs and one comes up later, with a search over all",
  async (connect, _, behind) => {
    const clock = fakeClock();
    const good = new Line(createUpstream(behind, { handlers: [say("find_orders", "orders")] }));
    const late = new Line(createUpstream(behind, { handlers: [say("find_parcels", "parcels")] }));
    const down = new Line(createUpstream(behind, { handlers: [say("find_bills")] }));
    late.isUp = down.isUp = false;
    const hanging = (request: Request) =>
      new Promise<Response>((_, reject) =>
        request.signal.addEventListener("abort", () => reject(request.signal.reason))
      );
    const { client, server, takeFaults } = await connect({
      clock,
      handlers: [
        say("own"),
        down.proxy({ name: "down", prefix: "d_" }),
        proxy("http://localhost/mcp", { name: "hanging", prefix: "h_", fetch: hanging, timeoutMs: 200 }),
        late.proxy({ name: "late", prefix: "l_" }),
        good.proxy({ name: "good", prefix: "g_" }),
        toolSearch(),
      ],
    });
    const search = async (query: string) => textOf(await client.callTool("search_tools", { query }));
    assert((await search("find orders")).includes("g_find_orders"));
    assertEquals(textOf(await client.callTool("call_tool", { name: "g_find_orders", arguments: {} })), "orders");
    for (const name of ["d_find_bills", "h_any", "l_find_parcels"]) {
      assertEquals([name, (await client.callTool(name)).isError], [name, true]);
    }
    late.isUp = true;
    await until(async () => {
      await clock.advance(2000);
      return (await search("find parcels")).includes("l_find_parcels");
    }, "the server that came up is found");
    assertEquals(textOf(await client.callTool("call_tool", { name: "l_find_parcels", arguments: {} })), "parcels");
    takeFaults();
    await server.close();
    takeFaults();
    for (const line of [good, late, down]) await line.server.close();
  },
);

each("closing the server does not wait for a server that hangs", async (connect) => {
  const asked = gate();
  const hanging = (request: Request) => {
    asked.open();
    return new Promise<Response>((_, reject) =>
      request.signal.addEventListener("abort", () => reject(request.signal.reason))
    );
  };
  const gateway = proxy("http://localhost/mcp", { name: "hanging", fetch: hanging, timeoutMs: Infinity });
  const { client, server, takeFaults } = await connect({ handlers: [say("own"), gateway] });
  const list = started(client.listTools());
  await asked.pass;
  await server.close();
  await list.catch(() => {});
  // A request that the closing server ends is not an outage.
  assertEquals(takeFaults().filter(({ error }) => Object(error).name !== "AbortError"), []);
});
