// The cost of validation: the time of each keyword is in proportion to the message, whatever it contains within the
// limits, and short.
import { LIMITS } from "../../src/core/limits.ts";
import type { JsonSchema } from "../../src/schema/json_schema.ts";
import { compileSchema } from "../../src/schema/schema.ts";
import { shortest } from "../support/random.ts";
import { assert } from "../support/std.ts";

const values = 200_000;
const bytes = LIMITS.request.bodyBytes;

/** A schema, and its worst value of a size: 1 is the largest that the limits allow. */
interface Worst {
  readonly schema: JsonSchema;
  readonly make: (size: number) => unknown;
}

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
/** Numbers that one engine, which hashes them without a secret, puts into one bucket of a set. */
const colliding = (size: number) => {
  const found: number[] = [];
  for (let i = 0; found.length < size * 16_000; i++) if ((hash(i) & 0x1fff) === 5) found.push(i);
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
  "enum of strings, one large list": { schema: { enum: texts }, make: numbers },
  "enum of strings, one large string": { schema: { enum: texts }, make: text("x") },
  "enum of strings, a list of them": {
    schema: { items: { enum: texts } },
    make: (size) => list(size * values, (i) => texts[i % 1000]),
  },
  "enum of strings, a list of others": { schema: { contains: { enum: texts } }, make: numbers },
  "enum of objects, one large list": { schema: { enum: objects }, make: numbers },
  "enum of objects, one large object": { schema: { enum: objects }, make: flat },
  "enum of objects, a list of them": {
    schema: { items: { enum: objects } },
    make: (size) => list(size * values / 4, (i) => ({ list: [i % 1000], choice: i % 1000 })),
  },
  "enum of objects, a list of others": { schema: { contains: { enum: objects } }, make: empty },
  "enum of objects at every level": { schema: { ...tree, enum: objects }, make: nested },
  "const of an object in a thousand forms": {
    schema: { anyOf: objects.map((one) => ({ const: one })) },
    make: flat,
  },
  "const of a string in a thousand forms": {
    schema: { oneOf: texts.map((one) => ({ const: one })) },
    make: text("\x01"),
  },
  "const against itself": { schema: { const: flat(0.5) }, make: flat },
  "uniqueItems of numbers": { schema: { uniqueItems: true }, make: numbers },
  "uniqueItems of numbers that collide": { schema: { uniqueItems: true }, make: colliding },
  "uniqueItems of strings of digits": { schema: { uniqueItems: true }, make: (size) => numbers(size).map(String) },
  "uniqueItems of objects": { schema: { uniqueItems: true }, make: (size) => list(size * values / 2, (i) => ({ i })) },
  "uniqueItems of equal objects": { schema: { uniqueItems: true }, make: empty },
  "uniqueItems of large strings": {
    schema: { uniqueItems: true },
    make: (size) => [text("\x01")(size / 2), text('"')(size / 2)],
  },
  "uniqueItems at every level": { schema: { ...tree, uniqueItems: true }, make: nested },
  "names in any order": {
    schema: { uniqueItems: true },
    make: (size) => [Object.fromEntries(list(size * values, (i) => [`${"x".repeat(9)}${(i * 7919) % values}`, 1]))],
  },
  "long names with a common prefix": {
    schema: { uniqueItems: true },
    make: (size) => [Object.fromEntries(list(size * 2000, (i) => ["x".repeat(2000) + (i * 7919) % 2000, 1]))],
  },
  "minLength of pairs": { schema: { minLength: 9_000_000 }, make: text("💩") },
  "maxLength of letters": { schema: { maxLength: 3_000_000 }, make: text("x") },
  "maxLength in a thousand forms": { schema: { anyOf: list(1000, (i) => ({ maxLength: i })) }, make: text("é") },
  "pattern on a long string": { schema: { pattern: "^[a-z]*$" }, make: text("x") },
  "pattern in a thousand forms": { schema: { anyOf: list(1000, (i) => ({ pattern: `^x*${i}$` })) }, make: text("x") },
  "a slow pattern behind maxLength": { schema: { pattern: "x*y$", maxLength: 100 }, make: text("x") },
  "patternProperties of many patterns": {
    schema: { patternProperties: Object.fromEntries(list(1000, (i) => [`^x${i}`, {}])) },
    make: flat,
  },
  "patternProperties on long names": {
    schema: { patternProperties: Object.fromEntries(list(1000, (i) => [`^y*${i}$`, {}])) },
    make: (size) => ({ [text("y")(size)]: 1 }),
  },
  "propertyNames": { schema: { propertyNames: { enum: texts } }, make: flat },
  "additionalProperties": { schema: { additionalProperties: false }, make: flat },
  "additionalProperties of long names": {
    schema: { additionalProperties: false },
    make: (size) => ({ [text("y")(size)]: 1 }),
  },
  "properties of many names": {
    schema: { items: { properties: Object.fromEntries(names.map((name) => [name, {}])) } },
    make: empty,
  },
  "required of many names": { schema: { items: { required: names } }, make: empty },
  "required of many names in a list": { schema: { contains: { required: names } }, make: empty },
  "dependentRequired": {
    schema: { items: { dependentRequired: Object.fromEntries(names.map((name) => [name, names])) } },
    make: (size) => list(size * values / 1001, () => record(1000, () => 1)),
  },
  "dependentSchemas": {
    schema: { dependentSchemas: Object.fromEntries(names.map((name) => [name, { minProperties: 1 }])) },
    make: flat,
  },
  "contains": { schema: { contains: { type: "string" } }, make: numbers },
  "items": { schema: { items: { type: "string" } }, make: numbers },
  "contains of contains": { schema: { contains: { contains: { type: "string" } } }, make: (size) => [numbers(size)] },
  "a thousand forms of a list": { schema: { anyOf: list(1000, (i) => ({ minItems: 1e6 + i })) }, make: numbers },
  "a thousand forms for each item": {
    schema: { items: { anyOf: list(1000, (i) => ({ const: -i - 1 })) } },
    make: numbers,
  },
  "a thousand conditions": {
    schema: { allOf: list(1000, (i) => ({ if: { maxItems: i }, then: { uniqueItems: true }, else: { minItems: i } })) },
    make: numbers,
  },
  "not": { schema: { items: { not: { enum: texts } } }, make: numbers },
  "unevaluatedItems": {
    schema: { anyOf: [{ contains: { type: "string" } }, { items: true }], unevaluatedItems: false },
    make: numbers,
  },
  "unevaluatedProperties": {
    schema: { allOf: list(50, (i) => ({ properties: { [`key${i}`]: {} } })), unevaluatedProperties: false },
    make: flat,
  },
  "unevaluatedProperties through many levels": {
    schema: {
      unevaluatedProperties: false,
      ...list(40, () => 0).reduce<JsonSchema>((inner) => ({ allOf: [inner] }), { additionalProperties: true }),
    },
    make: flat,
  },
  "failures at depth": { schema: { ...tree, contains: { type: "string" } }, make: nested },
};

for (const [name, { schema, make }] of Object.entries(WORST)) {
  Deno.test(`schema cost: ${name}`, () => {
    const { validate } = compileSchema(schema, { use: "output", place: "the test" });
    const [half, whole] = [make(0.5), make(1)];
    const problem = () => (validate(whole) as { problem?: string }).problem ?? "";
    assert(problem().length < 2100, problem());
    let times = "";
    for (let tries = 0; tries < 4; tries++) {
      const short = shortest(() => validate(half), 2);
      const long = shortest(() => validate(whole), 2);
      times = `${short} ms for half of it, ${long} ms`;
      // A validation of a few milliseconds is too short to compare.
      if (long < 750 && (long < 15 || long / short < 3.5)) return;
    }
    throw new Error(times);
  });
}
