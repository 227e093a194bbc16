// Values that JSON cannot represent, returned from tools, resources and prompts. They are encoded, read to their end,
// or refused.
import { media, tool, ToolError } from "../../mod.ts";
import { random } from "../support/random.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../support/std.ts";
import { turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { testClient, testServer } from "../support/test_server.ts";
import { send } from "./returned.ts";
import { patch } from "../support/patch.ts";
import { z } from "zod";
import type { Schema } from "../../src/core/schema/schema.ts";
import { toRequest } from "../support/requests.ts";

const bytes = new Uint8Array([137, 80, 78, 71, 0, 255]);
const base64 = bytes.toBase64();
const png = { type: "image", data: base64, mimeType: "image/png" };

const text = (text: string) => ({ type: "text", text });
async function* yields(...items: readonly unknown[]) {
  for (const item of items) yield await item;
}
function stream(...chunks: readonly unknown[]): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}
class Cursor {
  rows = [1, 2];
  async *[Symbol.asyncIterator]() {
    for (const row of this.rows) yield await Promise.resolve({ row });
  }
}

const JSON_VALUES: Record<string, readonly [make: () => unknown, json: unknown]> = {
  "a map with texts as keys": [() => new Map([["a", 1], ["b", 2]]), { a: 1, b: 2 }],
  "a map with other keys": [() => new Map<unknown, unknown>([[1, "a"], ["1", "b"]]), [[1, "a"], ["1", "b"]]],
  "a map with a key that objects inherit": [
    () => new Map([["__proto__", { a: 1 }]]),
    JSON.parse('{"__proto__":{"a":1}}'),
  ],
  "an empty map": [() => new Map(), {}],
  "a set": [() => new Set(["a", new Set([1n])]), ["a", [1]]],
  "a safe bigint": [() => 5n, 5],
  "a bigint beyond the safe integers": [() => [2n ** 53n, -(2n ** 70n)], [
    "9007199254740992",
    "-1180591620717411303424",
  ]],
  "an async generator": [() => yields(1, { a: new Date(0) }), [1, { a: "1970-01-01T00:00:00.000Z" }]],
  "an async iterable with fields": [() => new Cursor(), [{ row: 1 }, { row: 2 }]],
  "a generator": [function* () {
    yield 1;
    yield new Map([["a", undefined]]);
  }, [1, {}]],
  "an iterator": [() => [1, undefined].values(), [1, null]],
  "a stream of objects": [() => stream({ a: 1 }, [2]), [{ a: 1 }, [2]]],
  "a response of JSON": [() => Response.json({ a: [1] }), { a: [1] }],
  "a response with a +json type": [
    () => new Response('{"a":1}', { headers: { "content-type": "application/problem+json; charset=utf-8" } }),
    { a: 1 },
  ],
  "a mixture": [
    () => ({ rows: new Map([["x", new Set([{ at: new Date(0), n: 1n }])]]), text: stream("a", "b"), more: yields(1) }),
    { rows: { x: [{ at: "1970-01-01T00:00:00.000Z", n: 1 }] }, text: "ab", more: [1] },
  ],
  "a toJSON that returns a map": [() => ({ toJSON: () => new Map([["a", new URL("http://a/")]]) }), { a: "http://a/" }],
  "a toJSON that returns itself": [() => ({
    a: new Set([1]),
    toJSON() {
      return this;
    },
  }), undefined],
};

for (const [name, [make, json]] of Object.entries(JSON_VALUES)) {
  Deno.test(`encoded values: ${name} is sent as JSON of its content`, async () => {
    const { tool, resource, prompt, told } = await send(make);
    if (json === undefined) return assertEquals(told[0], sentence("Function", "toJSON"));
    assertEquals(told, []);
    const sent = JSON.stringify(json);
    const structured = typeof json === "object" ? { structuredContent: json } : {};
    assertEquals(tool, { content: [text(sent)], ...structured });
    assertEquals(resource, [{ uri: "test://x", mimeType: "application/json", text: sent }]);
    assertEquals(prompt, name === "a mixture" || sent ? [{ role: "user", content: text(sent) }] : undefined);
  });
}

const TEXTS: Record<string, () => unknown> = {
  "a stream of texts": () => stream("hé", "llo"),
  "a response": () => new Response("héllo"),
  "a response in another charset": () =>
    new Response(new Uint8Array([104, 233, 108, 108, 111]), {
      headers: { "content-type": "text/plain; charset=latin1" },
    }),
  "a response with invalid JSON": () => new Response("héllo", { headers: { "content-type": "application/json" } }),
  "a blob of text": () => new Blob(["héllo"], { type: "text/plain" }),
};

for (const [name, make] of Object.entries(TEXTS)) {
  Deno.test(`encoded values: ${name} is sent as text`, async () => {
    const { tool, resource, prompt, told } = await send(make);
    assertEquals(told, []);
    assertEquals(tool, { content: [text("héllo")] });
    assertEquals(resource, [{ uri: "test://x", mimeType: "text/plain", text: "héllo" }]);
    assertEquals(prompt, [{ role: "user", content: text("héllo") }]);
  });
}

Deno.test("encoded values: bytes in streams and responses become media of their content type", async () => {
  const image = await send(() => new Response(bytes, { headers: { "content-type": "image/png" } }));
  assertEquals(image.tool, { content: [png] });
  assertEquals(image.resource, [{ uri: "test://x", mimeType: "image/png", blob: base64 }]);
  assertEquals(image.prompt, [{ role: "user", content: png }]);
  const cut = await send(() => stream(bytes.subarray(0, 2), bytes.subarray(2).slice().buffer));
  const mimeType = "application/octet-stream";
  assertEquals(cut.tool.content, [{ type: "resource", resource: { uri: "result:bytes", mimeType, blob: base64 } }]);
  assertEquals(cut.resource, [{ uri: "test://x", mimeType, blob: base64 }]);
  const lie = await send(() => new Response(bytes, { headers: { "content-type": "text/plain" } }));
  assertEquals(lie.resource, [{ uri: "test://x", mimeType: "text/plain", blob: base64 }], "bytes became text");
  const file = await send(() => new File(["a,b"], "a b.csv", { type: "text/csv" }));
  const csv = { uri: "result:a%20b.csv", mimeType: "text/csv", text: "a,b" };
  assertEquals(file.tool.content, [{ type: "resource", resource: csv }]);
  assertEquals(file.resource, [{ ...csv, uri: "test://x" }]);
});

Deno.test("encoded values: media between texts and blocks become content blocks, in the same order", async () => {
  const values: readonly (() => unknown)[] = [
    () => ["before", new Blob([bytes], { type: "image/png" }), media(bytes, "image/png")],
    () => new Set(["before", new Blob([bytes], { type: "image/png" }), media(bytes, "image/png")]),
    () => yields("before", new Blob([bytes], { type: "image/png" }), media(bytes, "image/png")),
  ];
  for (const make of values) {
    const { tool, prompt } = await send(make);
    assertEquals(tool, { content: [text("before"), png, png] });
    assertEquals(prompt, [text("before"), png, png].map((content) => ({ role: "user", content })));
  }
});

Deno.test("encoded values: media within an object become content blocks after the object's JSON, which refers to the blocks", async () => {
  const { tool, resource, prompt } = await send(() => ({
    title: "x",
    chart: new Blob([bytes], { type: "image/png" }),
    rows: [{ data: bytes }],
  }));
  const json = { title: "x", chart: "result:chart", rows: [{ data: `result:${encodeURIComponent("rows[0].data")}` }] };
  const data = { uri: json.rows[0].data, mimeType: "application/octet-stream", blob: base64 };
  const content = [text(JSON.stringify(json)), png, { type: "resource", resource: data }];
  assertEquals(tool, { content });
  assertEquals(prompt, content.map((content) => ({ role: "user", content })));
  assertEquals(resource, [
    { uri: "test://x", mimeType: "application/json", text: JSON.stringify(json) },
    { uri: "test://x#chart", mimeType: "image/png", blob: base64 },
    { ...data, uri: "test://x#rows%5B0%5D.data" },
  ]);
});

Deno.test("encoded values: a response whose status is not ok is an error", async () => {
  const make = () => new Response("no such page", { status: 404, statusText: "Not Found" });
  const { tool, resource, prompt, told } = await send(make);
  assertEquals(tool, { content: [text("HTTP 404 Not Found\nno such page")], isError: true });
  assertEquals([resource, prompt], [undefined, undefined]);
  assertEquals(told[0], sentence('resource "test://x"', "response.ok"));
  assertEquals(told[1], sentence('prompt "x"', "response.ok"));
  const json = await send(() => Response.json({ why: "x" }, { status: 500 }));
  assertEquals(json.tool, { content: [text('HTTP 500\n{"why":"x"}')], isError: true });
  const image = await send(() => new Response(bytes, { status: 503, headers: { "content-type": "image/png" } }));
  assertEquals(image.tool, { content: [text("HTTP 503"), png], isError: true });
  assertEquals((await send(() => Response.error())).tool, { content: [text("HTTP 0")], isError: true });
  const inner = await send(() => ({ page: new Response("x", { status: 404 }) }));
  assertEquals(inner.told[0], sentence('tool "x"', 404, "page", "response.ok"));
  assertEquals((await send(() => new Response(null, { status: 204 }))).tool, { content: [] });
});

Deno.test("encoded values: a body or a stream that was already read is refused, and the error names its type", async () => {
  const read = async () => {
    const response = new Response("x");
    await response.text();
    return response;
  };
  assertEquals((await send(read)).told[0], sentence("Response"));
  const locked = () => {
    const body = stream("x");
    body.getReader();
    return { a: [body] };
  };
  assertStringIncludes((await send(locked)).told[0], sentence("ReadableStream", "a[0]"));
  assertEquals((await send(() => stream("x", 1))).told[0], sentence('tool "x"'));
});

Deno.test("encoded values: the messages of a prompt can be an async iterable", async () => {
  const message = { role: "assistant", content: text("x") };
  assertEquals((await send(() => yields(message, message))).prompt, [message, message]);
  const contents = { uri: "test://y", text: "x" };
  assertEquals((await send(() => yields(contents))).resource, [{ ...contents, mimeType: "text/plain" }]);
});

Deno.test("encoded values: structured content is encoded, and a raw output schema validates the encoded value", async () => {
  const told: string[] = [];
  const output = { type: "object", properties: { a: { type: "number" }, at: { type: "string" } }, required: ["a"] };
  await using client = await testClient({
    handlers: [
      tool({ name: "full", run: () => ({ content: [], structuredContent: new Map([["a", 1n]]) }) }),
      tool({ name: "map", output, run: () => new Map<string, unknown>([["a", 1], ["at", new Date(0)]]) }),
      tool({ name: "date", output, run: () => ({ a: 1, at: new Date(0) }) }),
      tool({ name: "wrong", output, run: () => new Map([["a", "x"]]) }),
      tool({ name: "stream", output, run: () => Response.json({ a: 2 }) }),
      tool({ name: "failed", output, run: () => new Response("x", { status: 500 }) }),
    ],
    observer: { fault: ({ error }) => told.push(String(error)) },
  }, { era: "modern", transport: "memory" });
  const call = (name: string) => client.request("tools/call", { name });
  assertEquals((await call("full")).structuredContent, { a: 1 });
  const at = "1970-01-01T00:00:00.000Z";
  assertEquals(JSON.parse(JSON.stringify((await call("map")).structuredContent)), { a: 1, at });
  assertEquals(JSON.parse(JSON.stringify((await call("date")).structuredContent)), { a: 1, at });
  assertEquals((await call("stream")).structuredContent, { a: 2 });
  assertEquals((await call("failed")).isError, true);
  assertEquals(await call("wrong").catch(({ code }) => code), -32603);
  assertStringIncludes(told[0], sentence('tool "wrong"', "a:"));
});

/** Creates a source of the given kind that never ends. `cancelled` tells whether the source was cancelled. */
function endless(kind: string): { value: () => unknown; cancelled: () => boolean } {
  let cancelled = false;
  const cancel = () => void (cancelled = true);
  const never = new Promise<never>(() => {});
  const items: Record<string, () => unknown> = {
    "a silent stream": () => new ReadableStream({ cancel }),
    "a silent response": () => new Response(new ReadableStream({ cancel })),
    "a stream of empty pieces": () => new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array()), cancel }),
    "a stream of texts": () => new ReadableStream({ pull: (to) => to.enqueue("x".repeat(1000)), cancel }),
    "a stream of bytes": () => new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(1000)), cancel }),
    "an iterable that never waits": () => ({
      [Symbol.asyncIterator]: () => ({ next: () => ({ value: 1 }), return: cancel }),
    }),
    "an iterable that never settles": () => ({
      [Symbol.asyncIterator]: () => ({ next: () => never, return: () => (cancel(), never) }),
    }),
    "a generator": function* () {
      try {
        while (true) yield "";
      } finally {
        cancel();
      }
    },
  };
  return { value: items[kind], cancelled: () => cancelled };
}
const ENDLESS = ["a silent stream", "a silent response", "an iterable that never settles"];
const FLOODS = [
  "a stream of empty pieces",
  "a stream of texts",
  "a stream of bytes",
  "an iterable that never waits",
  "a generator",
];

for (const kind of [...ENDLESS, ...FLOODS]) {
  for (const wrap of [(value: unknown) => value, (value: unknown) => ({ a: [value, stream("x")] })]) {
    const place = wrap(1) === 1 ? "" : " at a[0]";
    Deno.test(`encoded values: reading ${kind}${place} stops at a limit, and cancels the source`, async () => {
      const sources: ReturnType<typeof endless>[] = [];
      const make = () => (sources.push(endless(kind)), wrap(sources[sources.length - 1].value()));
      const { told } = await send(make, {
        limits: { resultBytes: 20_000, readMs: ENDLESS.includes(kind) ? 50 : 30_000 },
      });
      const names = ENDLESS.includes(kind)
        ? [50, "calls.readMs"]
        : /^(an iterable|a generator)/.test(kind)
        ? [1250]
        : [20000, "calls.resultBytes"];
      const places = ['tool "x"', 'resource "test://x"', 'prompt "x"'];
      assertEquals(told, places.map((place) => sentence(place, ...names)));
      for (const source of sources) assert(source.cancelled());
    });
  }
}

// When parsed, these texts take 25 to 70 times as much memory.
for (const value of [[], {}, 1]) {
  const text = JSON.stringify(Array(2000).fill(value));
  for (const wrap of [(value: unknown) => value, (value: unknown) => ({ a: [value] })]) {
    const place = wrap(1) === 1 ? "" : " at a[0]";
    Deno.test(`encoded values: a response of many ${JSON.stringify(value)}${place} is refused before it is parsed`, async () => {
      const give = () => wrap(new Response(text, { headers: { "content-type": "application/json" } }));
      const parse = JSON.parse;
      let longest = 0;
      using _patched = patch(JSON, {
        parse: (text, ...rest) => {
          longest = Math.max(longest, text.length);
          return parse(text, ...rest);
        },
      });
      const { told } = await send(give, { limits: { resultBytes: 20_000 } });
      const places = ['tool "x"', 'resource "test://x"', 'prompt "x"'];
      assertEquals(told, places.map((each) => sentence(each, place, 1250, "calls.resultBytes", 20000)));
      assert(longest < text.length, "the text was parsed");
    });
  }
}

for (const kind of [...ENDLESS, "a stream of empty pieces", "an iterable that never waits"]) {
  Deno.test(`encoded values: cancelling the call stops reading ${kind}, and cancels the source`, async () => {
    const source = endless(kind);
    const later = endless("a silent stream");
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    await using client = await testClient({
      limits: { calls: { resultBytes: 1e12 } },
      handlers: [tool({
        name: "x",
        run() {
          turn(20).then(resolve);
          return [source.value(), later.value()];
        },
      })],
    }, { era: "modern", transport: "memory" });
    const stop = new AbortController();
    const failed = client.request("tools/call", { name: "x" }, { signal: stop.signal }).catch(() => "failed");
    await begun;
    assert(!source.cancelled());
    stop.abort();
    assertEquals(await failed, "failed");
    await until(() => source.cancelled(), "the source was cancelled");
    await until(() => later.cancelled(), "the next source was cancelled too");
  });
}

Deno.test("encoded values: an error in a source is treated like an error in the handler", async () => {
  const broken = () => new ReadableStream({ start: (to) => to.error(new Error("cable")) });
  assertStringIncludes((await send(() => [1, broken()])).told[0], "cable");
  async function* refuses() {
    yield await 1;
    throw new ToolError("try tomorrow");
  }
  assertEquals((await send(refuses)).tool, { content: [text("try tomorrow")], isError: true });
});

Deno.test("encoded values: a value that is nested too deeply is refused, and the error names its path", async () => {
  let value: unknown = new Map([["a", 1]]);
  for (let i = 0; i < 200; i++) value = [value];
  assertEquals((await send(() => value)).told[0], sentence(128, "[0][0]"));
  for (let i = 0; i < 100_000; i++) value = [value];
  assert((await send(() => value)).told.length);
});

/**
 * Creates a random value, its expected encoding, and whether the value can be sent. The expected encoding of media
 * begins with "result:".
 */
function makeValue(pick: <T>(items: readonly T[]) => T, below: (end: number) => number, depth: number): Made {
  const leaves: readonly (() => Made)[] = [
    () => ({ value: 1, means: 1 }),
    () => ({ value: "{}", means: "{}" }),
    () => ({ value: 3n, means: 3 }),
    () => ({ value: 2n ** 60n, means: String(2n ** 60n) }),
    () => ({ value: new Date(5), means: new Date(5).toJSON() }),
    () => ({ value: new URL("http://a/b"), means: "http://a/b" }),
    () => ({ value: new Uint8Array(below(3)), means: "result:" }),
    () => ({ value: new Float32Array(1), means: "result:" }),
    () => ({ value: new Blob([bytes], { type: "audio/wav" }), means: "result:" }),
    () => ({ value: new File([bytes], "f", { type: "font/ttf" }), means: "result:" }),
    () => ({ value: stream(bytes, bytes), means: "result:" }),
    () => ({ value: stream("a", "b"), means: "ab" }),
    () => ({ value: new Response("text"), means: "text" }),
    () => ({ value: Response.json({ a: [1] }), means: { a: [1] } }),
    () => ({ value: null, means: null }),
    () => ({ value: {}, means: {} }),
    () => ({ value: new Map(), means: {} }),
    () => ({ value: [], means: [] }),
    ...below(12) ? [] : [
      () => ({ value: /x/, fails: true, means: 0 }),
      () => ({ value: new WeakSet(), fails: true, means: 0 }),
      () => ({ value: Promise.resolve({}), fails: true, means: 0 }),
      () => ({ value: new Request("http://a/"), fails: true, means: 0 }),
      () => ({ value: new Response("", { status: 500 }), fails: true, means: 0 }),
    ],
  ];
  if (!depth) return pick(leaves)();
  const parts = Array.from({ length: below(4) }, () => makeValue(pick, below, below(depth)));
  const list = { means: parts.map(({ means }) => means), fails: parts.some(({ fails }) => fails) };
  const values = parts.map(({ value }) => value);
  const named = parts.map(({ value }, i): [string, unknown] => [`k${i}`, value]);
  const meant = Object.fromEntries(parts.map(({ means }, i) => [`k${i}`, means]));
  return pick<() => Made>([
    () => ({ ...list, value: values }),
    () => ({ ...list, value: new Set(values), means: list.means.filter((_, i) => values.indexOf(values[i]) === i) }),
    () => ({ ...list, value: yields(...values.map((value) => value instanceof Promise ? /x/ : value)) }),
    () => ({ ...list, value: values.values() }),
    () => ({ ...list, value: Object.fromEntries(named), means: meant }),
    () => ({ ...list, value: new Map(named), means: meant }),
    () => ({ ...list, value: new Map(named.map(([, part], i) => [i, part])), means: toPairs(list.means) }),
    () => ({ ...list, value: { toJSON: () => values } }),
  ])();
}
interface Made {
  readonly value: unknown;
  readonly means: unknown;
  readonly fails?: boolean;
}
const toPairs = (list: readonly unknown[]) => list.length ? list.map((item, i) => [i, item]) : {};

Deno.test("encoded values: any value is sent in its expected encoding, or is refused with its path and a remedy", async () => {
  const { below, pick } = random(11);
  let refused = 0;
  let sent = 0;
  const told: string[] = [];
  let made: Made = { value: 0, means: 0 };
  // The value is inside an object, so that it has a path.
  await using client = await testClient({
    handlers: [tool({ name: "x", run: () => ({ of: made.value }) })],
    observer: { fault: ({ error }) => told.push(String(error)) },
  }, { era: "modern", transport: "memory" });
  for (let i = 0; i < 1500; i++) {
    made = makeValue((items) => pick(items), below, below(5));
    const { means, fails } = made;
    told.length = 0;
    const result = await client.request("tools/call", { name: "x" }).catch(() => undefined);
    if (fails) {
      refused++;
      assertEquals(result, undefined);
      assertMatch(
        told[0],
        /tool "x".* of\b/,
        `run ${i}`,
      );
      continue;
    }
    sent++;
    assert(result, `run ${i}: ${told}`);
    const json = JSON.parse(JSON.stringify(result));
    const found = JSON.stringify(
      (json.structuredContent ?? JSON.parse(json.content[0].text)).of,
      (_, part) => typeof part === "string" && part.startsWith("result:") ? "result:" : part,
    );
    assertEquals(found, JSON.stringify(means), `run ${i}`);
    const media = found.split('"result:"').length - 1;
    assertEquals(json.content.length, 1 + media, `run ${i}`);
  }
  assert(sent > 500 && refused > 50, `${sent} values were sent, ${refused} were refused`);
});

// Values that the server does not send, but replaces with an error. Their open streams are closed, and the replacement
// is sent completely.

/** Returns a value from a tool. Returns the response, and the names of the streams that were cancelled. */
async function sendStreams(make: (open: (name: string) => ReadableStream) => unknown, output?: Schema) {
  const cancelled: string[] = [];
  const open = (name: string) =>
    new ReadableStream({ pull: () => new Promise(() => {}), cancel: () => void cancelled.push(name) });
  const x = tool({ name: "x", output, run: () => make(open) as Record<string, unknown> });
  const server = testServer({ handlers: [x], observer: { fault() {} } });
  const text = await (await server.fetch(toRequest("tools/call", { name: "x", arguments: {} }))).text();
  await server.close();
  return { cancelled, text };
}

Deno.test("a stream that the output schema refuses is cancelled", async () => {
  const output = z.object({ a: z.string() });
  assertEquals((await sendStreams((open) => open("whole"), output)).cancelled, ["whole"]);
  assertEquals((await sendStreams((open) => ({ a: open("part") }), output)).cancelled, ["part"]);
});

Deno.test("streams deep in a value that cannot be sent are cancelled", async () => {
  const { cancelled } = await sendStreams((
    open,
  ) => [() => {}, { a: { b: [new Map([["c", { d: { e: [open("deep")] } }]])] } }]);
  assertEquals(cancelled, ["deep"]);
});

Deno.test("the search for streams ends for a circular value that cannot be sent", async () => {
  const { cancelled } = await sendStreams((open) => {
    const value: unknown[] = [() => {}, open("one")];
    value.push(value, Array.from({ length: 50_000 }, () => ({})));
    return value;
  });
  assertEquals(cancelled, ["one"]);
});

Deno.test("the structured content of an error is sent completely, also with an output schema", async () => {
  const full = () => ({ content: [], isError: true, structuredContent: new Map([["a", 1]]) });
  for (const output of [undefined, z.object({ b: z.string() })]) {
    const { text } = await sendStreams(full, output);
    assertEquals(text.includes('"structuredContent":{"a":1}'), true, text);
  }
});
