// JSON text in arguments, and in the HTTP responses that handlers return. Parsing the text must not cost more than
// parsing the message that contains the text.
import { createServer, tool } from "../../mod.ts";
import { adaptInput } from "../../src/core/schema/adapt_input.ts";
import { BOUNDS } from "../support/limits.ts";
import { encode } from "../../src/server/handlers/encoders.ts";
import { assertEquals, assertLess } from "../support/std.ts";
import { toRequest } from "../support/requests.ts";
import { startCost } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";

const object = { type: "object" } as const;
const escaped = '{"\\u0039\\u0039\\u0039":1},';

function adapt(given: Record<string, unknown>, property: Record<string, unknown>): unknown {
  const adapted = adaptInput(given, { type: "object", properties: { x: property } }, { jsonText: BOUNDS.request });
  return adapted.problem === undefined ? adapted.value : adapted;
}

function time(run: () => unknown): number {
  const cost = startCost();
  run();
  return cost();
}

async function encodeJson(text: string) {
  return await encode(new Response(text, { headers: { "content-type": "application/json" } }), {
    signal: new AbortController().signal,
    maxBytes: BOUNDS.calls.resultBytes,
    readMs: 60_000,
    startTimer: () => () => {},
  });
}

Deno.test("an argument that consists of escaped quotes does not block the server", () => {
  for (const text of ['"' + '\\"'.repeat(100_000), '"'.repeat(100_000), "[".repeat(1_000_000), "\\".repeat(100_001)]) {
    assertLess(time(() => assertEquals(adapt({ x: text }, object), { x: text })), 500, text.slice(0, 5));
  }
});

Deno.test("a long JSON text is parsed only once, however many alternatives its schema has", () => {
  const anyOf = Array.from({ length: 200 }, (_, i) => ({
    type: "object",
    properties: { list: { type: "array" }, kind: { const: i } },
  }));
  const list = JSON.stringify(["x".repeat(500_000)]);
  const x = { list, kind: 199 };
  assertLess(time(() => assertEquals(adapt({ x }, { anyOf }), { x: { ...x, list: JSON.parse(list) } })), 500);
});

Deno.test("two properties with the same text do not share the parsed value", () => {
  const text = JSON.stringify(Array(1000).fill(1));
  const array = { type: "array", items: { type: "array" } };
  const { x }: { readonly x?: unknown } = Object(adapt({ x: [text, text] }, array));
  const [a, b]: readonly unknown[] = Array.isArray(x) ? x : [];
  assertEquals(a, JSON.parse(text));
  assertEquals(a === b, false);
});

Deno.test("the number of values in all JSON texts of a call is limited like the number of values in a message", () => {
  const text = `[${"0,".repeat(90_000)}0]`;
  const { x }: { readonly x?: unknown } = Object(adapt({ x: [text, text, text] }, { items: { type: "array" } }));
  assertEquals(Array.isArray(x) && x.map((item) => typeof item), ["object", "object", "string"]);
});

Deno.test("the number of integer keys in JSON text is limited, because engines can allocate a lot of memory for them", () => {
  for (const part of ['{"999":1},', escaped]) {
    const text = `[${part.repeat(90_000)}0]`;
    assertEquals(adapt({ x: text }, { type: "array" }), { x: text });
    const few = `[${part.repeat(50)}0]`;
    assertEquals(adapt({ x: few }, { type: "array" }), { x: JSON.parse(few) });
  }
});

Deno.test("a response that consists of brackets does not block the server", async () => {
  const cost = startCost();
  const { lost } = await encodeJson("[".repeat(4_000_000));
  assertLess(cost(), 250);
  assertEquals(lost, sentence("128"));
});

Deno.test("a response with too many integer keys is not parsed", async () => {
  for (const part of ['{"999":1},', escaped]) {
    const text = `[${part.repeat(90_000)}0]`;
    const { value } = await encodeJson(text);
    assertEquals(value === text, true);
  }
  const list = Array.from({ length: 20_000 }, (_, i) => String(i % 1000));
  assertEquals((await encodeJson(JSON.stringify(list))).value, list);
});

Deno.test("a long key is counted once, however many media blocks its value contains", async () => {
  const many = tool({
    name: "many",
    run: () => ({ ["k".repeat(500_000)]: Array.from({ length: 5000 }, () => new Uint8Array(1)) }),
  });
  const server = createServer({ name: "t", version: "1.0.0", handlers: [many] });
  const cost = startCost();
  const text = await (await server.fetch(toRequest("tools/call", { name: "many", arguments: {} }))).text();
  await server.close();
  assertLess(cost(), 2000);
  assertEquals(text.includes('"blob"'), true);
});
