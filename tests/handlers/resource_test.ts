import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import {
  createServer,
  McpError,
  type Middleware,
  resource,
  resourceProvider,
  type Server,
  ToolError,
} from "../../mod.ts";
import type { TemplateText } from "../../src/types.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { ask, call, fail } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { serve, testServer } from "../support/test_server.ts";

function read(server: Server, uri: string) {
  return call(server, "resources/read", { uri });
}

/** Returns the URIs on each page of resources/list. */
async function listPages(server: Server, method = "resources/list"): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await call(server, method, { cursor });
    const items = page.resources ?? page.resourceTemplates;
    pages.push(items.map((item: { uri?: string; uriTemplate?: string }) => item.uri ?? item.uriTemplate));
    cursor = page.nextCursor;
  } while (cursor !== undefined && pages.length < 20);
  return pages;
}

Deno.test("a fixed resource is listed with its fields, and without unset fields", async () => {
  const listed = {
    uri: "config://app",
    name: "config",
    title: "Configuration",
    description: "How the app is set up",
    mimeType: "application/toml",
    size: 12,
    icons: [{ src: "https://example.com/a.png" }],
    annotations: { priority: 1 },
    _meta: { "example.com/a": 1 },
  };
  const bare = { uri: "config://bare", name: "bare" };
  const server = serve(...[listed, bare].map((each) => resource({ ...each, read: () => "" })));
  const { resources, ttlMs, cacheScope, nextCursor } = await call(server, "resources/list");
  assertEquals(resources, [listed, bare]);
  assertEquals([ttlMs, cacheScope, nextCursor], [0, "public", undefined]);
});

Deno.test("a server with a resource declares the capability, and responds to resources/list and resources/templates/list, even if a list is empty", async () => {
  const server = serve(resource({ uri: "config://app", name: "config", read: () => "" }));
  const { capabilities } = await call(server, "server/discover");
  assertEquals(capabilities.resources, { listChanged: true, subscribe: true });
  assertEquals(capabilities.completions, undefined);
  assertEquals((await call(server, "resources/templates/list")).resourceTemplates, []);
});

const bytes = new Uint8Array([0, 255, 16]);
const uri = "data://it";
const asJson = { uri, mimeType: "application/json" };
const full = { uri: "data://other", text: "hi", mimeType: "text/x", _meta: { a: 1 } };
const returns: readonly (readonly [what: string, value: string | object, contents: object, mimeType?: string])[] = [
  ["a string", "hi", { uri, mimeType: "text/plain", text: "hi" }],
  ["an empty string", "", { uri, mimeType: "text/plain", text: "" }],
  ["a string, with a media type", "# hi", { uri, mimeType: "text/markdown", text: "# hi" }, "text/markdown"],
  ["bytes", bytes, { uri, mimeType: "application/octet-stream", blob: "AP8Q" }],
  ["bytes, with a media type", bytes, { uri, mimeType: "image/png", blob: "AP8Q" }, "image/png"],
  ["a buffer", bytes.buffer, { uri, mimeType: "application/octet-stream", blob: "AP8Q" }],
  ["an object", { a: [1] }, { ...asJson, text: '{"a":[1]}' }],
  ["an object with a uri and no contents", { uri: "x:y" }, { ...asJson, text: '{"uri":"x:y"}' }],
  ["an empty array", [], { ...asJson, text: "[]" }],
  ["an array of data", [1], { ...asJson, text: "[1]" }],
  ["contents", full, full, "text/y"],
  ["several contents", [{ uri: "data://1", text: "hi" }, { uri: "data://2", blob: "AP8Q" }], [
    { uri: "data://1", text: "hi", mimeType: "text/plain" },
    { uri: "data://2", blob: "AP8Q", mimeType: "application/octet-stream" },
  ]],
];

for (const [what, value, contents, mimeType] of returns) {
  Deno.test(`a resource can return ${what}`, async () => {
    const server = serve(resource({ uri, name: "it", mimeType, read: () => Promise.resolve(value) }));
    assertEquals((await read(server, uri)).contents, [contents].flat());
  });
}

for (const value of [undefined, null]) {
  Deno.test(`a resource that returns ${value} does not exist`, async () => {
    const server = serve(resource({ uri, name: "it", read: () => value }));
    const missing = { code: -32602, message: sentence(), data: { uri } };
    assertEquals(await fail(server, "resources/read", { uri }), missing);
  });
}

Deno.test("an unknown resource is not found, and a uri that is not a string is refused", async () => {
  const server = serve(resource({ uri, name: "it", read: () => "" }));
  const missing = "test://not here";
  const answer = await ask(server, "resources/read", { uri: missing });
  assertEquals(answer.status, 400);
  assertEquals(answer.error, { code: -32602, message: sentence(), data: { uri: missing } });
  assertEquals((await fail(server, "resources/read", { uri: 1 })).code, -32602);
  assertEquals((await fail(server, "resources/read")).code, -32602);
});

Deno.test("read gets a template's decoded variables, and only the list of templates contains the template", async () => {
  const fields = { name: "repo", mimeType: "text/plain", annotations: { audience: ["user"] } } as const;
  const server = serve(resource({
    uri: "repo://{owner}/{name}{?ref}",
    ...fields,
    read: ({ owner, name, ref }) => [owner, name, ref ?? "none"].join("|"),
  }));
  assertEquals((await call(server, "resources/list")).resources, []);
  const { resourceTemplates, cacheScope } = await call(server, "resources/templates/list");
  assertEquals(resourceTemplates, [{ uriTemplate: "repo://{owner}/{name}{?ref}", ...fields }]);
  assertEquals(cacheScope, "public");
  assertEquals((await read(server, "repo://ada/an%20engine?ref=v1")).contents[0].text, "ada|an engine|v1");
  assertEquals((await read(server, "repo://ada/engine")).contents[0].text, "ada|engine|none");
  assertEquals((await fail(server, "resources/read", { uri: "repo://ada/..%2Fsecret" })).message, sentence());
});

Deno.test("a fixed URI is matched before a template, an earlier template before a later template, and a provider last", async () => {
  const server = serve(
    resourceProvider({ scheme: "a", name: "provider", read: () => "provider" }),
    resource({ uri: "a://x/{y}", name: "first", read: () => "first" }),
    resource({ uri: "a://{x}/{y}", name: "second", read: () => "second" }),
    resource({ uri: "a://x/fixed", name: "fixed", read: () => "fixed" }),
  );
  for (
    const [uri, text] of [
      ["a://x/fixed", "fixed"],
      ["a://x/other", "first"],
      ["a://z/other", "second"],
      ["a://one/two/three", "provider"],
    ]
  ) assertEquals((await read(server, uri)).contents[0].text, text);
});

Deno.test("the first handler that matches a URI decides, even if the handler returns nothing", async () => {
  const server = serve(
    resourceProvider({ scheme: "a", name: "provider", read: () => "provider" }),
    resource({ uri: "a://x", name: "hidden", allow: () => false, read: () => "fixed" }),
    resource({ uri: "a://y/{z}", name: "empty", read: () => undefined }),
  );
  assertEquals((await fail(server, "resources/read", { uri: "a://x" })).message, sentence());
  assertEquals((await fail(server, "resources/read", { uri: "a://y/1" })).message, sentence());
  assertEquals((await read(server, "a://y")).contents[0].text, "provider");
});

Deno.test("a provider reads all URIs of its scheme, but refuses path traversal", async () => {
  const server = serve(resourceProvider({ scheme: "note+v1.0-x", name: "notes", read: (uri) => uri }));
  for (const uri of ["note+v1.0-x:a", "note+v1.0-x://a/b?c=d#e", "note+v1.0-x://a/%20..b"]) {
    assertEquals((await read(server, uri)).contents[0].text, uri);
  }
  for (
    const uri of [
      "note+v1.0-x://a/../b",
      "note+v1.0-x://a/%2e%2E/b",
      "note+v1.0-x://a%5c..%5cb",
      "note+v1.0-x://a%00",
      "note+v1.0-x://a%",
      "note+v1.0-x:",
      "note:a",
      "note+v1.0-xx:a",
    ]
  ) assertEquals((await fail(server, "resources/read", { uri })).message, sentence(), uri);
});

Deno.test("a template lists its own resources after the fixed resources, with the template's type unless they have a type", async () => {
  const server = serve(
    resource({
      uri: "user://{id}",
      name: "user",
      mimeType: "application/json",
      list: async (ctx) => [
        { uri: "user://1", name: await Promise.resolve(ctx.method) },
        { uri: "user://2", name: "two", mimeType: "text/plain", size: 3 },
      ],
      read: ({ id }) => ({ id }),
    }),
    resource({ uri: "config://app", name: "config", read: () => "" }),
  );
  const { resources, cacheScope, nextCursor } = await call(server, "resources/list");
  assertEquals(resources, [
    { uri: "config://app", name: "config" },
    { uri: "user://1", name: "resources/list", mimeType: "application/json" },
    { uri: "user://2", name: "two", mimeType: "text/plain", size: 3 },
  ]);
  assertEquals([cacheScope, nextCursor], ["private", undefined]);
});

function entries(prefix: string, count: number) {
  return Array.from({ length: count }, (_, i) => ({ uri: `${prefix}${i}`, name: `${i}` }));
}

Deno.test("pages contain fixed resources first, then the resources of each source with the source's own cursor, and no resource twice", async () => {
  const cursors: (string | undefined)[] = [];
  const server = testServer({
    limits: testLimits({ calls: { pageItems: 3 } }),
    handlers: [
      ...entries("f:", 4).map((entry) => resource({ ...entry, read: () => "" })),
      resource({ uri: "t://{id}", name: "t", list: () => entries("t://", 5), read: () => "" }),
      resource({ uri: "empty://{id}", name: "empty", list: () => [], read: () => "" }),
      resourceProvider({
        scheme: "p",
        name: "p",
        list: (cursor) => {
          cursors.push(cursor);
          if (cursor === undefined) return { resources: entries("p:a", 2), nextCursor: "" };
          if (cursor === "") return { resources: entries("p:b", 1), nextCursor: "x\ny" };
          return { resources: entries("p:c", 1) };
        },
        read: () => "",
      }),
      resourceProvider({ scheme: "q", name: "q", list: () => ({ resources: entries("q:", 1) }), read: () => "" }),
    ],
  });
  assertEquals(await listPages(server), [
    ["f:0", "f:1", "f:2"],
    ["f:3", "t://0", "t://1", "t://2"],
    ["t://3", "t://4", "p:a0", "p:a1"],
    ["p:b0"],
    ["p:c0", "q:0"],
  ]);
  assertEquals(cursors, [undefined, "", "x\ny"]);
  assertEquals(await listPages(server, "resources/templates/list"), [["t://{id}", "empty://{id}"]]);
});

Deno.test("every page of a list that contains a source is private", async () => {
  const server = testServer({
    ttlMs: 5000,
    limits: testLimits({ calls: { pageItems: 1 } }),
    handlers: [
      ...entries("f:", 2).map((entry) => resource({ ...entry, read: () => "" })),
      resourceProvider({ scheme: "p", name: "p", list: () => ({ resources: entries("p:", 1) }), read: () => "" }),
    ],
  });
  let cursor: string | undefined;
  for (let page = 0; page < 3; page++) {
    const { cacheScope, ttlMs, nextCursor } = await call(server, "resources/list", { cursor });
    assertEquals([cacheScope, ttlMs, nextCursor === undefined], ["private", 5000, page === 2]);
    cursor = nextCursor;
  }
});

Deno.test("a cursor is valid only for its own list", async () => {
  const server = testServer({
    limits: testLimits({ calls: { pageItems: 1 } }),
    handlers: [
      resource({ uri: "a://{x}", name: "a", read: () => "" }),
      resource({ uri: "b://{x}", name: "b", read: () => "" }),
      resourceProvider({
        scheme: "p",
        name: "p",
        list: () => ({ resources: entries("p:", 1), nextCursor: "2" }),
        read: () => "",
      }),
    ],
  });
  const { nextCursor: ofTemplates } = await call(server, "resources/templates/list");
  const { nextCursor: ofResources } = await call(server, "resources/list");
  const wrong: readonly [string, unknown][] = [
    ["resources/list", ofTemplates],
    ["resources/templates/list", ofResources],
    ["resources/list", "2"],
    ["resources/list", ""],
    ["resources/list", 2],
    ["resources/list", btoa("resources:").replaceAll("=", "")],
    ["resources/list", btoa("resources:\nz:").replaceAll("=", "")],
  ];
  for (const [method, cursor] of wrong) {
    assertEquals((await fail(server, method, { cursor })).code, -32602, `${cursor}`);
  }
});

Deno.test("a resource that is hidden from a caller is in no list, and cannot be read", async () => {
  const allow = (ctx: { readonly meta: { readonly [key: string]: unknown } }) => ctx.meta["example.com/who"] === "ada";
  const server = testServer({
    limits: testLimits({ calls: { pageItems: 2 } }),
    handlers: [
      resource({ uri: "f:open", name: "open", cacheScope: "public", read: () => "open" }),
      resource({ uri: "f:shut", name: "shut", cacheScope: "public", allow, read: () => "shut" }),
      resource({ uri: "t://{id}", name: "t", allow, list: () => entries("t://", 1), read: () => "t" }),
      resourceProvider({
        scheme: "p",
        name: "p",
        allow,
        list: () => ({ resources: entries("p:", 1) }),
        read: () => "p",
      }),
    ],
  });
  const _meta = { "example.com/who": "ada" };
  assertEquals(await listPages(server), [["f:open"]]);
  assertEquals(await listPages(server, "resources/templates/list"), [[]]);
  const page = await call(server, "resources/list", { _meta });
  assertEquals(page.resources.length, 2);
  const { resources } = await call(server, "resources/list", { _meta, cursor: page.nextCursor });
  assertEquals(resources.map((item: { uri: string }) => item.uri), ["t://0", "p:0"]);
  // Another caller that uses the same cursor does not see the hidden resources.
  assertEquals((await call(server, "resources/list", { cursor: page.nextCursor })).resources, []);
  for (const uri of ["f:shut", "t://0", "p:0"]) {
    const missing = { code: -32602, message: sentence(), data: { uri } };
    assertEquals(await fail(server, "resources/read", { uri }), missing);
    const result = await call(server, "resources/read", { uri, _meta });
    assertEquals([result.contents.length, result.cacheScope], [1, "private"]);
  }
  assertEquals((await read(server, "f:open")).cacheScope, "public");
});

Deno.test("a result has the ttl of the resource or else of the server, and is private by default", async () => {
  const server = testServer({
    ttlMs: 5000,
    handlers: [
      resource({ uri: "a:1", name: "a", read: () => "" }),
      resource({ uri: "a:2", name: "b", ttlMs: 0, cacheScope: "public", read: () => "" }),
    ],
  });
  const first = await read(server, "a:1");
  const second = await read(server, "a:2");
  assertEquals([first.ttlMs, first.cacheScope], [5000, "private"]);
  assertEquals([second.ttlMs, second.cacheScope], [0, "public"]);
});

Deno.test("an McpError is sent unchanged, a ToolError is sent as its text, and for any other error only an id is sent", async () => {
  const reported: unknown[] = [];
  const secret = new Error("the password is 1234");
  const errors: Record<string, Error> = {
    mcp: new McpError(-32001, "Cannot read: not today", { until: "Monday" }),
    tool: new ToolError("The disk is full"),
    blocks: new ToolError([{ type: "text", text: "One" }, { type: "text", text: "Two" }]),
    other: secret,
  };
  const server = testServer({
    observer: { fault: ({ error, method, subject }) => reported.push(error, method, subject) },
    handlers: [
      resource({
        uri: "error://{kind}",
        name: "error",
        read: ({ kind }) => {
          throw errors[kind];
        },
      }),
      resourceProvider({
        scheme: "list",
        name: "list",
        list: throwing(secret),
        read: () => "",
      }),
      resource({ uri: "odd:1", name: "odd", read: (): object => () => {} }),
    ],
  });
  const failure = (uri: string) => fail(server, "resources/read", { uri });
  assertEquals(await failure("error://mcp"), {
    code: -32001,
    message: "Cannot read: not today",
    data: { until: "Monday" },
  });
  assertEquals(await failure("error://tool"), { code: -32603, message: "The disk is full" });
  assertEquals((await failure("error://blocks")).message, "One\nTwo");
  assertEquals(reported, []);
  const other = await failure("error://other");
  assertEquals([other.code, other.message], [-32603, sentence()]);
  assertMatch(other.data.errorId, /^\w{8}$/);
  assertEquals(reported.splice(0), [secret, "resources/read", "error://other"]);
  // Other resources are listed.
  await call(server, "resources/list");
  assertEquals(reported.splice(0), [secret, "resources/list", "list:"]);
  assertEquals((await failure("odd:1")).message, sentence());
  assertEquals(String(reported[0]), sentence('resource "odd:1"', "Function"));
});

Deno.test("middleware runs around reads, can change their results, and gets the error for an unknown resource", async () => {
  const seen: string[] = [];
  const note: Middleware = async (call, next) => {
    try {
      return { ...await next(), _meta: { "example.com/by": "middleware" } };
    } catch (error) {
      seen.push(`${call.params.uri} ${error instanceof McpError && error.code}`);
      throw error;
    }
  };
  const server = serve(resource({ uri: "a://{x}", name: "a", use: [note], read: ({ x }) => x === "1" ? "one" : null }));
  const { contents, _meta } = await read(server, "a://1");
  assertEquals([contents[0].text, _meta["example.com/by"]], ["one", "middleware"]);
  await fail(server, "resources/read", { uri: "a://2" });
  assertEquals(seen, ["a://2 -32602"]);
});

Deno.test("resources can be added and removed while the server runs", async () => {
  const server = serve(resource({ uri: "a:1", name: "one", read: () => "one" }));
  const two = resource({ uri: "a://{id}", name: "two", complete: { id: () => ["2"] }, read: () => "two" });
  server.handlers.add(two);
  assertEquals((await read(server, "a://2")).contents[0].text, "two");
  assertThrows(() => server.handlers.add(two), TypeError, sentence('resource "a://{id}"'));
  server.handlers.remove(two);
  assertEquals((await fail(server, "resources/read", { uri: "a://2" })).message, sentence());
  server.handlers.add(two);
  assertEquals(await listPages(server, "resources/templates/list"), [["a://{id}"]]);
});

Deno.test("an unusable resource is refused when it is created, and the error names the resource", () => {
  const read = () => "";
  const make: readonly [() => unknown, string][] = [
    [() => resource({ uri: "no scheme", name: "a", read }), sentence('resource "no scheme"')],
    [() => resource({ uri: "a:b c", name: "a", read }), sentence('resource "a:b c"')],
    [() => resource({ uri: "a://{b*}", name: "a", read }), sentence('"a://{b*}"')],
    [() => resource({ uri: "a://b}", name: "a", read }), sentence('"a://b}"')],
    [() => resource({ uri: "{+all}", name: "a", read }), sentence('resource "{+all}"')],
    [() => resourceProvider({ scheme: "Repo", name: "a", read }), sentence('resource "Repo:"')],
    [() => resourceProvider({ scheme: "repo://", name: "a", read }), sentence('resource "repo://:"')],
    [() => resourceProvider({ scheme: "", name: "a", read }), sentence('resource ":"')],
    [() => resource({ uri: "a:b", name: "", read }), sentence('resource "a:b"')],
    [() => resource({ uri: "a:b", name: "a", ttlMs: Infinity, read }), sentence("ttlMs")],
    [() => resource({ uri: "a:b", name: "a", ttlMs: -1, read }), sentence("ttlMs")],
    // @ts-expect-error: read is missing
    [() => resource({ uri: "a:b", name: "a" }), sentence('resource "a:b"', "read")],
    // @ts-expect-error: neither uri nor scheme
    [() => resource({ name: "a", read }), sentence("uri")],
    [
      // @ts-expect-error: the template has no such variable
      () => resource({ uri: "a://{b}", name: "a", complete: { c: () => [] }, read }),
      sentence('resource "a://{b}"', "complete.c", "b"),
    ],
    [
      // @ts-expect-error: not a function
      () => resource({ uri: "a://{b}", name: "a", complete: { b: ["x"] }, read }),
      sentence('resource "a://{b}"', "complete.b"),
    ],
  ];
  for (const [run, message] of make) assertThrows(run, TypeError, message);
});

Deno.test("a test can read a resource without a server, with the input that the kind of resource requires", () => {
  const ctx = undefined as never;
  const readme = resource({ uri: "repo://{owner}{?ref}", name: "a", read: ({ owner, ref }) => `${owner} ${ref}` });
  assertEquals(readme.read({ owner: "ada" }, ctx), "ada undefined");
  const fixed = resource({ uri: "a:b", name: "a", read: (uri) => uri.toUpperCase() });
  assertEquals(fixed.read("a:b", ctx), "A:B");
  const provider = resourceProvider({ scheme: "a", name: "a", read: (uri) => uri.toUpperCase() });
  assertEquals(provider.read("a:b", ctx), "A:B");
  const host: string = "b";
  const computed = resource({ uri: `a://${host}/{id}` as TemplateText, name: "a", read: ({ id }) => id.toUpperCase() });
  assertEquals(computed.read({ id: "c" }, ctx), "C");
});

Deno.test("a resource can ask the client, and use the answer in its result", async () => {
  const reported: unknown[] = [];
  const server = testServer({
    ttlMs: 5000,
    observer: { fault: ({ error }) => reported.push(error) },
    handlers: [resource({
      uri: "roots:all",
      name: "roots",
      read: async (_uri, ctx) => (await ctx.roots()).map((root) => root.uri).join(),
    })],
  });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { roots: {} } };
  const asked = await call(server, "resources/read", { uri: "roots:all", _meta });
  assertEquals([asked.resultType, asked.inputRequests.roots.method], ["input_required", "roots/list"]);
  assertEquals([asked.ttlMs, asked.cacheScope], [undefined, undefined]);
  const { contents, ttlMs } = await call(server, "resources/read", {
    uri: "roots:all",
    _meta,
    requestState: asked.requestState,
    inputResponses: { roots: { roots: [{ uri: "file:///home" }] } },
  });
  assertEquals([contents[0].text, ttlMs], ["file:///home", 0]);
  // The open question is not reported as an error.
  assertEquals(reported, []);
});

Deno.test("a template converts and validates its variables, and a URI that the schema rejects is not found", async () => {
  const note = resource({
    uri: "note://{id}{?all}",
    name: "note",
    variables: z.object({ id: z.coerce.number().int(), all: z.stringbool().optional() }),
    read: ({ id, all }) => {
      const next: number = id + 1;
      const isAll: boolean | undefined = all;
      return `${next} ${isAll}`;
    },
  });
  const raw = resource({
    uri: "raw://{id}",
    name: "raw",
    variables: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
    read: ({ id }) => `${id + 1}`,
  });
  await using client = await connectTest(createServer({ name: "t", version: "1", handlers: [note, raw] }));
  const read = async (uri: string) => (await client.readResource(uri)).contents[0].text;
  assertEquals(await read(note.uri({ id: "7" })), "8 undefined");
  assertEquals(await read(note.uri({ id: "7", all: "yes" })), "8 true");
  assertEquals(await read("raw://7"), "8");
  for (const uri of ["note://x", "note://7?all=perhaps", "raw://x", "raw://7.5"]) {
    await assertRejects(() => client.readResource(uri), Error, sentence());
  }
});

Deno.test("`variables` of a resource require a URI template", () => {
  const variables = z.object({ id: z.string() });
  const make = () => resource({ uri: "note://1", name: "note", variables, read: () => "" });
  assertThrows(make, TypeError, sentence("variables", "uri"));
});
