import { findHeaderParams } from "../../src/core/schema/header_params.ts";
import { assertEquals, assertThrows } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

Deno.test("header params: annotations are found in nested properties, in order", () => {
  const schema = {
    type: "object",
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      query: { type: "string" },
      options: {
        type: "object",
        properties: {
          dry: { type: "boolean", "x-mcp-header": "Dry-Run" },
          deep: { properties: { n: { type: "integer", "x-mcp-header": "n_1" } } },
        },
      },
    },
    required: ["region"],
  };
  assertEquals(findHeaderParams(schema), [
    { header: "Region", path: ["region"], type: "string" },
    { header: "Dry-Run", path: ["options", "dry"], type: "boolean" },
    { header: "n_1", path: ["options", "deep", "n"], type: "integer" },
  ]);
  assertEquals(findHeaderParams({ type: "object" }), []);
});

Deno.test("header params: a property named like the annotation, or a value that contains it, is not an annotation", () => {
  const schema = {
    type: "object",
    properties: {
      "x-mcp-header": { type: "object" },
      a: { default: { "x-mcp-header": "no" }, enum: [{ "x-mcp-header": "" }] },
      // Clients do not see this annotation, because its computed value is undefined.
      b: { type: "string", "x-mcp-header": undefined },
    },
    required: ["x-mcp-header"],
    $defs: { "x-mcp-header": { type: "number" } },
  };
  assertEquals(findHeaderParams(schema), []);
});

Deno.test("header params: an invalid annotation is refused with the name of the property", () => {
  const on = (annotation: unknown, more: Record<string, unknown> = {}) => ({
    properties: { region: { type: "string", "x-mcp-header": annotation, ...more } },
  });
  for (const header of ["", " ", "a b", "a\r\nb", "a:b", "é", "a(b)", 'a"b', "a/b", 5, null, true, ["a"]]) {
    assertThrows(() => findHeaderParams(on(header)), TypeError, '"region"');
  }
  for (const type of ["number", "object", "array", "null", undefined, ["string"], ["string", "null"]]) {
    assertThrows(() => findHeaderParams(on("Region", { type })), TypeError, '"region"');
  }
  const region = { type: "string", "x-mcp-header": "Region" };
  const places = [
    { items: { properties: { region } } },
    { properties: { list: { type: "array", items: region } } },
    { properties: { list: { prefixItems: [region] } } },
    { properties: { list: { contains: region } } },
    { oneOf: [{ properties: { region } }] },
    { anyOf: [{ properties: { region } }] },
    { allOf: [{ properties: { region } }] },
    { not: { properties: { region } } },
    { if: { properties: { region } } },
    { then: { properties: { region } } },
    { else: { properties: { region } } },
    { $defs: { region } },
    { definitions: { region } },
    { patternProperties: { "^r": region } },
    { additionalProperties: region },
    { dependentSchemas: { region } },
    { propertyNames: region },
    { unevaluatedProperties: region },
    { properties: { a: { $defs: { b: { properties: { region } } } } } },
    region,
  ];
  for (const schema of places) {
    assertThrows(() => findHeaderParams(schema), TypeError, sentence("x-mcp-header", "; "));
  }
  assertThrows(
    () =>
      findHeaderParams({
        properties: { a: region, b: { properties: { zone: { ...region, "x-mcp-header": "REGION" } } } },
      }),
    TypeError,
    sentence('"zone"', '"REGION"'),
  );
});
