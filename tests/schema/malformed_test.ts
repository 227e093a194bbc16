// `tool()` throws for every malformed keyword of the two dialects. The judge is ajv, with the meta-schemas of 2020-12 and
// draft-07: for each keyword and each kind of value, what the meta-schema rejects, `tool()` rejects too.
import { Ajv } from "ajv/dist/ajv.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { tool } from "../../mod.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import type { JsonSchema } from "../../src/core/schema/json_schema.ts";
import { assert, assertEquals, assertThrows } from "../support/std.ts";
import { sentence } from "../support/messages.ts";
import { testClient } from "../support/test_server.ts";

const BOTH = [
  ...["$comment", "$id", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "contains"],
  ...["contentEncoding", "contentMediaType", "default", "definitions", "dependencies", "description", "else", "enum"],
  ...["examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maximum", "maxItems", "maxLength"],
  ...["maxProperties", "minimum", "minItems", "minLength", "minProperties", "multipleOf", "not", "oneOf", "pattern"],
  ...[
    "patternProperties",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "uniqueItems",
  ],
  ...["writeOnly"],
];

interface Dialect {
  readonly url: string;
  readonly keywords: readonly string[];
  readonly judge: { validateSchema(schema: object): unknown };
}

const quiet = { strict: false, validateFormats: false, logger: false } as const;
const dialects: readonly Dialect[] = [
  {
    url: "https://json-schema.org/draft/2020-12/schema",
    keywords: [
      ...BOTH,
      ...["$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"],
      ...["contentSchema", "dependentRequired", "dependentSchemas", "deprecated", "maxContains", "minContains"],
      ...["prefixItems", "unevaluatedItems", "unevaluatedProperties"],
    ],
    judge: new Ajv2020(quiet),
  },
  {
    url: "http://json-schema.org/draft-07/schema#",
    keywords: [...BOTH, "additionalItems"],
    judge: new Ajv(quiet),
  },
];

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 1.5, "", "string", "a b", "1a", "#a", "a#b", "a#", "^a$", "("],
  ...[[], [""], ["string"], ["string", "string"], ["a", "b"], ["a", "a"], [1], [1, 1], [null], [[]], [{}], [{}, {}]],
  ...[[true], [{ type: 5 }], {}, { a: 1 }, { a: "x" }, { a: true }, { a: null }, { a: {} }, { a: { type: 5 } }],
  ...[{ a: [] }, { a: ["b"] }, { a: ["b", "b"] }, { a: [1] }, { a: [{}] }, { type: 5 }, { type: "string" }],
  ...[{ "(": {} }, { title: [] }, { anyOf: [] }, { required: ["a", "a"] }],
];

/** Keywords with values that the meta-schemas permit, and that the library cannot use, such as a dangling reference. */
const UNUSABLE = /^(\$id|\$schema|\$ref|\$dynamicRef|pattern|patternProperties)$/;
/** What ajv's copy of draft-07 forbids, and the published meta-schema permits: values that occur twice. */
const isTwice = (keyword: string, value: unknown) => keyword === "enum" && Array.isArray(value) && value.length > 1;
/** What ajv's copy of the meta-schemas permits: an empty `enum`, which ajv itself rejects, and `writeOnly` in draft-07. */
const isOwnRule = (keyword: string) => keyword === "enum" || keyword === "writeOnly";

const wraps: Readonly<Record<string, (part: JsonSchema) => JsonSchema>> = {
  "the root": (part) => part,
  "a property": (part) => ({ properties: { a: part } }),
  "an alternative": (part) => ({ anyOf: [{ items: part }] }),
};

function refuses(schema: JsonSchema): boolean {
  try {
    tool({ name: "test", output: schema, run: () => ({}) });
    return false;
  } catch (error) {
    assert(error instanceof TypeError, String(error));
    return true;
  }
}

for (const { url, keywords, judge } of dialects) {
  for (const [place, wrap] of Object.entries(wraps)) {
    Deno.test(`tool() throws for what the meta-schema rejects in ${place}: ${url}`, () => {
      const [missed, more]: [string[], string[]] = [[], []];
      let rejected = 0;
      for (const keyword of keywords) {
        for (const value of VALUES) {
          const schema = { $schema: url, ...wrap({ [keyword]: value }) };
          // ajv throws for another meta-schema.
          if (keyword === "$schema" && place === "the root") continue;
          const isBad = judge.validateSchema(schema) !== true;
          if (isBad) rejected++;
          const isRefused = refuses(schema);
          if (isBad && !isRefused && !isTwice(keyword, value)) missed.push(JSON.stringify(schema));
          if (!isBad && isRefused && !UNUSABLE.test(keyword) && !isOwnRule(keyword)) more.push(JSON.stringify(schema));
        }
      }
      assertEquals([missed, more], [[], []]);
      assert(rejected > 1000, `${rejected}`);
    });
  }
}

Deno.test("the error of tool() names the malformed keyword and its place", () => {
  const forms: readonly JsonSchema[] = [
    { anyOf: [] },
    { type: ["string", "string"] },
    { required: ["a", "a"] },
    { dependentRequired: { a: ["b", "b"] } },
    { deprecated: "yes" },
    { examples: "a" },
    { contentMediaType: 4 },
    { $anchor: "#a" },
    { contentSchema: { type: 5 } },
  ];
  for (const form of forms) {
    const input = { type: "object", properties: { a: form } };
    assertThrows(() => tool({ name: "test", input, run: () => "" }), TypeError, sentence("test", "properties.a"));
  }
});

const malformed = {
  anyOf: [],
  deprecated: "yes",
  examples: 4,
  required: ["a", "a"],
  $anchor: "#a",
  type: ["string", "string"],
};

Deno.test("a malformed schema of another server or of an API is loaded", async () => {
  const inputSchema = { type: "object", properties: { a: malformed } } as const;
  const api = openapi({
    openapi: "3.1.0",
    info: { title: "api", version: "1.0.0" },
    servers: [{ url: "https://api.example.com" }],
    paths: {
      "/a": {
        post: {
          operationId: "send",
          requestBody: {
            content: { "application/json": { schema: { ...malformed, type: "object", properties: { a: malformed } } } },
          },
          responses: { 200: { description: "", content: { "application/json": { schema: malformed } } } },
        },
      },
    },
  }, { fetch: () => Promise.resolve(Response.json({ a: 1 })) });
  const foreign = tool.from({ name: "foreign", inputSchema, outputSchema: inputSchema }, () => ({ content: [] }));
  await using client = await testClient({ handlers: [foreign, api] });
  const { tools } = await client.request("tools/list") as { readonly tools: readonly { readonly name: string }[] };
  assertEquals(tools.map(({ name }) => name).sort(), ["foreign", "send"]);
});
