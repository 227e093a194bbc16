// Values of the author's code that have a wrong type: strict clients refuse the whole list or result that contains one.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createServer,
  extension,
  type Middleware,
  prompt,
  resource,
  resourceLink,
  resourceProvider,
  tool,
  ToolError,
} from "../../mod.ts";
import { behaviour, plainTool, raise, textOf, type Told } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** Returns a value that the compiler cannot check, such as a row of a database. */
const row = (value: unknown): never => value as never;

const nulls = { title: null, description: null, icons: null, _meta: null };
const texts = (faults: readonly Told[]) => faults.map(({ error }) => String(error));

behaviour("null for an optional member counts as absent in every list", async (connect) => {
  const hints = { title: null, readOnlyHint: true, destructiveHint: null, idempotentHint: null, openWorldHint: null };
  const hinted = { annotations: { audience: null, priority: 0.5, lastModified: null } };
  const handlers = [
    tool(row({ name: "a", ...nulls, annotations: hints, run: () => "" })),
    tool(row({ name: "b", ...nulls, annotations: null, run: () => "" })),
    prompt(row({ name: "a", ...nulls, run: () => "" })),
    resource(row({ uri: "a://a", name: "a", ...nulls, mimeType: null, size: null, ...hinted, read: () => "x" })),
    resource(row({
      uri: "b://{id}",
      name: "b",
      ...nulls,
      mimeType: null,
      annotations: null,
      list: () => [row({ uri: "b://1", name: "one", ...nulls, mimeType: null, size: null, annotations: null })],
      read: () => "",
    })),
    resourceProvider({
      scheme: "c",
      name: "c",
      list: () => row({ resources: [{ uri: "c://1", name: "one", ...nulls, ...hinted }], nextCursor: null }),
      read: () => "",
    }),
  ];
  const { client } = await connect(row({ handlers, ...nulls, _meta: undefined, instructions: null, websiteUrl: null }));
  assertEquals(await client.listTools(), [
    { name: "a", inputSchema: { type: "object", properties: {} }, annotations: { readOnlyHint: true } },
    { name: "b", inputSchema: { type: "object", properties: {} } },
  ]);
  assertEquals(await client.listPrompts(), [{ name: "a" }]);
  assertEquals(await client.listResources(), [
    { uri: "a://a", name: "a", annotations: { priority: 0.5 } },
    { uri: "b://1", name: "one" },
    { uri: "c://1", name: "one", annotations: { priority: 0.5 } },
  ]);
  assertEquals(await client.listResourceTemplates(), [{ uriTemplate: "b://{id}", name: "b" }]);
  assertEquals((await client.readResource("a://a")).contents, [{ uri: "a://a", mimeType: "text/plain", text: "x" }]);
});

Deno.test("a factory refuses a member of a wrong type, and names the handler and the member", () => {
  const wrong: readonly (readonly [make: () => unknown, ...names: readonly string[]])[] = [
    [() => tool(row({ name: "x", description: 5, run: () => "" })), 'tool "x"', "description"],
    [() => tool(row({ name: "x", title: ["x"], run: () => "" })), 'tool "x"', "title"],
    [() => tool(row({ name: "x", _meta: "x", run: () => "" })), 'tool "x"', "_meta"],
    [() => tool(row({ name: "x", _meta: new Map(), run: () => "" })), 'tool "x"', "_meta"],
    [
      () => tool(row({ name: "x", annotations: { idempotentHint: "yes" }, run: () => "" })),
      "annotations.idempotentHint",
    ],
    [() => tool(row({ name: "x", annotations: "safe", run: () => "" })), 'tool "x"', "annotations"],
    [() => prompt(row({ name: "x", title: 1, run: () => "" })), 'prompt "x"', "title"],
    [() => resource(row({ uri: "a://a", name: "x", mimeType: 1, read: () => "" })), 'resource "a://a"', "mimeType"],
    [() => resource(row({ uri: "a://a", name: "x", size: "12", read: () => "" })), 'resource "a://a"', "size"],
    [
      () => resource(row({ uri: "a://a", name: "x", annotations: { priority: 2 }, read: () => "" })),
      'resource "a://a"',
      "priority",
    ],
    [
      () => resource(row({ uri: "a://{b}", name: "x", annotations: { lastModified: "yesterday" }, read: () => "" })),
      'resource "a://{b}"',
      "lastModified",
    ],
    [() => createServer(row({ name: "s", version: "1", instructions: 5 })), "instructions"],
    [() => createServer(row({ name: "s", version: 1 })), "version"],
    // `null` counts as absent only for members of the protocol, never for options that protect a handler.
    [() => tool(row({ name: "x", allow: null, run: () => "" })), 'tool "x"', "allow"],
    [() => tool(row({ name: "x", scopes: null, run: () => "" })), 'tool "x"', "scopes"],
    [() => tool(row({ name: "x", requires: null, run: () => "" })), 'tool "x"', "requires"],
  ];
  for (const [make, ...names] of wrong) assertThrows(make, TypeError, sentence(...names));
});

behaviour(
  "a list leaves out what cannot be sent, and the observer gets the handler and the member",
  async (connect) => {
    const entries = [
      { uri: "a://1", name: "fine", size: 5 },
      { uri: "a://2", name: "number as text", size: "12" },
      { uri: "a://3", name: "time", annotations: { lastModified: "2026-01-01 10:00:00", priority: 1 } },
      { uri: "a://4" },
      null,
      { uri: "a://6", name: "big", created: 2n ** 64n },
      { uri: new URL("a://7"), name: "url", annotations: { lastModified: new Date(0) } },
    ];
    const handlers = [
      resource({ uri: "a://{id}", name: "a", list: () => row(entries), read: () => "" }),
      resourceProvider({
        scheme: "b",
        name: "b",
        list: () => row({ resources: [{ name: "no uri" }] }),
        read: () => "",
      }),
    ];
    const { client, takeFaults } = await connect({ handlers });
    assertEquals(await client.listResources(), [
      { uri: "a://1", name: "fine", size: 5 },
      { uri: "a://2", name: "number as text" },
      { uri: "a://3", name: "time", annotations: { priority: 1 } },
      { uri: "a://6", name: "big" },
      { uri: "a://7", name: "url", annotations: { lastModified: "1970-01-01T00:00:00.000Z" } },
    ]);
    assertEquals(texts(takeFaults()), [
      sentence('"a://2"', '"a://{id}"', "size", "4"),
      sentence('"no uri"', '"b:"', "uri"),
    ]);
  },
);

behaviour("a list that is no list fails with a reason", async (connect) => {
  const given: unknown[] = [undefined, { resources: {} }, { resources: [], nextCursor: 5 }];
  const handlers = [resourceProvider({ scheme: "a", name: "a", list: () => row(given.shift()), read: () => "" })];
  const { client, takeFaults } = await connect({ handlers });
  for (let left = given.length; left; left--) await assertRejects(() => client.listResources());
  assertEquals(texts(takeFaults()), [sentence('"a:"'), sentence('"a:"'), sentence('"a:"', "nextCursor")]);
});

const png = { type: "image", mimeType: "image/png" };
const text = { type: "text", text: "x" };

behaviour(
  "a tool's result with a member of a wrong type is refused with the handler and the member",
  async (connect) => {
    const wrong: readonly (readonly [value: unknown, member: string])[] = [
      [{ content: [{ ...png, data: "data:image/png;base64,aGk=" }] }, "content[0].data"],
      [{ ...png, data: "a-_b" }, "content[0].data"],
      [[text, { ...png, data: "<svg></svg>" }], "content[1].data"],
      [{ content: [{ type: "resource", resource: { uri: "a://a", blob: "aGk" + "!" } }] }, "content[0].resource.blob"],
      [{ content: [{ ...text, annotations: { lastModified: "2026-01-01" } }] }, "content[0].annotations.lastModified"],
      [{ content: [{ type: "resource_link", uri: "a://a", name: "a", size: NaN }] }, "content[0].size"],
      [{ content: [{ ...text, _meta: [] }] }, "content[0]._meta"],
      [{ content: [], isError: "no" }, "isError"],
      [{ content: [], _meta: 5 }, "_meta"],
    ];
    const handlers = wrong.map(([value], at) => tool({ name: `t${at}`, run: () => row(value) }));
    const { client, takeFaults } = await connect({ handlers });
    for (const [at, [, member]] of wrong.entries()) {
      await assertRejects(() => client.callTool(`t${at}`));
      assertEquals(texts(takeFaults()), [sentence(`tool "t${at}"`, member)]);
    }
  },
);

behaviour("null for an optional member counts as absent in every result", async (connect) => {
  const link = { ...resourceLink("a://a"), title: null, description: null, mimeType: null, size: null };
  const handlers = [
    plainTool("full", () => row({ content: [{ ...text, annotations: null }], isError: null, _meta: null })),
    tool({ name: "link", run: () => row([link]) }),
    tool({ name: "error", run: () => raise(new ToolError(row([{ ...text, _meta: null }]))) }),
    prompt({
      name: "p",
      run: () => row({ description: null, messages: [{ role: "user", content: { ...text, _meta: null } }] }),
    }),
    resource({
      uri: "a://a",
      name: "a",
      read: () => row({ uri: "a://a", mimeType: null, text: null, blob: "aGk=", _meta: null }),
    }),
  ];
  const { client } = await connect({ handlers });
  assertEquals(await contentOf(client.callTool("full")), [text]);
  assertEquals(await contentOf(client.callTool("link")), [{ type: "resource_link", uri: "a://a", name: "a" }]);
  const failed = await client.callTool("error");
  assertEquals([failed.content, failed.isError], [[text], true]);
  const { description, messages } = await client.getPrompt("p");
  assertEquals([description, messages], [undefined, [{ role: "user", content: text }]]);
  assertEquals((await client.readResource("a://a")).contents, [
    { uri: "a://a", mimeType: "application/octet-stream", blob: "aGk=" },
  ]);
});

async function contentOf(result: Promise<{ readonly content: unknown }>): Promise<unknown> {
  return (await result).content;
}

behaviour("prompts, contents, completions and errors with a member of a wrong type are refused", async (connect) => {
  const handlers = [
    prompt({ name: "description", run: () => row({ description: 5, messages: [] }) }),
    prompt({ name: "image", run: () => row({ role: "user", content: { ...png, data: "x.y" } }) }),
    prompt({ name: "complete", complete: {}, run: () => "" }),
    resource({ uri: "a://type", name: "a", read: () => row({ uri: "a://type", mimeType: 5, text: "x" }) }),
    resource({ uri: "a://blob", name: "a", read: () => row({ uri: "a://blob", blob: "data:,x" }) }),
    resource({
      uri: "b://{id}",
      name: "b",
      complete: { id: () => row({ values: ["1"], total: 1.5 }) },
      read: () => "",
    }),
    tool({ name: "error", run: () => raise(new ToolError(row([{ ...png, data: "data:image/png;base64,aGk=" }]))) }),
  ];
  const { client, takeFaults } = await connect({ handlers });
  await assertRejects(() => client.getPrompt("description"));
  await assertRejects(() => client.getPrompt("image"));
  await assertRejects(() => client.readResource("a://type"));
  await assertRejects(() => client.readResource("a://blob"));
  await assertRejects(() => client.complete({ type: "ref/resource", uri: "b://{id}" }, { name: "id", value: "" }));
  await assertRejects(() => client.callTool("error"));
  assertEquals(texts(takeFaults()), [
    sentence('prompt "description"', "description"),
    sentence('prompt "image"', "messages[0].content.data"),
    sentence('resource "a://type"', "contents[0].mimeType"),
    sentence('resource "a://blob"', "contents[0].blob"),
    sentence('"id"', '"b://{id}"', "completion.total"),
    sentence('tool "error"', "content[0].data"),
  ]);
});

behaviour("the result of a middleware is checked like the result of a handler", async (connect) => {
  const returns: Record<string, unknown> = {
    none: undefined,
    text: "x",
    block: { content: [{ type: "text", text: null }] },
    image: { content: [{ ...png, data: "data:image/png;base64,aGk=" }] },
    flag: { content: [text], isError: 1 },
    fine: { content: [{ ...text, annotations: null }], isError: null },
  };
  const replace: Middleware = async (call, next) => {
    const result = await next();
    const { name } = call.params;
    if (call.method === "tools/call" && `${name}` in returns) return row(returns[`${name}`]);
    if (call.method !== "tools/list") return result;
    const [first, second, ...others] = result.tools as Record<string, unknown>[];
    return {
      tools: [{ ...first, description: null, title: 5 }, { ...second, inputSchema: null }, ...others],
      nextCursor: null,
    };
  };
  const named = Object.keys(returns).map((name) => tool({ name, run: () => "" }));
  const own = tool({ name: "own", use: [() => row(Promise.resolve({ content: "x" }))], run: () => "" });
  const { client, takeFaults } = await connect({ handlers: [...named, own], use: [replace] });
  const names = (await client.listTools()).map(({ name }) => name);
  assertEquals(names, ["none", "block", "image", "flag", "fine", "own"]);
  assertEquals(texts(takeFaults()), [sentence('"none"', "middleware", "title")]);
  for (const name of ["none", "text", "block", "image", "flag", "own"]) {
    await assertRejects(() => client.callTool(name), name);
  }
  assertEquals(await contentOf(client.callTool("fine")), [text]);
  assertEquals(texts(takeFaults()), [
    sentence('"none"', "middleware"),
    sentence('"text"', "middleware"),
    sentence('"block"', "content[0].text"),
    sentence('"image"', "content[0].data"),
    sentence('"flag"', "isError"),
    sentence('"own"', "content"),
  ]);
});

behaviour("the results of an extension are checked", async (connect, { era }) => {
  const id = "com.example/wire";
  const wire = extension({
    id,
    sessions: true,
    methods: {
      "wire/meta": { run: () => ({ a: 1, _meta: "x" }) },
      "wire/null": { run: () => ({ a: 1, _meta: null }) },
    },
  });
  const wrapped = (name: string, result: unknown) =>
    tool({ name, use: [wire.layer({ around: () => row(result) })], run: () => "" });
  const handlers = [
    wire,
    wrapped("wrong", { content: [{ type: "text" }] }),
    wrapped("fine", { content: [{ ...text, annotations: null }] }),
  ];
  const { client, takeFaults } = await connect({ handlers }, { capabilities: { extensions: { [id]: {} } } });
  await assertRejects(() => client.request("wire/meta"));
  assertEquals((await client.request("wire/null")).a, 1);
  await assertRejects(() => client.callTool("wrong"));
  assertEquals(await contentOf(client.callTool("fine")), [text], era);
  assertEquals(texts(takeFaults()), [sentence("wire/meta", "_meta"), sentence('"wrong"', id, "content[0].text")]);
});

behaviour("a tool of another server is listed without members that are null", async (connect) => {
  const listed = { name: "far", ...nulls, inputSchema: { type: "object" }, annotations: { readOnlyHint: null } };
  const far = tool.from(row(listed), () => row({ content: [{ ...text, annotations: null }], isError: null }));
  const { client } = await connect({ handlers: [far] });
  assertEquals(await client.listTools(), [{ name: "far", inputSchema: { type: "object" }, annotations: {} }]);
  assertEquals(textOf(await client.callTool("far")), "x");
});

behaviour("progress and log messages have only members of the right type", async (connect) => {
  const handlers = [
    plainTool("work", async ({ progress, log }) => {
      await progress(1, row({ total: 0 / 0, message: null }));
      await progress(row("2"));
      await progress(Infinity);
      await progress(NaN, { total: Infinity });
      await progress(3, row({ total: null, message: 5 }));
      await progress(4, { total: 4, message: "done" });
      await log.info("x", row({ logger: null }));
      await log.info("y", row({ logger: 5 }));
      return "";
    }),
  ];
  const { client, takeFaults } = await connect({ handlers }, { logLevel: "info" });
  const reports: unknown[] = [];
  await client.callTool("work", {}, {
    onProgress: ({ progress, total, message }) => reports.push([progress, total, message]),
  });
  assertEquals(reports, [[1, undefined, undefined], [3, undefined, undefined], [4, 4, "done"]]);
  const logged = client.received.filter(({ method }) => method === "notifications/message");
  assertEquals(logged.map(({ params: { data, logger } }) => [data, logger]), [["x", undefined], ["y", undefined]]);
  assertEquals(texts(takeFaults()), [sentence("progress", '"work"')]);
});

behaviour("a question with a member of a wrong type is refused before it is sent", async (connect) => {
  const wrong: Record<string, (ctx: Parameters<Parameters<typeof tool>[0]["run"]>[1]) => Promise<unknown>> = {
    message: (ctx) => ctx.elicit("a", row({ message: null, schema: { type: "object", properties: {} } })),
    url: (ctx) => ctx.elicitUrl("a", row({ url: "https://a.test/" })),
    tokens: (ctx) => ctx.sample("a", row({ messages: [] })),
    messages: (ctx) => ctx.sample("a", row({ messages: null, maxTokens: 5 })),
  };
  const handlers = Object.entries(wrong).map(([name, ask]) =>
    tool({ name, run: async (_, ctx) => row(await ask(row(ctx))) })
  );
  const { client, takeFaults } = await connect({ handlers }, { answer: () => ({ action: "cancel" }) });
  for (const name of Object.keys(wrong)) assertEquals((await client.callTool(name)).isError, true, name);
  assertEquals(texts(takeFaults()), [
    sentence('"a"', "message"),
    sentence('"a"', "message"),
    sentence('"a"', "maxTokens"),
    sentence('"a"', "messages"),
  ]);
});

behaviour("null for an optional member of a sampling request counts as absent", async (connect) => {
  const request = { messages: [], maxTokens: 5, systemPrompt: null, temperature: null, tools: null };
  const handlers = [tool({ name: "ask", run: async (_, ctx) => row(await ctx.sample("a", row(request))) })];
  const seen: unknown[] = [];
  const { client } = await connect({ handlers }, {
    onSample: ({ systemPrompt, temperature }) => {
      seen.push([systemPrompt, temperature]);
      return { role: "assistant", model: "m", content: { type: "text", text: "x" } };
    },
  });
  await client.callTool("ask");
  assertEquals(seen, [[undefined, undefined]]);
});
