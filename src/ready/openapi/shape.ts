/**
 * Reads what the parts of a schema together say about one value: behind references, in `allOf`, and in the only
 * alternative beside `null`.
 */
import { isObject } from "../../core/kit/json.ts";
import { followRef } from "../../core/schema/walker.ts";
import { type ApiDocument, type Node, resolveLoosely, toList } from "./document.ts";

/** Maximum number of schemas that are read for one shape. */
const MAX_PARTS = 500;

export interface Shape {
  /** The keywords of all parts. An outer part takes precedence. */
  readonly keywords: Node;
  /** The properties of all parts, and of all alternatives. A property of several parts has all their rules. */
  readonly properties: Readonly<Record<string, unknown>>;
  /** The properties that all values must have. */
  readonly required: readonly string[];
  /** Whether the value may also be `null`. */
  readonly isNullable: boolean;
  /** Whether the schema has parts, or alternatives. */
  readonly isComposed: boolean;
  /** Whether an alternative, or a reference that leads nowhere, has properties that are not known. */
  readonly isOpen: boolean;
}

interface Draft {
  readonly keywords: Record<string, unknown>;
  readonly properties: Map<string, unknown[]>;
  readonly required: Set<string>;
  /** The schemas to which references have led. One schema has references of many spellings. */
  readonly seen: Set<unknown>;
  isNullable: boolean;
  isComposed: boolean;
  isOpen: boolean;
  parts: number;
}

export function readShape(document: ApiDocument, schema: unknown): Shape {
  const draft: Draft = {
    keywords: {},
    properties: new Map(),
    required: new Set(),
    seen: new Set(),
    isNullable: false,
    isComposed: false,
    isOpen: false,
    parts: 0,
  };
  addPart(document, schema, draft, true);
  const properties = [...draft.properties].map(([name, all]) => [name, all.length > 1 ? { allOf: all } : all[0]]);
  return { ...draft, properties: Object.fromEntries(properties), required: [...draft.required] };
}

/** Adds a schema to a draft. `isSure` is false for one of several alternatives, which only adds properties. */
function addPart(document: ApiDocument, given: unknown, draft: Draft, isSure: boolean): void {
  if (!isObject(given) || draft.parts++ > MAX_PARTS) {
    draft.isOpen ||= given !== false;
    return;
  }
  const { $ref, properties, required, allOf, anyOf, oneOf, dependentSchemas, ...own } = given;
  // Names that match a pattern are not known.
  draft.isOpen ||= draft.parts > 1 && isObject(given.patternProperties);
  if (isSure) {
    for (const [key, value] of Object.entries(own)) {
      if (!Object.hasOwn(draft.keywords, key)) draft.keywords[key] = value;
    }
    for (const name of toList(required)) if (typeof name === "string") draft.required.add(name);
    draft.isNullable ||= given.nullable === true || [given.type].flat().includes("null");
  }
  if (isObject(properties)) {
    for (const [name, property] of Object.entries(properties)) {
      const all = draft.properties.get(name);
      if (all) all.push(property);
      else draft.properties.set(name, [property]);
    }
  }
  const target = typeof $ref === "string" ? followRef(document.root, $ref) : undefined;
  if (typeof $ref === "string" && (target === undefined || !draft.seen.has(target))) {
    draft.seen.add(target);
    addPart(document, target, draft, isSure);
  }
  for (const part of toList(allOf)) addPart(document, part, draft, isSure);
  draft.isComposed ||= [allOf, anyOf, oneOf].some((list) => toList(list).length > 0);
  for (const list of [anyOf, oneOf]) {
    const all = toList(list);
    const others = all.filter((each) => resolveLoosely(document, each).type !== "null");
    if (isSure) draft.isNullable ||= others.length < all.length;
    for (const each of others) addPart(document, each, draft, isSure && others.length === 1);
  }
  for (const part of isObject(dependentSchemas) ? Object.values(dependentSchemas) : []) {
    addPart(document, part, draft, false);
  }
}

/** Whether a shape describes the bytes of a file: a string that is not encoded. */
export function isFile({ keywords: { type, format, contentMediaType, contentEncoding } }: Shape): boolean {
  if (contentEncoding !== undefined) return false;
  if (type === "file" || format === "binary") return true;
  return typeof contentMediaType === "string" && (type === undefined || [type].flat().includes("string"));
}
