// Inner calls: handlers that call tools, prompts, resources, lists and completions of their server.
import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { z } from "zod";
import { type Context, group, McpError, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { cache, guard, idempotent, layer, quota, retry } from "../../src/layers/layers.ts";
import { behaviour, plainTool, raise, textOf, turn } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const pair = z.object({ a: z.number(), b: z.number().default(2) });
const add = tool({
  name: "add",
  input: pair,
  output: z.object({ sum: z.number() }),
  run: ({ a, b }) => ({ sum: a + b }),
});

/** Creates a tool that returns what a function returns, as JSON text. */
const use = (name: string, run: (ctx: Context) => unknown) =>
  tool({ name, run: async (_input, ctx) => JSON.stringify(await run(ctx)) });

/** Returns the code and the message of an error. */
const toError = ({ code, message }: { readonly code?: number; readonly message: string }) => [code, message];

behaviour(
  "a handler gets the value of a tool with an output schema, and the content of other tools",
  async (connect) => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
    const plain = tool({ name: "plain", run: () => "text" });
    const loose = tool({ name: "loose", run: () => ({ n: 1 }) });
    const broken = tool({ name: "broken", run: () => raise(new ToolError([image, { type: "text", text: "no" }])) });
    const outer = use("outer", async (ctx) => {
      const { sum } = await ctx.callTool(add, { a: 1 });
      const total: number = sum;
      // @ts-expect-error -- the input of a tool has the type of its schema
      const wrong = await ctx.callTool(add, { a: "1" }).catch(({ content }) => content);
      const named = await ctx.callTool("add", { a: 1, b: 3 });
      const text = await ctx.callTool(plain, {});
      const [first] = text.content;
      const error = await assertRejects(() => ctx.callTool(broken, {}), ToolError);
      const raw = await ctx.callTool(broken, {}, { raw: true });
      return {
        total,
        wrong,
        named,
        first,
        loose: (await ctx.callTool(loose, {})).structuredContent,
        error: [error.message, error.content],
        raw,
      };
    });
    const { client } = await connect({ handlers: [group("math", [add]), add, plain, loose, broken, outer] });
    assertEquals(JSON.parse(textOf(await client.callTool("outer"))), {
      total: 3,
      wrong: [{ type: "text", text: sentence("a") }],
      named: { content: [{ type: "text", text: '{"sum":4}' }], structuredContent: { sum: 4 } },
      first: { type: "text", text: "text" },
      loose: { n: 1 },
      error: ["no", [image, { type: "text", text: "no" }]],
      raw: { content: [image, { type: "text", text: "no" }], isError: true },
    });
  },
);

behaviour(
  "the content of a failed inner tool reaches the client unless the handler catches the error",
  async (connect) => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
    const broken = tool({ name: "broken", run: () => raise(new ToolError([image])) });
    const faulty = tool({ name: "faulty", run: () => raise(new Error("secret")) });
    const odd = tool({ name: "odd", output: z.object({ n: z.number() }), run: () => ({ n: "x" }) as never });
    const handlers = [broken, faulty, odd].map(({ name }) => use(`call_${name}`, (ctx) => ctx.callTool(name)));
    const { client, takeFaults } = await connect({ handlers: [broken, faulty, odd, ...handlers] });
    const failed = await client.callTool("call_broken");
    assertEquals([failed.isError, failed.content], [true, [image]]);
    const result = await client.callTool("call_faulty");
    const [fault, ...others] = takeFaults();
    assertEquals([others, result.isError, textOf(result).includes(fault.id)], [[], true, true]);
    // The output schema applies to the inner tool. A model cannot repair such a result.
    assertEquals((await assertRejects(() => client.callTool("call_odd"), McpError)).code, -32603);
    assertEquals(takeFaults().length, 1);
  },
);

behaviour("a handler gets prompts, resources, lists of all pages and completions", async (connect) => {
  const greet = prompt({
    name: "greet",
    input: z.object({ name: z.string(), age: z.coerce.number().optional() }),
    complete: { name: (value, { age = "" }) => [`${value}da${age}`] },
    run: ({ name }) => `Hello ${name}`,
  });
  const many = Array.from({ length: 520 }, (_, at) => tool({ name: `t${at}`, run: () => at }));
  const hidden = tool({ name: "hidden", allow: () => false, run: () => "never" });
  const page = resource({ uri: "page://1", name: "page", read: () => "one" });
  const pages = resource({ uri: "page://x/{id}", name: "pages", read: () => "x" });
  const outer = use("outer", async (ctx) => {
    const { messages } = await ctx.getPrompt(greet, { name: "Ada" });
    const named = await ctx.getPrompt("greet", { name: "Bo" });
    const tools = await ctx.list("tools");
    const [{ text }] = await ctx.readResource("page://1");
    // @ts-expect-error -- arguments of prompts are texts
    const wrong = await ctx.getPrompt(greet, { name: 1 }).catch(({ code }) => code);
    const lists = [await ctx.list("prompts"), await ctx.list("resources"), await ctx.list("resourceTemplates")];
    return {
      texts: [messages, named.messages].map(([{ content }]) => Object(content).text),
      tools: [tools.length, tools.at(0)?.name, tools.some(({ name }) => name === "hidden")],
      text,
      wrong,
      lists: lists.map((entries) => entries.map(({ name }) => name)),
      values: (await ctx.complete({ type: "ref/prompt", name: "greet" }, { name: "name", value: "A" }, {
        arguments: { age: "9" },
      })).values,
    };
  });
  const bare = use("bare", (ctx) => Promise.all([ctx.list("prompts"), ctx.list("resources")]));
  const { client } = await connect({ handlers: [...many, hidden, greet, page, pages, outer] });
  assertEquals(JSON.parse(textOf(await client.callTool("outer"))), {
    texts: ["Hello Ada", "Hello Bo"],
    tools: [521, "t0", false],
    text: "one",
    wrong: -32602,
    lists: [["greet"], ["page"], ["pages"]],
    values: ["Ada9"],
  });
  const alone = await connect({ handlers: [bare] });
  assertEquals(textOf(await alone.client.callTool("bare")), "[[],[]]");
});

behaviour(
  "a caller cannot tell a hidden handler from an unknown one in an inner call, and needs its scopes",
  async (connect) => {
    const isAda = ({ principal }: Context) => principal?.id === "ada";
    const handlers = [
      tool({ name: "hidden", allow: isAda, run: () => "tool" }),
      prompt({ name: "hidden", allow: isAda, run: () => "prompt" }),
      tool({ name: "scoped", scopes: ["write"], run: () => "scoped" }),
      tool({ name: "asking", requires: ["sampling"], run: () => "asking" }),
      tool({
        name: "outer",
        input: z.object({ kind: z.string(), name: z.string() }),
        run: async ({ kind, name }, ctx) => {
          const error = await (kind === "tool" ? ctx.callTool(name) : ctx.getPrompt(name)).then(
            () => [0, "found"],
            toError,
          );
          return JSON.stringify(error);
        },
      }),
    ];
    const { client, join } = await connect({ handlers }, { principal: { id: "ada", scopes: ["read"] } });
    const eve = await join({ principal: { id: "eve", scopes: ["write"] } });
    const call = async (from: typeof client, kind: string, name: string) =>
      JSON.parse(textOf(await from.callTool("outer", { kind, name })));
    for (const kind of ["tool", "prompt"]) {
      assertEquals(await call(client, kind, "hidden"), [0, "found"]);
      const [code, message] = await call(eve, kind, "hidden");
      const [otherCode, otherMessage] = await call(eve, kind, "unknown");
      assertEquals([code, message], [otherCode, otherMessage.replace("unknown", "hidden")]);
      assertEquals(code, -32602);
    }
    assertEquals((await call(client, "tool", "scoped"))[0], -31403);
    assertEquals(await call(eve, "tool", "scoped"), [0, "found"]);
    assertEquals((await call(eve, "tool", "asking"))[0], -32021);
  },
);

behaviour("the rate of a tool counts inner calls, and its concurrency does not", async (connect) => {
  const rated = tool({ name: "rated", use: [quota({ rate: { calls: 2, perMs: 60_000 } })], run: () => "ok" });
  // The outer and the inner tool share one place.
  const one = quota({ concurrency: 1 });
  const inner = tool({ name: "inner", use: [one], run: () => "inner" });
  const outer = tool({
    name: "outer",
    use: [one],
    run: async (_input, ctx) => textOf(await ctx.callTool(inner, {})),
  });
  const often = use("often", async (ctx) => {
    const calls = await Promise.allSettled([1, 2, 3].map(() => ctx.callTool(rated, {})));
    return calls.map((each) => each.status === "rejected" ? each.reason.code : "ok");
  });
  const { client } = await connect({ handlers: [rated, inner, outer, often] });
  assertEquals(textOf(await client.callTool("often")), '["ok","ok",-31429]');
  assertEquals((await Promise.all([1, 2].map(() => client.callTool("outer")))).map(textOf), ["inner", "inner"]);
}, { perInstance: "limits" });

behaviour("guards, layers, services and middleware stand around an inner tool", async (connect) => {
  const seen: unknown[] = [];
  const noting = layer(({ name }) => ({
    name: "noting",
    around: async (ctx, next) => {
      seen.push([name, ctx.outer]);
      return await next();
    },
    run: ({ outer }, next) => {
      seen.push([name, "run", outer?.params]);
      return next();
    },
  }));
  const db = service("db", () => "PIN 1234", { per: "call" });
  const secret = tool({
    name: "secret",
    input: z.object({ text: z.string() }),
    services: { db },
    use: [
      noting,
      guard({
        input: [({ text }) => ({ text: `${text}!` })],
        output: [(value) => String(value).replace(/\d/g, "*")],
      }),
    ],
    run: ({ text }, { services }) => `${text} ${services.db}`,
  });
  const outer = tool({
    name: "outer",
    use: [noting],
    run: async (_input, ctx) => textOf(await ctx.callTool(secret, { text: "my" })),
  });
  const methods: string[] = [];
  const { client } = await connect({
    handlers: [secret, outer],
    use: [async (ctx, next) => {
      if (ctx.method === "tools/call") methods.push(`${ctx.params.name} ${ctx.outer?.method}`);
      return await next();
    }],
  });
  // A client cannot forge the outer call.
  const forged = { method: "tools/call", params: { name: "outer" } };
  await client.callTool("secret", { text: "x", outer: forged }, { meta: { outer: forged } });
  assertEquals(textOf(await client.callTool("outer")), "my! PIN ****");
  const expected = { method: "tools/call", params: { name: "outer" } };
  assertEquals(seen, [
    ["secret", undefined],
    ["secret", "run", undefined],
    ["outer", undefined],
    ["outer", "run", undefined],
    ["secret", expected],
    ["secret", "run", { name: "outer" }],
  ]);
  assertEquals(methods, ["secret undefined", "outer undefined", "secret tools/call"]);
});

behaviour("idempotency keys, caches and retries work within inner calls", async (connect) => {
  let runs = 0;
  const id = z.object({ id: z.string() });
  const pay = tool({ name: "pay", input: id, use: [idempotent(({ id }) => id)], run: () => ++runs });
  const rates = tool({
    name: "rates",
    annotations: { readOnlyHint: true },
    output: z.object({ list: z.array(z.number()) }),
    use: [cache({ ttlMs: 60_000, shared: true })],
    run: () => ({ list: [++runs] }),
  });
  let attempts = 0;
  const shaky = tool({
    name: "shaky",
    annotations: { readOnlyHint: true },
    use: [retry({ attempts: 3, delayMs: 1 })],
    run: () => {
      if (++attempts < 3) throw new Error("not yet");
      return "ok";
    },
  });
  const outer = use("outer", async (ctx) => {
    const paid = [];
    for (let at = 0; at < 2; at++) paid.push(textOf(await ctx.callTool(pay, { id: "1" })));
    const { list } = await ctx.callTool(rates, {});
    // What a handler does to a result changes no other result.
    Object.assign(list, { 0: -1 });
    return [paid, (await ctx.callTool(rates, {})).list, textOf(await ctx.callTool(shaky, {}))];
  });
  const { client } = await connect({ handlers: [pay, rates, shaky, outer] }, { principal: { id: "ada" } });
  assertEquals(textOf(await client.callTool("outer")), '[["1","1"],[2],"ok"]');
}, { perInstance: "ready" });

behaviour("neither handler can change the values of the other", async (connect) => {
  const kept: { readonly list: unknown[] }[] = [];
  const change = tool({
    name: "change",
    input: z.object({ list: z.array(z.unknown()) }).passthrough(),
    run: (input) => {
      kept.push(input);
      input.list.push("changed");
      return input;
    },
  });
  const outer = use("outer", async (ctx) => {
    const input = { list: ["own"] };
    const { structuredContent } = await ctx.callTool("change", input);
    kept[0].list.push("later");
    const cycle: Record<string, unknown> = {};
    cycle.cycle = cycle;
    const error = await assertRejects(() => ctx.callTool("change", cycle), TypeError);
    return [input, structuredContent, error.message];
  });
  const { client } = await connect({ handlers: [change, outer] });
  assertEquals(JSON.parse(textOf(await client.callTool("outer"))), [
    { list: ["own"] },
    { list: ["own", "changed"] },
    sentence('"change"'),
  ]);
});

behaviour("a handler cannot change the contents that each read of a resource returns", async (connect) => {
  const contents = [{ uri: "page://one", text: "one", _meta: { list: [1] } }];
  const page = resource({ uri: "page://one", name: "page", read: () => contents });
  const outer = use("outer", async (ctx) => {
    const [read] = await ctx.readResource("page://one");
    const before = JSON.stringify(read);
    const { list } = Object(read._meta);
    list.push(2);
    return before;
  });
  const { client } = await connect({ handlers: [page, outer] });
  const [first, second] = [await client.callTool("outer"), await client.callTool("outer")];
  assertEquals(textOf(second), textOf(first));
});

behaviour("wrong arguments of the methods throw an error with the remedy", async (connect) => {
  const outer = use("outer", async (ctx) => {
    const loose: { readonly [name: string]: (...given: unknown[]) => Promise<unknown> } = Object(ctx);
    const { callTool, getPrompt, list, complete, readResource } = loose;
    const calls = [
      () => callTool(undefined),
      () => callTool(prompt({ name: "add", run: () => "" }), {}),
      () => callTool("add", "text"),
      () => callTool("add", {}, { key: "" }),
      () => callTool("add", {}, { raw: "yes" }),
      () => callTool("add", {}, { timeout: 1 }),
      () => callTool("add", {}, null),
      () => callTool("add", Promise.resolve({ a: 1 })),
      () => callTool("add", new Map()),
      () => getPrompt("x", Promise.resolve({})),
      () => complete(Promise.resolve({}), {}),
      () => getPrompt(add),
      () => getPrompt("x", []),
      () => list("everything"),
      () => list(),
      () => complete("x", {}),
      () => readResource(1),
    ];
    return await Promise.all(calls.map((call) => call().then(() => "ok", (error) => `${error.name} ${error.message}`)));
  });
  const { client } = await connect({ handlers: [add, outer] });
  assertEquals(
    JSON.parse(textOf(await client.callTool("outer"))),
    [
      ["undefined"],
      ["a tool or its name"],
      ["add", "input"],
      ["add", "key"],
      ["add", "raw"],
      ["add", "timeout"],
      ["add", "options"],
      ["add", "input", "not a plain object"],
      ["add", "input", "not a plain object"],
      ["x", "args", "not a plain object"],
      ["ref", "not a plain object"],
      ["a prompt or its name"],
      ["x", "args"],
      ["everything", "resourceTemplates"],
      ["undefined", "resourceTemplates"],
      ["ref"],
      ["uri"],
    ].map((parts) => `TypeError ${sentence(...parts)}`),
  );
});

behaviour("methods can be destructured, and work in handlers with services and in middleware", async (connect) => {
  const db = service("db", () => 1);
  const outer = tool({
    name: "outer",
    services: { db },
    run: async (_input, { callTool, list, outer, services }) =>
      JSON.stringify([await callTool(add, { a: services.db }), (await list("tools")).length, outer ?? null]),
  });
  const { client } = await connect({
    handlers: [add, outer],
    use: [async ({ method, params, callTool }, next) => {
      const result = await next();
      if (method !== "tools/call" || params.name !== "outer") return result;
      return { ...result, structuredContent: await callTool(add, { a: 5 }) };
    }],
  });
  const result = await client.callTool("outer");
  assertEquals([textOf(result), result.structuredContent], ['[{"sum":3},2,null]', { sum: 7 }]);
});

behaviour("a tool that a layer or middleware has changed to no structured content is an error", async (connect) => {
  const outer = use("outer", (ctx) => ctx.callTool(add, { a: 1 }));
  const { client, takeFaults } = await connect({
    handlers: [add, outer],
    use: [async (ctx, next) => ctx.outer ? { content: [] } : await next()],
  });
  assert((await client.callTool("outer")).isError);
  const [fault] = takeFaults();
  assertInstanceOf(fault.error, TypeError);
  assertEquals(fault.error.message, sentence('"add"', "raw: true"));
});

behaviour("errors of inner calls reach the handler with their codes", async (connect) => {
  const closed = tool({ name: "closed", run: () => raise(new McpError(-31001, "closed", { at: 1 })) });
  const outer = use("outer", async (ctx) => {
    const { code, data } = await assertRejects(() => ctx.callTool(closed, {}), McpError);
    await turn();
    return [code, data];
  });
  const through = use("through", (ctx) => ctx.callTool(closed, {}));
  const { client } = await connect({ handlers: [closed, outer, through] });
  assertEquals(textOf(await client.callTool("outer")), '[-31001,{"at":1}]');
  assertEquals((await assertRejects(() => client.callTool("through"), McpError)).code, -31001);
});

behaviour("a handler gets the content of a tool of another server, whose schema has no type", async (connect) => {
  const listed = { name: "far", inputSchema: { type: "object" }, outputSchema: { type: "object" } };
  const far = tool.from(listed, ({ n }) => ({ content: [{ type: "text", text: `${n}` }], structuredContent: { n } }));
  const outer = use("outer", async (ctx) => {
    const { content, structuredContent } = await ctx.callTool(far, { n: 1 });
    return [content, structuredContent];
  });
  const { client } = await connect({ handlers: [far, outer] });
  assertEquals(textOf(await client.callTool("outer")), '[[{"type":"text","text":"1"}],{"n":1}]');
});

// The keys of questions and of values of `once` in inner calls: no other key equals them, whatever a client chooses.

const schema = z.object({ text: z.string() });

/** A form whose answer the client derives from its message. */
const ask = async (ctx: Context, key: string, message: string) => {
  const { content } = await ctx.elicit(key, { message, schema });
  return content?.text;
};

const echo = ({ message }: { readonly message: string }) => ({ action: "accept", content: { text: message } }) as const;

/** Keys that join the parts of keys in different ways. */
const JOINED = ["a b", "a\tb", "a\t b", "a\t\t b", 'inner "a" b', 'inner "a"\t b', 'inner "a"\t\t b', "inner a\t b"];

behaviour("no key of a handler equals a key of its inner calls", async (connect) => {
  const inner = plainTool(
    "inner",
    async (ctx) => JSON.stringify([await ctx.once("b", () => "inner"), await ask(ctx, "b", "inner?")]),
  );
  const outer = tool({
    name: "outer",
    input: z.object({ key: z.string() }),
    run: async ({ key }, ctx) => {
      const own = await ctx.once(key, () => "outer");
      const [answer, called] = await Promise.all([
        ask(ctx, key, "outer?"),
        ctx.callTool(inner, {}, { key: "a" }),
      ]);
      return JSON.stringify([own, answer, textOf(called)]);
    },
  });
  const { client } = await connect({ handlers: [inner, outer] }, { onElicit: echo });
  for (const key of JOINED) {
    const result = JSON.parse(textOf(await client.callTool("outer", { key })));
    assertEquals(result, ["outer", "outer?", '["inner","inner?"]'], JSON.stringify(key));
  }
});

behaviour("no key of an inner call equals a key with which another inner call makes an inner call", async (connect) => {
  const value = tool({
    name: "value",
    input: z.object({ at: z.string(), key: z.string() }),
    run: async ({ at, key }, ctx) => JSON.stringify([await ctx.once(key, () => at), await ask(ctx, key, at)]),
  });
  const nested = tool({
    name: "nested",
    input: z.object({ key: z.string() }),
    run: async ({ key }, ctx) => textOf(await ctx.callTool(value, { at: "nested", key: "c" }, { key })),
  });
  const outer = plainTool("outer", async (ctx) => {
    const deep = ctx.callTool(nested, { key: "b" }, { key: "a" });
    const direct = JOINED.map((key) => ctx.callTool(value, { at: key, key: "c" }, { key }));
    return JSON.stringify((await Promise.all([deep, ...direct])).map(textOf));
  });
  const { client } = await connect({ handlers: [value, nested, outer] }, { onElicit: echo });
  const texts: string[] = JSON.parse(textOf(await client.callTool("outer")));
  assertEquals(texts.map((text) => JSON.parse(text)), ["nested", ...JOINED].map((at) => [at, at]));
});

behaviour("a key that names another handler in the next run brings no values and no answers", async (connect) => {
  let runs = 0;
  const asked: string[] = [];
  const make = (name: string) =>
    plainTool(name, async (ctx) => JSON.stringify([await ctx.once("v", () => name), await ask(ctx, "q", "Sure?")]));
  const page = resource({
    uri: "page://a",
    name: "page",
    read: async (_uri, ctx) => await ctx.once("v", () => "page"),
  });
  const outer = plainTool("outer", async (ctx) => {
    const { content } = await ctx.callTool(["first", "second"][Math.min(runs++, 1)], {}, { key: "k" });
    const [{ text }] = await ctx.readResource("page://a", { key: "v" });
    return JSON.stringify([textOf({ content }), text]);
  });
  const handlers = [make("first"), make("second"), page, outer];
  const { client } = await connect({ handlers }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return echo({ message });
    },
  });
  assertEquals(JSON.parse(textOf(await client.callTool("outer"))), ['["second","Sure?"]', "page"]);
  assertEquals(asked, ["Sure?", "Sure?"]);
}, { eras: ["modern"] });
