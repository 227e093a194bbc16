// Programs of code mode: what they return, and how they fail, in every era and over every transport.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, media, tool, ToolError } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { behaviour, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { run, valueOf } from "./programs.ts";
import { z } from "zod";

const list = tool({
  name: "list_items",
  description: "Lists the items of a shop. The newest is the first.",
  annotations: { readOnlyHint: true },
  input: z.object({ count: z.number().int().describe("How many items") }),
  output: z.object({ items: z.array(z.string()) }),
  run: ({ count }) => ({ items: Array.from({ length: count }, (_, at) => `item ${at}`) }),
});
const json = tool({ name: "get_text", annotations: { readOnlyHint: true }, run: () => '{"a":1}' });
const remove = tool({ name: "remove_item", run: () => "removed" });
const failing = tool({
  name: "fail",
  annotations: { readOnlyHint: true },
  run: () => {
    throw new ToolError("out of stock");
  },
});
const broken = tool({
  name: "break",
  annotations: { readOnlyHint: true },
  run: () => {
    throw new Error("password is 1234");
  },
});
const picture = tool({
  name: "draw",
  annotations: { readOnlyHint: true },
  run: () => media(new Uint8Array([1, 2, 3]), "image/png"),
});
const both = tool({
  name: "show",
  annotations: { readOnlyHint: true },
  run: () => ["first", media(new Uint8Array([4]), "image/png"), "second"],
});
const nothing = tool({ name: "do_nothing", annotations: { readOnlyHint: true }, run: () => undefined });
const odd = tool({ name: "odd.name-1", annotations: { readOnlyHint: true }, run: () => ({ found: true }) });
const handlers = [list, json, remove, failing, broken, picture, both, nothing, odd, codeMode()];

/** Programs, each with the text of its result. */
const VALUES: readonly (readonly [code: string, text: string])[] = [
  ["return 1 + 1", "2"],
  ["return 'plain text'", "plain text"],
  ["return { a: [1, null] }", '{"a":[1,null]}'],
  ["return [...new Set([1, 1, 2])]", "[1,2]"],
  ["return new Date(0)", "1970-01-01T00:00:00.000Z"],
  ["async () => { return 5 }", "5"],
  ["async () => {\n  return 6;\n};\n", "6"],
  ["() => 7", "7"],
  ["const f = async () => 8;\nreturn await f()", "8"],
  ["async () => 1\nreturn 9", "9"],
  ["```js\nreturn 10\n```", "10"],
  ["```javascript\nasync () => {\n  return 11\n}\n```\n", "11"],
  ["const { items } = await tools.list_items({ count: 2 });\nreturn items.length", "2"],
  ["const all = await Promise.all([1, 2].map((count) => tools.list_items({ count })));\nreturn all.length", "2"],
  ["return typeof await tools.get_text()", "string"],
  ["return await tools.get_text({})", '{"a":1}'],
  ["return typeof await tools.do_nothing()", "undefined"],
  ["return await tools['odd.name-1']()", '{"found":true}'],
  ["try { await tools.fail() } catch ({ message }) { return message }", "out of stock"],
  ["try { await tools.list_items({}) } catch ({ message }) { return message.includes('count') }", "true"],
  [
    "let sum = 0; for (let i = 1; i <= 3; i++) sum += (await tools.list_items({ count: i })).items.length; return sum",
    "6",
  ],
  ["return { toJSON: () => 'own' }", "own"],
  ["return 'then' in tools || typeof tools.then", "undefined"],
];

behaviour("programs return values", async (connect) => {
  const { client } = await connect({ handlers });
  for (const [code, text] of VALUES) assertEquals([code, ...await run(client, code)], [code, text]);
});

behaviour("what a program logs comes after its value", async (connect) => {
  const { client } = await connect({ handlers });
  const code = "console.log('a', 1, { b: [2] }); console.error(new Error('c')); return 3";
  assertEquals(await run(client, code), ["3", 'Logged:\na 1 {"b":[2]}\nError: c']);
  assertEquals((await run(client, "console.log(1)")).length, 2);
});

behaviour("media are handles that become content again", async (connect) => {
  const { client } = await connect({ handlers });
  const call = async (code: string) => (await client.callTool("run_code", { code })).content;
  const image = { type: "image", data: "AQID", mimeType: "image/png" } as const;
  assertEquals(await call("return await tools.draw()"), [image]);
  assertEquals(await call("const a = await tools.draw(); return [a, a]"), [image]);
  const [text, ...others] = await call("return { best: await tools.draw(), note: 'x' }");
  assert(text.type === "text" && !text.text.includes("AQID"));
  assertEquals(others, [image]);
  const value = await valueOf(client, "return (await tools.show()).content.map(({ type }) => type)");
  assertEquals(value, ["text", "image", "text"]);
  // The program can neither read the data nor invent a handle.
  assertEquals(await valueOf(client, "return JSON.stringify(await tools.draw()).includes('AQID')"), false);
  assertEquals((await call("return { type: 'image', media: 1 }")).map(({ type }) => type), ["text"]);
});

/** Programs that fail, each with parts of the error. */
const ERRORS: readonly (readonly [code: string, ...parts: string[]])[] = [
  ["\n\nthrow new TypeError('bad value')", "line 3", "bad value"],
  ["throw new Error('plain')", "plain"],
  ["throw null", "null"],
  ["throw 'text'", "text"],
  ["throw { get message() { throw 1 } }", "threw"],
  ["throw Object.assign(new Error('x'), { get name() { throw 1 } })"],
  ["throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })"],
  ["return 1n", "BigInt"],
  ["const a = {}; a.a = a; return a"],
  ["return { toJSON() { throw new Error('odd') } }", "odd"],
  ["return { then() { throw new Error('odder') } }", "odder"],
  ["return Promise.reject(new RangeError('no'))", "no"],
  ["const a = 1;\nconst b: number = 2;", "line 2", "types"],
  ["interface A { b: string }", "line 1", "types"],
  ["function f(a: string) { return a }", "types"],
  ["return x as string", "types"],
  ["import fs from 'node:fs'", "line 1", "import"],
  ["\nexport default 1", "line 2", "import"],
  ["return await import('node:fs')", "import"],
  ["return require('fs')", "require"],
  ["foo(", "SyntaxError"],
  ["return await tools.fail()", "out of stock"],
  ["return await tools.unknown_tool()", "unknown_tool", "search_api"],
  ["return await tools.list_items(5)", "list_items", "object"],
  ["return await tools.list_items({ count: 1n })", "BigInt"],
  ["return await new Promise(() => {})", "never"],
  ["return 'x'.repeat(100_000)", "100002"],
  ["return fetch('https://example.com')", "fetch"],
  ["setTimeout(() => {}, 1)", "setTimeout"],
  ["await tools.run_code({ code: 'return 1' })", "run_code"],
  ["await tools.search_api({ query: 'x' })", "search_api"],
  ["await tools.call_tool({ name: 'list_items' })", "call_tool"],
];

behaviour("programs fail with words and the line", async (connect) => {
  const { client } = await connect({ handlers });
  for (const [code, ...parts] of ERRORS) {
    const [text] = await run(client, code);
    assert(text.startsWith("!"), `${code} succeeded: ${text}`);
    for (const part of parts) assert(text.includes(part), `${code}: ${text}`);
    assert(!/wasm|\/src\/|prelude/.test(text), `${code} shows the inside: ${text}`);
  }
  const [first, logged] = await run(client, "console.log('before'); throw new Error('after')");
  assertEquals([first, logged], [sentence("!", "line 1", "after"), "!Logged:\nbefore"]);
});

behaviour("an unexpected error of a tool reaches the program without its message", async (connect) => {
  const { client, takeFaults } = await connect({ handlers, production: true } as never).catch(() =>
    connect({ handlers })
  );
  const [text] = await run(client, "try { await tools.break() } catch (error) { return [error.message, error.stack] }");
  assertEquals(takeFaults().map(({ subject }) => subject), ["break"]);
  assert(text.includes("Internal error"), text);
});

behaviour("run_code calls only tools that the author has declared as read-only", async (connect) => {
  const { client } = await connect({ handlers });
  assertEquals(await valueOf(client, "return (await tools.list_items({ count: 1 })).items", "run_code"), ["item 0"]);
  const [refused] = await run(client, "await tools.remove_item()", "run_code");
  assertEquals(refused, sentence("!", "remove_item", "run_code", "run_code_with_effects"));
  assertEquals(await run(client, "return await tools.remove_item()"), ["removed"]);
});

behaviour("time and random numbers are those of the call", async (connect) => {
  const { client } = await connect({ handlers });
  const code = "const a = [Date.now(), Math.random()]; await tools.get_text(); for (let i = 0; i < 1e5; i++); " +
    "return [...a, Date.now(), Math.random(), new Date().getTimezoneOffset()]";
  const before = Date.now();
  const [first, second] = [await valueOf(client, code), await valueOf(client, code)] as number[][];
  assert(first[0] === first[2] && first[0] >= before && first[0] <= Date.now());
  assert(first[1] !== first[3] && first[1] !== second[1]);
  assertEquals(first[4], 0);
});

behaviour("programs run side by side", async (connect) => {
  const { client } = await connect({ handlers });
  const codes = [1, 2, 3, 4].map((count) => `return (await tools.list_items({ count: ${count} })).items.length`);
  assertEquals(await Promise.all(codes.map((code) => valueOf(client, code))), [1, 2, 3, 4]);
});

behaviour("?search=off and always work as with toolSearch", async (connect) => {
  const { client, server } = await connect({ handlers: [list, remove, codeMode({ always: ["remove_item"] })] });
  const names = (await client.listTools()).map(({ name }) => name);
  assertEquals(names, ["search_api", "run_code_with_effects", "run_code", "remove_item"]);
  assertEquals(await run(client, "return 1"), ["1"]);
  assert(server.handlers.list().some(({ name }) => name === "list_items"));
});

behaviour("the three tools have a title and all hints", async (connect) => {
  const { client } = await connect({ handlers });
  for (const { name, annotations = {} } of await client.listTools()) {
    const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title"];
    assertEquals(Object.keys(annotations).sort(), hints.sort(), name);
    assertEquals([name, annotations.readOnlyHint], [name, name !== "run_code_with_effects"]);
  }
});

behaviour("without a read-only tool, there is no run_code", async (connect) => {
  const { client } = await connect({ handlers: [remove, codeMode()] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["search_api", "run_code_with_effects"]);
});

behaviour("search_api returns declarations", async (connect) => {
  const { client } = await connect({ handlers });
  const { content: [block] } = await client.callTool("search_api", { query: "list the items" });
  const text = block.type === "text" ? block.text : "";
  assert(text.includes("/** Lists the items of a shop. */"), text);
  const declaration = "list_items(input: { /** How many items */ count: number }): Promise<{ items: string[] }>;";
  assert(text.includes(`  ${declaration} // read-only`), text);
  const { content: [none] } = await client.callTool("search_api", { query: "xylophone" });
  assertEquals(none, { type: "text", text: sentence("xylophone") });
});

behaviour("a cancelled call ends its program and the calls of the program", async (connect) => {
  const started = Promise.withResolvers<void>();
  let isCancelled = false;
  const slow = tool({
    name: "slow",
    run: (_input, { signal }) => {
      started.resolve();
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          isCancelled = true;
          reject(signal.reason);
        })
      );
    },
  });
  const { client } = await connect({ handlers: [slow, codeMode()] });
  const controller = new AbortController();
  const running = client.callTool("run_code_with_effects", { code: "await tools.slow()" }, {
    signal: controller.signal,
  } as never);
  running.catch(() => {});
  await started.promise;
  controller.abort();
  await until(() => isCancelled, "the tool is cancelled");
  assertEquals(await run(client, "return 1"), ["1"]);
});

behaviour("a sandbox of the author runs the programs", async (connect) => {
  const seen: unknown[] = [];
  const sandbox = {
    async run(code: string, call: (name: string, input: unknown) => Promise<unknown>, limits: object) {
      seen.push(code, Object.keys(limits).sort());
      const value = await call("list_items", { count: 2 });
      const error = await call("list_items", 5).then(() => "none", ({ message }) => message);
      return { value: [value, typeof error], logs: ["own"] };
    },
  };
  const { client } = await connect({ handlers: [list, codeMode({ sandbox })] });
  const texts = await run(client, "anything");
  assertEquals(texts, ['[{"items":["item 0","item 1"]},"string"]', "Logged:\nown"]);
  assertEquals(seen, ["anything", ["calls", "cpuMs", "memoryBytes", "now", "outputCharacters", "seed"].sort()]);
  const wrong = createServer({
    name: "wrong",
    version: "1.0.0",
    handlers: [list, codeMode({ sandbox: { run: () => Promise.resolve(undefined as never) } })],
    observer: { fault: () => {} },
  });
  await wrong.close();
});

behaviour("a value of a sandbox that is not JSON is a fault", async (connect) => {
  for (const value of [() => 1, Symbol(), 1n]) {
    const sandbox = { run: () => Promise.resolve({ value, logs: [] }) };
    const { client, takeFaults } = await connect({ handlers: [list, codeMode({ sandbox })] });
    const [text] = await run(client, "return 1");
    assert(text.startsWith("!Internal error"), text);
    assertEquals(takeFaults().length, 1);
  }
});

Deno.test("codeMode refuses wrong options, and a second search", () => {
  const wrong = (options: object) => assertThrows(() => codeMode(options as never), TypeError);
  for (
    const options of [
      { limit: 5 },
      { limits: { cpuMs: 0 } },
      { limits: { calls: 1.5 } },
      { limits: { time: 5 } },
      { sandbox: {} },
      { always: "a" },
    ]
  ) wrong(options);
  assertThrows(() => createServer({ name: "two", version: "1.0.0", handlers: [codeMode(), codeMode()] }), TypeError);
});
