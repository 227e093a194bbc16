// Layers add arguments to tools, and members to their structured content. The tools never see either.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, group, prompt, type Schema, tool, toolProvider, transform } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { argument, cache, idempotent, type Layer, layer, member } from "../../src/layers/layers.ts";
import { proxy } from "../../src/proxy/proxy.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const reason = argument({ name: "reason", schema: z.string().describe("Why"), required: "listed" });

/** Returns a layer that notes what its steps read. */
function noting(noted: unknown[], token = reason): Layer<unknown, unknown> {
  return layer<unknown, unknown>(() => ({
    name: "why",
    argument: token,
    limit: ({ given }) => void noted.push(["limit", given(token)]),
    enter: ({ given }, next) => (noted.push(["enter", given(token)]), next()),
    result: (_result, { given }) => void noted.push(["result", given(token)]),
  }));
}

const runOnly = (noted: unknown[]) =>
  layer<unknown, unknown>(() => ({
    name: "why",
    argument: reason,
    run: ({ given }, next) => (noted.push(given(reason)), next()),
  }));

const echo = (input: unknown) => JSON.stringify(input);
const amount = z.object({ amount: z.number() });

behaviour("a layer adds an argument, which only its steps and middleware get", async (connect) => {
  const noted: unknown[] = [];
  const raw: unknown[] = [];
  const { client } = await connect({
    use: [(ctx, next) => (ctx.method === "tools/call" && raw.push(ctx.params.arguments), next())],
    handlers: [
      tool({ name: "pay", input: amount, use: [noting(noted)], run: echo }),
      tool({ name: "plain", use: [noting(noted)], run: echo }),
      tool({ name: "free", input: amount, run: echo }),
    ],
  });
  const [pay, plain, free] = await client.listTools();
  assertEquals<unknown>(pay.inputSchema, {
    type: "object",
    properties: { amount: { type: "number" }, reason: { type: "string", description: "Why" } },
    required: ["amount", "reason"],
  });
  assertEquals(Object.keys(Object(plain.inputSchema.properties)), ["reason"]);
  assertEquals(Object.keys(Object(free.inputSchema.properties)), ["amount"]);
  assertEquals(textOf(await client.callTool("pay", { amount: 1, reason: "rent" })), '{"amount":1}');
  assertEquals(noted.splice(0), [["limit", "rent"], ["enter", "rent"], ["result", "rent"]]);
  assertEquals(raw, [{ amount: 1, reason: "rent" }]);
  // Clients cache lists, so a call without the argument runs too.
  assertEquals(textOf(await client.callTool("pay", { amount: 1 })), '{"amount":1}');
  assertEquals(textOf(await client.callTool("plain", { reason: "x", other: 1 })), "{}");
  assertEquals(noted.splice(0).map((each) => Object(each)[1]), [undefined, undefined, undefined, "x", "x", "x"]);
  const refused = await client.callTool("pay", { amount: "1", reason: 5 });
  assertEquals(refused.isError, true);
  for (const name of ["reason", "amount"]) assert(textOf(refused).includes(`${name}: `));
  assertEquals(noted.map((each) => Object(each)[1]), [undefined, undefined, undefined]);
});

behaviour("an argument is required of clients and their relays, but not of handlers", async (connect) => {
  const noted: unknown[] = [];
  const plan = argument({ name: "plan", schema: { type: "string" }, required: true });
  const pay = tool({ name: "pay", input: amount, use: [noting(noted, plan)], run: echo });
  const shop = tool({
    name: "shop",
    run: async (_input, { callTool }) => textOf(await callTool(pay, { amount: 2 })),
  });
  const { client } = await connect({
    handlers: [toolSearch(), pay, shop],
  });
  const missing = await client.callTool("call_tool", { name: "pay", arguments: { amount: 1 } });
  assertEquals([missing.isError, textOf(missing).includes("plan: required")], [true, true]);
  const found = await client.callTool("search_tools", { query: "pay" });
  assert(JSON.stringify(found.structuredContent ?? found.content).includes("plan"));
  noted.length = 0;
  const relayed = await client.callTool("call_tool", { name: "pay", arguments: { amount: 1, plan: "p" } });
  assertEquals(textOf(relayed), '{"amount":1}');
  assertEquals(noted.splice(0), [["limit", "p"], ["enter", "p"], ["result", "p"]]);
  assertEquals(textOf(await client.callTool("shop")), '{"amount":2}');
  assertEquals(noted.map((each) => Object(each)[1]), [undefined, undefined, undefined]);
});

behaviour("caches and idempotency keys do not see an added argument", async (connect) => {
  const noted: unknown[] = [];
  let runs = 0;
  const run = () => `${++runs}`;
  const use = [noting(noted), cache({ ttlMs: 60_000, shared: true })];
  const rates = tool({ name: "rates", annotations: { readOnlyHint: true }, use, input: amount, run });
  const key = idempotent<{ readonly amount: number }>({ key: ({ amount }) => `${amount}` });
  const pay = tool({ name: "pay", input: amount, use: [noting(noted), key], run });
  const { client } = await connect({ handlers: [rates, pay] }, { principal: { id: "ada" } });
  for (const name of ["rates", "pay"]) {
    const texts = [];
    for (const reason of ["a", "b", undefined]) texts.push(textOf(await client.callTool(name, { amount: 1, reason })));
    assertEquals(new Set(texts).size, 1, name);
  }
});

const SCHEMAS: Readonly<Record<string, Schema>> = {
  "a shape": { amount: z.number() },
  "a JSON Schema": { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
  "an asynchronous schema": z.object({ amount: z.number().refine(() => Promise.resolve(true)) }),
  "a closed object": z.strictObject({ amount: z.number() }),
  "a reference": {
    $ref: "#/$defs/payment",
    $defs: {
      payment: {
        type: "object",
        properties: { amount: { type: "number" }, parts: { type: "array", items: { $ref: "#/$defs/payment" } } },
        required: ["amount"],
        additionalProperties: false,
      },
    },
  },
  "closed alternatives": {
    type: "object",
    oneOf: [
      { properties: { amount: { type: "number" } }, required: ["amount"], additionalProperties: false },
      { properties: { all: { type: "boolean" } }, required: ["all"], additionalProperties: false },
    ],
  },
};

for (const [form, input] of Object.entries(SCHEMAS)) {
  behaviour(`an argument is added to ${form}`, async (connect) => {
    const noted: unknown[] = [];
    const { client } = await connect({
      handlers: [
        tool({ name: "own", input, use: [runOnly(noted)], run: echo }),
        tool.from(
          { name: "foreign", inputSchema: { type: "object", properties: { amount: {} }, additionalProperties: false } },
          echo,
          { use: [runOnly(noted)] },
        ),
      ],
    });
    for (const { inputSchema } of await client.listTools()) {
      assertEquals(Object(inputSchema.properties).reason, { type: "string", description: "Why" });
      assert(JSON.stringify(inputSchema.required).includes("reason"));
    }
    for (const name of ["own", "foreign"]) {
      assertEquals(textOf(await client.callTool(name, { amount: 1, reason: "x" })), '{"amount":1}', name);
    }
    assertEquals(noted, ["x", "x"]);
    const refused = await client.callTool("own", { amount: "no", reason: "x" });
    assertEquals([refused.isError, textOf(refused).includes("reason")], [true, false]);
  });
}

behaviour("tools of groups, servers and providers get the argument, and prompts do not", async (connect) => {
  const noted: unknown[] = [];
  const hello = prompt({ name: "hello", input: z.object({ name: z.string() }), run: ({ name }) => name });
  const found = tool({ name: "found", input: amount, run: echo });
  const why = layer<unknown, unknown>(() => ({
    name: "why",
    argument: reason,
    result: (_result, { given }) => void noted.push(given(reason)),
  }));
  const { client } = await connect({
    use: [why],
    handlers: [tool({ name: "own", run: echo }), hello],
  });
  const other = await connect({
    handlers: [
      group("g", [tool({ name: "in", input: amount, run: echo }), hello], { use: [runOnly(noted)] }),
      toolProvider({
        use: [runOnly(noted)],
        list: () => [found],
        find: (name) => name === "found" ? found : undefined,
      }),
    ],
  });
  assertEquals(textOf(await client.callTool("own", { reason: "server" })), "{}");
  const { messages } = await client.getPrompt("hello", { name: "Ada" });
  assertEquals(messages.length, 1);
  assertEquals(noted.splice(0), ["server", undefined]);
  for (const name of ["g_in", "found"]) {
    const listed = (await other.client.listTools()).find((each) => each.name === name);
    assert(JSON.stringify(listed?.inputSchema).includes('"reason"'), name);
    await other.client.callTool(name, { amount: 1, reason: name });
  }
  assertEquals(noted, ["g_in", "found"]);
});

behaviour("a task and the handler behind a proxy get no added argument", async (connect) => {
  const noted: unknown[] = [];
  const build = tool({ name: "build", input: amount, use: [runOnly(noted), task({ after: 0 })], run: echo });
  const upstream = createServer({
    name: "up",
    version: "1.0.0",
    handlers: [tool({ name: "echo", input: amount, run: echo })],
  });
  const { client } = await connect({
    handlers: [tasks(), build, proxy(upstream, { use: [runOnly(noted)], prefix: "up_" })],
  }, { extensions: [taskClient()] });
  assertEquals(textOf(await client.callTool("build", { amount: 1, reason: "task" })), '{"amount":1}');
  const listed = (await client.listTools()).find(({ name }) => name === "up_echo");
  assertEquals(Object.keys(Object(listed?.inputSchema.properties)), ["amount", "reason"]);
  assertEquals(textOf(await client.callTool("up_echo", { amount: 1, reason: "proxy" })), '{"amount":1}');
  assertEquals(noted, ["task", "proxy"]);
  await upstream.close();
});

const asOf = member({ name: "as_of", schema: z.string() });

/** Returns a layer that sets a member, and notes whether it could. */
function dating(noted: boolean[], value = "now"): Layer<unknown, unknown> {
  return layer<unknown, unknown>(() => ({
    name: "dated",
    member: asOf,
    result: (_result, { set }) => void noted.push(set(asOf, value)),
  }));
}

behaviour("a layer sets a member of structured content, which lists and the text copy contain", async (connect) => {
  const noted: boolean[] = [];
  const use = [dating(noted)];
  const price = { price: 7 };
  const output = z.object({ price: z.number() });
  const closed = { type: "object", properties: { as_of: {} }, additionalProperties: true } as const;
  const { client, takeFaults } = await connect({
    handlers: [
      tool({ name: "full", output, use, run: () => price }),
      tool({ name: "summary", output, text: "summary", use, run: () => price }),
      tool({ name: "none", output, text: "none", use, run: () => price }),
      tool({
        name: "indented",
        use,
        run: () => ({ content: [{ type: "text", text: JSON.stringify(price, null, 2) }], structuredContent: price }),
      }),
      tool({ name: "own", use, run: () => ({ as_of: "then" }) }),
      tool({ name: "text", use, run: () => "7" }),
      tool({ name: "failing", use, run: () => ({ content: [], isError: true }) }),
      tool.from(
        { name: "taken", inputSchema: { type: "object" }, outputSchema: closed },
        () => ({ content: [], structuredContent: price }),
        { use },
      ),
      tool({ name: "wrong", use: [dating([], 5 as unknown as string)], run: () => price }),
    ],
  });
  const [full] = await client.listTools();
  assertEquals(Object.keys(Object(full.outputSchema?.properties)), ["price", "as_of"]);
  const results = [];
  for (const name of ["full", "summary", "none", "indented", "own", "text", "failing", "taken"]) {
    const { content, structuredContent } = await client.callTool(name);
    results.push([structuredContent, content.length ? textOf({ content }) : undefined]);
  }
  const dated = { price: 7, as_of: "now" };
  assertEquals<unknown>(results, [
    [dated, JSON.stringify(dated)],
    [dated, "object with 2 keys: price number, as_of string (3)"],
    [dated, undefined],
    [dated, JSON.stringify(dated)],
    [{ as_of: "then" }, '{"as_of":"then"}'],
    [undefined, "7"],
    [undefined, undefined],
    [price, undefined],
  ]);
  assertEquals(noted, [true, true, true, true, false, false, false, false]);
  await assertRejects(() => client.callTool("wrong"));
  const [taken, wrong, ...others] = takeFaults().map(({ error }) => String(Object(error).message));
  assertEquals(taken, sentence('tool "taken"', '"as_of"', "dated"));
  assertEquals(wrong, sentence('tool "wrong"', '"as_of"', "dated"));
  assertEquals(others, []);
});

Deno.test("names of added arguments and members never clash silently", () => {
  const one = runOnly([]);
  const make = (use: readonly Layer<unknown, unknown>[], input: Schema = amount) =>
    tool({ name: "pay", input, use, run: echo });
  const refused: readonly (readonly [run: () => unknown, ...parts: readonly string[]])[] = [
    [() => make([one, noting([])]), "why", '"reason"'],
    [() => make([one], z.object({ reason: z.string() })), 'tool "pay"', "why", '"reason"'],
    [() => make([one], { type: "object", anyOf: [{ required: ["reason"] }, {}] }), 'tool "pay"', '"reason"'],
    [() => createServer({ name: "s", version: "1", use: [one], handlers: [make([noting([])])] }), '"reason"'],
    [
      () => createServer({ name: "s", version: "1", use: [one], handlers: [make([], { reason: z.string() })] }),
      '"reason"',
    ],
    [() => group("g", [make([], { reason: z.string() })], { use: [one] }), '"g_pay"', '"reason"'],
    [() => transform(make([one]), { input: { amount: { name: "reason" } } }), '"reason"'],
    [
      () => tool({ name: "t", output: { as_of: z.string() }, use: [dating([])], run: () => ({ as_of: "x" }) }),
      '"as_of"',
    ],
    [() => argument({ name: "a b", schema: z.string() }), "name"],
    [() => argument({ name: "a", schema: z.date() }), '"a"'],
    [() => argument({ name: "a" } as never), '"a"', "schema"],
    [() => argument({ name: "a", schema: z.string(), required: "yes" as never }), "required"],
    [() => make([layer(() => ({ name: "why", argument: asOf as never }))]), "why", "argument({"],
    [() => make([layer(() => ({ name: "why", member: "as_of" as never }))]), "why", "member({"],
  ];
  for (const [run, ...parts] of refused) {
    const { message } = assertThrows(run, TypeError);
    assertEquals(message, sentence(...parts));
  }
});

behaviour("a foreign tool keeps its own argument, and a tool without a place stays as it is", async (connect) => {
  const noted: unknown[] = [];
  const own = { type: "object", properties: { reason: { type: "number" } } } as const;
  const { client, takeFaults } = await connect({
    handlers: [
      tool.from({ name: "taken", inputSchema: own }, echo, { use: [runOnly(noted)] }),
      tool({ name: "closed", input: { type: "object", enum: [{ a: 1 }] }, use: [runOnly(noted)], run: echo }),
      toolProvider({
        use: [runOnly(noted)],
        list: () => [tool({ name: "found", input: own, run: echo })],
        find: (name) => name === "found" ? tool({ name, input: own, run: echo }) : undefined,
      }),
    ],
  });
  const listed = await client.listTools();
  assertEquals(listed.map(({ inputSchema }) => JSON.stringify(inputSchema)), [
    JSON.stringify(own),
    '{"type":"object","enum":[{"a":1}]}',
    JSON.stringify(own),
  ]);
  assertEquals(textOf(await client.callTool("taken", { reason: 1 })), '{"reason":1}');
  assertEquals(textOf(await client.callTool("closed", { a: 1 })), '{"a":1}');
  assertEquals(textOf(await client.callTool("found", { reason: 1 })), '{"reason":1}');
  assertEquals(noted, [undefined, undefined, undefined]);
  const faults = takeFaults().map(({ error }) => String(Object(error).message));
  assertEquals(faults.length, 3, faults.join("\n"));
  for (const [at, name] of ["taken", "closed", "found"].entries()) {
    assertEquals(faults[at], sentence(`tool "${name}"`, "why", '"reason"'));
  }
});

behaviour("a step can only use the tokens of its layers", async (connect) => {
  const other = argument({ name: "other", schema: z.string() });
  const { client, takeFaults } = await connect({
    handlers: [
      tool({ name: "read", use: [layer(() => ({ name: "why", run: ({ given }) => given(other) }))], run: echo }),
      tool({
        name: "set",
        use: [layer(() => ({ name: "why", result: (_result, { set }) => void set(asOf, "x") }))],
        run: () => ({}),
      }),
      tool({
        name: "shared",
        use: [
          layer(() => ({ name: "adds", argument: other })),
          layer(() => ({ name: "reads", run: ({ given }) => `${given(other)}` })),
        ],
        run: echo,
      }),
    ],
  });
  assertEquals(textOf(await client.callTool("shared", { other: "x" })), "x");
  assertEquals((await client.callTool("read")).isError, true);
  await assertRejects(() => client.callTool("set"));
  const [read, set] = takeFaults().map(({ error }) => String(Object(error).message));
  assertEquals([read, set], [sentence('"other"', '"why"'), sentence('"as_of"', 'tool "set"')]);
});

behaviour("an argument of an optional schema gets its default, and null counts as absent", async (connect) => {
  const noted: unknown[] = [];
  const tokens = [
    argument({ name: "a", schema: z.string().default("x") }),
    argument({ name: "b", schema: { type: "string", default: "y" } }),
    argument({ name: "c", schema: { d: z.number() } }),
    argument({ name: "e", schema: { type: "array", items: { $ref: "#/$defs/f" }, $defs: { f: { type: "string" } } } }),
  ];
  const use = tokens.map((token) =>
    layer(() => ({
      name: token.name,
      argument: token,
      run: ({ given }, next) => (noted.push(given<unknown>(token)), next()),
    }))
  );
  const { client } = await connect({ handlers: [tool({ name: "t", use, run: echo })] });
  const [{ inputSchema }] = await client.listTools();
  assertEquals<unknown>(inputSchema.$defs, { e_f: { type: "string" } });
  assertEquals(Object(inputSchema.properties).e.items, { $ref: "#/$defs/e_f" });
  assertEquals(textOf(await client.callTool("t")), "{}");
  assertEquals(noted.splice(0), ["x", "y", undefined, undefined]);
  assertEquals(textOf(await client.callTool("t", { a: "1", b: "2", c: { d: 1 }, e: ["3"] })), "{}");
  assertEquals(noted.splice(0), ["1", "2", { d: 1 }, ["3"]]);
  assertEquals(textOf(await client.callTool("t", { c: null, e: null })), "{}");
  assertEquals(noted.splice(0), ["x", "y", undefined, undefined]);
  assertEquals(textOf(await client.callTool("t", { c: { d: "1" }, e: [1] })), sentence("c.d", "e[0]"));
});

behaviour("the input schema of forCaller gets the argument too", async (connect) => {
  const noted: unknown[] = [];
  const of = (input: Schema) => tool({ name: "t", use: [noting(noted)], forCaller: () => ({ input }), run: echo });
  const open: Schema = { type: "object", properties: { a: { type: "string" } } };
  for (const input of [open, z.strictObject({ a: z.string() })]) {
    const { client } = await connect({ handlers: [of(input)] });
    const [{ inputSchema }] = await client.listTools();
    assertEquals(Object.keys(Object(inputSchema.properties)), ["a", "reason"]);
    assertEquals(textOf(await client.callTool("t", { a: "x", reason: "r" })), '{"a":"x"}');
    assertEquals(noted.splice(0), [["limit", "r"], ["enter", "r"], ["result", "r"]]);
  }
  const { client, takeFaults } = await connect({ handlers: [of({ reason: z.string() })] });
  assertEquals(await client.listTools(), []);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence('tool "t"', "why", '"reason"')]);
});

behaviour("a member is sent as its schema returns it", async (connect) => {
  const page = member({ name: "page", schema: z.object({ size: z.number().default(10) }) });
  const paged = layer(() => ({
    name: "paged",
    member: page,
    result: (_result, { set }) => void set(page, { secret: 1 } as never),
  }));
  const { client } = await connect({ handlers: [tool({ name: "t", use: [paged], run: () => ({ a: 1 }) })] });
  assertEquals((await client.callTool("t")).structuredContent, { a: 1, page: { size: 10 } });
});
