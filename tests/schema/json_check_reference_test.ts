// Compares verdicts on random schemas and values with an evaluator that caches nothing and takes every step.
import { compileJsonSchema, countLatestSteps } from "../../src/core/schema/json_check.ts";
import type { JsonSchema } from "../../src/core/schema/json_schema.ts";
import { type Random, random } from "../support/random.ts";
import { assert, assertEquals } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

const NAMES = ["a", "b", "__proto__", "1"];
const SCALARS = [0, -0, 1, 1.5, -1, "", "a", "1", "💩", true, false, null];
const TYPES = ["object", "array", "string", "number", "integer", "null", "boolean"];

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const record = (entries: readonly (readonly [string, unknown])[]): Json => {
  const made: Json = {};
  // Assigning to `__proto__` would not add a property.
  for (const [name, value] of entries) {
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return made;
};
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

function makeValue(random: Random, depth: number): unknown {
  const kind = random.below(6);
  if (!depth || kind < 2) return random.pick(SCALARS);
  if (kind < 4) return times(random.below(4), () => makeValue(random, depth - 1));
  return record(times(random.below(4), () => [random.pick(NAMES), makeValue(random, depth - 1)]));
}

function makeSchema(random: Random, depth: number): JsonSchema {
  if (depth < 3 && !random.below(6)) return { $ref: `#/$defs/${random.pick(["x", "y"])}` };
  const sub = () => depth ? makeSchema(random, depth - 1) : random.pick([true, false, { type: random.pick(TYPES) }]);
  const subs = () => times(1 + random.below(3), sub);
  const named = () => record(times(1 + random.below(2), () => [random.pick(NAMES), sub()]));
  const parts: (() => JsonSchema)[] = [
    () => ({ type: random.pick(TYPES) }),
    () => ({ properties: named() }),
    () => ({ required: [random.pick(NAMES)] }),
    () => ({ properties: named(), required: [random.pick(NAMES)] }),
    () => ({ additionalProperties: sub() }),
    () => ({ propertyNames: { enum: [random.pick(NAMES), random.pick(NAMES)] } }),
    () => ({ dependentSchemas: named() }),
    () => ({ items: sub() }),
    () => ({ prefixItems: subs() }),
    () => ({ contains: sub() }),
    () => ({ uniqueItems: true }),
    () => ({ minItems: 1 }),
    () => ({ anyOf: subs() }),
    () => ({ oneOf: subs() }),
    () => ({ oneOf: subs(), properties: named() }),
    () => ({ allOf: subs() }),
    () => ({ not: sub() }),
    () => ({ if: sub(), then: sub(), else: sub() }),
    () => ({ const: random.pick(SCALARS) }),
    () => ({ enum: [random.pick(SCALARS), makeValue(random, 2)] }),
    () => ({ unevaluatedProperties: sub() }),
    () => ({ unevaluatedItems: sub() }),
    () => ({ minimum: 1 }),
    () => ({ maxLength: 0 }),
  ];
  return Object.assign({}, ...times(1 + random.below(3), () => random.pick(parts)()));
}

const toText = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(toText)}]`
    : isObject(value)
    ? `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${toText(value[name])}`)}}`
    : JSON.stringify(value);
const isType = (value: unknown, type: unknown) =>
  type === "integer"
    ? Number.isInteger(value)
    : type === (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/**
 * Returns the property names and positions that a valid value has evaluated, or `undefined` if the value is not valid.
 */
function evaluate(schema: unknown, value: unknown, root: JsonSchema): Set<unknown> | undefined {
  if (typeof schema === "boolean") return schema ? new Set() : undefined;
  const keywords = schema as JsonSchema; // The cast is safe, because this test has created the schema.
  const seen = new Set<unknown>();
  const fits = (part: unknown, of: unknown) => evaluate(part, of, root) !== undefined;
  const applies = (part: unknown) => {
    const found = evaluate(part, value, root);
    found?.forEach((key) => seen.add(key));
    return found !== undefined;
  };
  const list = (name: string): readonly unknown[] => Object(keywords[name] ?? []);
  const entries = (name: string) => Object.entries(Object(keywords[name]));
  const isPart = (key: unknown, part: unknown, of: unknown) => (seen.add(key), fits(part, of));
  const has = (name: string) => name in keywords;
  let isValid = true;
  const demand = (good: boolean) => {
    isValid &&= good;
  };
  if (has("$ref")) demand(applies(Object(root.$defs)[String(keywords.$ref).slice(8)]));
  if (has("type")) demand(isType(value, keywords.type));
  if (has("const")) demand(toText(keywords.const) === toText(value));
  if (has("enum")) demand(list("enum").some((one) => toText(one) === toText(value)));
  if (typeof value === "number" && has("minimum")) demand(value >= 1);
  if (typeof value === "string" && has("maxLength")) demand(!value);
  if (Array.isArray(value)) {
    if (has("minItems")) demand(value.length > 0);
    if (has("uniqueItems")) demand(new Set(value.map(toText)).size === value.length);
    const tuple = list("prefixItems");
    value.forEach((item, i) => {
      if (i < tuple.length) demand(isPart(i, tuple[i], item));
      else if (has("items")) demand(isPart(i, keywords.items, item));
    });
    if (has("contains")) {
      const found = [...value.keys()].filter((i) => fits(keywords.contains, value[i]));
      demand(found.length > 0);
      found.forEach((i) => seen.add(i));
    }
  }
  if (isObject(value)) {
    const known = new Map(entries("properties"));
    for (const name of list("required")) demand(Object.hasOwn(value, String(name)));
    for (const [name, item] of Object.entries(value)) {
      if (known.has(name)) demand(isPart(name, known.get(name), item));
      else if (has("additionalProperties")) demand(isPart(name, keywords.additionalProperties, item));
      if (has("propertyNames")) demand(fits(keywords.propertyNames, name));
    }
    for (const [name, part] of entries("dependentSchemas")) if (Object.hasOwn(value, name)) demand(applies(part));
  }
  for (const part of list("allOf")) demand(applies(part));
  if (has("anyOf")) demand(list("anyOf").filter(applies).length > 0);
  if (has("oneOf")) demand(list("oneOf").filter(applies).length === 1);
  if (has("not")) demand(!fits(keywords.not, value));
  if (has("if")) demand(applies(applies(keywords.if) ? keywords.then : keywords.else));
  const rest = (name: string, keys: readonly unknown[], of: (key: unknown) => unknown) => {
    if (has(name)) { for (const key of keys) if (!seen.has(key)) demand(isPart(key, keywords[name], of(key))); }
  };
  if (Array.isArray(value)) rest("unevaluatedItems", [...value.keys()], (i) => value[Number(i)]);
  if (isObject(value)) rest("unevaluatedProperties", Object.keys(value), (name) => value[String(name)]);
  return isValid ? seen : undefined;
}

/** A value that takes so many steps that the validator caches outcomes. */
const LONG = times(2500, () => 0);

Deno.test("verdicts equal the verdicts of an evaluator that takes every step, with and without cached outcomes", () => {
  const source = random(20261122);
  const found = { valid: 0, invalid: 0, remembered: 0 };
  for (let i = 0; i < 1500; i++) {
    const $defs = { x: makeSchema(source, 2), y: makeSchema(source, 2), z: makeSchema(source, 3) };
    const z = { $ref: "#/$defs/z" };
    const wholes: JsonSchema[] = [{ ...z, $defs }, { prefixItems: [{ items: { type: "number" } }, z], $defs }];
    let checks;
    try {
      checks = wholes.map((whole) => compileJsonSchema(whole));
    } catch {
      continue; // The reference is circular.
    }
    for (const value of times(6, () => makeValue(source, 4))) {
      const isValid = evaluate(z, value, wholes[0]) !== undefined;
      const about = JSON.stringify([$defs, value]);
      assertEquals(checks[0](value).length === 0, isValid, about);
      assertEquals(checks[1]([LONG, value]).length === 0, isValid, `remembered: ${about}`);
      if (countLatestSteps() > 20_000) found.remembered++;
      found[isValid ? "valid" : "invalid"]++;
    }
  }
  assert(found.valid > 1000 && found.invalid > 1000, JSON.stringify(found));
  assertEquals(found.remembered, found.valid + found.invalid);
});

Deno.test("a cached outcome without evaluated property names is not used where the names are needed", () => {
  const x = { $ref: "#/$defs/x" };
  const part = { allOf: [{ not: { not: x } }, x], unevaluatedProperties: false };
  const check = compileJsonSchema({
    prefixItems: [{ items: { type: "number" } }, part],
    $defs: { x: { properties: { a: true } } },
  });
  assertEquals(check([LONG, { a: 1 }]), []);
  assertEquals(check([LONG, { a: 1, b: 2 }]), [{ path: "[1].b", message: sentence() }]);
});
