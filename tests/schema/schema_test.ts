import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";
import * as mini from "zod/mini";
import type { Checked, Infer, InferInput, JsonSchema, Schema, StandardSchema } from "../../src/core/schema/schema.ts";
import { compileSchema } from "../../src/core/schema/schema_compiler.ts";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../support/std.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { validateShape } from "../../src/core/schema/shape.ts";
import { turn } from "../support/behaviour.ts";

const input = { use: "input", place: 'tool "add"' } as const;
const output = { use: "output", place: 'tool "add"' } as const;

/** By library, the schema `{ a: number, b?: string }`. */
const SCHEMAS: Record<string, Schema> = {
  zod: z.object({ a: z.number(), b: z.string().optional() }),
  "zod/mini": mini.toJSONSchema(mini.object({ a: mini.number(), b: mini.optional(mini.string()) })),
  valibot: toStandardJsonSchema(v.object({ a: v.number(), b: v.optional(v.string()) })),
  arktype: type({ a: "number", "b?": "string" }),
  "JSON Schema": { type: "object", properties: { a: { type: "number" }, b: { type: "string" } }, required: ["a"] },
};

function checkNow(schema: Schema, value: unknown): Checked {
  const checked = compileSchema(schema, input).validate(value);
  assert(!(checked instanceof Promise), "a synchronous schema returned a promise");
  return checked;
}

// Load the validator for raw JSON Schema, which is loaded with the first value.
for (const schema of Object.values(SCHEMAS)) await compileSchema(schema, input).validate({});

for (const [name, schema] of Object.entries(SCHEMAS)) {
  Deno.test(`schema: ${name} is converted to JSON Schema, and validates synchronously`, () => {
    const json = compileSchema(schema, input).json();
    assertEquals(json, {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "string" } },
      required: ["a"],
    });
    assertEquals(JSON.parse(JSON.stringify(json)), json);
    const checked = checkNow(schema, { a: 1, b: "x" });
    assert(checked.problem === undefined);
    assertEquals(checked.value, { a: 1, b: "x" });
    const { problem = "" } = checkNow(schema, { a: "1", b: 2 });
    assert(/(^|; )a: /.test(problem) && /(^|; )b: /.test(problem), problem);
    assert(checkNow(schema, "x").problem);
    assert(checkNow(schema, undefined).problem);
    assert(checkNow(schema, {}).problem?.startsWith("a: "));
  });
}

Deno.test("schema: the error names each invalid field", () => {
  assertEquals(checkNow(SCHEMAS["JSON Schema"], { b: 1 }).problem, sentence("b:", "string", "number", "; a:"));
  assertEquals(
    checkNow(z.object({ list: z.array(z.object({ n: z.number() })) }), { list: [{ n: 1 }, { n: "x" }] }).problem,
    "list[1].n: Invalid input: expected number, received string",
  );
  const problem = checkNow(toStandardJsonSchema(v.object({ list: v.array(v.number()) })), { list: ["x"] }).problem;
  assertEquals(problem, 'list[0]: Invalid type: Expected number but received "x"');
});

Deno.test("schema: the error has at most two kilobytes, however many issues there are", async () => {
  const many = { a: Array.from({ length: 10_000 }, () => "世".repeat(50)) };
  const schemas: Schema[] = [
    z.object({ a: z.array(z.number()) }),
    { type: "object", properties: { a: { items: { type: "number" } } } },
    z.object({ a: z.array(z.string().max(1, "世".repeat(3000))) }),
    z.strictObject({}),
  ];
  for (const schema of schemas) {
    await compileSchema(schema, input).validate({});
    const { problem = "" } = checkNow(schema, { ...many, ["k".repeat(100_000)]: 1 });
    assert(problem.length > 100);
    assert(new TextEncoder().encode(problem).length <= 2048);
  }
  const { problem } = checkNow(z.object({ a: z.array(z.number()) }), many);
  assertStringIncludes(problem ?? "", "a[0]: Invalid input: expected number, received string; a[1]: ");
  assertEquals(problem?.split("; ").at(-1), sentence(9980));
  const twenty = checkNow(z.object({ a: z.array(z.number()) }), { a: Array(20).fill("x") }).problem;
  assert(twenty?.endsWith("a[19]: Invalid input: expected number, received string"), twenty);
});

Deno.test("schema: the parsed value is the schema's output", () => {
  const schema = z.object({
    n: z.coerce.number(),
    on: z.boolean().default(true),
    list: z.string().transform((s) => s.split(",")),
  });
  assertEquals(checkNow(schema, { n: "5", list: "a,b" }), { value: { n: 5, on: true, list: ["a", "b"] } });
  assertEquals(compileSchema(z.object({ on: z.boolean().default(true) }), input).json().required, undefined);
  assertEquals(compileSchema(z.object({ on: z.boolean().default(true) }), output).json().required, ["on"]);
});

Deno.test("schema: an asynchronous schema returns a promise", async () => {
  const schema = z.object({ a: z.string().refine((s) => Promise.resolve(s !== "no")) });
  const { validate } = compileSchema(schema, input);
  const reading = validate({ a: "yes" });
  assertInstanceOf(reading, Promise);
  assertEquals(await reading, { value: { a: "yes" } });
  assertEquals(await validate({ a: "no" }), { problem: "a: Invalid input" });
});

Deno.test("schema: an error that the schema's own code throws is passed on", async () => {
  const boom = z.string().refine(throwing(new RangeError("mine")));
  const { validate } = compileSchema(z.object({ a: boom }), input);
  await assertRejects(async () => await validate({ a: "x" }), RangeError, "mine");
});

Deno.test("schema: the JSON Schema is created once, when it is first needed", () => {
  let made = 0;
  const schema: StandardSchema = {
    "~standard": {
      version: 1,
      vendor: "mine",
      validate: (value) => ({ value }),
      jsonSchema: { input: () => ({ type: "object", made: ++made }), output: () => ({ made: ++made }) },
    },
  };
  const compiled = compileSchema(schema, input);
  assertEquals(made, 0);
  assertEquals(compiled.json(), { type: "object", made: 1 });
  assertStrictEquals(compiled.json(), compiled.json());
  assertStrictEquals(compileSchema(schema, { ...input, place: "elsewhere" }), compiled);
  assertEquals(compileSchema(schema, output).json(), { made: 2 });
});

Deno.test("schema: a raw JSON Schema is listed unchanged, as a frozen copy", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    "x-more": { y: [1] },
    additionalProperties: false,
  };
  const compiled = compileSchema(schema, input);
  assertEquals<JsonSchema>(compiled.json(), schema);
  assertStrictEquals(compiled.json(), compiled.json());
  assertEquals([Object.isFrozen(compiled.json()["x-more"]), Object.isFrozen(schema["x-more"])], [true, false]);
});

Deno.test("schema: an input schema must accept objects, and a union of objects is listed with the type object", () => {
  const union = z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("a"), n: z.number() }),
    z.object({ kind: z.literal("b"), s: z.string() }),
  ]);
  const json = compileSchema(union, input).json();
  assertEquals(json.type, "object");
  assertEquals(Array.isArray(json.oneOf), true);
  assertEquals(
    compileSchema(z.union([z.object({ a: z.number() }), z.object({ b: z.number() })]), input).json().type,
    "object",
  );
  const refused: Schema[] = [z.string(), z.array(z.string()), z.union([z.object({}), z.string()]), z.any()];
  for (const schema of refused) {
    assertThrows(() => compileSchema(schema, input).json(), TypeError, sentence('tool "add"', "; "));
  }
  assertThrows(() => compileSchema({ type: "array" }, input), TypeError, sentence('tool "add"'));
  assertThrows(() => compileSchema({ properties: {} }, input), TypeError, sentence('tool "add"'));
  assertEquals(compileSchema({ type: "array" }, output).json(), { type: "array" });
  assertEquals(compileSchema(z.array(z.string()), output).json(), { type: "array", items: { type: "string" } });
});

const objects = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };

/** Input schemas that accept only objects, without `type: "object"` at their root. */
const ONLY_OBJECTS: Record<string, Schema> = {
  "a reference": { $ref: "#/$defs/a", $defs: { a: objects } },
  "a reference by anchor": { $ref: "#a", $defs: { a: { ...objects, $anchor: "a" } } },
  "a reference to a union": {
    $ref: "#/$defs/either",
    $defs: { either: { anyOf: [{ $ref: "#/$defs/a" }, { ...objects, type: ["object"] }] }, a: objects },
  },
  "allOf with one object": { allOf: [{ required: ["id"] }, { $ref: "#/$defs/a" }], $defs: { a: objects } },
  "a type list with one type": { ...objects, type: ["object"] },
  "anyOf of allOf": { anyOf: [{ allOf: [objects] }, { $ref: "#/$defs/a" }], $defs: { a: objects } },
  "a zod union of schemas with an id": z.union([
    z.object({ id: z.string() }).meta({ id: "first" }),
    z.object({ id: z.string(), more: z.number() }).meta({ id: "second" }),
  ]),
  "a zod intersection": z.intersection(z.object({ id: z.string() }), z.object({ more: z.number().optional() })),
  "a recursive valibot object": toStandardJsonSchema(makeTree()),
};

function makeTree() {
  interface Tree {
    readonly id: string;
    readonly children?: Tree[] | undefined;
  }
  const tree: v.GenericSchema<Tree> = v.object({ id: v.string(), children: v.optional(v.array(v.lazy(() => tree))) });
  return tree;
}

for (const [name, schema] of Object.entries(ONLY_OBJECTS)) {
  Deno.test(`schema: ${name} can be an input schema, which is listed with the type object`, async () => {
    const compiled = compileSchema(schema, input);
    const json = compiled.json();
    assertEquals(json.type, "object");
    // Clients find the properties in the root.
    assertEquals("$ref" in json, false);
    assertEquals((await compiled.validate({ id: "1" })).problem, undefined);
    assert((await compiled.validate({ id: 1 })).problem);
    assert((await compiled.validate("1")).problem);
  });
}

Deno.test("schema: a reference, allOf or a type list that accepts other values is no input schema", () => {
  const schemas: JsonSchema[] = [
    { $ref: "#/$defs/a", $defs: { a: { type: "string" } } },
    { $ref: "#/$defs/a", $defs: { a: { properties: {} } } },
    { allOf: [{ properties: {} }, { minProperties: 1 }] },
    { allOf: [{}] },
    { anyOf: [{}] },
    { type: ["object", "null"] },
    { anyOf: [objects, { $ref: "#/$defs/a" }], $defs: { a: { type: "array" } } },
    { not: objects },
  ];
  for (const schema of schemas) {
    assertThrows(() => compileSchema(schema, input), TypeError, sentence('tool "add"', "type"));
  }
});

/** Returns all references in a schema. */
function listRefs(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => key === "$ref" ? [part] : listRefs(part));
}

const tree = z.object({
  id: z.string(),
  get children() {
    return z.array(tree).optional();
  },
});

/** Schemas with references to places outside of `$defs`, and a valid and an invalid value of each. */
const REFERRING: Record<string, readonly [schema: Schema, valid: unknown, invalid: unknown]> = {
  "a recursive zod object": [tree, { id: "1", children: [{ id: "2" }] }, { id: "1", children: [{ id: 2 }] }],
  "a shape with two recursive properties": [
    { left: tree, right: tree.optional() },
    { left: { id: "1", children: [] } },
    { left: { id: "1", children: [{}] } },
  ],
  "a shape whose properties use equal names in $defs": [
    {
      a: z.object({ x: z.string().meta({ id: "name" }) }),
      b: z.object({ x: z.number().meta({ id: "name" }) }),
    },
    { a: { x: "1" }, b: { x: 1 } },
    { a: { x: 1 }, b: { x: 1 } },
  ],
  "raw definitions": [
    {
      type: "object",
      properties: { a: { $ref: "#/definitions/na~1me" } },
      definitions: {
        "na/me": { type: "object", properties: { next: { $ref: "#/definitions/na~1me" }, n: { type: "number" } } },
      },
    },
    { a: { next: { n: 1 } } },
    { a: { next: { n: "1" } } },
  ],
  "a raw reference to a property": [
    {
      type: "object",
      properties: { from: { type: "integer" }, to: { $ref: "#/properties/from" }, via: { items: { $ref: "#" } } },
      $defs: { from: { const: { $ref: "#" } } },
    },
    { from: 1, to: 2, via: [{ from: 3 }] },
    { from: 1, to: 2, via: [{ from: "3" }] },
  ],
};

for (const [name, [schema, valid, invalid]] of Object.entries(REFERRING)) {
  Deno.test(`schema: ${name} is listed with references to $defs only`, async () => {
    const compiled = compileSchema(schema, input);
    const json = compiled.json();
    const refs = listRefs(json);
    assert(refs.length > 0);
    const outside = refs.filter((ref) => !String(ref).startsWith("#/$defs/"));
    // A value of `const` is not a reference.
    assertEquals(outside, name.startsWith("a raw reference") ? ["#"] : [], JSON.stringify(json));
    assertEquals("definitions" in json, false);
    // The listed schema accepts the same values.
    const listed = compileSchema(JSON.parse(JSON.stringify(json)) as JsonSchema, output);
    for (const each of [compiled, listed]) {
      assertEquals((await each.validate(valid)).problem, undefined);
      assert((await each.validate(invalid)).problem);
    }
  });
}

Deno.test("schema: a schema that JSON Schema cannot express is refused with the path and a remedy for the library", () => {
  const cases: [schema: unknown, message: string][] = [
    [v.object({ a: v.number() }), sentence('tool "add"', "withJsonSchema(")],
    [mini.object({ a: mini.number() }), sentence('tool "add"', "withJsonSchema(")],
    [
      { "~standard": { version: 1, vendor: "other", validate: (value: unknown) => ({ value }) } },
      sentence('tool "add"'),
    ],
    [undefined, sentence('tool "add"')],
    ["string", sentence('tool "add"')],
    [
      { type: "object", properties: { a: { $ref: "http://127.0.0.1/x" } } },
      sentence('tool "add"', "http://127.0.0.1/x", "$defs"),
    ],
    [{ type: "object", properties: { a: { pattern: "(" } } }, sentence('tool "add"', "pattern")],
  ];
  for (const [schema, message] of cases) {
    // The cast simulates a caller in plain JavaScript.
    assertThrows(() => compileSchema(schema as Schema, input), TypeError, message);
  }
  const make = () => compileSchema(z.object({ d: z.date() }), input).json();
  const { message, cause } = assertThrows(make, TypeError, sentence('tool "add"', " d "));
  assertStringIncludes(message, "Date cannot be represented in JSON Schema");
  assertInstanceOf(cause, Error);
});

Deno.test("schema: TypeScript types follow the schema", () => {
  const schema = z.object({ n: z.string().transform(Number), on: z.boolean().default(true) });
  const made: Infer<typeof schema> = { n: 5, on: false };
  const taken: InferInput<typeof schema> = { n: "5" };
  // @ts-expect-error: the transformed value is a number
  const wrong: Infer<typeof schema> = { n: "5", on: true };
  const raw = { type: "object", properties: {} };
  const rawMade: Infer<typeof raw> = { anything: 1 };
  const rawTaken: InferInput<typeof raw> = ["anything"];
  const valibot = toStandardJsonSchema(v.object({ a: v.number() }));
  const valibotMade: Infer<typeof valibot> = { a: 1 };
  const ark = type({ a: "string.numeric.parse" });
  const arkMade: Infer<typeof ark> = { a: 1 };
  const arkTaken: InferInput<typeof ark> = { a: "1" };
  const wrapped = mini.toJSONSchema(mini.object({ a: mini.number() }));
  const miniMade: Infer<typeof wrapped> = { a: 1 };
  // @ts-expect-error: the property is a number
  const miniWrong: Infer<typeof wrapped> = { a: "1" };
  const typed: Schema<{ a: number }> = z.object({ a: z.number() });
  assertEquals(
    [made, taken, wrong, rawMade, rawTaken, valibotMade, arkMade, arkTaken, miniMade, miniWrong, typed].length,
    11,
  );
});

// Shapes in which several parts fail at the same time.

function part(validate: StandardSchema["~standard"]["validate"]): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

Deno.test("a part of a shape that throws causes no unhandled rejection of another part", async () => {
  const shape = {
    a: part(() => Promise.reject(new Error("late"))),
    b: part(throwing(new Error("at once"))),
  };
  assertThrows(() => validateShape(shape, {}), Error, "at once");
  // An unhandled rejection in these turns would fail the test.
  await turn(10);
});
