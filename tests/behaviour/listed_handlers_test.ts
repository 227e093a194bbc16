// Tools, prompts and resources of other servers: they keep every member with which they are listed, and an odd entry
// stops neither the server nor its lists.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, group, McpError, prompt, resource, tool, transform } from "../../mod.ts";
import type { Handler, ToolReturn } from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { asTools } from "../../src/ready/ready.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const echo = (input: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(input) }] });

const TOOL = {
  name: "find",
  title: "Find",
  description: "Finds",
  inputSchema: { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { q: {} }, vendor: 1 },
  outputSchema: { $schema: "http://json-schema.org/draft-07/schema#", type: "object" },
  annotations: { readOnlyHint: true, "vendor/cost": 3 },
  icons: [{ src: "https://a.example/icon.png", vendor: 1 }],
  _meta: { "vendor/a": [1] },
  "vendor/b": { c: null },
};
const PROMPT = {
  name: "ask",
  description: "Asks",
  arguments: [{ name: "city", required: true, schema: { type: "string" } }, { name: "__proto__" }],
  _meta: { a: 1 },
  vendor: true,
};
const RESOURCE = { uri: "note://1", name: "one", size: 3, annotations: { priority: 1, vendor: 2 }, vendor: "x" };
const TEMPLATE = { uriTemplate: "note://{id}/{part}", name: "parts", mimeType: "text/x", vendor: "y" };

/** Entries of an untyped server. */
const foreign = (entry: unknown) => entry as never;

behaviour(
  "a handler of another server is listed with all members, and gets arguments and URIs unchanged",
  async (connect) => {
    const structured = (input: unknown): ToolReturn => ({ content: [], structuredContent: { input } });
    const { client } = await connect({
      handlers: [
        tool.from(foreign(TOOL), structured),
        prompt.from(foreign(PROMPT), (args) => ({ messages: [{ role: "user", content: JSON.stringify(args) }] }), {
          complete: { city: (value) => [`${value}slo`], gone: () => [] },
        }),
        resource.from(foreign(RESOURCE), (uri) => ({ contents: [{ uri, text: "1" }], _meta: { read: 1 } })),
        resource.from(foreign(TEMPLATE), (uri) => ({ contents: [{ uri, text: uri }] }), {
          complete: { part: () => ["a"], other: () => [] },
        }),
      ],
    });
    assertEquals<unknown>(await client.listTools(), [TOOL]);
    assertEquals((await client.callTool("find", { q: 1, odd: [] })).structuredContent, { input: { q: 1, odd: [] } });
    assertEquals<unknown>(await client.listPrompts(), [PROMPT]);
    const { messages } = await client.getPrompt("ask", { city: "Oslo", more: "x" });
    assertEquals(textOf({ content: messages.map(({ content }) => content) }), '{"city":"Oslo","more":"x"}');
    assertEquals((await client.complete({ type: "ref/prompt", name: "ask" }, { name: "city", value: "O" })).values, [
      "Oslo",
    ]);
    assertEquals<unknown>(await client.listResources(), [RESOURCE]);
    assertEquals<unknown>(await client.listResourceTemplates(), [TEMPLATE]);
    // Contents stay without the media type that the other server has omitted.
    const { contents, _meta } = await client.request("resources/read", { uri: "note://1" });
    assertEquals<unknown>([contents, Object(_meta).read], [[{ uri: "note://1", text: "1" }], 1]);
    assertEquals<unknown>((await client.readResource("note://a/b")).contents, [{
      uri: "note://a/b",
      text: "note://a/b",
    }]);
    const ref = { type: "ref/resource", uri: TEMPLATE.uriTemplate } as const;
    assertEquals((await client.complete(ref, { name: "part", value: "" })).values, ["a"]);
  },
);

behaviour("a handler of another server takes the options of the author's handlers", async (connect) => {
  const ran: string[] = [];
  const { client: ada, join, server } = await connect({
    handlers: [
      tool.from(
        foreign(TOOL),
        () => ({ content: [{ type: "text" as const, text: "secret" }], structuredContent: {} }),
        {
          use: [(_ctx, next) => (ran.push("use"), next()), quota({ rate: { calls: 2, perMs: 60_000 } })],
          allow: ({ principal }) => principal?.id !== "eve",
          scopes: ["a"],
          tags: ["up"],
        },
      ),
      resource.from(foreign(RESOURCE), () => "secret", {
        use: [guard({ output: [() => "redacted"] })],
        allow: ({ principal }) => principal?.id === "ada",
        subscribe: (uri) => void ran.push(uri),
      }),
    ],
  }, { principal: { id: "ada", scopes: ["a"] } });
  const eve = await join({ principal: { id: "eve", scopes: ["a"] } });
  const bob = await join({ principal: { id: "bob", scopes: [] } });
  assertEquals(textOf(await ada.callTool("find")), "secret");
  assertEquals(ran.splice(0), ["use"]);
  await assertRejects(() => eve.callTool("find"), McpError, "Unknown tool");
  assertEquals(Object(await assertRejects(() => bob.callTool("find"))).code, -31403);
  assertEquals((await ada.readResource("note://1")).contents[0].text, "redacted");
  await assertRejects(() => eve.readResource("note://1"));
  const subscription = await ada.subscribe({ resourceSubscriptions: ["note://1"] });
  assertEquals(ran, ["note://1"]);
  await subscription.close();
  server.handlers.disable({ tag: "up" });
  assertEquals(await ada.listTools(), []);
}, { perInstance: "handlers" });

/** Entries that no server should list. */
const cyclic: Record<string, unknown> = { name: "cyclic" };
cyclic.self = cyclic;
let deep: unknown = {};
for (let i = 0; i < 100_000; i++) deep = { deep };
const ODD: readonly unknown[] = [
  null,
  undefined,
  5,
  "find",
  [],
  {},
  { name: "" },
  { name: 5 },
  { name: ["a"] },
  { name: "x".repeat(1_000_000) },
  { name: "big", size: 5n },
  { name: "deep", inputSchema: deep },
  cyclic,
  { name: "header", inputSchema: { type: "object", properties: { a: { type: "array", "x-mcp-header": "a b" } } } },
];

/** Members of wrong types, each with the entry as it is served. */
const WRONG: readonly (readonly [unknown, unknown])[] = [
  [{ name: "a", inputSchema: null }, { name: "a", inputSchema: { type: "object" } }],
  [{ name: "b", inputSchema: [] }, { name: "b", inputSchema: { type: "object" } }],
  [{ name: "c", inputSchema: { type: "string" } }, { name: "c", inputSchema: { type: "object" } }],
  [{ name: "d", inputSchema: {}, outputSchema: 5, title: {}, description: [] }, {
    name: "d",
    inputSchema: { type: "object" },
  }],
  [{ name: "e", inputSchema: {}, icons: [{ src: "javascript:alert(1)" }], annotations: "x", _meta: [] }, {
    name: "e",
    inputSchema: { type: "object" },
  }],
  [{ name: "odd name/🙂", inputSchema: {} }, { name: "odd name/🙂", inputSchema: { type: "object" } }],
  [{ name: "__proto__", inputSchema: {} }, { name: "__proto__", inputSchema: { type: "object" } }],
  [{ name: "constructor", inputSchema: {} }, { name: "constructor", inputSchema: { type: "object" } }],
];

behaviour("an odd entry of another server is left out with one warning", async (connect) => {
  const { client, takeFaults } = await connect({
    handlers: [
      tool({ name: "own", run: () => "own" }),
      ...ODD.map((entry) => tool.from(foreign(entry), echo)),
      group("g", ODD.map((entry) => prompt.from(foreign(entry), () => "x"))),
      resource.from(foreign({ uri: "no uri", name: "a" }), () => ""),
      resource.from(foreign({ uriTemplate: "a://{/bad", name: "a" }), () => ""),
    ],
  });
  assertEquals((await client.listTools()).map(({ name }) => name), ["own"]);
  assertEquals(textOf(await client.callTool("own")), "own");
  const faults: unknown[] = [];
  await until(() => faults.push(...takeFaults()), "the entries were reported");
  assertEquals(faults.map((fault) => Object(fault).error.message), [sentence("its name", `${ODD.length * 2}`)]);
}, { perInstance: "observer" });

behaviour("members of a wrong type are left out, and odd names can be called", async (connect) => {
  const { client } = await connect({ handlers: WRONG.map(([entry]) => tool.from(foreign(entry), echo)) });
  assertEquals<unknown>(await client.listTools(), WRONG.map(([, served]) => served));
  for (const [, served] of WRONG) {
    assertEquals(textOf(await client.callTool(Object(served).name, { a: 1 })), '{"a":1}');
  }
});

behaviour(
  "a handler of another server whose name is taken is left out, and its removal removes no other",
  async (connect) => {
    const first = tool.from({ name: "taken", description: "first", inputSchema: {} }, echo);
    const second = tool.from({ name: "taken", description: "second", inputSchema: {} }, echo);
    const own = tool.from({ name: "own", inputSchema: {} }, echo);
    const same = [resource.from(foreign({ uri: "note://1", name: "a" }), () => "a")];
    const { client, server, takeFaults } = await connect({
      handlers: [own, first, second, tool({ name: "own", run: () => "own" }), ...same],
    });
    assertEquals((await client.listTools()).map(({ name, description }) => [name, description]), [
      ["taken", "first"],
      ["own", undefined],
    ]);
    assertEquals(textOf(await client.callTool("own")), "own");
    assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence('tool "own"', "already")]);
    server.handlers.remove(second, own);
    assertEquals((await client.listTools()).length, 2);
    server.handlers.remove(first);
    assertEquals((await client.listTools()).map(({ name }) => name), ["own"]);
  },
  { perInstance: "handlers" },
);

Deno.test("`from` throws for an option of the author that is unknown or invalid, whatever the server lists", () => {
  for (const from of [tool.from, prompt.from, resource.from]) {
    for (const options of [{ alow: () => false }, { allow: true }, { tags: "a" }]) {
      for (const entry of [TOOL, PROMPT, RESOURCE, null]) {
        const error = catchError(() => from(foreign(entry), (() => "") as never, options as never));
        assertEquals(error instanceof TypeError, true);
      }
    }
    for (const name of ["name", "title", "_meta", "input", "uri", "run", "read", "handler", "text", "forCaller"]) {
      const error = catchError(() => from(foreign(TOOL), echo as never, { [name]: "x" } as never));
      assertEquals([error instanceof TypeError, String(error).includes(`unknown option ${name}`)], [true, true]);
    }
    for (const run of [undefined, "run", {}]) {
      for (const entry of [TOOL, { ...TOOL, outputSchema: { type: "object" } }, PROMPT, RESOURCE, null]) {
        const error = catchError(() => from(foreign(entry), run as never));
        assertEquals(String(error).replace(/make a [a-z ]+:/, "make it:"), sentence("second argument"));
      }
    }
  }
  createServer({ name: "s", version: "1.0.0", handlers: [tool.from(foreign(TOOL), echo)] });
});

Deno.test("transform and asTools check their options also for an entry that cannot be served", () => {
  const call = () => "";
  const wrong: readonly (readonly [kind: string, handler: Handler, options: object])[] = [
    ["tool", tool.from(foreign(null), call), { nam: "a" }],
    ["tool", tool.from(foreign(null), call), { name: "two words" }],
    ["prompt", prompt.from(foreign(null), call), { deprecated: "" }],
    ["resource", resource.from(foreign(null), call), { input: {} }],
    ["resource template", resource.from(foreign({ uriTemplate: 1 }), call), { uri: "a://b" }],
  ];
  for (const [kind, handler, options] of wrong) {
    const error = catchError(() => transform(handler as never, options as never));
    assertEquals(String(error), sentence(`a ${kind} of another server`));
    if (kind !== "tool") {
      assertEquals(String(catchError(() => asTools(handler as never, { nam: "a" } as never))), sentence("nam"));
    }
    assertEquals(transform(handler as never, { name: "a" } as never), handler as never);
  }
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
}
