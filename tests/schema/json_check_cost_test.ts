// The cost of validation in steps. Each keyword takes steps in proportion to the size of the message, and a short
// message takes few steps. tests/load measures how long the steps take.
import { LIMITS } from "../../src/server/capacity/limits.ts";
import { compileJsonSchema, countLatestSteps } from "../../src/core/schema/json_check.ts";
import type { JsonSchema } from "../../src/core/schema/json_schema.ts";
import { assert, assertEquals, assertLess } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

// A tenth of the maximum size of a message. The number of steps depends only on the size, not on the machine.
const values = 20_000;
const bytes = LIMITS.request.bodyBytes / 10;

/** A schema, with a function that creates its most expensive value. The size 1 is the largest size within the limits. */
type Worst = readonly [schema: JsonSchema, make: (size: number) => unknown];

const list = <T>(length: number, make: (i: number) => T) =>
  Array.from({ length: Math.floor(length) }, (_, i) => make(i));
const record = <T>(length: number, make: (i: number) => T) =>
  Object.fromEntries(list(length, (i) => [`key${i}`, make(i)]));
const text = (unit: string) => (size: number) => unit.repeat(size * bytes / new TextEncoder().encode(unit).length - 9);
const numbers = (size: number) => list(size * values, (i) => i);
const empty = (size: number) => list(size * values, () => ({}));
const flat = (size: number) => record(size * values, (i) => i);
const nested = (size: number) => {
  let value: unknown = numbers(size);
  for (let i = 0; i < 100; i++) value = { next: value };
  return value;
};
/** Numbers that have the same hash in an engine that hashes numbers without a secret, so that they collide in a set. */
const colliding = (size: number) => {
  const found: number[] = [];
  for (let i = 0; found.length < size * 1600; i++) if ((hash(i) & 0x1fff) === 5) found.push(i);
  return found;
};
function hash(key: number): number {
  let hash = (~key + (key << 15)) >>> 0;
  hash = (hash ^ (hash >>> 12)) >>> 0;
  hash = (hash + (hash << 2)) >>> 0;
  hash = (hash ^ (hash >>> 4)) >>> 0;
  hash = Math.imul(hash, 2057) >>> 0;
  return (hash ^ (hash >>> 16)) >>> 0;
}

const texts = list(1000, (i) => `choice ${i}`);
const objects = list(1000, (i) => ({ choice: i, list: [i] }));
const names = list(1000, (i) => `key${i}`);
const tree: JsonSchema = { items: { $ref: "#" }, properties: { next: { $ref: "#" } } };

const WORST: Record<string, Worst> = {
  "enum of strings, one large list": [{ enum: texts }, numbers],
  "enum of strings, one large string": [{ enum: texts }, text("x")],
  "enum of strings, a list of matching strings": [
    { items: { enum: texts } },
    (size) => list(size * values, (i) => texts[i % 1000]),
  ],
  "enum of strings, a list of other strings": [{ contains: { enum: texts } }, numbers],
  "enum of objects, one large list": [{ enum: objects }, numbers],
  "enum of objects, one large object": [{ enum: objects }, flat],
  "enum of objects, a list of matching objects": [
    { items: { enum: objects } },
    (size) => list(size * values / 4, (i) => ({ list: [i % 1000], choice: i % 1000 })),
  ],
  "enum of objects, a list of other objects": [{ contains: { enum: objects } }, empty],
  "enum of objects at every level": [{ ...tree, enum: objects }, nested],
  "const of an object in a thousand alternatives": [{ anyOf: objects.map((one) => ({ const: one })) }, flat],
  "const of a string in a thousand alternatives": [{ oneOf: texts.map((one) => ({ const: one })) }, text("\x01")],
  "const compared with an equal value": [{ const: flat(0.5) }, flat],
  "uniqueItems of numbers": [{ uniqueItems: true }, numbers],
  "uniqueItems of numbers that collide": [{ uniqueItems: true }, colliding],
  "uniqueItems of strings of digits": [{ uniqueItems: true }, (size) => numbers(size).map(String)],
  "uniqueItems of objects": [{ uniqueItems: true }, (size) => list(size * values / 2, (i) => ({ i }))],
  "uniqueItems of equal objects": [{ uniqueItems: true }, empty],
  "uniqueItems of large strings": [{ uniqueItems: true }, (size) => [text("\x01")(size / 2), text('"')(size / 2)]],
  "uniqueItems at every level": [{ ...tree, uniqueItems: true }, nested],
  "names in any order": [
    { uniqueItems: true },
    (size) => [Object.fromEntries(list(size * values, (i) => [`${"x".repeat(9)}${(i * 7919) % values}`, 1]))],
  ],
  "long names with a common prefix": [
    { uniqueItems: true },
    (size) => [Object.fromEntries(list(size * 2000, (i) => ["x".repeat(2000) + (i * 7919) % 2000, 1]))],
  ],
  "minLength of pairs": [{ minLength: 9_000_000 }, text("💩")],
  "maxLength of letters": [{ maxLength: 3_000_000 }, text("x")],
  "maxLength in a thousand alternatives": [{ anyOf: list(1000, (i) => ({ maxLength: i })) }, text("é")],
  "pattern on a long string": [{ pattern: "^[a-z]*$" }, text("x")],
  "pattern in a thousand alternatives": [{ anyOf: list(1000, (i) => ({ pattern: `^x*${i}$` })) }, text("x")],
  "a slow pattern behind maxLength": [{ pattern: "x*y$", maxLength: 100 }, text("x")],
  "patternProperties of many patterns": [
    { patternProperties: Object.fromEntries(list(1000, (i) => [`^x${i}`, {}])) },
    flat,
  ],
  "patternProperties on long names": [
    { patternProperties: Object.fromEntries(list(1000, (i) => [`^y*${i}$`, {}])) },
    (size) => ({ [text("y")(size)]: 1 }),
  ],
  "propertyNames": [{ propertyNames: { enum: texts } }, flat],
  "additionalProperties": [{ additionalProperties: false }, flat],
  "additionalProperties of long names": [{ additionalProperties: false }, (size) => ({ [text("y")(size)]: 1 })],
  "properties of many names": [{ items: { properties: Object.fromEntries(names.map((name) => [name, {}])) } }, empty],
  "required of many names": [{ items: { required: names } }, empty],
  "required of many names in a list": [{ contains: { required: names } }, empty],
  "dependentRequired": [
    { items: { dependentRequired: Object.fromEntries(names.map((name) => [name, names])) } },
    (size) => list(size * values / 1001, () => record(1000, () => 1)),
  ],
  "dependentSchemas": [
    { dependentSchemas: Object.fromEntries(names.map((name) => [name, { minProperties: 1 }])) },
    flat,
  ],
  "contains": [{ contains: { type: "string" } }, numbers],
  "items": [{ items: { type: "string" } }, numbers],
  "contains of contains": [{ contains: { contains: { type: "string" } } }, (size) => [numbers(size)]],
  "a thousand alternatives for a list": [{ anyOf: list(1000, (i) => ({ minItems: 1e6 + i })) }, numbers],
  "a thousand alternatives for each item": [{ items: { anyOf: list(1000, (i) => ({ const: -i - 1 })) } }, numbers],
  "a thousand conditions": [
    { allOf: list(1000, (i) => ({ if: { maxItems: i }, then: { uniqueItems: true }, else: { minItems: i } })) },
    numbers,
  ],
  "not": [{ items: { not: { enum: texts } } }, numbers],
  "unevaluatedItems": [
    { anyOf: [{ contains: { type: "string" } }, { items: true }], unevaluatedItems: false },
    numbers,
  ],
  "unevaluatedProperties": [
    { allOf: list(50, (i) => ({ properties: { [`key${i}`]: {} } })), unevaluatedProperties: false },
    flat,
  ],
  "unevaluatedProperties through many levels": [{
    unevaluatedProperties: false,
    ...list(40, () => 0).reduce<JsonSchema>((inner) => ({ allOf: [inner] }), { additionalProperties: true }),
  }, flat],
  "failures at depth": [{ ...tree, contains: { type: "string" } }, nested],
};

/** Maximum number of steps for any message, and for a message of less than 1 KiB. A step takes about 10 nanoseconds. */
const MOST = 12_000_000;
const MOST_OF_SHORT = 650_000;
/** Factor by which one keyword can exceed the limit on steps. Its steps are counted before they are taken. */
const EXCESS = 1.2;

for (const [name, [schema, make]] of Object.entries(WORST)) {
  Deno.test(`schema cost: the steps for ${name} are limited`, () => {
    const check = compileJsonSchema(schema);
    const count = (size: number) => {
      const issues = check(make(size));
      const length = issues.reduce((sum, { path, message }) => sum + path.length + message.length, 0);
      assertLess(length, 8000, JSON.stringify(issues).slice(0, 200));
      return countLatestSteps();
    };
    const [quarter, half, whole] = [count(0.25), count(0.5), count(1)];
    assertLess(whole, MOST * EXCESS);
    // The tolerance covers the first steps, which are allowed for each message, and the steps for reading the schema,
    // which are taken once.
    if (whole < MOST) assertLess(whole - half, 2.2 * (half - quarter) + 1000, `${quarter}, ${half}, ${whole}`);
    check(0);
    // The schema was read before, so this message takes the same steps as before. Earlier messages have no effect.
    assertEquals(count(0.5), half);
  });
}

const node = { $ref: "#/$defs/node" };
const children = { children: { type: "array", items: node } };
const named = { name: { type: "string" } };
const nest = (levels: number, leaf: unknown, wrap: (inner: unknown) => unknown) => {
  let value = leaf;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
};
const folder = (inner: unknown) => ({ name: "a", children: [inner] });
/** Creates a schema with many levels. Each level can be reached from the previous level in two ways. */
const ladder = (last: JsonSchema, keyword: "allOf" | "anyOf" | "oneOf"): JsonSchema => ({
  ...node,
  $defs: Object.fromEntries(
    list(30, (i) => {
      const next = { $ref: `#/$defs/step${i + 1}` };
      return [i ? `step${i}` : "node", i === 29 ? last : { [keyword]: [next, next] }];
    }),
  ),
});
const recursive = (definition: JsonSchema): JsonSchema => ({ ...node, $defs: { node: definition } });

/** Schemas with a message of less than 1 KiB, and whether the message is valid. */
const SHORT: Record<string, readonly [JsonSchema, unknown, boolean | "too many steps"]> = {
  "files or folders, with a wrong leaf": [
    recursive({
      anyOf: [
        { type: "object", properties: { ...named, ...children }, required: ["name", "children"] },
        { type: "object", properties: { ...named, ...children, owner: { type: "string" } }, required: ["owner"] },
        { type: "object", properties: { ...named, size: { type: "number" } }, required: ["name", "size"] },
      ],
    }),
    nest(20, { name: 1 }, folder),
    false,
  ],
  "files or folders, with a valid leaf": [
    recursive({
      oneOf: [
        { type: "object", properties: { ...named, ...children }, required: ["name", "children"] },
        { type: "object", properties: { ...named, ...children, owner: { type: "string" } }, required: ["owner"] },
        { type: "object", properties: { size: { type: "number" } }, required: ["size"] },
      ],
    }),
    nest(20, { size: 1 }, folder),
    true,
  ],
  "alternatives without required properties": [
    recursive({
      anyOf: [
        { properties: { ...children, kind: { const: "a" } } },
        { properties: { ...children, kind: { const: "b" } } },
        { properties: children },
      ],
    }),
    nest(22, { children: 1 }, folder),
    false,
  ],
  "oneOf with two alternatives that both match": [
    recursive({ type: "object", oneOf: [{ properties: children }, { properties: { ...children, z: false } }] }),
    nest(20, { a: 1 }, folder),
    false,
  ],
  "allOf with two schemas": [
    recursive({ allOf: [{ properties: children }, { properties: children }] }),
    nest(22, {}, folder),
    true,
  ],
  "not not": [recursive({ not: { not: { properties: children } }, properties: children }), nest(22, {}, folder), true],
  "if, then and else": [
    recursive({ if: { properties: children }, then: { properties: children }, else: { properties: children } }),
    nest(22, {}, folder),
    true,
  ],
  "contains and items": [recursive({ contains: node, items: node }), nest(30, 1, (inner) => [inner]), true],
  "several patterns for one name": [
    recursive({ patternProperties: { "^c": { items: node }, "n$": { items: node }, hild: { items: node } } }),
    nest(22, {}, folder),
    true,
  ],
  "dependentSchemas": [
    recursive({
      properties: children,
      dependentSchemas: { children: { properties: children }, name: { properties: children } },
    }),
    nest(22, {}, folder),
    true,
  ],
  "$dynamicRef": [
    {
      $dynamicAnchor: "node",
      oneOf: [{ properties: { next: { $dynamicRef: "#node" } } }, {
        properties: { next: { $dynamicRef: "#node" } },
        required: ["other"],
      }],
    },
    nest(40, {}, (next) => ({ next })),
    true,
  ],
  "unevaluatedProperties": [
    recursive({
      type: "object",
      anyOf: [{ properties: children }, { properties: { ...children, name: { const: "a" } } }],
      unevaluatedProperties: node,
    }),
    nest(20, {}, folder),
    true,
  ],
  "a ladder, tracked": [
    { ...ladder({ properties: { a: true } }, "allOf"), unevaluatedProperties: false },
    { a: 1 },
    true,
  ],
  "a ladder, tracked, with another name": [
    { ...ladder({ properties: { a: true } }, "allOf"), unevaluatedProperties: false },
    { a: 1, b: 2 },
    false,
  ],
  "a ladder of an object": [ladder({ type: "object" }, "allOf"), {}, true],
  "a ladder of alternatives": [ladder({ type: "string" }, "anyOf"), {}, false],
  "a ladder of single alternatives": [ladder({ type: "object" }, "oneOf"), {}, false],
  "a ladder of a text": [ladder({ type: "string" }, "allOf"), "x", "too many steps"],
  "a list of countries": [
    { items: { oneOf: list(250, (i) => ({ const: `c${i}`, title: `Country ${i}` })) } },
    list(150, (i) => `c${i}`),
    true,
  ],
  "60 objects of 50 alternatives": [
    { items: { anyOf: list(50, (i) => ({ type: "object", properties: named, required: [`f${i}`] })) } },
    list(60, () => ({ f49: "x" })),
    true,
  ],
};

/** The issue of a value whose check takes too many steps. */
const [REFUSAL] = compileJsonSchema(ladder({ type: "string" }, "allOf"))("x");

for (const [name, [schema, value, expected]] of Object.entries(SHORT)) {
  Deno.test(`schema cost: the steps for a short message are limited: ${name}`, () => {
    assertLess(JSON.stringify(value).length, 1024);
    const [first, ...more] = compileJsonSchema(schema)(value);
    assertLess(countLatestSteps(), MOST_OF_SHORT);
    if (first?.message === REFUSAL.message) {
      assertEquals(first.message, sentence());
      assertEquals(more, []);
      assertEquals(expected, "too many steps");
    } else assertEquals(!first, expected, first?.message);
    // As a part of a longer message, the value takes no more steps.
    const whole = compileJsonSchema({ properties: { x: schema.$defs ? node : schema }, $defs: schema.$defs ?? {} });
    if (schema.$defs) whole({ x: value, y: list(1000, (i) => i) });
    assertLess(countLatestSteps(), 3 * MOST_OF_SHORT);
  });
}

Deno.test("an error message about many alternatives takes steps only for the alternatives that it shows", () => {
  const check = compileJsonSchema({ items: { oneOf: list(250, (i) => ({ const: `c${i}`, title: `Country ${i}` })) } });
  const issues = check(list(50, () => "nowhere"));
  assertEquals(issues.length, 20);
  assertEquals(issues[0].message, sentence('"c0"', '"nowhere"', '"c1"'));
  // The message ends with … and the closing quotation mark.
  assertEquals(issues[0].message.length, 302);
  assertLess(countLatestSteps(), 60_000);
});

Deno.test("a longer message can take more steps, and so can a message for a larger schema", () => {
  const forms = (count: number) => ({ items: { anyOf: list(count, (i) => ({ required: [`a${i}`] })) } });
  const refused = (schema: JsonSchema, value: unknown) =>
    compileJsonSchema(schema)(value).some(({ message }) => message === REFUSAL.message);
  const items = (length: number, text: string) => list(length, () => ({ a399: text }));
  assert(refused(forms(400), items(150, "")));
  assert(!refused(forms(400), items(150, "x".repeat(60))));
  assert(!refused({ ...forms(400), $defs: { more: { enum: list(60_000, (i) => i) } } }, items(150, "")));
});

for (
  const [name, form, value] of [
    ["items that any value matches", { items: true, unevaluatedItems: false }, numbers(0.5)],
    ["unevaluated items", { unevaluatedItems: true }, numbers(0.5)],
    ["unevaluated properties", { unevaluatedProperties: true }, flat(0.5)],
    ["a tuple", { prefixItems: [true] }, numbers(0.5)],
    ["contains", { contains: true }, numbers(0.5)],
  ] as const
) {
  Deno.test(`each visit to a part of a value takes a step, even if no schema applies to the part: ${name}`, () => {
    compileJsonSchema({ allOf: list(20, () => ({ ...form })) })(value);
    assertLess(20 * values * 0.5, countLatestSteps());
  });
}

Deno.test("a schema that visits each item twice accepts a long list", () => {
  const schema = { allOf: [{ items: true }, { uniqueItems: true }], unevaluatedItems: false };
  assertEquals(compileJsonSchema(schema)(numbers(1)), []);
});
