import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import { toForm } from "../../src/core/schema/form.ts";
import type { JsonSchema, Schema } from "../../src/core/schema/schema.ts";
import { assert, assertEquals, assertThrows } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

const place = 'the question "q"';

function properties(schema: Schema): unknown {
  return toForm(schema, place).requestedSchema.properties;
}

function field(schema: JsonSchema): unknown {
  const all = properties({ type: "object", properties: { x: schema } });
  return Object(all).x;
}

Deno.test("form: defaults of all types are kept, from raw JSON Schema and from zod", () => {
  const expected = {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  };
  const raw = { type: "object", properties: expected, required: [] };
  assertEquals(toForm(raw, place).requestedSchema, raw);
  const zod = z.object({
    name: z.string().default("John Doe"),
    age: z.int().default(30),
    score: z.number().default(95.5),
    status: z.enum(["active", "inactive", "pending"]).default("active"),
    verified: z.boolean().default(true),
  });
  assertEquals(toForm(zod, place).requestedSchema, { type: "object", properties: expected });
});

Deno.test("form: keywords beside a reference override the keywords of its target", () => {
  const $defs = { color: { type: "string", enum: ["r", "g"], title: "Any color" } };
  const raw = { type: "object", properties: { c: { title: "Your color", $ref: "#/$defs/color" } }, $defs };
  assertEquals(toForm(raw, place).requestedSchema.properties, {
    c: { type: "string", enum: ["r", "g"], title: "Your color" },
  });
});

Deno.test("form: choices of all kinds are kept, from raw JSON Schema and from zod", () => {
  const titled = [
    { const: "value1", title: "First Option" },
    { const: "value2", title: "Second Option" },
    { const: "value3", title: "Third Option" },
  ];
  const expected = {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  };
  const raw = { type: "object", properties: expected, required: [] };
  assertEquals(toForm(raw, place).requestedSchema, raw);
  const union = z.union([
    z.literal("value1").meta({ title: "First Option" }),
    z.literal("value2").meta({ title: "Second Option" }),
    z.literal("value3").meta({ title: "Third Option" }),
  ]);
  const zod = z.object({
    untitledSingle: z.enum(["option1", "option2", "option3"]),
    titledSingle: union,
    legacyEnum: z.enum(["opt1", "opt2", "opt3"]).meta({ enumNames: ["Option One", "Option Two", "Option Three"] }),
    untitledMulti: z.array(z.enum(["option1", "option2", "option3"])),
    titledMulti: z.array(union),
  }).partial();
  assertEquals(toForm(zod, place).requestedSchema, { type: "object", properties: expected });
});

Deno.test("form: all other fields in the fixtures are unchanged", () => {
  const raw = {
    type: "object",
    properties: {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" },
    },
    required: ["username", "email"],
  };
  assertEquals(toForm(raw, place).requestedSchema, raw);
  const zod = z.object({
    username: z.string().describe("User's response"),
    email: z.string().describe("User's email address"),
  });
  assertEquals(toForm(zod, place).requestedSchema, raw);
});

Deno.test("form: redundant keywords are dropped", () => {
  const schema = z.strictObject({
    mail: z.email().min(3).max(50).meta({ title: "Mail", description: "Where to", examples: ["a@b.c"] }),
    site: z.url(),
    day: z.iso.date(),
    moment: z.iso.datetime(),
    count: z.int().min(1).optional(),
    positive: z.int().positive(),
    below: z.int().lt(10.5),
    ratio: z.number().min(0).max(1),
    color: z.enum(["red", "green"]).meta({ id: "Color", title: "Colour" }),
    only: z.literal("yes"),
    words: z.union([z.literal("a"), z.literal("b")]),
    some: z.array(z.enum(["q", "w"])).min(1).max(2).default(["q"]),
    one: z.array(z.literal("q")),
    colors: z.array(z.enum(["red", "green"]).meta({ id: "Colors" })),
  });
  assertEquals(toForm(schema, place).requestedSchema, {
    type: "object",
    properties: {
      mail: { type: "string", title: "Mail", description: "Where to", minLength: 3, maxLength: 50, format: "email" },
      site: { type: "string", format: "uri" },
      day: { type: "string", format: "date" },
      moment: { type: "string", format: "date-time" },
      count: { type: "integer", minimum: 1 },
      positive: { type: "integer", minimum: 1 },
      below: { type: "integer", maximum: 10 },
      ratio: { type: "number", minimum: 0, maximum: 1 },
      color: { type: "string", enum: ["red", "green"], title: "Colour" },
      only: { type: "string", enum: ["yes"] },
      words: { type: "string", enum: ["a", "b"] },
      some: { type: "array", items: { type: "string", enum: ["q", "w"] }, minItems: 1, maxItems: 2, default: ["q"] },
      one: { type: "array", items: { type: "string", enum: ["q"] } },
      colors: { type: "array", items: { type: "string", enum: ["red", "green"] } },
    },
    required: [
      "mail",
      "site",
      "day",
      "moment",
      "positive",
      "below",
      "ratio",
      "color",
      "only",
      "words",
      "one",
      "colors",
    ],
  });
  assertEquals(field({ type: "string", title: "9007199254740991", maxLength: 9007199254740991 }), {
    type: "string",
    title: "9007199254740991",
  });
  assertEquals(field({ anyOf: [{ const: "a", title: "A" }, { const: "b" }] }), {
    type: "string",
    oneOf: [{ const: "a", title: "A" }, { const: "b", title: "b" }],
  });
});

Deno.test("form: valibot and arktype give the same form", () => {
  const valibot = toStandardJsonSchema(v.object({
    mail: v.pipe(v.string(), v.email()),
    pick: v.picklist(["x", "y"]),
    union: v.union([v.literal("a"), v.literal("b")]),
    on: v.optional(v.boolean(), true),
    n: v.pipe(v.number(), v.integer(), v.minValue(1)),
    many: v.array(v.picklist(["x", "y"])),
  }));
  assertEquals(properties(valibot), {
    mail: { type: "string", format: "email" },
    pick: { type: "string", enum: ["x", "y"] },
    union: { type: "string", enum: ["a", "b"] },
    on: { type: "boolean", default: true },
    n: { type: "integer", minimum: 1 },
    many: { type: "array", items: { type: "string", enum: ["x", "y"] } },
  });
  const ark = type({
    mail: "string.email",
    pick: "'x'|'y'",
    "on?": "boolean",
    n: "number.integer>0",
    many: "('x'|'y')[]",
  });
  assertEquals(properties(ark), {
    mail: { type: "string", format: "email" },
    pick: { type: "string", enum: ["x", "y"] },
    on: { type: "boolean" },
    n: { type: "integer", minimum: 1 },
    many: { type: "array", items: { type: "string", enum: ["x", "y"] } },
  });
});

Deno.test("form: a schema that a form cannot express is refused with the field and the remedy", () => {
  const cases: readonly (readonly [schema: z.ZodType, ...names: readonly string[]])[] = [
    [z.object({ street: z.string() })],
    [z.record(z.string(), z.string())],
    [z.array(z.string())],
    [z.array(z.object({}))],
    [z.string().nullable(), "null"],
    [z.enum(["a"]).nullable(), "null"],
    [z.union([z.string(), z.number()])],
    [z.any()],
    [z.uuid(), "uuid"],
    [z.string().regex(/x/), "pattern"],
    [z.email().regex(/x/), "allOf"],
    [z.number().positive(), "exclusiveMinimum"],
    [z.number().multipleOf(5), "multipleOf"],
    [z.literal(5), "const"],
    [z.literal(true), "const"],
    [z.literal([1, 2]), "enum"],
  ];
  for (const [schema, ...names] of cases) {
    assertThrows(
      () => toForm(z.object({ address: schema }), place),
      TypeError,
      `${sentence('"address"', "; ", ...names)} (${place})`,
    );
  }
  const raw: readonly (readonly [schema: unknown, ...names: readonly string[]])[] = [
    [true],
    [{}],
    [{ type: ["string", "null"] }, "null"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "null"],
    [{ type: "string", not: { const: "x" } }, "not"],
    [{ type: "string", anyOf: [{ maxLength: 1 }, { minLength: 5 }] }, "anyOf"],
  ];
  for (const [schema, ...names] of raw) {
    assertThrows(
      () => toForm({ type: "object", properties: { x: schema, other: { type: "string" } } }, place),
      TypeError,
      `${sentence('"x"', ...names)} (${place})`,
    );
  }
  const union = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
  assertThrows(() => toForm(union, place), TypeError, `${sentence("anyOf", "oneOf", "allOf")} (${place})`);
  assertThrows(() => toForm(z.string(), place), TypeError, place);
});

Deno.test("form: the schema itself validates the answer", async () => {
  const form = toForm(z.object({ n: z.int().positive(), on: z.boolean().default(true), mail: z.email() }), place);
  assertEquals(form.check({ n: 5, mail: "a@b.co" }), { value: { n: 5, on: true, mail: "a@b.co" } });
  const checked = form.check({ n: 0, mail: "nonsense" });
  assert(!(checked instanceof Promise));
  assert(/^n: .*; mail: /.test(checked.problem ?? ""), checked.problem);
  const raw = toForm({ type: "object", properties: { a: { type: "string", enum: ["x"] } }, required: ["a"] }, place);
  assertEquals(await raw.check({ a: "y" }), { problem: sentence("a:", '"x"', '"y"') });
  assertEquals(await raw.check(undefined), { problem: sentence("object", "undefined") });
});

Deno.test("form: fields can have the names of properties that every object inherits", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"number"}}}',
  );
  assertEquals(JSON.stringify(toForm(schema, place).requestedSchema), JSON.stringify(schema));
});
