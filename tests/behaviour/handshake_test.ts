// Facts that the client and the server exchange before the first call.
import { assert, assertEquals, assertObjectMatch, assertRejects } from "@std/assert";
import { prompt, resource, tool } from "../../mod.ts";
import { McpError } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, until } from "../support/behaviour.ts";

const SERVER_INFO = "io.modelcontextprotocol/serverInfo";
const noop = tool({ name: "noop", run: () => "" });
const about = {
  name: "fixture",
  version: "1.2.3",
  title: "A fixture",
  description: "For tests",
  websiteUrl: "https://example.com",
  icons: [{ src: "https://example.com/icon.png", sizes: ["48x48"] }],
};

behaviour("the server states its name and capabilities", async (connect, { era }) => {
  const { client } = await connect({ ...about, instructions: "Ask for noop", handlers: [noop] });
  const said = era === "modern" ? await client.request("server/discover") : client.handshake;
  assertObjectMatch({ ...said }, {
    capabilities: { tools: { listChanged: true }, logging: {} },
    instructions: "Ask for noop",
    ...era === "modern"
      ? { resultType: "complete", supportedVersions: ["2026-07-28"], _meta: { [SERVER_INFO]: about } }
      : { protocolVersion: "2025-11-25", serverInfo: about },
  });
  assert(!("prompts" in Object(said?.capabilities)), "the server declares a capability that it has no handlers for");
});

behaviour("each result names its server, and only the first result contains the server's icons", async (connect) => {
  const handlers = [
    noop,
    tool({ name: "tagged", run: () => ({ content: [], _meta: { "example.com/tag": 1 } }) }),
    tool({ name: "own", run: () => ({ content: [], _meta: { [SERVER_INFO]: { name: "other", version: "2" } } }) }),
    tool({ name: "ask", run: async (_input, ctx) => (await ctx.roots()).length }),
    prompt({ name: "p", run: () => "x" }),
    resource({ uri: "x://{id}", name: "x", complete: { id: () => [] }, read: () => "x" }),
  ];
  const { client } = await connect({ ...about, handlers }, { capabilities: { roots: {} } });
  const short = { name: about.name, version: about.version };
  const ref = { type: "ref/resource", uri: "x://{id}" };
  const requests: [string, Record<string, unknown>, unknown?][] = [
    ["tools/list", {}],
    ["prompts/list", {}],
    ["resources/list", {}],
    ["resources/templates/list", {}],
    ["tools/call", { name: "noop" }],
    ["tools/call", { name: "tagged" }],
    ["tools/call", { name: "own" }],
    ["tools/call", { name: "ask" }],
    ["prompts/get", { name: "p" }],
    ["resources/read", { uri: "x://1" }],
    ["completion/complete", { ref, argument: { name: "id", value: "" } }],
    ["server/discover", {}, about],
    ["tools/list", {}],
  ];
  for (const [method, params, info = short] of requests) {
    const { _meta } = await client.request(method, params, { rounds: false });
    assertEquals(Object(_meta)[SERVER_INFO], info, `${method} ${JSON.stringify(params)}`);
  }
}, { eras: ["modern"] });

behaviour("the handshake negotiates the revision that the client requests", async (connect, { version }) => {
  const { client } = await connect({ handlers: [noop] });
  assertEquals(client.server.version, version);
  assertEquals(client.handshake?.protocolVersion, version);
  assertEquals(await client.request("ping"), {});
  assertEquals((await client.listTools()).map(({ name }) => name), ["noop"]);
  assertEquals((await client.callTool("noop")).content, [{ type: "text", text: "" }]);
}, { eras: ["legacy"], versions: LEGACY_VERSIONS });

for (const asked of ["2099-01-01", "2026-07-28", "1.0", ""]) {
  behaviour(
    `a handshake for revision "${asked}" negotiates the newest revision that has a handshake`,
    async (connect) => {
      const { client } = await connect({}, { revisions: [asked] });
      assertEquals(client.server.version, "2025-11-25");
    },
    { eras: ["legacy"] },
  );
}

const again = {
  protocolVersion: "2025-06-18",
  capabilities: { roots: {} },
  clientInfo: { name: "again", version: "2" },
};

behaviour("a second handshake in the same session is refused over HTTP", async (connect) => {
  const { client } = await connect({ handlers: [noop] });
  const error = await assertRejects(() => client.request("initialize", again), McpError);
  assertEquals(error.code, -32600);
  assertEquals((await client.listTools()).length, 1, "the session stays open");
}, { eras: ["legacy"], transports: ["memory", "http"] });

behaviour("a second handshake on a pipe ends the session, and begins another", async (connect) => {
  const seen: unknown[] = [];
  const look = tool({ name: "look", run: (_input, ctx) => void seen.push([ctx.client, ctx.session()]) });
  const sessions: string[] = [];
  let opened = 0;
  const { client } = await connect({
    handlers: [look],
    sessionData: () => ++opened,
    observer: { session: ({ state, client, why }) => void sessions.push(`${client?.name} ${state} ${why}`) },
  }, { info: { name: "first", version: "1" }, logLevel: "error" });
  await client.callTool("look");
  const { protocolVersion } = await client.request("initialize", again);
  await client.callTool("look");
  const { protocolVersion: version, ...facts } = again;
  assertEquals([protocolVersion, seen[1]], [version, [
    { version, info: facts.clientInfo, capabilities: facts.capabilities, logLevel: "info" },
    2,
  ]]);
  const error = await assertRejects(() => client.request("initialize", {}), McpError);
  assertEquals(error.code, -32602);
  await client.callTool("look");
  assertEquals(seen[2], seen[1], "a failed handshake changes nothing");
  await client.close();
  assertEquals(sessions, [
    ...["first created undefined", "first ended client"],
    ...["again created undefined", "again ended disconnected"],
  ]);
}, { eras: ["legacy"], transports: ["pipe"], versions: LEGACY_VERSIONS });

behaviour("handlers see the same facts about the client in every era", async (connect, { version, transport }) => {
  const seen: unknown[] = [];
  const look = tool({
    name: "look",
    run(_input, { client, principal, method, meta, http }) {
      seen.push({ client, principal, method, tag: meta["example.com/tag"], http: http !== undefined });
      return "";
    },
  });
  const info = { ...about, name: "looker", version: "9", title: "Looker", "example.com/build": { number: 7 } };
  const { client } = await connect({ handlers: [look] }, {
    info,
    capabilities: { roots: {}, sampling: { tools: {} } },
    principal: { id: "ada", scopes: ["read"] },
    logLevel: "error",
  });
  // Poll, because another instance sees the log level only after a short delay.
  await until(async () => {
    seen.length = 0;
    await client.callTool("look", {}, { meta: { "example.com/tag": "blue" } });
    return JSON.stringify(seen).includes('"logLevel":"error"');
  }, "the handler sees the log level");
  assertEquals(seen, [{
    client: { version, info, capabilities: { roots: {}, sampling: { tools: {} } }, logLevel: "error" },
    principal: { id: "ada", scopes: ["read"] },
    method: "tools/call",
    tag: "blue",
    http: transport !== "pipe",
  }]);
}, { versions: LEGACY_VERSIONS });

behaviour("a session leaves out the longest facts that a client declares about itself", async (connect) => {
  const seen: unknown[] = [];
  const look = tool({ name: "look", run: (_input, ctx) => void seen.push(ctx.client.info) });
  const small = { name: "looker", version: "9", title: "Looker", websiteUrl: "https://example.com" };
  const { join } = await connect({ handlers: [look] });
  for (
    const more of [
      { description: "d".repeat(2000) },
      // 500 characters, but 1,500 bytes.
      { description: "説".repeat(500) },
      { icons: [{ src: `data:image/png;base64,${"A".repeat(4000)}` }] },
      { description: "d".repeat(900), icons: [{ src: `https://example.com/${"i".repeat(900)}` }] },
    ]
  ) {
    const client = await join({ info: { ...small, ...more } });
    await client.callTool("look");
  }
  const [first, second, third, fourth] = seen;
  assertEquals([first, second, third], [small, small, small]);
  assertEquals(fourth, { ...small, description: "d".repeat(900) });
}, { eras: ["legacy"] });

behaviour("a session whose other facts fill its id keeps the name and the version of the client", async (connect) => {
  const seen: unknown[] = [];
  const look = tool({ name: "look", run: (_input, ctx) => void seen.push(ctx.client.info) });
  // The session's data and the capabilities, of three bytes per character, leave no room for the description.
  const { client } = await connect({ handlers: [look], sessionData: () => "説".repeat(2000) }, {
    info: { ...about, description: "d".repeat(900) },
    capabilities: { experimental: { x: { text: "説".repeat(1866) } } },
  });
  await client.callTool("look");
  assertEquals(seen, [{ name: about.name, version: about.version }]);
}, { eras: ["legacy"], transports: ["memory", "http"] });

behaviour("an unknown method gets the error -32601", async (connect, { era, transport }) => {
  const { client } = await connect({ handlers: [noop] });
  const foreign = era === "modern"
    ? ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    : ["server/discover", "subscriptions/listen"];
  for (
    const method of [
      ...foreign,
      "no/such",
      "prompts/list",
      "resources/read",
      "constructor",
      "__proto__",
      "x".repeat(250),
    ]
  ) {
    // A method of the other era looks like a request of that era that lacks its required parts, so it gets another
    // error.
    if (method === "server/discover") continue;
    const error = await assertRejects(() => client.request(method, {}), McpError);
    assertEquals(error.code, -32601, method);
    assertEquals(error.status, transport === "pipe" ? undefined : era === "modern" ? 404 : 200, method);
    assert(error.message.length < 300, "the method is quoted in full");
  }
});

behaviour("an unsupported revision is refused with the list of supported revisions", async (connect, { transport }) => {
  const { client } = await connect({}, { revisions: ["2099-01-01"] });
  const error = await assertRejects(() => client.request("server/discover"), McpError);
  assertEquals(error.code, -32022);
  assertEquals(error.data, { supported: ["2026-07-28"], requested: "2099-01-01" });
  assertEquals(error.status, transport === "pipe" ? undefined : 400);
}, { eras: ["modern"] });
