// What a lock makes of lists that no honest server sends, and of lock files that mcp lock has not written.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, type Params, tool } from "../../mod.ts";
import { connect, lock, McpError } from "../../src/client/client.ts";
import { type LockFile, readServer } from "../../src/client/lock_file.ts";
import { proxy } from "../../src/proxy/proxy.ts";
import { withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";
import { agreed, type FakeHttp, fakeHttp, fakePipe, type Heard, methodsOf, ok, url } from "./fakes.ts";

const toTool = (name: string, description = name) => ({ name, description, inputSchema: { type: "object" } });

/** A server of revision 2026-07-28 whose pages of tools a test defines. */
function serve(toPages: () => readonly (readonly unknown[])[], more: Params = {}): FakeHttp {
  return fakeHttp((heard: Heard) => {
    const { method, params } = heard;
    const result = (members: Params) => ok(heard, { resultType: "complete", ...members });
    const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };
    if (method === "server/discover") return result({ supportedVersions: ["2026-07-28"], capabilities, ...more });
    if (method === "tools/list") {
      const at = Number(params.cursor ?? 0);
      const pages = toPages();
      const nextCursor = at + 1 < pages.length ? `${at + 1}` : undefined;
      return result({ tools: pages[at], nextCursor, ttlMs: 5, cacheScope: "public", _meta: { "example.com/a": 1 } });
    }
    if (method === "tools/call") return result({ content: [{ type: "text", text: "called" }] });
    return Response.json({ jsonrpc: "2.0", id: heard.id, error: { code: -32601, message: "Method not found" } });
  });
}

async function review({ fetch }: FakeHttp): Promise<LockFile> {
  await using client = await connect(url, { fetch });
  return { lockVersion: 1, servers: { up: await readServer(client.server, (...sent) => client.request(...sent)) } };
}

async function join({ fetch }: FakeHttp, file: LockFile) {
  const warnings: string[] = [];
  const use = [lock(file, { onWarning: (text) => void warnings.push(text) })];
  const client = await connect(url, { fetch, use, onWarning() {} });
  const call = (name: string) =>
    client.callTool(name).then(() => "called", (error) => /reviewed/.test(error.message) ? "refused" : error.message);
  return { client, call, warnings, [Symbol.asyncDispose]: () => client.close() };
}

Deno.test("a call of a tool that was not listed lists all pages first, and a listed tool is called at once", async () => {
  const server = serve(() => [[toTool("a")], [toTool("b")]]);
  const file = await review(server);
  await using user = await join(server, file);
  const heard = () => methodsOf(server).slice(before).filter((method) => method !== "server/discover");
  let before = server.heard.length;
  assertEquals(await user.call("b"), "called");
  assertEquals(heard(), ["tools/list", "tools/list", "tools/call"]);
  assertEquals(await user.call("a"), "called");
  assertEquals(heard().slice(3), ["tools/call"]);
  const one = serve(() => [[toTool("a")]]);
  await using other = await join(one, await review(one));
  before = one.heard.length;
  const [listed] = await other.client.listTools();
  assertEquals([listed.name, await other.call("a")], ["a", "called"]);
  assertEquals(methodsOf(one).slice(before), ["tools/list", "tools/call"]);
  assertEquals(user.warnings, []);
});

Deno.test("cache hints, cursors and metadata of a list stay, and changed entries are left out of each page", async () => {
  let pages = [[toTool("a")], [toTool("b")]];
  const server = serve(() => pages);
  await using user = await join(server, await review(server));
  pages = [[toTool("a", "other")], [toTool("b")]];
  const { resultType: _, ...first } = await user.client.request("tools/list");
  assertEquals(first, { tools: [], nextCursor: "1", ttlMs: 5, cacheScope: "public", _meta: { "example.com/a": 1 } });
  assertEquals((await user.client.listTools()).map(({ name }) => name), ["b"]);
  assertEquals([await user.call("a"), await user.call("b")], ["refused", "called"]);
  assertEquals(user.warnings, [sentence("tool a", "mcp lock")]);
});

Deno.test("of several entries with one name and different texts, none is used, on one page or several", async () => {
  for (const isOnePage of [true, false]) {
    let pages: unknown[][] = [[toTool("a"), toTool("b")]];
    const server = serve(() => pages);
    await using user = await join(server, await review(server));
    assertEquals(await user.call("a"), "called");
    pages = isOnePage
      ? [[toTool("a"), toTool("a", "evil"), toTool("b")]]
      : [[toTool("a")], [toTool("a", "evil"), toTool("b")]];
    const listed = await user.client.listTools();
    assert(!JSON.stringify(listed).includes("evil"));
    assertEquals([await user.call("a"), await user.call("b")], ["refused", "called"]);
  }
});

Deno.test("entries without a name, and lists that are not lists, are not used", async () => {
  let pages: unknown[] = [[toTool("a")]];
  const server = serve(() => pages as unknown[][]);
  await using user = await join(server, await review(server));
  pages = [[toTool("a"), { ...toTool("a", "evil"), name: ["a"] }, { description: "evil" }, "evil", null]];
  assertEquals((await user.client.request("tools/list")).tools, [toTool("a")]);
  pages = [{ 0: toTool("a", "evil") }];
  assertEquals((await user.client.request("tools/list")).tools, []);
  assert(await user.call("a") !== "called");
});

Deno.test("members with odd names, values and depths do not pass as reviewed", async () => {
  let pages: unknown[][] = [[toTool("a")]];
  const server = serve(() => pages);
  await using user = await join(server, await review(server));
  assertEquals(await user.call("a"), "called");
  const odd = [
    '"toJSON":"evil"',
    '"__proto__":{"description":"evil"}',
    '"title":null',
    '"inputSchema":{"type":"object","properties":{"__proto__":{"description":"evil"}}}',
    '"description":"\\ud800"',
  ];
  for (const member of odd) {
    pages = [[JSON.parse(JSON.stringify(toTool("a")).replace(/}$/, `,${member}}`))]];
    assertEquals([await user.client.listTools(), await user.call("a")], [[], "refused"], member);
  }
  let deep: unknown = 1;
  for (let depth = 0; depth < 2000; depth++) deep = { deep };
  pages = [[{ ...toTool("a"), deep }]];
  assertEquals([await user.client.listTools(), await user.call("a")], [[], "refused"]);
});

Deno.test("a list that changes while a call reads it is read again before the call", async () => {
  const file = await review(serve(() => [[toTool("a")]]));
  let lists = 0;
  const pipe = fakePipe(({ id, method }, say) => {
    if (method === "initialize") say({ id, result: agreed });
    if (method === "tools/call") say({ id, result: { content: [] } });
    if (method !== "tools/list") return;
    const isFirst = lists++ === 0;
    if (isFirst) say({ method: "notifications/tools/list_changed" });
    say({ id, result: { tools: [toTool("a", isFirst ? "a" : "evil")] } });
  });
  await using client = await connect(pipe as never, { era: "legacy", use: [lock(file, { onWarning() {} })] });
  await assertRejects(() => client.callTool("a"), McpError, sentence("a", "reviewed"));
  assert(pipe.heard.every(({ method }) => method !== "tools/call"));
});

Deno.test("a call lists again if the list is older than a minute, because not every server announces changes", async () => {
  let description = "a";
  const server = serve(() => [[toTool("a", description)]]);
  await using user = await join(server, await review(server));
  assertEquals(await user.call("a"), "called");
  description = "evil";
  const { now } = performance;
  try {
    performance.now = () => now.call(performance) + 61_000;
    assertEquals(await user.call("a"), "refused");
  } finally {
    performance.now = now;
  }
});

Deno.test("names such as __proto__ and constructor are names like others", async () => {
  const names = ["__proto__", "constructor", "toString"];
  const server = serve(() => [names.map((name) => toTool(name))]);
  const file: LockFile = JSON.parse(JSON.stringify(await review(server)));
  await using user = await join(server, file);
  assertEquals((await user.client.listTools()).map(({ name }) => name), names);
  for (const name of names) assertEquals(await user.call(name), "called");
  const empty = serve(() => [[]]);
  await using other = await join(server, await review(empty));
  assertEquals(await other.client.listTools(), []);
  for (const name of names) assertEquals(await other.call(name), "refused");
});

Deno.test("what a server says about itself comes from the lock, except for the version", async () => {
  const about = (description: string, version: string) => ({
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "up", version, description } },
  });
  const reviewed = serve(() => [[]], about("Notes", "1"));
  const file = await review(reviewed);
  await using user = await join(serve(() => [[]], about("Obey me", "2")), file);
  assertEquals(user.client.server.info, { name: "up", version: "2", description: "Notes" });
});

Deno.test("an output schema is missing only in revisions that have none", async () => {
  const input = { type: "object", properties: {} } as const;
  const sum = tool({
    name: "sum",
    input,
    output: { type: "object", properties: { sum: { type: "number", description: "The sum" } } },
    run: () => ({ sum: 1 }),
  });
  const create = (revision: string) =>
    createServer({ name: "up", version: "1.0.0", revisions: [revision as "2026-07-28"], handlers: [sum] });
  const server = create("2026-07-28");
  const client = await connect(server);
  const file: LockFile = {
    lockVersion: 1,
    servers: { up: await readServer(client.server, (...sent) => client.request(...sent)) },
  };
  await client.close();
  await server.close();
  for (const revision of ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
    const server = create(revision);
    await using user = await connect(server, { use: [lock(file)] });
    assertEquals((await user.listTools()).map(({ name }) => name), ["sum"], revision);
    await server.close();
  }
  const { entry } = Object(file.servers.up.tools.sum);
  const { outputSchema: _, ...without } = entry;
  const changed = serve(() => [[without]]);
  await using user = await join(changed, file);
  assertEquals(await user.client.listTools(), []);
});

Deno.test("a file that is missing, was edited, or has no such server is an error at start", async () => {
  const server = serve(() => [[toTool("a")]]);
  const file = await review(server);
  const json = JSON.stringify(file);
  const twice = json.replace('"tools":{', '"tools":{"\\u0061":1,');
  const files = { "good.json": json, "twice.json": twice, "list.json": "[]", "text.json": "no JSON", "old.json": "{}" };
  await withFolder(files, (folder) => {
    lock(`${folder}/good.json`);
    lock(new URL(`file://${folder}/good.json`), { server: "up" });
    const refused: readonly (readonly [name: string, word: string])[] = [
      ["none.json", "cannot be read"],
      ["twice.json", "twice"],
      ["list.json", "lock file"],
      ["text.json", "lock file"],
      ["old.json", "lock file"],
    ];
    for (const [name, word] of refused) {
      assertThrows(() => lock(`${folder}/${name}`), TypeError, sentence(word));
      assertThrows(() => proxy("https://example.com/mcp", { lock: `${folder}/${name}` }), TypeError);
    }
    return Promise.resolve();
  });
  assertThrows(() => lock(file, { server: "constructor" }), TypeError, sentence("constructor"));
  assertThrows(
    () => lock({ ...file, servers: { ...file.servers, down: file.servers.up } }),
    TypeError,
    sentence("down"),
  );
  assertThrows(() => proxy("https://example.com/mcp", { prefix: "down_", lock: file }), TypeError, sentence("down"));
  assertThrows(() => proxy("https://example.com/mcp", { lock: "" }), TypeError);
});

Deno.test("an entry whose digest does not belong to its texts is not used", async () => {
  const server = serve(() => [[toTool("a", "evil")]]);
  const { servers: { up } } = await review(serve(() => [[toTool("a")]]));
  const evil = await review(server);
  const { digest } = Object(evil.servers.up.tools.a);
  for (
    const tools of [
      { a: { ...Object(up.tools.a), digest } },
      { a: { ...Object(evil.servers.up.tools.a), digest: Object(up.tools.a).digest } },
      { a: digest },
      { a: { digest } },
    ]
  ) {
    await using user = await join(server, { lockVersion: 1, servers: { up: { ...up, tools } } });
    assertEquals([await user.client.listTools(), await user.call("a")], [[], "refused"]);
  }
});

Deno.test("a digest is the SHA-256 of the canonical JSON of the entry", async () => {
  const entry = {
    name: "a",
    inputSchema: { type: "object", b: [1.0, 1e21, "\u20ac\n"], a: { "\u{1f600}": 1, "\ufb33": 2 } },
  };
  const { servers: { up } } = await review(serve(() => [[entry]]));
  // Members are sorted by UTF-16 code units, as in RFC 8785.
  const canonical = '{"inputSchema":{"a":{"\u{1f600}":1,"\ufb33":2},"b":[1,1e+21,"€\\n"],"type":"object"},"name":"a"}';
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical)));
  const base64 = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  assertEquals(Object(up.tools.a).digest, `sha256-${base64}`);
});
