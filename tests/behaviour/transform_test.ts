// `transform` changes how clients see a handler: its name, description and arguments. The handler itself stays.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  group,
  type JsonSchema,
  McpError,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  type Schema,
  service,
  tool,
  ToolError,
  toolProvider,
  transform,
} from "../../mod.ts";
import { confirm, guard, idempotent } from "../../src/layers/layers.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** The same arguments as a schema of each form. */
const FORMS: Readonly<Record<string, Schema>> = {
  zod: z.object({ query: z.object({ text: z.string() }), tenant: z.string(), limit: z.number().max(5).optional() }),
  "an asynchronous schema": z.object({
    query: z.object({ text: z.string().refine(() => Promise.resolve(true)) }),
    tenant: z.string(),
    limit: z.number().max(5).optional(),
  }),
  "a shape": { query: z.object({ text: z.string() }), tenant: z.string(), limit: z.number().max(5).optional() },
  "a JSON Schema": {
    type: "object",
    properties: {
      query: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      tenant: { type: "string" },
      limit: { type: "number", maximum: 5 },
    },
    required: ["query", "tenant"],
  },
};

const toTenant = ({ principal }: Context): unknown => principal?.id;
const INPUT = { query: { name: "q", description: "Words" }, tenant: { value: toTenant }, limit: { default: 3 } };
const echo = (input: unknown) => JSON.stringify(input);

for (const [form, input] of Object.entries(FORMS)) {
  behaviour(`arguments of ${form} are renamed, hidden and optional`, async (connect) => {
    const search = tool({ name: "search", description: "Searches.", input, run: echo });
    const find = transform(search, { name: "find", title: "Find", description: "Finds.", input: INPUT });
    const { client: ada, join } = await connect({ handlers: [search, find] }, { principal: { id: "ada" } });
    const eve = await join({ principal: { id: "eve" } });
    const [own, { name, title, description, inputSchema: { properties, required } }] = await ada.listTools();
    assertEquals([own.name, own.description], ["search", "Searches."]);
    assertEquals([name, title, description], ["find", "Find", "Finds."]);
    assertEquals<unknown>([Object.keys(Object(properties)), required], [["q", "limit"], ["q"]]);
    const { q, limit } = Object(properties);
    assertEquals([q.description, limit.default], ["Words", 3]);
    const call = async (args: object) => textOf(await ada.callTool("find", { ...args }));
    assertEquals(JSON.parse(await call({ q: { text: "x" } })), { query: { text: "x" }, tenant: "ada", limit: 3 });
    assertEquals(JSON.parse(textOf(await eve.callTool("find", { q: { text: "x" }, limit: 1 }))), {
      query: { text: "x" },
      tenant: "eve",
      limit: 1,
    });
    // Errors name the arguments that clients know.
    assertEquals(await call({}), sentence("find", "q"));
    assertEquals(await call({ q: { text: 5 }, limit: 9 }), sentence("find", "q.text", "limit"));
    // A client can neither set a hidden argument nor use an old name.
    assertEquals(await call({ q: { text: "x" }, tenant: "eve" }), sentence("find", "tenant", "unknown"));
    assertEquals(await call({ query: { text: "x" } }), sentence("find", "query", "use q"));
  });
}

behaviour("names can be swapped, and a transformed handler can be transformed again", async (connect) => {
  const pair = tool({ name: "pair", input: { a: z.string(), b: z.number().optional() }, run: echo });
  const swapped = transform(pair, { input: { a: { name: "b" }, b: { name: "a" } } });
  const again = transform(transform(pair, { name: "x", input: { a: { name: "b2" } } }), {
    name: "again",
    input: { b2: { name: "c" }, b: { value: 7 } },
  });
  const { client } = await connect({ handlers: [swapped, again] });
  assertEquals(textOf(await client.callTool("pair", { b: "s", a: 1 })), '{"a":"s","b":1}');
  assertEquals(textOf(await client.callTool("pair", { b: 1 })), sentence("pair", "b: "));
  assertEquals(textOf(await client.callTool("again", { c: "s" })), '{"a":"s","b":7}');
  assertEquals(textOf(await client.callTool("again", { c: 1 })), sentence("again", "c: "));
  assertEquals(textOf(await client.callTool("again", { b2: "s" })), sentence("again", "b2", "use c"));
});

/** Values of a hidden argument that fail the call. */
const BAD_VALUES: Readonly<Record<string, readonly [value: () => unknown, ...words: string[]]>> = {
  "returns undefined": [() => undefined, "tenant", "undefined"],
  "returns a promise": [() => Promise.resolve("ada"), "tenant", "promise"],
  "returns a rejected promise": [() => Promise.reject(new Error("x")), "tenant", "promise"],
  "returns an invalid value": [() => 5, "tenant", "invalid"],
  "returns null": [() => null, "tenant", "invalid"],
  "returns a function": [() => () => "t", "tenant", "JSON"],
  "returns a symbol": [() => Symbol("t"), "tenant", "JSON"],
  "returns NaN": [() => NaN, "tenant", "JSON"],
  "returns a bigint": [() => 5n, "tenant", "JSON"],
  throws: [() => raise(new Error("no tenant here")), "no tenant here"],
};

for (const [name, [value, ...words]] of Object.entries(BAD_VALUES)) {
  behaviour(`a value that ${name} fails the call, and the handler does not run`, async (connect) => {
    let runs = 0;
    const run = () => void runs++;
    const search = tool({ name: "search", input: z.object({ tenant: z.string().optional() }), run });
    const ask = prompt({ name: "ask", input: z.object({ tenant: z.string().optional() }), run: () => `${runs++}` });
    const { client, takeFaults } = await connect({
      handlers: [transform(search, { input: { tenant: { value } } }), transform(ask, { input: { tenant: { value } } })],
      mapError: () => "no luck",
    });
    assertEquals((await client.callTool("search")).isError, true);
    await assertRejects(() => client.getPrompt("ask"), McpError, "no luck");
    assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence(...words), sentence(...words)]);
    assertEquals(runs, 0);
  });
}

for (const value of [() => () => "t", () => Symbol("t"), () => NaN, () => [5n], () => undefined]) {
  behaviour(`a value without a JSON text never reaches another server: ${value}`, async (connect) => {
    let runs = 0;
    const search = tool.from(
      { name: "search", inputSchema: { type: "object" } },
      () => ({ content: [], runs: runs++ }),
    );
    const { client, takeFaults } = await connect({
      handlers: [transform(search, { input: { tenant: { value } } })],
      mapError: () => "no luck",
    });
    assertEquals((await client.callTool("search")).isError, true);
    assertEquals([takeFaults().length, runs], [1, 0]);
  });
}

behaviour("a call with an idempotency key gets no result of another hidden value", async (connect) => {
  let [tenant, runs] = ["a", 0];
  const pay = tool({
    name: "pay",
    input: z.object({ tenant: z.object({ id: z.string() }), key: z.string() }),
    use: [idempotent({ key: ({ key }) => key })],
    run: ({ tenant: { id } }) => `${id} ${++runs}`,
  });
  const once = transform(pay, { name: "once", input: { tenant: { value: () => ({ id: tenant }) } } });
  const twice = transform(once, { name: "twice", input: { key: { name: "k" } } });
  const { client } = await connect({ handlers: [once, twice] }, { principal: { id: "ada" } });
  for (const [name, args] of [["once", { key: "x" }], ["twice", { k: "x" }]] as const) {
    tenant = "a";
    const first = textOf(await client.callTool(name, args));
    assertEquals(textOf(await client.callTool(name, args)), first);
    tenant = "b";
    const { message } = await assertRejects(() => client.callTool(name, args), McpError);
    assertEquals(message, sentence(name, "different arguments"));
  }
  assertEquals(runs, 2);
});

behaviour("a value can refuse the call with words for the model", async (connect) => {
  const value = ({ principal }: Context) => {
    if (!principal) throw new ToolError("Sign in first.");
    return principal.id;
  };
  const search = transform(tool({ name: "search", input: z.object({ tenant: z.string() }), run: echo }), {
    input: { tenant: { value } },
  });
  const { client } = await connect({ handlers: [search] });
  const { isError, content } = await client.callTool("search");
  assertEquals([isError, textOf({ content })], [true, "Sign in first."]);
});

behaviour("allow, scopes, layers, services, groups and the output schema stay", async (connect) => {
  const db = service("db", () => ({ name: "db" }));
  const seen: unknown[] = [];
  const search = tool({
    name: "search",
    input: z.object({ query: z.string(), secret: z.string() }),
    output: z.object({ text: z.string() }),
    services: { db },
    allow: ({ principal }) => principal?.id !== "eve",
    scopes: ["a"],
    use: [guard({ input: [(input) => void seen.push(input)] }), confirm(({ query }) => `Search ${query}?`)],
    run: ({ query, secret }, { services }) => ({ text: `${query} ${secret} ${services.db.name}` }),
  });
  const find = transform(search, { name: "find", input: { query: { name: "q" }, secret: { value: "s" } } });
  const asked: string[] = [];
  const onElicit = ({ message }: { readonly message: string }) => {
    asked.push(message);
    return { action: "accept" as const };
  };
  const { client: ada, join } = await connect({ handlers: [group("g", [find])] }, {
    principal: { id: "ada", scopes: ["a"] },
    onElicit,
  });
  assertEquals((await ada.callTool("g_find", { q: "x" })).structuredContent, { text: "x s db" });
  assertEquals(asked, ["Search x?"]);
  assertEquals(seen.at(-1), { query: "x", secret: "s" });
  const eve = await join({ principal: { id: "eve", scopes: ["a"] } });
  await assertRejects(() => eve.callTool("g_find", { q: "x" }), McpError, "Unknown tool");
  const bob = await join({ principal: { id: "bob", scopes: [] } });
  assertEquals(Object(await assertRejects(() => bob.callTool("g_find", { q: "x" }))).code, -31403);
});

behaviour("a tool that varies by caller has the changes in every variant", async (connect) => {
  const input = z.object({ query: z.string(), tenant: z.string() });
  const short = z.object({ query: z.string().max(2), tenant: z.string() });
  const search = tool({
    name: "search",
    description: "Searches.",
    input,
    forCaller: ({ principal }) => principal?.id === "eve" ? { description: "Short.", input: short } : undefined,
    run: echo,
  });
  const find = transform(search, { deprecated: "use find", input: { query: { name: "q" }, tenant: { value: "t" } } });
  const { client: eve, join } = await connect({ handlers: [find] }, { principal: { id: "eve" } });
  const ada = await join({ principal: { id: "ada" } });
  const describe = async (client: typeof eve) => {
    const [{ description, inputSchema }] = await client.listTools();
    return [description, Object.keys(Object(inputSchema.properties))];
  };
  assertEquals(await describe(eve), ["Deprecated: use find. Short.", ["q"]]);
  assertEquals(await describe(ada), ["Deprecated: use find. Searches.", ["q"]]);
  assertEquals(textOf(await ada.callTool("search", { q: "long" })), '{"query":"long","tenant":"t"}');
  assertEquals(textOf(await eve.callTool("search", { q: "long" })), sentence("search", "q: "));
});

behaviour("run wraps the handler, with the names that the handler uses", async (connect) => {
  const search = tool({ name: "search", input: z.object({ query: z.string() }), run: ({ query }) => `found ${query}` });
  const find = transform(search, {
    name: "find",
    input: { query: { name: "q" } },
    run: async (input, { principal }, next) =>
      input.query ? `${await next({ query: input.query.trim() })} for ${principal?.id}` : await next(),
  });
  const note = resource({ uri: "note://{id}", name: "note", read: ({ id }) => id });
  const shown = transform(note, {
    title: "Note",
    run: async ({ id }, _ctx, next) => `<${await next({ id: `${id}!` })}>`,
  });
  const { client } = await connect({ handlers: [find, shown] }, { principal: { id: "ada" } });
  assertEquals(textOf(await client.callTool("find", { q: " x " })), "found x for ada");
  assertEquals(textOf(await client.callTool("find", { q: "" })), "found ");
  assertEquals(textOf({ content: (await client.readResource("note://1")).contents }), "<1!>");
  assertEquals(shown.uri({ id: "1" }), "note://1");
});

behaviour("arguments of a prompt and their completion are renamed and hidden", async (connect) => {
  const ask = prompt({
    name: "ask",
    input: z.object({ count: z.coerce.number(), city: z.string(), tenant: z.string() }),
    complete: { city: (value, others) => [`${value} ${JSON.stringify(others)}`] },
    run: echo,
  });
  const changed = transform(ask, {
    name: "question",
    input: { count: { name: "n", description: "How many" }, city: { name: "town" }, tenant: { value: "t" } },
  });
  const { client } = await connect({ handlers: [changed] });
  assertEquals<unknown>(await client.listPrompts(), [{
    name: "question",
    arguments: [{ name: "n", description: "How many", required: true }, { name: "town", required: true }],
  }]);
  const { messages: [{ content }] } = await client.getPrompt("question", { n: "4", town: "Oslo" });
  assertEquals(textOf({ content: [content] }), '{"count":4,"city":"Oslo","tenant":"t"}');
  await assertRejects(() => client.getPrompt("question", { n: "x", town: "" }), McpError, "n: ");
  await assertRejects(
    () => client.getPrompt("question", { n: "1", town: "", tenant: "u" }),
    McpError,
    "tenant: unknown",
  );
  // The completer gets the names that the handler uses, and neither hidden arguments nor old names.
  const { completion } = await client.request("completion/complete", {
    ref: { type: "ref/prompt", name: "question" },
    argument: { name: "town", value: "O" },
    context: { arguments: { n: "1", tenant: "u", count: "2" } },
  });
  assertEquals(Object(completion).values, ['O {"count":"1"}']);
});

behaviour("the observer learns who still calls a deprecated handler", async (connect) => {
  const calls: unknown[] = [];
  const observer = {
    call: ({ subject, principal, deprecated }: { subject?: string; principal?: string; deprecated?: boolean }) => {
      if (subject !== undefined) calls.push([subject, principal, deprecated]);
    },
  };
  const input = z.object({ a: z.number() });
  const { client } = await connect({
    handlers: [
      tool({ name: "new", input, run: echo }),
      transform(tool({ name: "old", description: "Old.", input, run: echo }), { deprecated: "use new" }),
      transform(tool({ name: "bare", run: echo }), { deprecated: "gone soon!" }),
      transform(prompt({ name: "p", run: () => "" }), { deprecated: "use q" }),
      transform(resource({ uri: "a://b", name: "r", read: () => "" }), { deprecated: "use a://c" }),
    ],
    observer,
  }, { principal: { id: "ada" } });
  assertEquals((await client.listTools()).map(({ description }) => description), [
    undefined,
    "Deprecated: use new. Old.",
    "Deprecated: gone soon!",
  ]);
  await client.callTool("new", { a: 1 });
  await client.callTool("old", { a: 1 });
  await client.callTool("old", { a: "invalid" });
  await client.callTool("bare");
  await client.getPrompt("p");
  await client.readResource("a://b");
  assertEquals(calls, [
    ["new", "ada", undefined],
    ["old", "ada", true],
    ["old", "ada", true],
    ["bare", "ada", true],
    ["p", "ada", true],
    ["a://b", "ada", true],
  ]);
}, { perInstance: "observer" });

behaviour("handlers of other servers and of providers can be transformed", async (connect) => {
  const inputSchema = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
  const foreign = tool.from({ name: "search", description: "Searches.", inputSchema, vendor: 1 }, (input) => ({
    content: [{ type: "text", text: JSON.stringify(input) }],
  }));
  // Another server may change its schema at any time, so arguments that it does not list can be changed too.
  const find = transform(foreign, {
    name: "find",
    description: "Finds.",
    input: { query: { name: "q" }, tenant: { value: "t" } },
  });
  const broken = transform(tool.from({ name: "" } as never, () => ({ content: [] })), { name: "x" });
  const provider = toolProvider({ list: () => [find, broken], find: (name) => name === "find" ? find : undefined });
  const { client, takeFaults } = await connect({ handlers: [provider] });
  assertEquals<unknown>(await client.listTools(), [{
    name: "find",
    description: "Finds.",
    inputSchema: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
    vendor: 1,
  }]);
  assertEquals(takeFaults().length, 1);
  assertEquals(textOf(await client.callTool("find", { q: "x" })), '{"query":"x","tenant":"t"}');
  assertEquals(textOf(await client.callTool("find", { tenant: "u" })), sentence("find", "tenant", "unknown"));
}, { perInstance: "observer" });

behaviour("references and alternatives in a schema follow the new names", async (connect) => {
  // Without a literal type, the compiler does not know the names of the arguments.
  const input: JsonSchema = {
    type: "object",
    properties: { a: { type: "string" }, same: { $ref: "#/properties/a" }, hidden: { type: "number" } },
    required: ["a", "hidden"],
    dependentRequired: { a: ["same", "hidden"], same: ["a"], hidden: ["a"] },
    anyOf: [{ required: ["a"] }, { properties: { b: { type: "string" } }, required: ["hidden"] }],
    minProperties: 1,
  };
  const changed = transform(tool({ name: "t", input, run: echo }), {
    input: { a: { name: "x" }, b: { name: "y" }, hidden: { value: 1 } },
  });
  const { client } = await connect({ handlers: [changed] });
  const [{ inputSchema }] = await client.listTools();
  assertEquals<unknown>(inputSchema, {
    type: "object",
    properties: { x: { type: "string" }, same: { $ref: "#/$defs/a" } },
    required: ["x"],
    dependentRequired: { x: ["same"], same: ["x"] },
    anyOf: [{ required: ["x"] }, { properties: { y: { type: "string" } }, required: [] }],
    $defs: { a: { type: "string" } },
  });
  assertEquals(textOf(await client.callTool("t", { x: "1", same: "2" })), '{"a":"1","same":"2","hidden":1}');
});

/** A schema whose arguments are in parts of `$defs`. */
const inDefs = (root: object): JsonSchema => ({
  type: "object",
  ...root,
  $defs: {
    In: {
      type: "object",
      properties: { tenant: { type: "string", description: "secret" }, query: { $ref: "#/$defs/Text" } },
      required: ["tenant"],
    },
    Text: { type: "string" },
    Named: { $anchor: "named", properties: { tenant: { type: "string", description: "secret" } } },
  },
});

const ROOTS: Readonly<Record<string, object>> = {
  "the root": { $ref: "#/$defs/In" },
  "a root with other keywords": { $ref: "#/$defs/In", required: ["query"] },
  "a part": { allOf: [{ $ref: "#/$defs/In" }] },
  "a part of a part": { allOf: [{ anyOf: [{ if: { not: { $ref: "#/$defs/In" } } }] }] },
  "an anchor": { $ref: "#/$defs/In", anyOf: [{ $ref: "#named" }] },
  "values": {
    $ref: "#/$defs/In",
    default: { tenant: "secret", query: "a" },
    examples: [{ tenant: "secret", query: "a" }],
    anyOf: [{ enum: [{ tenant: "secret", query: "a" }] }, { const: { tenant: "secret" } }, {}],
  },
};

for (const [place, root] of Object.entries(ROOTS)) {
  behaviour(`a list does not show a hidden argument that ${place} describes by a reference`, async (connect) => {
    const changes = { input: { tenant: { value: "t" }, query: { name: "q" } } };
    const own = transform(tool({ name: "own", input: inDefs(root), run: echo }), changes);
    const inputSchema = { ...inDefs(root), type: "object" } as const;
    const foreign = transform(tool.from({ name: "foreign", inputSchema }, () => ({ content: [] })), changes);
    const { client } = await connect({ handlers: [own, foreign] });
    const tools = await client.listTools();
    assertEquals(tools.map(({ name }) => name), ["own", "foreign"]);
    for (const { inputSchema } of tools) assertEquals(JSON.stringify(inputSchema).match(/tenant|secret|query/g), null);
    assertEquals(textOf(await client.callTool("own", { q: "a" })), '{"query":"a","tenant":"t"}');
  });
}

behaviour("a schema of another server that contains itself many times is changed at once", async (connect) => {
  const inputSchema = {
    type: "object",
    properties: { query: { type: "string" } },
    anyOf: Array(20).fill({ $ref: "#" }),
    allOf: Array(20).fill({ $ref: "#/$defs/0" }),
    $defs: Object.fromEntries(
      Array.from({ length: 20 }, (_, at) => [at, { anyOf: Array(20).fill({ $ref: `#/$defs/${(at + 1) % 20}` }) }]),
    ),
  } as const;
  const changed = transform(
    tool.from({ name: "t", inputSchema }, (input) => ({ structuredContent: input, content: [] })),
    {
      input: { query: { name: "q" } },
    },
  );
  const { client } = await connect({ handlers: [changed] });
  const [{ inputSchema: shown }] = await client.listTools();
  assertEquals(Object.keys(Object(shown.properties)), ["q"]);
  assertEquals(JSON.stringify(shown).length < 3 * JSON.stringify(inputSchema).length, true);
  assertEquals((await client.callTool("t", { q: "a" })).structuredContent, { query: "a" });
});

behaviour(
  "an argument of another server that has the new name of another one leaves the handler out",
  async (connect) => {
    const argument = { name: "q" };
    const clashing = [
      transform(
        tool.from({ name: "t", inputSchema: { type: "object", properties: { query: {}, q: {} } } }, () => ({
          content: [],
        })),
        { input: { query: argument } },
      ),
      transform(
        prompt.from({ name: "p", arguments: [{ name: "query" }, { name: "q" }] }, () => ({ messages: [] })),
        { input: { query: argument } },
      ),
    ];
    const own = tool({ name: "own", run: () => "own" });
    const { client, takeFaults } = await connect({
      handlers: [own, prompt({ name: "own", run: () => "" }), ...clashing],
    });
    assertEquals((await client.listTools()).map(({ name }) => name), ["own"]);
    assertEquals((await client.listPrompts()).map(({ name }) => name), ["own"]);
    const [{ error }, ...others] = takeFaults();
    assertEquals(others.length, 0);
    assertEquals(Object(error).message, sentence("query", "other entries"));
  },
  { perInstance: "observer" },
);

Deno.test("transform refuses changes that cannot work", () => {
  const search = tool({ name: "search", input: z.object({ query: z.string(), limit: z.number() }), run: echo });
  const provider = resourceProvider({ scheme: "note", name: "notes", read: () => "" });
  const cases: readonly (readonly [handler: unknown, changes: object, ...words: string[]])[] = [
    [search, { input: { qury: { name: "q" } } }, "qury", "query?"],
    [search, { input: { query: { name: "limit" } } }, "query", "limit"],
    [search, { input: { query: { name: "a" }, limit: { name: "a" } } }, "limit", '"a"'],
    [search, { input: { query: { name: "" } } }, "query", "empty"],
    [search, { input: { query: { value: undefined } } }, "query", "undefined"],
    [search, { input: { query: { value: "a", name: "b" } } }, "query", "value and name"],
    [search, { input: { query: { value: 5n } } }, "query", "JSON"],
    [search, { input: { query: { default: () => 1 } } }, "query", "default", "JSON"],
    [search, { input: { query: { value: Promise.resolve(1) } } }, "input.query.value", "await"],
    [search, { name: "odd name" }, "odd name"],
    [search, { deprecated: "" }, "deprecated"],
    [search, { nam: "x" }, "nam", "name?"],
    [{ ...search }, {}, "search", "tool()"],
    [group("g", [search]), {}, '"g"', "tool()"],
    [toolProvider({ find: () => search }), {}, "provider"],
    [promptProvider({ find: () => undefined }), {}, "provider"],
    [provider, {}, '"notes"', "provider"],
    [undefined, {}, "transform undefined", "tool()"],
    ["a", {}, '"a"', "tool()"],
    [[search], {}, "a list", "tool()"],
    [{ title: "a" }, {}, "an object", "tool()"],
    [search.run, {}, "a function", "tool()"],
  ];
  for (const [handler, changes, ...words] of cases) {
    const { message } = assertThrows(() => transform(handler as never, changes as never), TypeError);
    assertEquals(message, sentence(...words));
  }
});

behaviour(
  "hints of a transformed tool are replaced one by one, also for a variant and another server's tool",
  async (connect) => {
    const annotations = { destructiveHint: false, openWorldHint: false };
    const hints = { title: "Wipe", readOnlyHint: false, destructiveHint: true };
    const own = tool({ name: "own", annotations: hints, run: () => "own" });
    const varied = tool({ name: "varied", forCaller: () => ({ annotations: hints }), run: () => "varied" });
    const bare = tool.from({ name: "bare", inputSchema: { type: "object" } }, () => "bare");
    const handlers = [own, varied, bare].map((each) => transform(each, { annotations }));
    const { client } = await connect({ handlers });
    assertEquals((await client.listTools()).map((each) => each.annotations), [
      { ...hints, ...annotations },
      { ...hints, ...annotations },
      annotations,
    ]);
    assertEquals(textOf(await client.callTool("bare")), "bare");
  },
);

Deno.test("hints of a prompt, and hints that are not hints, are refused", () => {
  const one = tool({ name: "one", run: () => "one" });
  const ask = prompt({ name: "ask", run: () => "?" });
  assertThrows(
    () => transform(ask, { annotations: { readOnlyHint: true } }),
    TypeError,
    sentence("ask", "annotations"),
  );
  assertThrows(
    () => transform(one, { annotations: { readonly: true } } as never),
    TypeError,
    sentence("one", "readonly", "readOnlyHint"),
  );
});
