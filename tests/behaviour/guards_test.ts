// Guards, encoders, published schemas, per-caller schemas, and mapped errors, in every era and over every transport.
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { type Encoder, McpError, prompt, resource, resourceProvider, service, tool, ToolError } from "../../mod.ts";
import { guard } from "../../src/layers/layers.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";
import { z } from "zod";
import { sentence } from "../support/messages.ts";

const path = z.object({ path: z.string() });
const SECRET = /sk-\w+/g;

/** Replaces the secrets in every string of a value. */
function redact(value: unknown): unknown {
  if (typeof value === "string") return value.replace(SECRET, "[redacted]");
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "object" || !value || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, redact(part)]));
}

behaviour("an input guard can keep, change or refuse the input of a tool, a resource or a prompt", async (connect) => {
  const seen: unknown[] = [];
  const check = (given: string) => {
    seen.push(given);
    if (given.startsWith("out")) throw new ToolError("The path is outside; stay below the folder.");
    return given === "short" ? "changed" : undefined;
  };
  const read = tool({
    name: "read",
    input: path,
    use: [guard({
      input: [async ({ path }) => {
        await undefined;
        const changed = check(path);
        return changed === undefined ? undefined : { path: changed };
      }],
    })],
    run: ({ path }) => `read ${path}`,
  });
  const file = resource({
    uri: "file://{path}",
    name: "file",
    use: [guard({
      input: [({ path }) => {
        const changed = check(path);
        if (changed) return { path: changed };
      }],
    })],
    read: ({ path }) => `read ${path}`,
  });
  const show = prompt({
    name: "show",
    input: path,
    use: [guard({ input: [({ path }) => ({ path: check(path) ?? path })] })],
    run: ({ path }) => `read ${path}`,
  });
  const { client } = await connect({ handlers: [read, file, show] });
  for (const [given, got] of [["a", "a"], ["short", "changed"]]) {
    assertEquals(textOf(await client.callTool("read", { path: given })), `read ${got}`);
    const { contents } = await client.readResource(`file://${given}`);
    assertEquals(contents.map((one) => "text" in one && one.text), [`read ${got}`]);
    const { messages } = await client.getPrompt("show", { path: given });
    assertEquals(textOf({ content: [messages[0].content] }), `read ${got}`);
  }
  const refused = await client.callTool("read", { path: "out" });
  assertEquals([refused.isError, textOf(refused)], [true, "The path is outside; stay below the folder."]);
  await assertRejects(() => client.readResource("file://out"), Error, "outside");
  await assertRejects(() => client.getPrompt("show", { path: "out" }), Error, "outside");
  // The guard is called only with input that the schema accepts.
  seen.length = 0;
  assertEquals((await client.callTool("read", { path: 5 })).isError, true);
  assertEquals(seen, []);
});

behaviour("a redacted secret appears in no part of a result", async (connect) => {
  const guards = { output: [redact] };
  const values: readonly (() => unknown)[] = [
    () => ({ key: "sk-abc", list: ["sk-abc"] }),
    () => "sk-abc",
    () => ({ content: [{ type: "text", text: "sk-abc" }], structuredContent: { key: "sk-abc" } }),
    () => ({ type: "text", text: "sk-abc" }),
    () => ({ at: new Date(0), key: "sk-abc" }),
    () => raise(new ToolError("The key sk-abc is wrong.")),
  ];
  const tools = values.map((value, i) => tool({ name: `t${i}`, use: [guard(guards)], run: () => value() as string }));
  const typed = tool({
    name: "typed",
    output: z.object({ key: z.string() }),
    use: [guard({ output: [redact] })],
    run: () => ({ key: "sk-abc" }),
  });
  const file = resource({ uri: "keys:all", name: "keys", use: [guard(guards)], read: () => ({ key: "sk-abc" }) });
  const show = prompt({ name: "show", use: [guard(guards)], run: () => [{ role: "user", content: "sk-abc" }] });
  const { client } = await connect({ handlers: [...tools, typed, file, show] });
  const results = [
    ...await Promise.all([...tools, typed].map(({ name }) => client.callTool(name))),
    await client.readResource("keys:all"),
    await client.getPrompt("show"),
  ];
  for (const result of results) {
    const text = JSON.stringify(result);
    assertEquals([text.includes("sk-abc"), text.includes("[redacted]")], [false, true], text);
  }
});

behaviour("the server's guards run around the handler's guards, in order", async (connect) => {
  const log: string[] = [];
  const note = (name: string) => () => void log.push(name);
  const db = service("db", () => "db");
  const tx = service("tx", () => void log.push("tx"), { per: "call" });
  const run = tool({
    name: "run",
    input: path,
    services: { db, tx },
    use: [
      guard({
        input: [note("own 1"), (_, { services }) => void log.push(`own 2 ${Object.keys(services)}`)],
        output: [(_, { services }) => void log.push(`out ${Object.keys(services)}`), note("out 2")],
      }),
      async (_, next) => {
        log.push("use");
        return await next();
      },
    ],
    run: () => void log.push("run"),
  });
  const { client } = await connect({
    handlers: [run],
    use: [
      guard({ input: [async (_, ctx) => void log.push(`server ${await ctx.get(db)}`)], output: [note("server out")] }),
    ],
  });
  await client.callTool("run", { path: "a" });
  const expected = ["server db", "own 1", "own 2 db", "use", "tx", "run", "out db,tx", "out 2", "server out"];
  assertEquals(log, expected);
});

behaviour("an error that a guard throws is reported, and the handler does not run", async (connect) => {
  let runs = 0;
  const fail = () => raise(new RangeError("secret"));
  const before = tool({ name: "before", use: [guard({ input: [fail] })], run: () => void runs++ });
  const after = tool({ name: "after", use: [guard({ output: [fail] })], run: () => "value" });
  const { client, takeFaults } = await connect({ handlers: [before, after], development: false });
  for (const name of ["before", "after"]) {
    const result = await client.callTool(name);
    assertEquals(result.isError, true);
    assertEquals(JSON.stringify(result).includes("secret") || JSON.stringify(result).includes("value"), false);
  }
  assertEquals([runs, takeFaults().map(({ subject }) => subject)], [0, ["before", "after"]]);
});

Deno.test("options of a guard that are not lists of functions are refused", () => {
  const wrong = [[() => {}], { input: 5 }, { before: [() => {}] }];
  for (const options of wrong as unknown as { readonly input: [] }[]) {
    assertThrows(() => guard(options), TypeError, sentence("guard"));
  }
});

class Money {
  readonly cents: number;
  readonly currency: string;

  constructor(cents: number, currency: string) {
    this.cents = cents;
    this.currency = currency;
  }
}
const money: Encoder = {
  test: (value) => value instanceof Money,
  encode: ({ cents, currency }: Money) => `${(cents / 100).toFixed(2)} ${currency}`,
};
const price = new Money(1250, "EUR");

behaviour("an encoder converts custom types at any depth, and the first matching encoder is used", async (connect) => {
  const dates: Encoder = { test: (value) => value instanceof Date, encode: (day: Date) => day.getUTCFullYear() };
  const never: Encoder = { test: (value) => value instanceof Money, encode: () => "never" };
  const values = {
    itself: () => price,
    list: () => [price, [price]],
    object: () => ({ a: { price }, at: new Date(0) }),
    map: () => new Map<string, unknown>([["a", price], ["b", [price]]]),
    set: () => new Set([price]),
    steps: async function* () {
      yield { price };
    },
    stream: () => ReadableStream.from([{ price }]),
    full: () => ({ content: [], structuredContent: { price } }),
    untouched: () => ({ a: [1, "b", null], b: { c: true } }),
  };
  const tools = Object.entries(values).map(([name, run]) => tool({ name, run: () => run() as object }));
  const typed = tool({
    name: "typed",
    output: z.object({ price: z.string() }),
    run: () => ({ price: price as never }),
  });
  const offer = resource({ uri: "shop://offer", name: "offer", read: () => ({ price }) });
  const tell = prompt({ name: "tell", run: () => price as never });
  const { client } = await connect({ handlers: [...tools, typed, offer, tell], encoders: [dates, money, never] });
  const got = await Promise.all(
    [...tools, typed].map(async ({ name }) => {
      const result = await client.callTool(name);
      // Before 2026-07-28, structured content cannot be an array.
      const { structuredContent: structured = textOf(result) } = result;
      return [name, typeof structured === "string" && structured.startsWith("[") ? JSON.parse(structured) : structured];
    }),
  );
  const text = "12.50 EUR";
  assertEquals(Object.fromEntries(got), {
    itself: text,
    list: [text, [text]],
    object: { a: { price: text }, at: 1970 },
    map: { a: text, b: [text] },
    set: [text],
    steps: [{ price: text }],
    stream: [{ price: text }],
    full: { price: text },
    untouched: { a: [1, "b", null], b: { c: true } },
    typed: { price: text },
  });
  assertStringIncludes(JSON.stringify(await client.readResource("shop://offer")), text);
  assertStringIncludes(JSON.stringify(await client.getPrompt("tell")), text);
}, { versions: ["2025-11-25"] });

behaviour(
  "an output guard gets the encoded value, and its own return value is encoded too",
  async (connect) => {
    const seen: unknown[] = [];
    const cap = (value: unknown) => {
      seen.push(value);
      return value === "12.50 EUR" ? new Money(1000, "EUR") : undefined;
    };
    const offer = tool({ name: "offer", use: [guard({ output: [cap] })], run: () => price });
    const { client } = await connect({ handlers: [offer], encoders: [money] });
    assertEquals(textOf(await client.callTool("offer")), "10.00 EUR");
    assertEquals(seen, ["12.50 EUR"]);
  },
);

behaviour("an encoder can be an object with state", async (connect) => {
  class Prices implements Encoder {
    readonly type = Money;
    test(value: unknown): boolean {
      return value instanceof this.type;
    }
    encode(value: Money): string {
      return `${value.cents} of ${this.type.name}`;
    }
  }
  const { client } = await connect({ handlers: [tool({ name: "offer", run: () => price })], encoders: [new Prices()] });
  assertEquals(textOf(await client.callTool("offer")), `${price.cents} of Money`);
}, { versions: ["2025-11-25"] });

behaviour("publishSchema changes the schema that clients see, but not the validation", async (connect) => {
  const raw = { type: "object", properties: { a: { type: "number", description: "first" } }, required: ["a"] } as const;
  const add = tool({ name: "add", input: raw, output: z.object({ sum: z.number() }), run: ({ a }) => ({ sum: a }) });
  const plain = tool({ name: "plain", run: () => "" });
  const about: unknown[] = [];
  const { client } = await connect({
    handlers: [add, plain],
    publishSchema(schema, { tool, use }) {
      about.push(`${tool} ${use}`);
      if (use === "output") return { ...schema, description: "What add returns" };
      // The function can change its copy of the schema.
      schema.properties = {};
      return { ...schema, examples: [{ a: 1 }] };
    },
  });
  const [shown, other] = await client.listTools();
  assertEquals(shown.inputSchema, { type: "object", properties: {}, required: ["a"], examples: [{ a: 1 }] });
  assertEquals(other.inputSchema, { type: "object", properties: {} });
  assertEquals(about, ["add input", "add output"]);
  assertEquals((await client.callTool("add", { a: "no" })).isError, true);
  assertEquals((await client.callTool("add", { a: 2 })).structuredContent, { sum: 2 });
});

behaviour("the schema of a tool can depend on the caller, in lists and in calls", async (connect) => {
  const free = z.object({ size: z.number().max(10) });
  const paid = z.object({ size: z.number().max(1000) });
  const make = tool({
    name: "make",
    description: "Up to 10",
    input: free,
    forCaller({ principal }) {
      if (principal?.id === "broken") throw new RangeError("no such plan");
      return principal?.plan === "paid" ? { description: "Up to 1000", input: paid } : undefined;
    },
    run: ({ size }) => `made ${size}`,
  });
  const { client, join, takeFaults } = await connect({ handlers: [make] });
  const rich = await join({ principal: { id: "ada", plan: "paid" } });
  const seen = async (of: typeof client) => {
    const { tools, cacheScope } = await of.request("tools/list", {});
    const [{ description, inputSchema }] = tools as { description: string; inputSchema: { properties: unknown } }[];
    return [description, JSON.stringify(inputSchema.properties).includes("1000"), cacheScope ?? "private"];
  };
  assertEquals(await seen(client), ["Up to 10", false, "private"]);
  assertEquals(await seen(rich), ["Up to 1000", true, "private"]);
  assertEquals((await client.callTool("make", { size: 100 })).isError, true);
  assertEquals(textOf(await rich.callTool("make", { size: 100 })), "made 100");
  // For a caller for which the schema function throws, the tool does not exist.
  const broken = await join({ principal: { id: "broken" } });
  assertEquals(await broken.listTools(), []);
  await assertRejects(() => broken.callTool("make", { size: 1 }), Error, sentence('"make"'));
  assertEquals(takeFaults().length, 2);
});

behaviour("a handler's mapError runs before the server's mapError, for all kinds of handlers", async (connect) => {
  const fail = (): never => raise(new RangeError("secret"));
  const own = tool({ name: "own", mapError: () => "Own words", run: fail });
  const other = tool({ name: "other", mapError: () => undefined, run: fail });
  const coded = tool({ name: "coded", mapError: () => new McpError(-31001, "Closed"), run: fail });
  const file = resource({ uri: "a:b", name: "b", mapError: () => new McpError(-31002, "Gone"), read: fail });
  const all = resourceProvider({ scheme: "all", name: "all", read: fail });
  const show = prompt({
    name: "show",
    input: { text: z.string() },
    complete: { text: fail },
    mapError: () => new ToolError("Try later"),
    run: fail,
  });
  const { client, takeFaults } = await connect({
    handlers: [own, other, coded, file, all, show],
    mapError: (error) => error instanceof RangeError ? "Server words" : undefined,
  });
  assertEquals(textOf(await client.callTool("own")), "Own words");
  assertEquals(textOf(await client.callTool("other")), "Server words");
  const failing: [() => Promise<unknown>, number, string][] = [
    [() => client.callTool("coded"), -31001, "Closed"],
    [() => client.readResource("a:b"), -31002, "Gone"],
    [() => client.readResource("all:b"), -32603, "Server words"],
    [() => client.getPrompt("show", { text: "" }), -32603, "Try later"],
    [() => client.complete({ type: "ref/prompt", name: "show" }, { name: "text", value: "" }), -32603, "Try later"],
  ];
  for (const [ask, code, message] of failing) {
    const error = await assertRejects(ask) as McpError;
    assertEquals([error.code, error.message], [code, message]);
  }
  assertEquals(takeFaults().length, 7);
});
