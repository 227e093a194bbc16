// Callers of a proxy: whose credentials, connection and lists they use, and what they cannot reach of each other.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, McpError, prompt, resource, tool, ToolError } from "../../mod.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { behaviour, gate, plainTool, started, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { createUpstream, type Era, pairs, proxyOf } from "./fixture.ts";

const names = (listed: readonly { readonly name: string }[]) => listed.map(({ name }) => name);
const REVISIONS = { modern: ["2026-07-28"], legacy: ["2025-11-25"] } as const;

/** A server that shows each user other tools. */
function createOffice(behind: Era) {
  const seen: (string | null)[] = [];
  const only = (name: string) =>
    tool({ name: `of_${name}`, allow: (ctx) => ctx.principal?.id === name, run: () => name });
  const server = createServer({
    name: "office",
    version: "1.0.0",
    revisions: REVISIONS[behind],
    auth({ headers }) {
      seen.push(headers.get("authorization"));
      const id = /^Bearer key-of-(\w+)$/.exec(headers.get("authorization") ?? "")?.[1];
      return id ? { id } : undefined;
    },
    handlers: [only("ada"), only("bob"), tool({ name: "who", run: (_input, ctx) => String(ctx.principal?.id) })],
  });
  return { server, seen };
}

function both(name: string, run: (...given: [...Parameters<Parameters<typeof behaviour>[1]>, Era]) => Promise<void>) {
  for (const behind of ["modern", "legacy"] as const) {
    behaviour(`${name}, in front of ${behind}`, (connect, way) => run(connect, way, behind), {
      transports: ["http"],
      perInstance: "services",
    });
  }
}

both("users with keys of their own have their own lists and calls, at the same time", async (connect, _, behind) => {
  const { server: office } = createOffice(behind);
  const gateway = proxyOf(office, "http", {
    headers: (ctx) => ({ authorization: `Bearer key-of-${ctx.principal?.id}` }),
  });
  const { client: ada, server, join } = await connect({ handlers: [gateway] }, { principal: { id: "ada" } });
  const bob = await join({ principal: { id: "bob" } });
  assertEquals(names(await ada.listTools()), ["of_ada", "who"]);
  assertEquals(names(await bob.listTools()), ["of_bob", "who"]);
  const who = await Promise.all([ada, bob, ada, bob, ada].map(async (client) => textOf(await client.callTool("who"))));
  assertEquals(who, ["ada", "bob", "ada", "bob", "ada"]);
  await assertRejects(() => bob.callTool("of_ada"), McpError, "Unknown tool");
  assertEquals(textOf(await ada.callTool("of_ada")), "ada");
  await server.close();
  await office.close();
});

both(
  "users with keys of their own find only their own tools, also while other servers are down or hang",
  async (connect, _, behind) => {
    const { server: office } = createOffice(behind);
    const headers = (ctx: Context) => ({ authorization: `Bearer key-of-${ctx.principal?.id}` });
    const refuse = () => Promise.reject(new TypeError("connection refused"));
    const hang = ({ signal }: Request) =>
      new Promise<Response>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const url = "http://localhost/mcp";
    const { client: ada, server, join, takeFaults } = await connect({
      handlers: [
        proxy(url, { prefix: "down_", headers, fetch: refuse }),
        proxy(url, { prefix: "hanging_", headers, fetch: hang, timeoutMs: 200 }),
        proxyOf(office, "http", { prefix: "office_", headers }),
        toolSearch(),
      ],
    }, { principal: { id: "ada" } });
    const bob = await join({ principal: { id: "bob" } });
    for (const [client, own, other] of [[ada, "ada", "bob"], [bob, "bob", "ada"]] as const) {
      const found = textOf(await client.callTool("search_tools", { query: `of ${own} of ${other}` }));
      assertEquals([found.includes(`office_of_${own}`), found.includes(`office_of_${other}`)], [true, false]);
      const call = async (name: string) => await client.callTool("call_tool", { name, arguments: {} });
      assertEquals(textOf(await call(`office_of_${own}`)), own);
      assertEquals((await call(`office_of_${other}`)).isError, true);
      assertEquals((await call(`down_of_${own}`)).isError, true);
    }
    takeFaults();
    await server.close();
    takeFaults();
    await office.close();
  },
);

both("the caller's own token is never passed on", async (connect, _, behind) => {
  const { server: office, seen } = createOffice(behind);
  const gateway = proxyOf(office, "http", { headers: { authorization: "Bearer key-of-ada" } });
  const { client, server } = await connect({ auth: () => ({ id: "eve" }), handlers: [gateway] }, {
    headers: { authorization: "Bearer secret-of-eve", cookie: "session=eve" },
  });
  assertEquals(textOf(await client.callTool("who")), "ada");
  assertEquals(new Set(seen), new Set(["Bearer key-of-ada"]));
  await server.close();
  await office.close();
});

both("`auth` signs in as in connect", async (connect, _, behind) => {
  const { server: office } = createOffice(behind);
  const gateway = proxyOf(office, "http", { auth: { token: () => "key-of-bob" } });
  const { client, server } = await connect({ handlers: [gateway] });
  assertEquals(textOf(await client.callTool("who")), "bob");
  await server.close();
  await office.close();
});

both(
  "a connection per caller is refused in words if nothing identifies the caller",
  async (connect, { era }, behind) => {
    const { server: office } = createOffice(behind);
    const own = tool({ name: "own", run: () => "own" });
    const gateway = proxyOf(office, "http", { prefix: "up_", headers: () => ({ authorization: "Bearer key-of-ada" }) });
    const { client, server, takeFaults } = await connect({ handlers: [own, gateway] });
    const { isError, content } = await client.callTool("up_who");
    // A session identifies its caller.
    const expected = era === "modern" ? [true, sentence("share")] : [undefined, "ada"];
    assertEquals([isError || undefined, Object(content[0]).text], expected);
    assertEquals(names(await client.listTools()), era === "modern" ? ["own"] : ["own", "up_of_ada", "up_who"]);
    takeFaults();
    await server.close();
    await office.close();
  },
);

both("allow, scopes, tags and use apply to everything of the proxy", async (connect, _, behind) => {
  const upstream = createUpstream(behind, {
    handlers: [
      tool({ name: "t", run: () => "t" }),
      prompt({ name: "p", run: () => "p" }),
      resource({ uri: "r://1", name: "r", read: () => "r" }),
    ],
  });
  const methods: string[] = [];
  const gateway = proxyOf(upstream, "http", {
    allow: (ctx) => ctx.principal?.id !== "eve",
    scopes: ["remote"],
    tags: ["remote"],
    use: [async (ctx, next) => {
      methods.push(ctx.method);
      return await next();
    }],
  });
  const { client: ada, server, join } = await connect({ handlers: [gateway] }, {
    principal: { id: "ada", scopes: ["remote"] },
  });
  const bob = await join({ principal: { id: "bob", scopes: ["other"] } });
  const eve = await join({ principal: { id: "eve", scopes: ["remote"] } });
  assertEquals(textOf(await ada.callTool("t")), "t");
  await ada.getPrompt("p");
  await ada.readResource("r://1");
  assertEquals(methods, ["tools/call", "prompts/get", "resources/read"]);
  for (const call of [bob.callTool("t"), bob.getPrompt("p"), bob.readResource("r://1")]) {
    assertEquals((await assertRejects(() => call, McpError)).code, -31_403);
  }
  assertEquals([await eve.listTools(), await eve.listPrompts(), await eve.listResources()], [[], [], []]);
  for (const call of [eve.callTool("t"), eve.getPrompt("p"), eve.readResource("r://1")]) {
    await assertRejects(() => call, McpError);
  }
  server.handlers.disable({ tag: "remote" });
  await until(async () => !(await ada.listTools()).length, "the tools are hidden");
  await server.close();
  await upstream.close();
});

pairs("`forward` keeps the user, the model, roots and logs from the other server", async (join) => {
  const form = { type: "object", properties: {} } as const;
  const ask = tool({
    name: "ask",
    async run(_input, ctx) {
      await ctx.log.error("loud");
      const code = async (ask: () => Promise<unknown>) => {
        try {
          await ask();
          return "asked";
        } catch {
          return "refused";
        }
      };
      return [
        await code(() => ctx.elicit("a", { message: "?", schema: form })),
        await code(() => ctx.sample("b", { messages: [], maxTokens: 1 })),
        await code(() => ctx.roots()),
      ].join();
    },
  });
  const logs: unknown[] = [];
  const call = async (forward: ProxyOptions["forward"]) => {
    const { client } = await join({
      upstream: { handlers: [ask], capabilities: { logging: true } },
      server: { capabilities: { logging: true } },
      proxy: { forward },
      client: {
        logLevel: "debug",
        onElicit: () => ({ action: "accept", content: {} }),
        onSample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "" } }),
        roots: [],
        onNotification: ({ method, params }) => void (method === "notifications/message" && logs.push(params.data)),
      },
    });
    return textOf(await client.callTool("ask"));
  };
  const nothing = { elicitation: false, sampling: false, roots: false, log: false };
  assertEquals(await call(nothing), "refused,refused,refused");
  assertEquals(logs.filter((data) => data === "loud"), []);
  assertEquals(await call(undefined), "asked,asked,asked");
});

behaviour("a proxy of itself ends at once", async (connect) => {
  const own = tool({ name: "own", run: () => "own" });
  const loop: { fetch?: (request: Request) => Promise<Response> } = {};
  const gateway = proxy("http://localhost/mcp", {
    name: "self",
    prefix: "s_",
    fetch: async (request) => await (loop.fetch ?? fetch)(request),
  });
  const { client, server } = await connect({ handlers: [own, gateway], revisions: ["2026-07-28", "2025-11-25"] });
  loop.fetch = async (request) => await server.fetch(request);
  assertEquals(names(await client.listTools()), ["own", "s_own"]);
  assertEquals(textOf(await client.callTool("s_own")), "own");
  await assertRejects(() => client.callTool("s_s_own"), McpError, "Unknown tool");
  await server.close();
}, { transports: ["http"], perInstance: "services" });

behaviour("32 connections are the limit, and a caller that finds none reads so", async (connect) => {
  const held = gate();
  const hold = plainTool("hold", () => held.enter().then(() => "done"));
  const limits = { calls: { runningPerClient: 64 } };
  const upstream = createUpstream("legacy", { handlers: [hold], limits });
  const gateway = proxyOf(upstream, "http", { headers: (ctx) => ({ "x-user": `${ctx.principal?.id}` }) });
  const { server, join } = await connect({ handlers: [gateway] });
  const clients = [];
  for (let at = 0; at < 33; at++) clients.push(await join({ principal: { id: `user ${at}` } }));
  const calls = clients.slice(0, 32).map((client) => started(client.callTool("hold")));
  await until(() => held.entered === 32, "32 calls are running");
  const { isError, content } = await clients[32].callTool("hold");
  assertEquals([isError, Object(content[0]).text], [true, sentence("all 32 connections")]);
  held.open();
  assertEquals((await Promise.all(calls)).map(textOf), Array(32).fill("done"));
  // An idle connection makes room.
  assertEquals(textOf(await clients[32].callTool("hold")), "done");
  await server.close();
  await upstream.close();
}, { transports: ["http"], eras: ["modern"], perInstance: "services" });

both(
  "`headers` may ask the user to open a page, and the next call has the new credentials",
  async (connect, { era }, behind) => {
    const { server: office } = createOffice(behind);
    const keys = new Map<string, string>();
    const gateway = proxyOf(office, "http", {
      prefix: "up_",
      async headers(ctx) {
        const id = ctx.principal?.id ?? "";
        const key = keys.get(id);
        if (key) return { authorization: `Bearer ${key}` };
        if (ctx.method !== "tools/call") throw new ToolError("Sign in first.");
        const { action } = await ctx.elicitUrl("sign in", { message: "Sign in", url: "https://example.com/sign-in" });
        throw new ToolError(action === "accept" ? "Call the tool again." : "Not signed in.");
      },
    });
    const own = tool({ name: "own", run: () => "" });
    const { client, server, takeFaults } = await connect({ handlers: [own, gateway] }, {
      principal: { id: "ada" },
      onElicitUrl() {
        keys.set("ada", "key-of-ada");
        return { action: "accept" };
      },
    });
    assertEquals(names(await client.listTools()), ["own"]);
    // Without a session, the same call runs again after the answer.
    assertEquals(textOf(await client.callTool("up_who")), era === "modern" ? "ada" : "Call the tool again.");
    assertEquals(textOf(await client.callTool("up_who")), "ada");
    assertEquals(names(await client.listTools()), ["own", "up_of_ada", "up_who"]);
    takeFaults();
    await server.close();
    await office.close();
  },
);

both(
  "`headers` of a caller is called once for each call, because it may exchange a token",
  async (connect, _way, behind) => {
    const { server: office } = createOffice(behind);
    let count = 0;
    const headers = () => {
      count++;
      return { authorization: "Bearer key-of-ada" };
    };
    const { client, server } = await connect({ handlers: [proxyOf(office, "http", { headers })] }, {
      principal: { id: "ada" },
    });
    assertEquals(textOf(await client.callTool("who")), "ada");
    const before = count;
    for (let call = 0; call < 3; call++) await client.callTool("who");
    assertEquals(count - before, 3);
    await server.close();
    await office.close();
  },
);

behaviour("log messages that may belong to another caller are not sent", async (connect) => {
  const held = gate();
  const hold = plainTool("hold", () => held.enter().then(() => "held"));
  const log = tool({
    name: "log",
    async run(_input, ctx) {
      await ctx.log.error(`secret of ${JSON.stringify(ctx.params.arguments)}`);
      return "logged";
    },
  });
  const upstream = createUpstream("modern", { handlers: [hold, log], capabilities: { logging: true } });
  const logs: string[] = [];
  const note = (who: string) => ({ method, params }: { readonly method: string; readonly params: object }) => {
    if (method === "notifications/message") logs.push(`${who} ${Object(params).data}`);
  };
  const { client: ada, server, join } = await connect({
    handlers: [proxyOf(upstream, "pipe", { share: "all" })],
    capabilities: { logging: true },
  }, { logLevel: "debug", onNotification: note("ada") });
  const bob = await join({ logLevel: "debug", onNotification: note("bob") });
  assertEquals(textOf(await bob.callTool("log", { of: "bob" })), "logged");
  const waiting = started(ada.callTool("hold"));
  await until(() => held.entered, "the other call is running");
  assertEquals(textOf(await bob.callTool("log", { of: "bob" })), "logged");
  assertEquals(logs, []);
  held.open();
  await waiting;
  await server.close();
  await upstream.close();
}, { transports: ["http"], eras: ["modern"], perInstance: "services" });
