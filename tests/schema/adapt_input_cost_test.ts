// Adapting arguments takes steps in proportion to the required changes, and never copies a parsed text.
import { BOUNDS } from "../support/limits.ts";
import { adaptInput as readAdapted } from "../../src/core/schema/adapt_input.ts";
import type { JsonSchema } from "../../src/core/schema/json_schema.ts";
import { assert, assertEquals } from "../support/std.ts";
import { sentence } from "../support/messages.ts";
import { patch } from "../support/patch.ts";

const adaptInput = (...given: Parameters<typeof readAdapted>): unknown => {
  const adapted = readAdapted(...given);
  assert(adapted.problem === undefined, adapted.problem);
  return adapted.value;
};
const KEYS = 190_000;
const list = <T>(length: number, make: (i: number) => T) => Array.from({ length }, (_, i) => make(i));
const large = (value: unknown) => Object.fromEntries(list(KEYS, (i) => [`key${i}`, value]));
const jsonText = BOUNDS.request;

/** Runs a function, and returns the values that `JSON.parse` returned in the meantime. */
function parsedBy(run: () => void): unknown[] {
  const parsed: unknown[] = [];
  const { parse } = JSON;
  using _patched = patch(JSON, {
    parse: (text: string) => {
      const value: unknown = parse(text);
      parsed.push(value);
      return value;
    },
  });
  run();
  return parsed;
}

/** Wraps a schema and its subschemas, so that `count` is called when a keyword is read. */
function counted<T extends object>(schema: T, count: () => void, made = new WeakMap<object, object>()): T {
  return new Proxy(schema, {
    get(target, key, self) {
      count();
      const value = Reflect.get(target, key, self);
      if (typeof value !== "object" || !value) return value;
      if (!made.has(value)) made.set(value, counted(value, count, made));
      return made.get(value);
    },
  });
}

for (
  const [name, x, value, expected] of [
    ["any object", { type: "object" }, 1, undefined],
    ["numbers", { type: "object", additionalProperties: { type: "number" } }, 1, undefined],
    ["numbers as text", { type: "object", additionalProperties: { type: "number" } }, "1", 1],
    ["a known name", { type: "object", properties: { key7: { type: "number" } } }, "1", "1"],
    [
      "one of 20 alternatives",
      { anyOf: list(20, (i) => ({ type: "object", properties: { kind: { const: i } } })) },
      1,
      undefined,
    ],
  ] as const
) {
  Deno.test(`a JSON text of 190,000 keys is parsed once, and not copied: ${name}`, () => {
    let adapted: { readonly x?: Record<string, unknown> } = {};
    const given = { x: JSON.stringify(large(value)) };
    const parsed = parsedBy(() =>
      adapted = Object(adaptInput(given, { type: "object", properties: { x } }, { jsonText }))
    );
    assert(adapted.x === parsed[0], "the result is a copy");
    // The texts inside this text are JSON texts too, which are parsed until the limit on values is reached.
    const texts = { "numbers as text": jsonText.values - KEYS - 1, "a known name": 1 }[String(name)] ?? 0;
    assert(parsed.length <= 1 + texts + 1, `${parsed.length} texts were parsed`);
    assertEquals(adapted.x?.key7, name === "a known name" ? 1 : expected ?? value);
    assertEquals(Object.keys(adapted.x ?? {}).length, KEYS);
  });
}

Deno.test("names that a schema does not define cause no further reads of the schema", () => {
  const measure = (value: object, schema: JsonSchema): number => {
    let reads = 0;
    adaptInput(value, counted(schema, () => reads++), { jsonText, defaults: true });
    return reads;
  };
  const schema = { type: "object", properties: { a: { type: "number", default: 1 }, b: { type: "object" } } };
  assertEquals(measure({ a: "1", ...large(1) }, schema), measure({ a: "1" }, schema));
});

Deno.test("the number of reads of a schema does not grow with the number of alternatives that differ by a constant", () => {
  const measure = (forms: number): number => {
    let reads = 0;
    const anyOf = list(forms, (i) => ({ type: "object", properties: { kind: { const: i }, n: { type: "number" } } }));
    const schema = counted({ type: "array", items: { anyOf } }, () => reads++);
    const adapt = (length: number) => {
      reads = 0;
      const made = adaptInput(list(length, (i) => ({ kind: i % forms, n: "5" })), schema, { jsonText });
      assertEquals(Object(made)[length - 1], { kind: (length - 1) % forms, n: 5 });
      return reads;
    };
    // The difference leaves out the reads for the first item of each alternative.
    return adapt(2000) - adapt(1000);
  };
  const [few, many] = [measure(2), measure(200)];
  assert(many < few * 1.1, `${few} reads for 2 alternatives, ${many} for 200`);
});

Deno.test("the input value is not changed, and names such as __proto__ stay properties", () => {
  const given = JSON.parse('{"__proto__":"[1]","a":"{\\"__proto__\\":\\"[2]\\"}","list":["3"],"b":{"c":"4"}}');
  const before = JSON.stringify(given);
  const proto = JSON.parse('{"__proto__":{"type":"array","items":{}}}');
  const schema = {
    type: "object",
    properties: {
      ...proto,
      a: { type: "object", properties: proto },
      list: { items: { type: "number" } },
      b: { properties: { c: { type: "number" }, d: { default: 5 } } },
    },
  };
  Object.defineProperty(schema.properties, "__proto__", { value: { type: "array" }, enumerable: true });
  const adapted = adaptInput(given, schema, { jsonText, defaults: true });
  assertEquals(
    JSON.stringify(adapted),
    '{"__proto__":[1],"a":{"__proto__":[2]},"list":[3],"b":{"c":4,"d":5}}',
  );
  assertEquals(JSON.stringify(given), before);
});

Deno.test("the number of schema reads is limited, however many alternatives there are", () => {
  let reads = 0;
  const anyOf = list(1000, () => ({ type: "object", properties: { kind: { type: "number" } }, required: ["kind"] }));
  const schema = counted({ type: "array", items: { anyOf } }, () => reads++);
  const given = list(60_000, () => ({ kind: "no number" }));
  assertEquals(adaptInput(given, schema, { jsonText }), given);
  assert(reads < 15_000_000, `${reads} reads`);
});

Deno.test("adapting a short value that several schemas apply to takes few steps", () => {
  const node = { $ref: "#/$defs/node" };
  const part = { properties: { next: node, n: { type: "number", default: 1 } } };
  const ladder = Object.fromEntries(
    list(28, (i) => {
      const next = { $ref: `#/$defs/step${i + 1}` };
      return [i ? `step${i}` : "node", i === 27 ? { type: "number" } : { allOf: [next, next] }];
    }),
  );
  const nested = (levels: number): unknown => levels ? { n: "5", next: nested(levels - 1) } : { n: "5" };
  const expected = (levels: number): unknown => levels ? { n: 5, next: expected(levels - 1) } : { n: 5 };
  const cases: [JsonSchema, unknown, unknown][] = [
    [{ ...node, $defs: { node: { allOf: [part, part] } } }, nested(25), expected(25)],
    [{ ...node, $defs: { node: { allOf: [part, { anyOf: [part, { type: "null" }] }] } } }, nested(25), expected(25)],
    [{ ...node, $defs: ladder }, {}, {}],
  ];
  for (const [schema, value, adapted] of cases) {
    let reads = 0;
    assertEquals(adaptInput(value, counted(schema, () => reads++), { jsonText, defaults: true }), adapted);
    assert(reads < 500_000, `${reads} reads`);
  }
  // The outcome for a text is not cached, so the text exceeds the limit on steps and is refused.
  const given = readAdapted("5", { ...node, $defs: ladder }, { jsonText, defaults: true });
  assertEquals(given.problem, sentence());
});

Deno.test("the steps for testing alternatives are proportional to the number of their properties", () => {
  const strings = Object.fromEntries(list(1000, (i) => [`key${i}`, { type: "string" }]));
  const form = () => ({ properties: { ...strings, z: { type: "string" } } });
  let looks = 0;
  const { hasOwn } = Object;
  using _patched = patch(Object, { hasOwn: (...args) => (looks++, hasOwn(...args)) });
  adaptInput(list(2000, () => ({ z: 1 })), { items: { anyOf: list(100, form) } }, { defaults: true });
  assert(looks < 10_000_000, `${looks} looks`);
});

Deno.test("copying large defaults counts towards the steps", () => {
  const large = Object.fromEntries(list(100, (i) => [`key${i}`, i]));
  const schema = (given: unknown) => ({ items: { properties: { x: { default: given } } } });
  const given = list(9000, () => ({ y: 1 }));
  assertEquals(readAdapted(given, schema(large), { defaults: true }).problem, sentence());
  for (const small of [{ x: 1, y: [], z: "text" }, "a".repeat(300), []]) {
    assertEquals(readAdapted(given, schema(small), { defaults: true }).problem, undefined);
  }
});
