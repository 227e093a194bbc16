// Unions whose alternatives differ by a constant. A value is checked against a single alternative, in as many steps as
// without the union.
import { compileJsonSchema } from "../../src/core/schema/json_check.ts";
import type { JsonSchema } from "../../src/core/schema/json_schema.ts";
import { assert, assertEquals } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

const list = <T>(length: number, make: (i: number) => T) => Array.from({ length }, (_, i) => make(i));
const form = (kind: unknown, rest: JsonSchema = {}): JsonSchema => ({
  type: "object",
  properties: { kind: { const: kind }, v: { type: "string" } },
  required: ["kind"],
  ...rest,
});

/** Wraps a schema and its subschemas, so that `count` is called when a keyword is read. */
function counted<T extends object>(schema: T, count: () => void): T {
  return new Proxy(schema, {
    get(target, key, self) {
      count();
      const value = Reflect.get(target, key, self);
      return typeof value === "object" && value ? counts.get(value) ?? keep(value, count) : value;
    },
  });
}
const counts = new WeakMap<object, object>();
function keep(value: object, count: () => void): object {
  const made = counted(value, count);
  counts.set(value, made);
  return made;
}

for (const keyword of ["anyOf", "oneOf"] as const) {
  Deno.test(`${keyword}: the number of steps for a value does not grow with the number of alternatives`, () => {
    const measure = (forms: number): number => {
      let reads = 0;
      const alternatives = list(forms, (i) => counted(form(`k${i}`), () => reads++));
      const check = compileJsonSchema({ items: { [keyword]: alternatives } });
      const items = list(1000, (i) => ({ kind: `k${i % forms}`, v: "x" }));
      check(items);
      reads = 0;
      assertEquals(check(items), []);
      return reads;
    };
    const [few, many] = [measure(2), measure(200)];
    assert(few > 0 && many === few, `${few} reads for 2 alternatives, ${many} for 200`);
  });

  Deno.test(`${keyword}: 60,000 items with 20 alternatives are within the limit on steps`, () => {
    const check = compileJsonSchema({ items: { [keyword]: list(20, (i) => form(`k${i}`)) } });
    assertEquals(check(list(60_000, () => ({ kind: "k19", v: "x" }))), []);
  });

  Deno.test(`${keyword}: the chosen alternative is the alternative that trying all of them would choose`, () => {
    const unions: Record<string, readonly JsonSchema[]> = {
      constants: [form("a"), form("b", { additionalProperties: false }), form(1), form(null), form(true)],
      enums: [
        { properties: { kind: { enum: ["a", "b", "a"] }, v: { type: "string" } } },
        { properties: { kind: { const: 1 } }, required: ["v"] },
      ],
      references: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/b", required: ["v"] }],
      overlapping: [{ properties: { kind: { enum: ["a", "b"] } } }, form("b")],
      objects: [{ properties: { kind: { const: { x: 1 } } } }, form("a")],
      "not in every alternative": [form("a"), { properties: { v: { type: "string" } } }],
      "the second property": [
        { properties: { v: {}, kind: { const: "a" } } },
        { properties: { v: { const: "x" }, kind: { const: "b" } } },
      ],
      booleans: [true as unknown as JsonSchema, form("a")],
      tracked: [form("a"), form("b")],
    };
    const kinds = [undefined, "a", "b", "c", 1, true, null, { x: 1 }, ["a"], "toString"];
    const values = [
      ...kinds.flatMap((kind) => [{ kind }, { kind, v: "x" }, { kind, v: 1 }, { kind, w: 1 }]),
      {},
      [],
      1,
      "a",
    ];
    const $defs = { a: form("a"), b: form("b") };
    for (const [name, forms] of Object.entries(unions)) {
      const rest: JsonSchema = name === "tracked" ? { unevaluatedProperties: false } : {};
      const check = compileJsonSchema({ [keyword]: forms, $defs, ...rest });
      const single = forms.map((one) => compileJsonSchema({ allOf: [one], $defs, ...rest }));
      for (const value of values) {
        const fitting = single.filter((check) => !check(value).length).length;
        const fits = keyword === "anyOf" ? fitting > 0 : fitting === 1;
        assertEquals(check(value).length === 0, fits, `${name}: ${JSON.stringify(value)}`);
      }
    }
  });
}

Deno.test("an issue names the path in the alternative, or the known values", () => {
  const check = compileJsonSchema({ items: { anyOf: [form("a"), form("b")] } });
  assertEquals(check([{ kind: "a", v: 1 }, { kind: "c" }, { kind: {} }, {}]), [
    { path: "[0].v", message: sentence("string", "number") },
    { path: "[1].kind", message: sentence('"a"', '"b"', '"c"') },
    { path: "[2].kind", message: sentence('"a"', '"b"', "object") },
    { path: "[3]", message: sentence("kind:") },
  ]);
});

Deno.test("draft-07 ignores keywords next to a $ref", () => {
  const check = compileJsonSchema({
    $schema: "http://json-schema.org/draft-07/schema#",
    anyOf: [
      { $ref: "#/definitions/any", properties: { kind: { const: "a" } } },
      { properties: { kind: { const: "b" } } },
    ],
    definitions: { any: {} },
  });
  assertEquals(check({ kind: "c" }), []);
});
