/**
 * Schemas in the form that the validator reads.
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { JsonSchema } from "./json_schema.ts";

/** A schema: a node, `true` if every value is valid, or `false` if no value is valid. */
export type Sub = boolean | Node;

/** A map instead of an object, because a name may equal the name of an inherited property. */
export type Named<T> = ReadonlyMap<string, T>;

/**
 * Keywords whose values are not schemas. `inspectJsonSchema` does not check most of these values: an invalid value has
 * no effect, or makes the validation fail.
 */
interface Keywords {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minContains?: number;
  readonly maxContains?: number;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

/** The keywords of one schema. Absent keywords are `undefined`. */
export interface Node extends Keywords {
  readonly schema: JsonSchema;
  readonly $ref: unknown;
  readonly $dynamicRef: unknown;
  /** Allowed types as bits of {@linkcode Types}. The value 0 allows no type. */
  readonly types?: number;
  /** Whether references lead to the node, so that the same value may be checked against the node several times. */
  readonly isShared: boolean;
  readonly hasChoices: boolean;
  /** The values that `enum` and `const` allow, computed when they are first needed. */
  choices?: readonly Choices[];
  /** Whether the schema has any keyword for arrays. */
  readonly hasItems: boolean;
  /** The schemas of the first items, one schema per item. */
  readonly tuple?: readonly Sub[];
  /** The schema of the items that follow the items of `tuple`. */
  readonly items?: Sub;
  readonly uniqueItems: boolean;
  readonly contains?: Sub;
  /**
   * Whether the check must visit every property of an object, including properties that `properties` does not define.
   */
  readonly hasNames: boolean;
  readonly properties?: Named<Sub>;
  readonly constants?: readonly (readonly [name: string, part: Node])[];
  readonly patternProperties?: Named<Sub>;
  readonly additionalProperties?: Sub;
  readonly propertyNames?: Sub;
  /** The values of `dependentRequired`, `dependentSchemas` and `dependencies`. */
  readonly dependents: readonly Named<Sub | readonly string[]>[];
  /** Whether any keyword applies a schema to the value itself instead of its items or properties. */
  readonly hasForms: boolean;
  readonly allOf?: readonly Sub[];
  readonly anyOf?: readonly Sub[];
  readonly oneOf?: readonly Sub[];
  readonly not?: Sub;
  readonly if?: Sub;
  readonly then?: Sub;
  readonly else?: Sub;
  /** Whether the schema has `unevaluatedItems` or `unevaluatedProperties`, which depend on the other keywords. */
  readonly isTracking: boolean;
  readonly unevaluatedItems?: Sub;
  readonly unevaluatedProperties?: Sub;
}

export interface Choices {
  /** Primitive values, which are compared by identity. */
  readonly values: ReadonlySet<unknown>;
  /** Keys of objects and arrays, as returned by {@linkcode toKey}. */
  readonly keys: ReadonlySet<string>;
  /** The first few values, for error messages. */
  readonly shown: string;
}

/** Bit masks of the JSON types. An integer has the bits of both `number` and `integer`. */
export const Types: Readonly<Record<string, number>> = {
  null: 1,
  boolean: 2,
  object: 4,
  array: 8,
  number: 16,
  integer: 32,
  string: 64,
};

/** A node to which the subschemas are still being added. */
type Draft = { -readonly [Key in keyof Node]: Node[Key] };

/** All nodes have the same fields in the same order, because engines then read the fields several times faster. */
export class Nodes {
  readonly #known = new Map<unknown, Draft>();

  /** The same schema object always gets the same node. */
  find(schema: unknown): Sub {
    if (!isObject(schema)) return schema !== false;
    const known = this.#known.get(schema);
    if (known) {
      // An object that occurs in two places of a schema has the same effect as a reference.
      known.isShared = true;
      return known;
    }
    const node = toDraft(schema);
    this.#known.set(schema, node);
    this.#addParts(node, schema);
    return node;
  }

  findShared(schema: unknown): Sub {
    const node = this.find(schema);
    const draft = this.#known.get(schema);
    if (draft) draft.isShared = true;
    return node;
  }

  #addParts(node: Draft, schema: JsonSchema): void {
    const one = (key: string) => schema[key] === undefined ? undefined : this.find(schema[key]);
    const list = (given: unknown) => Array.isArray(given) ? given.map((each) => this.find(each)) : undefined;
    const isList = Array.isArray(schema.items);
    node.tuple = list(isList ? schema.items : schema.prefixItems);
    node.items = one(isList ? "additionalItems" : "items");
    node.contains = one("contains");
    node.properties = toNamed(schema.properties, (part) => this.find(part));
    // Collect constants only if the check of any property may take many steps, because checking the constants first can
    // then save these steps.
    if ([...node.properties?.values() ?? []].some(isDeep)) {
      const isConstant = (entry: [string, Sub]): entry is [string, Node] => hasChoices(entry[1]);
      node.constants = [...node.properties ?? []].filter(isConstant);
    }
    node.patternProperties = toNamed(schema.patternProperties, (part) => this.find(part));
    node.additionalProperties = one("additionalProperties");
    node.propertyNames = one("propertyNames");
    // A list in `dependentRequired` or `dependencies` contains names, not schemas. In `dependentSchemas`, a list has no
    // effect.
    const toDependent = (part: unknown) => Array.isArray(part) ? part : this.find(part);
    node.dependents = [schema.dependentRequired, schema.dependentSchemas, schema.dependencies]
      .flatMap((named) => toNamed(named, toDependent) ?? []);
    node.allOf = list(schema.allOf);
    node.anyOf = list(schema.anyOf);
    node.oneOf = list(schema.oneOf);
    node.not = one("not");
    node.if = one("if");
    node.then = one("then");
    node.else = one("else");
    node.unevaluatedItems = one("unevaluatedItems");
    node.unevaluatedProperties = one("unevaluatedProperties");
  }
}

function isDeep(part: Sub): boolean {
  return typeof part === "object" &&
    !!(part.$ref ?? part.$dynamicRef ?? part.properties ?? part.items ?? part.tuple ?? part.contains ?? part.allOf ??
      part.anyOf ?? part.oneOf ?? part.not ?? part.if ?? part.additionalProperties ?? part.patternProperties);
}

function hasChoices(part: Sub): part is Node {
  return typeof part === "object" && part.hasChoices;
}

function toNamed<T>(given: unknown, toPart: (part: unknown) => T): Named<T> | undefined {
  if (isObject(given)) return new Map(Object.entries(given).map(([name, part]) => [name, toPart(part)]));
}

function toDraft(schema: JsonSchema): Draft {
  const has = (...keys: readonly string[]) => keys.some((key) => schema[key] !== undefined);
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern }: Keywords =
    schema;
  const { minItems, maxItems, minContains, maxContains, required, minProperties, maxProperties }: Keywords = schema;
  return {
    schema,
    $ref: schema.$ref,
    $dynamicRef: schema.$dynamicRef,
    types: schema.type === undefined ? undefined : toBits(schema.type),
    isShared: false,
    hasChoices: has("enum", "const"),
    choices: undefined,
    ...{ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern },
    hasItems: has("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"),
    tuple: undefined,
    items: undefined,
    ...{ minItems, maxItems },
    uniqueItems: !!schema.uniqueItems,
    contains: undefined,
    ...{ minContains, maxContains },
    hasNames: has(
      "patternProperties",
      "additionalProperties",
      "propertyNames",
      "minProperties",
      "maxProperties",
      "dependentRequired",
      "dependentSchemas",
      "dependencies",
    ),
    properties: undefined,
    constants: undefined,
    patternProperties: undefined,
    additionalProperties: undefined,
    propertyNames: undefined,
    ...{ required, minProperties, maxProperties },
    dependents: [],
    hasForms: has("allOf", "anyOf", "oneOf", "not", "if"),
    allOf: undefined,
    anyOf: undefined,
    oneOf: undefined,
    not: undefined,
    if: undefined,
    then: undefined,
    else: undefined,
    isTracking: has("unevaluatedItems", "unevaluatedProperties"),
    unevaluatedItems: undefined,
    unevaluatedProperties: undefined,
  };
}

function toBits(type: unknown): number {
  let bits = 0;
  for (const one of [type].flat()) bits |= Types[String(one)];
  return bits;
}
