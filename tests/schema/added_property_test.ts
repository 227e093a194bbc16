// A property that is added to a schema changes no verdict about the other properties.
import { assert, assertEquals } from "@std/assert";
import { addProperty } from "../../src/core/schema/added_property.ts";
import { readCatalogue } from "../search/catalogues.ts";
import { ADDED, compareAdded } from "../support/added_property.ts";

const a = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
const b = { type: "object", properties: { b: { type: "number" } }, required: ["b"], additionalProperties: false };
const tree = {
  type: "object",
  properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } },
  required: ["name"],
  additionalProperties: false,
};
const $defs = { a, b };

/** Schemas with a place for the property. */
const OPEN: Readonly<Record<string, Record<string, unknown>>> = {
  "an empty schema": { type: "object" },
  "a closed object": a,
  "a map": { type: "object", additionalProperties: { type: "number" } },
  "closed alternatives": { type: "object", oneOf: [a, b] },
  "alternatives by reference": { type: "object", anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/b" }], $defs },
  "a reference": { type: "object", $ref: "#/$defs/a", $defs },
  "a reference of draft-07": {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    $ref: "#/definitions/a",
    definitions: { a },
  },
  "a reference beside properties": {
    type: "object",
    $ref: "#/$defs/c",
    properties: { b: {} },
    $defs: { c: { required: ["b"], maxLength: 1 } },
  },
  "a recursive object": tree,
  "a recursive alternative": {
    type: "object",
    anyOf: [{ $ref: "#/$defs/tree" }, b],
    $defs: {
      tree: { ...tree, properties: { children: { type: "array", items: { $ref: "#/$defs/tree" } } }, required: [] },
    },
  },
  "all of several parts": {
    type: "object",
    allOf: [{ properties: { a: {} } }, { properties: { b: {} }, required: ["b"] }],
    unevaluatedProperties: false,
  },
  "a condition": {
    type: "object",
    properties: { a: {}, b: {} },
    if: { ...a },
    then: { required: ["a"] },
    else: { ...b },
  },
  "a negation": { type: "object", not: a },
  "names of properties": { type: "object", propertyNames: { pattern: "^[ab]$" } },
  "patterns of names": { type: "object", patternProperties: { "^a": { type: "string" } }, additionalProperties: false },
  "dependent schemas": {
    type: "object",
    properties: { a: {} },
    dependentSchemas: { a: { ...a } },
    dependentRequired: { b: ["a"] },
  },
  "a maximum of properties": { type: "object", properties: { a: {}, b: {} }, maxProperties: 1, required: ["a"] },
  "a part of the same name": {
    type: "object",
    properties: { a: { $ref: "#/$defs/x_reason_word" } },
    $defs: { x_reason_word: { type: "number" } },
  },
};

for (const [name, schema] of Object.entries(OPEN)) {
  Deno.test(`a property is added to ${name}`, () => {
    // With a maximum, a value without the property may have one more property.
    if ("maxProperties" in schema) {
      assertEquals(
        Object(addProperty(schema, { name: ADDED, schema: { properties: { [ADDED]: {} } }, isRequired: true }))
          .maxProperties,
        2,
      );
      return;
    }
    const valid = compareAdded(schema, 400);
    assert(typeof valid === "number" && valid > 0, `${valid}`);
  });
}

Deno.test("a property is not added to a schema without a place for it", () => {
  const add = (schema: Record<string, unknown>) =>
    addProperty({ type: "object", ...schema }, { name: "a", schema: { properties: { a: {} } }, isRequired: false });
  const closed = [
    { enum: [{ b: 1 }] },
    { anyOf: [{ const: {} }] },
    { patternProperties: { "^a": {} } },
    { patternProperties: { "(": {} } },
    { allOf: [{ maxProperties: 1 }] },
    { $ref: "https://example.com/schema" },
    { $dynamicRef: "#node" },
    { $anchor: "root" },
  ];
  for (const schema of closed) assertEquals(add(schema), "closed", JSON.stringify(schema));
  const taken = [
    { properties: { a: {} } },
    { required: ["a"] },
    { anyOf: [{ properties: { a: {} } }, {}] },
    { $ref: "#/$defs/a", $defs: { a: { properties: { a: {} } } } },
    { dependentRequired: { a: ["b"] } },
    { dependentSchemas: { a: {} } },
  ];
  for (const schema of taken) assertEquals(add(schema), "taken", JSON.stringify(schema));
});

Deno.test("a property is added to the schemas of published servers", async () => {
  for (const { name, inputSchema } of await readCatalogue("published")) {
    assertEquals(typeof compareAdded({ ...inputSchema }, 20), "number", name);
  }
});
