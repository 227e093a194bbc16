import everything from "../../examples/everything.ts";
import { compileJsonSchema } from "../../src/core/schema/json_check.ts";
import { type JsonSchema, toPath } from "../../src/core/schema/json_schema.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { random } from "../support/random.ts";
import { assert, assertEquals, assertLess, assertLessOrEqual, assertThrows } from "../support/std.ts";
import { startCost } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";

function fits(schema: JsonSchema, value: unknown): boolean {
  return compileJsonSchema(schema)(value).length === 0;
}

function issues(schema: JsonSchema, value: unknown): string[] {
  return compileJsonSchema(schema)(value).map(({ path, message }) => `${path}: ${message}`);
}

/** Values are parsed with JSON.parse, so that `__proto__` is an ordinary property. */
const json = JSON.parse;

type Case = readonly [schema: JsonSchema, valid: readonly unknown[], invalid: readonly unknown[]];

const CASES: Record<string, readonly Case[]> = {
  type: [
    [{ type: "string" }, ["", "x"], [1, null, true, [], {}, undefined]],
    [{ type: "number" }, [0, -1.5, 1e300], ["1", null, true, NaN, Infinity]],
    [{ type: "integer" }, [0, -3, 1.0, 2 ** 53 - 1, -(2 ** 53) + 1], [1.5, "1", null, NaN, 2 ** 53, 1e20]],
    [{ type: "boolean" }, [true, false], [0, "true", null]],
    [{ type: "null" }, [null], [0, "", false, undefined, {}]],
    [{ type: "array" }, [[], [1]], [{}, "x", null]],
    [{ type: "object" }, [{}, { a: 1 }], [[], null, "x"]],
    [{ type: ["string", "null"] }, ["x", null], [1, {}, []]],
    [{ type: ["integer", "array"] }, [1, []], [1.5, {}]],
    [{ type: [] }, [], [1, "x", null, [], {}]],
    [{}, [1, "x", null, [], {}], []],
  ],
  "enum and const": [
    [{ enum: [1, "a", null, { x: [1] }, [2]] }, [1, "a", null, { x: [1] }, [2]], [2, "1", { x: [] }, [2, 2], false]],
    [{ enum: [0, false] }, [0, false], ["", null]],
    [{ enum: [{ a: 1, b: 2 }] }, [{ b: 2, a: 1 }], [{ a: 1 }, { a: 1, b: 2, c: 3 }]],
    [{ const: "x" }, ["x"], ["y", null, ["x"]]],
    [{ const: null }, [null], [0, undefined, ""]],
    [{ const: false }, [false], [0, null]],
    [{ const: { a: { c: 1, b: [] } } }, [{ a: { b: [], c: 1 } }], [{ a: { b: [], c: 2 } }, { a: { b: {}, c: 1 } }]],
    [{ const: [{ a: 1 }] }, [[{ a: 1 }]], [[{ a: true }], [1], { 0: { a: 1 } }]],
    [{ const: json('{"__proto__": 1}') }, [json('{"__proto__": 1}')], [{}, json('{"__proto__": 2}')]],
    [{ const: "a", enum: ["a", "b"] }, ["a"], ["b"]],
    [{ const: "b", enum: ["a"] }, [], ["a", "b"]],
  ],
  numbers: [
    [{ minimum: 1.1 }, [1.1, 2, "x"], [1, -5]],
    [{ maximum: 3 }, [3, 2.9, "x"], [3.01]],
    [{ minimum: 0 }, [0, -0], [-1e-9]],
    [{ exclusiveMinimum: 1 }, [1.0001], [1, 0]],
    [{ exclusiveMaximum: 1 }, [0.999], [1, 2]],
    [{ exclusiveMinimum: 0, exclusiveMaximum: 0 }, ["x"], [0, 1, -1]],
    [{ multipleOf: 2 }, [10, 0, -4, "x"], [7, 1.5]],
    [{ multipleOf: 1.5 }, [0, 4.5, -3], [35, 1]],
    [{ multipleOf: 0.0001 }, [0.0075, 1], [0.00751]],
    [{ multipleOf: 0.01 }, [19.99, 4.02, 1.13, 33.33], [19.999, 0.005]],
    [{ multipleOf: 0.1 }, [0.3, 1.1, 7], [0.35]],
    [{ type: "integer", multipleOf: 0.123456789 }, [0], [1e308]],
    [{ multipleOf: 0.5 }, [1e308, 1.5], [1.25]],
    [{ multipleOf: 3 }, [9007199254740990], [9007199254740991]],
    [{ multipleOf: 1 }, [5], [5.000000001]],
    [{ multipleOf: 1e-8 }, [12391239123], []],
  ],
  strings: [
    [{ minLength: 2 }, ["ab", "abc", 1, "💩💩"], ["a", "", "💩"]],
    [{ maxLength: 2 }, ["", "ab", 100, "💩💩"], ["abc", "💩💩💩"]],
    [{ minLength: 0, maxLength: 0 }, [""], ["a"]],
    [{ maxLength: 1 }, ["\ud800", "\udc00"], ["\udc00\ud800"]],
    [{ pattern: "^a+$" }, ["a", "aaa", 5, null], ["", "ab", "A"]],
    [{ pattern: "b" }, ["abc"], ["ac"]],
    [{ pattern: "^\\p{Letter}+$" }, ["né", "π"], ["1"]],
    [{ pattern: "^.$" }, ["💩"], ["ab"]],
    [{ format: "email" }, ["a text that is not a mail address"], []],
    [{ contentEncoding: "base64", contentMediaType: "application/json" }, ["!"], []],
  ],
  objects: [
    [{ properties: { a: { type: "number" }, b: {} } }, [{}, { a: 1, c: "x" }, [], 1], [{ a: "1" }]],
    [{ required: ["a", "b"] }, [{ a: 1, b: null }, [], "x"], [{ a: 1 }, {}]],
    [{ required: [] }, [{}], []],
    [{ required: ["a"] }, [{ a: 0 }, { a: "" }], [{ a: undefined }]],
    [{ properties: { a: { type: "number" } } }, [{ a: undefined }], []],
    [{ additionalProperties: false }, [{}, { a: undefined }, [1]], [{ a: 1 }]],
    [{ properties: { a: {} }, additionalProperties: false }, [{ a: 1 }], [{ a: 1, b: 2 }]],
    [{ properties: { a: {} }, additionalProperties: { type: "string" } }, [{ a: 1, b: "x" }], [{ b: 1 }]],
    [{ patternProperties: { "^x-": { type: "string" }, "y$": { minLength: 2 } } }, [{ "x-a": "", z: 1, "x-y": "ab" }], [
      { "x-a": 1 },
      { "x-y": "a" },
      { "x-y": 5 },
    ]],
    [{ patternProperties: { "^x-": {} }, properties: { a: {} }, additionalProperties: false }, [{ "x-1": 1, a: 2 }], [
      { b: 1 },
    ]],
    [{ patternProperties: { a: false } }, [{ b: 1 }], [{ a: 1 }, { cat: 1 }]],
    [{ properties: { a: true, b: false } }, [{ a: 1 }, {}], [{ b: 1 }]],
    [{ propertyNames: { maxLength: 3 } }, [{ abc: 1 }, []], [{ abcd: 1 }]],
    [{ propertyNames: { pattern: "^[a-z]+$" } }, [{ a: 1 }], [{ A: 1 }]],
    [{ propertyNames: false }, [{}], [{ a: 1 }]],
    [{ propertyNames: { enum: ["a", "b"] } }, [{ a: 1, b: 2 }], [{ c: 1 }]],
    [{ minProperties: 1 }, [{ a: 1 }, []], [{}, { a: undefined }]],
    [{ maxProperties: 1 }, [{}, { a: 1 }, { a: 1, b: undefined }], [{ a: 1, b: 2 }]],
    [{ dependentRequired: { a: ["b", "c"] } }, [{}, { b: 1 }, { a: 1, b: 1, c: 1 }], [{ a: 1 }, { a: 1, b: 1 }]],
    [{ dependentRequired: { a: [] } }, [{ a: 1 }], []],
    [{ dependentSchemas: { a: { required: ["b"] }, c: false } }, [{ b: 1 }, { a: 1, b: 1 }], [{ a: 1 }, { c: 1 }]],
    [{ dependentSchemas: { a: { properties: { b: { type: "string" } } } } }, [{ b: 1 }, { a: 1, b: "x" }], [
      { a: 1, b: 1 },
    ]],
  ],
  "names that objects inherit": [
    [{ properties: { constructor: { type: "number" } } }, [{}, { constructor: 1 }], [{ constructor: "x" }]],
    [{ required: ["toString"] }, [{ toString: 1 }], [{}]],
    [{ required: ["__proto__"] }, [json('{"__proto__":1}')], [{}]],
    [json('{"properties":{"__proto__":{"type":"number"}}}'), [{}, json('{"__proto__":1}')], [
      json('{"__proto__":"x"}'),
    ]],
    [{ properties: { a: {} }, additionalProperties: false }, [{ a: 1 }], [
      json('{"__proto__":1}'),
      { constructor: 1 },
      { toString: 1 },
    ]],
    [{ dependentRequired: { constructor: ["a"] } }, [{}], [{ constructor: 1 }]],
    [{ dependentRequired: { a: ["b"] } }, [{ toString: 1, valueOf: 2, constructor: 3 }], []],
    [json('{"dependentSchemas":{"__proto__":{"required":["a"]}}}'), [{}], [json('{"__proto__":1}')]],
    [{ maxProperties: 0 }, [{}], [json('{"__proto__":1}')]],
    [{ $ref: "#/$defs/constructor", $defs: { constructor: { type: "string" } } }, ["x"], [1]],
    [{ unevaluatedProperties: false, properties: { valueOf: {} } }, [{ valueOf: 1 }], [{ toString: 1 }]],
    [{ enum: [{ toString: 1 }] }, [{ toString: 1 }], [{ toString: 2 }, {}]],
    [{ uniqueItems: true }, [[json('{"__proto__":1}'), {}], [{ toString: null }, { valueOf: 1 }]], [[
      json('{"__proto__":1}'),
      json('{"__proto__":1}'),
    ]]],
  ],
  arrays: [
    [{ items: { type: "number" } }, [[], [1, 2], {}, "x"], [[1, "2"]]],
    [{ items: false }, [[]], [[1]]],
    [{ items: true }, [[1, "x"]], []],
    [{ prefixItems: [{ type: "number" }, { type: "string" }] }, [[], [1], [1, "x"], [1, "x", null]], [["x"], [1, 2]]],
    [{ prefixItems: [{}], items: { type: "number" } }, [["x", 1], ["x"]], [["x", "y"]]],
    [{ prefixItems: [{}, {}], items: false }, [[1, 2]], [[1, 2, 3]]],
    [{ prefixItems: [false] }, [[]], [[1]]],
    [{ minItems: 1 }, [[0], {}], [[]]],
    [{ maxItems: 2 }, [[], [1, 2], "abc"], [[1, 2, 3]]],
    [{ uniqueItems: true }, [[], [1, 2, "1", true, "true", null, [1], { a: 1 }]], [[1, 1], [{ a: 1, b: 2 }, {
      b: 2,
      a: 1,
    }], [
      [],
      [],
    ]]],
    [{ uniqueItems: true }, [[0, false, "", null], [[1], [true]], [{ a: 0 }, { a: false }]], [["a", "b", "a"], [
      null,
      null,
    ]]],
    [{ uniqueItems: false }, [[1, 1]], []],
    [{ contains: { minimum: 5 } }, [[1, 5], [6], {}], [[], [1, 2]]],
    [{ contains: { const: 1 }, minContains: 2 }, [[1, 1], [1, 2, 1]], [[1], []]],
    [{ contains: { const: 1 }, maxContains: 1 }, [[1, 2]], [[1, 1], [2]]],
    [{ contains: { const: 1 }, minContains: 0 }, [[], [2]], []],
    [{ contains: { const: 1 }, minContains: 0, maxContains: 1 }, [[], [1]], [[1, 1]]],
    [{ contains: true }, [[1]], [[]]],
    [{ contains: false }, ["x"], [[1], []]],
    [{ minContains: 2, maxContains: 0 }, [[1], []], []],
    [{ items: { items: { type: "integer" } } }, [[[1], []]], [[[1.5]]]],
  ],
  combinations: [
    [{ allOf: [{ minimum: 1 }, { maximum: 3 }] }, [1, 2, 3], [0, 4]],
    [{ allOf: [true, {}] }, [1], []],
    [{ allOf: [true, false] }, [], [1]],
    [{ anyOf: [{ type: "integer" }, { minimum: 2 }] }, [1, 2.5, 3, "x"], [1.5]],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, ["x", null], [1]],
    [{ anyOf: [false, false] }, [], [1]],
    [{ anyOf: [{ required: ["a"] }, { required: ["b"] }] }, [{ a: 1 }, { b: 1 }, { a: 1, b: 1 }], [{}]],
    [{ oneOf: [{ type: "integer" }, { minimum: 2 }] }, [1, 2.5], [3, 1.5]],
    [{ oneOf: [{ const: 1 }, { const: 2 }] }, [1, 2], [3]],
    [{ oneOf: [true, true] }, [], [1]],
    [{ oneOf: [true, false] }, [1], []],
    [{ not: { type: "integer" } }, ["x", 1.5], [1]],
    [{ not: {} }, [], [1, null]],
    [{ not: false }, [1, {}], []],
    [{ not: { not: { type: "string" } } }, ["x"], [1]],
    [{ not: { properties: { a: { type: "string" } } } }, [{ a: 1 }], [{ a: "x" }, {}]],
    [{ if: { minimum: 10 }, then: { multipleOf: 10 }, else: { maximum: 5 } }, [20, 3], [15, 7]],
    [{ if: { const: 1 }, then: false }, [2], [1]],
    [{ if: { const: 1 }, else: false }, [1], [2]],
    [{ if: false, then: false }, [1], []],
    [{ if: true, else: false }, [1], []],
    [{ then: false, else: false }, [1], []],
    [{ anyOf: [{ allOf: [{ minimum: 5 }, { maximum: 6 }] }, { oneOf: [{ const: 1 }, { const: 2 }] }] }, [5, 1, 2], [
      4,
      7,
    ]],
  ],
  references: [
    [{ $ref: "#/$defs/a", $defs: { a: { type: "string" } } }, ["x"], [1]],
    [{ properties: { next: { $ref: "#" }, v: { type: "number" } }, additionalProperties: false }, [{
      v: 1,
      next: { next: {} },
    }], [
      { next: { next: { x: 1 } } },
      { next: { v: "1" } },
    ]],
    [{ $ref: "#word", $defs: { x: { $anchor: "word", const: 1 } } }, [1], [2]],
    [{ $dynamicRef: "#node", $defs: { x: { $dynamicAnchor: "node", const: 1 } } }, [1], [2]],
    [{ $ref: "#/$defs/a~1b~0c", $defs: { "a/b~c": { const: 1 } } }, [1], [2]],
    [{ $ref: "#/$defs/a%25b%20c", $defs: { "a%b c": { const: 1 } } }, [1], [2]],
    [{ $ref: "#/properties/a", properties: { a: { type: "object" } } }, [{ a: {} }], [1, { a: 1 }]],
    [{ items: { $ref: "#/prefixItems/0" }, prefixItems: [{ type: "number" }] }, [[1, 2]], [["x"], [1, "x"]]],
    [{ $ref: "#/$defs/a", minimum: 3, $defs: { a: { type: "number" } } }, [3], [2, "x"]],
    [{ $ref: "#/$defs/no", $defs: { no: false } }, [], [1]],
    [{ $ref: "#/$defs/yes", $defs: { yes: true } }, [1], []],
    [{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/c" }, c: { const: 1 } } }, [1], [2]],
    [{ $ref: "#/components/x", components: { x: { pattern: "^a", $ref: "#/components/y" }, y: { minLength: 2 } } }, [
      "ab",
    ], [
      "a",
      "b",
    ]],
    [{ $id: "https://example.com/tree", items: { $ref: "#" }, type: "array" }, [[[]]], [[1]]],
    [{ definitions: { a: { const: 1 } }, $ref: "#/definitions/a" }, [1], [2]],
    [{ properties: { $ref: { type: "string" } } }, [{ $ref: "x" }], [{ $ref: 1 }]],
    [{
      $defs: { tree: { anyOf: [{ type: "null" }, { items: { $ref: "#/$defs/tree" }, type: "array" }] } },
      $ref: "#/$defs/tree",
    }, [
      null,
      [null, [null]],
    ], [1, [[1]]]],
  ],
  unevaluated: [
    [{ properties: { a: {} }, unevaluatedProperties: false }, [{ a: 1 }, {}], [{ b: 1 }]],
    [{ allOf: [{ properties: { a: {} } }], properties: { b: {} }, unevaluatedProperties: false }, [{ a: 1, b: 2 }], [{
      c: 1,
    }]],
    [{ $ref: "#/$defs/a", $defs: { a: { properties: { a: {} } } }, unevaluatedProperties: false }, [{ a: 1 }], [{
      b: 1,
    }]],
    [{
      anyOf: [{ properties: { a: { const: 1 } }, required: ["a"] }, { properties: { b: {} }, required: ["b"] }],
      unevaluatedProperties: false,
    }, [
      { a: 1 },
      { b: 1 },
      { a: 1, b: 1 },
    ], [{ a: 2, b: 1 }, { a: 1, c: 1 }]],
    [{
      oneOf: [{ properties: { a: {} }, required: ["a"] }, { properties: { b: {} }, required: ["b"] }],
      unevaluatedProperties: false,
    }, [
      { a: 1 },
      { b: 1 },
    ], [{ a: 1, b: 1 }, { a: 1, c: 1 }]],
    [{ not: { not: { properties: { a: {} } } }, unevaluatedProperties: false }, [{}], [{ a: 1 }]],
    [{
      if: { properties: { k: { const: 1 } }, required: ["k"] },
      then: { properties: { a: {} } },
      else: { properties: { b: {} } },
      unevaluatedProperties: false,
    }, [
      { k: 1, a: 1 },
      { b: 1 },
    ], [{ k: 1, b: 1 }, { a: 1 }, { k: 2 }]],
    [{ if: { properties: { a: {} }, required: ["a"] }, unevaluatedProperties: false }, [{ a: 1 }, {}], [{ b: 1 }]],
    [{ dependentSchemas: { a: { properties: { a: {}, b: {} } } }, unevaluatedProperties: false }, [{ a: 1, b: 1 }], [{
      b: 1,
    }]],
    [{ patternProperties: { "^x": {} }, unevaluatedProperties: { type: "string" } }, [{ x1: 1, y: "s" }], [{ y: 1 }]],
    [{ additionalProperties: { type: "number" }, unevaluatedProperties: false }, [{ a: 1 }], [{ a: "x" }]],
    [{ allOf: [{ additionalProperties: true }], unevaluatedProperties: false }, [{ a: 1 }], []],
    [{ allOf: [{ unevaluatedProperties: true }], unevaluatedProperties: false }, [{ a: 1 }], []],
    [{ properties: { a: {} }, allOf: [{ unevaluatedProperties: false }] }, [{}], [{ a: 1 }]],
    [{ properties: { a: { properties: { b: {} }, unevaluatedProperties: false } } }, [{ a: { b: 1 } }], [{
      a: { c: 1 },
    }]],
    [{ prefixItems: [{}], unevaluatedItems: false }, [[1], []], [[1, 2]]],
    [{ prefixItems: [{}], unevaluatedItems: { type: "string" } }, [[1, "x"]], [[1, 2]]],
    [{ items: {}, unevaluatedItems: false }, [[1, 2]], []],
    [{ allOf: [{ prefixItems: [{}, {}] }], prefixItems: [{}], unevaluatedItems: false }, [[1, 2]], [[1, 2, 3]]],
    [{ contains: { type: "string" }, unevaluatedItems: { type: "number" } }, [["a", 1, "b"]], [["a", null]]],
    [{ contains: { type: "string" }, minContains: 0, unevaluatedItems: false }, [["a"], []], [[1]]],
    [
      {
        allOf: [{ contains: { multipleOf: 2 } }, { contains: { multipleOf: 3 } }],
        unevaluatedItems: { multipleOf: 5 },
      },
      [[2, 3, 4, 5, 6]],
      [[2, 3, 4, 7]],
    ],
    [{ anyOf: [{ prefixItems: [{ const: 1 }] }, { prefixItems: [{}, { const: 2 }] }], unevaluatedItems: false }, [[1], [
      3,
      2,
    ]], [[1, 3]]],
    [{ if: { prefixItems: [{ const: 1 }] }, then: { prefixItems: [{}, {}] }, unevaluatedItems: false }, [[1, 2], []], [[
      1,
      2,
      3,
    ], [2]]],
    [{ unevaluatedItems: false }, [[], "x", {}], [[1]]],
    [
      {
        $defs: { base: { properties: { kind: { type: "string" } } } },
        items: { allOf: [{ $ref: "#/$defs/base" }], unevaluatedProperties: false },
      },
      [[{ kind: "x" }]],
      [[{ kind: "x", other: 1 }]],
    ],
  ],
  "draft-07": [
    [
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        definitions: { a: { const: 1 } },
        $ref: "#/definitions/a",
        minimum: 5,
      },
      [1],
      [2],
    ],
    [
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        items: [{ type: "number" }],
        additionalItems: { type: "string" },
      },
      [[1, "x"], []],
      [
        ["x"],
        [1, 2],
      ],
    ],
    [{ $schema: "https://json-schema.org/draft-07/schema", items: [{}], additionalItems: false }, [[1]], [[1, 2]]],
    [{ $schema: "http://json-schema.org/draft-07/schema#", items: { type: "number" }, additionalItems: false }, [[
      1,
      2,
    ]], [["x"]]],
    [{ $schema: "http://json-schema.org/draft-07/schema#", dependencies: { a: ["b"], c: { required: ["d"] } } }, [{
      a: 1,
      b: 1,
    }, { c: 1, d: 1 }], [
      { a: 1 },
      { c: 1 },
    ]],
  ],
  dialects: [
    [{ $schema: "https://json-schema.org/draft/2020-12/schema", type: "string" }, ["x"], [1]],
    [{ $schema: "https://json-schema.org/draft/2020-12/schema#", type: "string" }, ["x"], [1]],
    [
      {
        title: "x",
        description: "y",
        default: 5,
        examples: [{ $ref: "nowhere" }],
        deprecated: true,
        "x-more": { type: "nonsense" },
        propertyOrdering: ["a"],
        additionalInfo: "text",
      },
      [1],
      [],
    ],
    [{ properties: { a: [] }, patternProperties: { b: ["x"] } }, [{ a: { x: 1 }, b: { y: [] } }, { a: 1 }], []],
    [{ properties: { enum: { type: "string" }, const: { pattern: "^a" }, default: { minimum: 1 } } }, [{
      enum: "x",
      const: "a",
    }], [
      { enum: 1 },
      { const: "b" },
      { default: 0 },
    ]],
  ],
};

for (const [name, cases] of Object.entries(CASES)) {
  Deno.test(`json schema: ${name}`, () => {
    for (const [schema, valid, invalid] of cases) {
      const check = compileJsonSchema(schema);
      for (const value of valid) {
        assertEquals(check(value), [], `${JSON.stringify(schema)} on ${JSON.stringify(value)}`);
      }
      for (const value of invalid) {
        assert(check(value).length > 0, `${JSON.stringify(schema)} takes ${JSON.stringify(value)}`);
        // The same validator must accept a valid value after a failure, which shows that a failure leaves no state
        // behind.
        if (valid.length) assertEquals(check(valid[0]), []);
      }
    }
  });
}

Deno.test("json schema: a tool's schema can use all kinds of keywords", async () => {
  await using client = await connectTest(everything);
  const tool = (await client.listTools()).find(({ description }) => description?.includes("only raw JSON Schema"));
  const schema = tool?.inputSchema as JsonSchema; // The cast is safe, because the example uses raw JSON Schema.
  assert(fits(schema, { name: "x", contactMethod: "phone", phone: "1", address: { city: "y" } }));
  assert(fits(schema, { email: "x" }));
  assertEquals(issues(schema, { name: 1, address: { city: 2 }, phone: "1", fax: "2" }), [
    sentence("name:", "string", "number"),
    sentence("address.city:", "string", "number"),
    sentence("fax:"),
    sentence("email:"),
  ]);
  assertEquals(issues(schema, {}), [sentence("phone:", "email:"), sentence("email:")]);
});

Deno.test("json schema: messages contain the path, the expected value and the actual value", () => {
  const cases: [JsonSchema, unknown, string[]][] = [
    [{ type: ["string", "null"] }, 1, [sentence("string", "null", "number")]],
    [{ type: "integer" }, 1.5, [sentence("integer", "number")]],
    [{ type: "number" }, NaN, [sentence("number", "NaN")]],
    [{ properties: { a: { items: { properties: { "b c": { type: "number" } } } } } }, { a: [{}, { "b c": "x" }] }, [
      sentence("a[1].b c:", "number", "string"),
    ]],
    [{ properties: { a: { enum: ["x", 2, null] } } }, { a: "y" }, [sentence("a:", '"x"', 2, "null", '"y"')]],
    [{ const: { a: 1 } }, 1, [sentence('{"a":1}', 1)]],
    [{ required: ["a", "b"] }, {}, [sentence("a:"), sentence("b:")]],
    [{ additionalProperties: false }, { a: 1 }, [sentence("a:")]],
    [{ minLength: 2 }, "a", [sentence(2, 1)]],
    [{ maxItems: 1 }, [1, 2], [sentence(1, 2)]],
    [{ contains: { const: 1 } }, [2], [sentence(1, 0)]],
    [{ exclusiveMinimum: 0 }, 0, [sentence(0)]],
    [{ multipleOf: 5 }, 7, [sentence(5, 7)]],
    [{ pattern: "^a$" }, "b", [sentence("^a$", '"b"')]],
    [{ uniqueItems: true }, [1, 1], [sentence()]],
    [{ not: { type: "null" } }, null, [sentence("not")]],
    [{ oneOf: [{}, { type: "number" }, {}] }, 1, [sentence("oneOf", 3)]],
    [{ properties: { a: { anyOf: [{ type: "string" }, { properties: { b: { const: 1 } } }] } } }, { a: { b: 2 } }, [
      sentence("a:", "string", "object", "b:", 1, 2),
    ]],
    [{ propertyNames: { maxLength: 1 } }, { ab: 1 }, [sentence("ab:", 1, 2)]],
    [{ dependentRequired: { a: ["b"] } }, { a: 1 }, [sentence("b:")]],
    [{ prefixItems: [{}, { type: "string" }], items: false }, [1, 2, 3], [
      sentence("[1]:", "string", "number"),
      sentence("[2]:"),
    ]],
  ];
  for (const [schema, value, expected] of cases) assertEquals(issues(schema, value), expected);
  assertEquals(toPath(["a", 0, "b", "", "c.d", Symbol("s")]), "a[0].b..c.d.Symbol(s)");
});

Deno.test("json schema: there are at most twenty issues, each of limited length", () => {
  const schema = {
    properties: { big: { const: "y" } },
    additionalProperties: { type: "string", enum: ["x".repeat(5000)] },
  };
  const many = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => ["k".repeat(300) + i, i % 2 ? i : "z".repeat(9999)]),
  );
  const found = compileJsonSchema(schema)({ big: "z".repeat(1_000_000), ...many });
  assertEquals(found.length, 20);
  for (const { path, message } of found) assertLess(path.length + message.length, 400);
  assertEquals(compileJsonSchema({ required: Array.from({ length: 30 }, (_, i) => `r${i}`) })({}).length, 20);
  assertEquals(compileJsonSchema({ items: { anyOf: [{ const: 1 }, { const: 2 }] } })(Array(100).fill(3)).length, 20);
});

Deno.test("json schema: an unusable schema is refused with a remedy when it is defined", () => {
  let deep: JsonSchema = {};
  for (let i = 0; i < 10_000; i++) deep = { allOf: [deep] };
  let nested: JsonSchema = {};
  for (let i = 0; i < 65; i++) nested = { items: nested };
  const wide = { anyOf: Array.from({ length: 10_001 }, () => ({})) };
  const chain = Object.fromEntries(Array.from({ length: 200 }, (_, i) => ["d" + i, { $ref: `#/$defs/d${i + 1}` }]));
  const cases: [JsonSchema, string][] = [
    [{ $ref: "http://169.254.169.254/latest" }, sentence("http://169.254.169.254/latest")],
    [{ $ref: "file:///etc/passwd" }, sentence("file:///etc/passwd")],
    [{ properties: { a: { items: { $ref: "other.json#/x" } } } }, sentence("other.json#/x")],
    [{ $dynamicRef: "https://example.com/x" }, sentence("https://example.com/x")],
    [{ $ref: "#/$defs/nowhere" }, sentence('"#/$defs/nowhere"')],
    [{ $ref: "#nowhere" }, sentence('"#nowhere"')],
    [{ $ref: "#/$defs/toString", $defs: {} }, sentence('"#/$defs/toString"')],
    [{ $ref: "#/title", title: "x" }, sentence('"#/title"', '"x"')],
    [{ $ref: "#" }, sentence('"#"')],
    [{ allOf: [{ $ref: "#" }] }, sentence('"#"')],
    [
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { allOf: [{ $ref: "#/$defs/a" }] } } },
      sentence('"#/$defs/a"'),
    ],
    [
      { properties: { x: { $ref: "#/$defs/a" } }, $defs: { a: { not: { $ref: "#/$defs/a" } } } },
      sentence('"#/$defs/a"'),
    ],
    [{
      properties: { x: { $ref: "#/$defs/b" } },
      allOf: [{ $ref: "#/$defs/b" }],
      $defs: { b: { anyOf: [{ $ref: "#" }] } },
    }, sentence('"#"')],
    [{ if: true, then: { $ref: "#" } }, sentence('"#"')],
    [{ dependentSchemas: { a: { $ref: "#" } } }, sentence('"#"')],
    [{ $dynamicAnchor: "x", oneOf: [{ $dynamicRef: "#x" }] }, sentence('"#x"')],
    [deep, sentence(64)],
    [nested, sentence(64)],
    [{ $ref: "#/$defs/d0", $defs: { ...chain, d200: {} } }, sentence(64)],
    [wide, sentence(10_000)],
    [{ pattern: "(" }, sentence('"("')],
    [{ pattern: "\\-" }, sentence('"\\\\-"')],
    [{ patternProperties: { "[": {} } }, sentence('"["')],
    [{ $schema: "http://json-schema.org/draft-04/schema#" }, sentence("2020-12")],
    [{ $schema: "https://json-schema.org/draft/2019-09/schema" }, sentence("2020-12")],
    [{ $schema: "https://example.com/my-dialect" }, sentence("2020-12")],
    [{ type: "strng" }, sentence('"strng"')],
    [{ type: ["string", "any"] }, sentence('"string"', '"any"')],
    [{ properties: { a: "string" } }, sentence("properties", '"string"')],
    [{ properties: { a: null } }, sentence("properties", "null")],
    [{ items: [{}] }, sentence("items", "[{}]")],
    [{ not: [{}] }, sentence("not", "[{}]")],
    [{ anyOf: { type: "string" } }, sentence("anyOf", '{"type":"string"}')],
    [{ required: "a" }, sentence("required", '"a"')],
    [{ type: ["string", { toString: 1 }] }, sentence('{"toString":1}')],
    [{ enum: "a" }, sentence("enum", '"a"')],
    [{ items: { $id: "https://example.com/x" } }, sentence("$id")],
  ];
  for (const [schema, reason] of cases) {
    const { message } = assertThrows(() => compileJsonSchema(schema), TypeError, reason);
    assert(message.includes(";"), `the message states no remedy: ${message}`);
    assertLess(message.length, 250);
  }
});

Deno.test("json schema: a keyword with a value of the wrong kind is refused, with the keyword and its place", () => {
  const inner = (schema: JsonSchema) => ({ properties: { age: { anyOf: [schema] } } });
  const wrong: [JsonSchema, keyword: string][] = [
    [{ exclusiveMinimum: true }, "exclusiveMinimum"],
    [{ exclusiveMaximum: false }, "exclusiveMaximum"],
    [{ minimum: "0" }, "minimum"],
    [{ maximum: null }, "maximum"],
    [{ maximum: NaN }, "maximum"],
    [{ multipleOf: 0 }, "multipleOf"],
    [{ multipleOf: "2" }, "multipleOf"],
    [{ minLength: -1 }, "minLength"],
    [{ maxLength: 1.5 }, "maxLength"],
    [{ minItems: "1" }, "minItems"],
    [{ maxContains: null }, "maxContains"],
    [{ minProperties: true }, "minProperties"],
    [{ pattern: null }, "pattern"],
    [{ pattern: ["a"] }, "pattern"],
    [{ uniqueItems: "yes" }, "uniqueItems"],
    [{ required: [1] }, "required"],
    [{ required: true }, "required"],
    [{ properties: [] }, "properties"],
    [{ properties: null }, "properties"],
    [{ patternProperties: "a" }, "patternProperties"],
    [{ $defs: [] }, "$defs"],
    [{ dependentRequired: { a: "b" } }, "dependentRequired"],
    [{ dependentRequired: { a: [1] } }, "dependentRequired"],
    [{ dependentSchemas: { a: ["b"] } }, "dependentSchemas"],
    [{ dependencies: { a: [true] } }, "dependencies"],
    [{ description: null }, "description"],
    [{ title: 1 }, "title"],
    [{ format: {} }, "format"],
    [{ $ref: 1 }, "$ref"],
    [{ type: null }, "type"],
    [{ items: null }, "items"],
    [{ enum: null }, "enum"],
    [{ additionalProperties: "no" }, "additionalProperties"],
  ];
  for (const [schema, keyword] of wrong) {
    assertThrows(() => compileJsonSchema(schema), TypeError, sentence(keyword, ";"));
    assertThrows(() => compileJsonSchema(inner(schema)), TypeError, sentence(keyword, "properties.age.anyOf", ";"));
  }
});

Deno.test("json schema: a keyword with the value undefined counts as absent", () => {
  const schema = { type: "object", required: undefined, pattern: undefined, items: undefined, minimum: undefined };
  assertEquals(compileJsonSchema(schema)({}), []);
});

Deno.test("json schema: a reference that looks circular but descends into the value is valid", () => {
  const schemas: JsonSchema[] = [
    { properties: { x: { $ref: "#" } } },
    { properties: { x: { allOf: [{ $ref: "#" }] } } },
    { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }], $defs: { a: { items: { $ref: "#" } } } },
    {
      $defs: { a: { properties: { b: { $ref: "#/$defs/b" } } }, b: { allOf: [{ $ref: "#/$defs/a" }] } },
      $ref: "#/$defs/b",
    },
  ];
  for (const schema of schemas) assertEquals(compileJsonSchema(schema)({ x: { x: [1] }, b: { b: {} } }), []);
  let nested: JsonSchema = { type: "number" };
  for (let i = 0; i < 64; i++) nested = { items: nested };
  assert(fits(nested, []));
  assert(fits({ anyOf: Array.from({ length: 9999 }, () => ({})) }, []));
});

Deno.test("json schema: the time and memory for hostile values are limited", () => {
  // Each level doubles the number of paths to the last level. Without a limit, this takes 2^28 steps, because the
  // outcome for a text is not cached.
  const $defs: Record<string, JsonSchema> = { x28: { type: "string" } };
  for (let i = 0; i < 28; i++) {
    $defs[`x${i}`] = { allOf: [{ $ref: `#/$defs/x${i + 1}` }, { $ref: `#/$defs/x${i + 1}` }] };
  }
  const exploding = { $ref: "#/$defs/x0" };
  assertEquals(issues({ ...exploding, $defs }, "x"), [sentence()]);
  // Exceeding the limit must not count as the failure that `not` expects.
  assertEquals(issues({ not: exploding, $defs }, "x"), [sentence()]);

  // Exceeding the limit must not affect the next check.
  const check = compileJsonSchema({ properties: { a: { not: exploding }, b: { type: "number" } }, $defs });
  assertEquals(check({ a: "x" }).length, 1);
  assertEquals(check({ b: "" }), [{ path: "b", message: sentence("number", "string") }]);

  let deep: unknown = {};
  for (let i = 0; i < 100_000; i++) deep = { a: deep };
  assertEquals(issues({ properties: { a: { $ref: "#" } } }, deep), [sentence()]);

  const numbers = Array.from({ length: 100_000 }, (_, i) => ({ i }));
  assert(fits({ items: { required: ["i"] }, uniqueItems: true }, numbers));
});

Deno.test("json schema: the time for compiling a schema with very many anchors is limited", () => {
  const names = Array.from({ length: 4000 }, (_, i) => `a${i}`);
  const schema = {
    properties: Object.fromEntries(names.map((name) => [name, { $ref: `#${name}` }])),
    $defs: Object.fromEntries(names.map((name, i) => [name, { $anchor: name, type: i % 2 ? "string" : "number" }])),
  };
  const cost = startCost();
  assertEquals(issues(schema, { a1: "x", a2: 2, a3998: "x", a3999: "x" }), [sentence("a3998:", "number", "string")]);
  assertLess(cost(), 1500);
  assertThrows(() => compileJsonSchema({ $ref: "#undefined" }), TypeError, sentence("#undefined"));
});

Deno.test("json schema: the schema is not modified", () => {
  const schema = json('{"properties":{"a":{"enum":[{"b":1,"a":2}]}},"$defs":{"x":{"$anchor":"y"}}}');
  const before = JSON.stringify(schema);
  compileJsonSchema(schema)({ a: { a: 2, b: 1 } });
  assertEquals(JSON.stringify(schema), before);
});

Deno.test("json schema: invariants hold for random schemas and values", () => {
  const source = random(21);
  const names = ["a", "b", "__proto__"];
  function value(depth: number): unknown {
    const kind = source.below(depth ? 7 : 5);
    if (kind === 5) return Array.from({ length: source.below(4) }, () => value(depth - 1));
    if (kind === 6) {
      const entries = names.filter(() => source.below(2)).map((name) =>
        `${JSON.stringify(name)}:${JSON.stringify(value(depth - 1))}`
      );
      return json(`{${entries}}`);
    }
    return source.pick([null, true, 0, 1.5, 7, -1, "", "a", "abc"]);
  }
  function schema(depth: number): JsonSchema {
    const leaves: (() => JsonSchema)[] = [
      () => ({ type: source.pick(["null", "boolean", "object", "array", "number", "string", "integer"]) }),
      () => ({ type: ["string", source.pick(["null", "number"])] }),
      () => ({ const: value(1) }),
      () => ({ enum: [value(0), value(1)] }),
      () => ({ minimum: source.below(3) }),
      () => ({ multipleOf: 0.5 }),
      () => ({ maxLength: source.below(3) }),
      () => ({ pattern: source.pick(["a", "^$", "c$"]) }),
      () => ({ required: [source.pick(names)] }),
      () => ({ minItems: source.below(3) }),
      () => ({ maxProperties: source.below(3) }),
      () => ({ uniqueItems: true }),
    ];
    const sub = () => source.below(6) ? schema(depth - 1) : source.below(2) === 0 ? {} : { not: {} };
    const branches: (() => JsonSchema)[] = [
      () => ({ properties: json(`{"${source.pick(names)}":${JSON.stringify(sub())}}`), additionalProperties: sub() }),
      () => ({ items: sub(), contains: sub() }),
      () => ({ prefixItems: [sub()], items: sub() }),
      () => ({ allOf: [sub(), sub()], unevaluatedProperties: sub() }),
      () => ({ anyOf: [sub(), sub()] }),
      () => ({ if: sub(), then: sub(), else: sub(), unevaluatedItems: sub() }),
      () => ({ propertyNames: sub(), dependentSchemas: { a: sub() } }),
    ];
    return source.pick(depth && source.below(4) ? branches : leaves)();
  }
  for (let i = 0; i < 4000; i++) {
    const s = schema(3);
    const other = schema(2);
    const v = value(3);
    const ok = fits(s, v);
    const okOther = fits(other, v);
    const label = JSON.stringify({ s, other, v });
    assertEquals(fits({ not: s }, v), !ok, label);
    assertEquals(fits({ allOf: [s, other] }, v), ok && okOther, label);
    assertEquals(fits({ anyOf: [s, other] }, v), ok || okOther, label);
    assertEquals(fits({ oneOf: [s, other] }, v), ok !== okOther, label);
    assertEquals(fits({ if: s, then: other }, v), !ok || okOther, label);
    assertEquals(fits({ $ref: "#/$defs/s", $defs: { s } }, v), ok, label);
    assertEquals(
      fits({ ...s, unevaluatedProperties: true, unevaluatedItems: true }, v) || "unevaluatedProperties" in s ||
        "unevaluatedItems" in s,
      ok || "unevaluatedProperties" in s || "unevaluatedItems" in s,
      label,
    );
    assertEquals(fits({ items: s }, [v, v]), ok, label);
    assertEquals(fits({ properties: { x: s }, required: ["x"] }, { x: v }), ok, label);
    assertEquals(fits({ const: v }, json(JSON.stringify(v))), true, label);
    assertEquals(fits({ uniqueItems: true }, [v, json(JSON.stringify(v))]), false, label);
    const found = compileJsonSchema(s)(v);
    assertLessOrEqual(found.length, 20);
    for (const { message } of found) assert(message.length > 0 && message.length < 400, message);
  }
});

Deno.test("uniqueItems compares values as JSON values", () => {
  const all = ["1", 1, "01", "=1", "==1", "1e0", "1.0", "", "a", true, null, {}, [], [1], ["1"], ["1,2"], [1, 2], 0];
  const more = [
    { a: 1, b: 2 },
    { a: "1", b: 2 },
    { "a:1": 1 },
    [[], []],
    [[[]]],
    "9".repeat(15),
    "9".repeat(16),
    1e300,
  ];
  const different = [...all, ...more];
  const unique = { uniqueItems: true };
  assertEquals(issues(unique, different), []);
  const copies = [...structuredClone(different), -0, { b: 2, a: 1 }, 1.0];
  for (const copy of copies) {
    assertEquals(issues(unique, [...different, copy]), [sentence()], JSON.stringify(copy));
    assertEquals(issues({ items: unique }, [[copy, copy]]), [sentence("[0]:")], JSON.stringify(copy));
  }
  const date = new Date(0);
  for (const twice of [[date, date], [date, date.toJSON()], [{ toJSON: () => 1 }, 1], [{ toJSON: () => "1" }, "1"]]) {
    assertEquals(issues(unique, [...twice, {}]), [sentence()], JSON.stringify(twice));
  }
  assertEquals(issues(unique, [date, { toJSON: () => 1 }, { toJSON: () => "1" }]), []);
  const texts = Array.from({ length: 1000 }, (_, i) => `${i % 999}`);
  assertEquals(issues(unique, texts), [sentence()]);
  assertEquals(issues(unique, texts.slice(1)), []);
});

Deno.test("every keyword checks an object with very many keys, and checks the object again after a change", () => {
  const many: Record<string, unknown> = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, i]));
  const schema = {
    allOf: [{ properties: { k0: {} } }, { minProperties: 200, maxProperties: 200 }],
    properties: { k1: { type: "number" } },
    unevaluatedProperties: { type: "number" },
  };
  const check = compileJsonSchema(schema);
  assertEquals(check(many), []);
  many.k7 = "text";
  assertEquals(check(many), [{ path: "k7", message: sentence("number", "string") }]);
  delete many.k7;
  many.more = many.again = 1;
  assertEquals(check(many), [{ path: "", message: sentence(200, 201) }]);
});
