/**
 * Checks values by raw JSON Schema.
 *
 * `format` and `content…` are annotations. A `pattern` runs as the author wrote it, and only on text within
 * `maxLength`: one that backtracks without end is the author's to avoid.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import {
  cut,
  type Inspected,
  inspectJsonSchema,
  type Issue,
  type JsonSchema,
  show,
  toPath,
  toText,
} from "./json_schema.ts";

import { adaptInput } from "./adapt_input.ts";
import type { Checked } from "./schema.ts";

type Sub = boolean | Node;
type Named<T> = { readonly [name: string]: T };
type Key = string | number;
interface Node {
  readonly $ref?: string;
  readonly $dynamicRef?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: Sub | Sub[];
  readonly additionalItems?: Sub;
  readonly prefixItems?: Sub[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly contains?: Sub;
  readonly minContains?: number;
  readonly maxContains?: number;
  readonly unevaluatedItems?: Sub;
  readonly properties?: Named<Sub>;
  readonly patternProperties?: Named<Sub>;
  readonly additionalProperties?: Sub;
  readonly propertyNames?: Sub;
  readonly required?: string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly dependentRequired?: Named<string[]>;
  readonly dependentSchemas?: Named<Sub>;
  readonly dependencies?: Named<Sub | string[]>;
  readonly unevaluatedProperties?: Sub;
  readonly allOf?: Sub[];
  readonly anyOf?: Sub[];
  readonly oneOf?: Sub[];
  readonly not?: Sub;
  readonly if?: Sub;
  readonly then?: Sub;
  readonly else?: Sub;
}

// A model repairs a call from the first few; thousands would only fill its context.
const MAX_ISSUES = 20;
// What the check of one value may cost, in units of about 10 nanoseconds. Without a bound, a schema that branches at every
// level takes exponential time, and one with a thousand forms takes a thousand times as long as the value is large.
const MAX_COST = 12_000_000;
// A step into a subschema.
const STEP = 10;
const FAILURE = 60;
// A property, at the pace of objects with very many of them.
const NAME = 12;

/** Inspects a schema and makes its check: see {@linkcode inspectJsonSchema} and {@linkcode createCheck}. */
export function compileJsonSchema(schema: JsonSchema, name?: string): (value: unknown) => Issue[] {
  return createCheck(inspectJsonSchema(schema, name));
}

/** Makes a function that checks a value, after it was given the defaults of the schema; `toProblem` words issues. */
export function createReader(
  inspected: Inspected,
  toProblem: (issues: readonly Issue[]) => string,
): (value: unknown) => Checked {
  const check = createCheck(inspected);
  const root: JsonSchema = Object(inspected.refs.get("#"));
  const hasDefaults = JSON.stringify(root).includes('"default":');
  return (given) => {
    let value = given;
    try {
      if (hasDefaults) value = adaptInput(given, root, { defaults: true });
    } catch (error) {
      if (error instanceof RangeError) return { problem: "too much of what has a default is missing" };
      throw error;
    }
    const issues = check(value);
    return issues.length ? { problem: toProblem(issues) } : { value };
  };
}

/**
 * Makes a function that lists how a value does not fit a schema: no issues for a value that does, never more than 20.
 *
 * Only own properties count, and one whose value is `undefined` counts as absent, as it is in JSON text.
 */
export function createCheck({ patterns, tracks, draft7, refs: targets }: Inspected): (value: unknown) => Issue[] {
  const refs = targets as ReadonlyMap<unknown, Sub>; // inspectJsonSchema() has seen that they are schemas
  const choices = new WeakMap<Node, readonly Choices[]>();
  let path: Key[];
  let issues: Issue[];
  let limit: number;

  function fail(message: string, ...keys: Key[]): void {
    if (issues.length >= limit) return;
    spend(FAILURE + 10 * path.length);
    issues.push({ path: toPath([...path, ...keys]), message });
  }

  function expect(what: string, got: unknown): void {
    fail(`expected ${what}, got ${got}`);
  }

  function bound(count: number, unit: string, min = -Infinity, max = Infinity): void {
    if (count < min) expect(`at least ${min}${unit}`, count);
    if (count > max) expect(`at most ${max}${unit}`, count);
  }

  function matches(pattern: string, text: string): boolean {
    spend(4 + text.length / 4);
    return !!patterns.get(pattern)?.test(text);
  }

  /** Why a value does not fit where it need not, or undefined. */
  function attempt(sub: Sub, value: unknown, seen?: Set<Key>): string | undefined {
    const outer = { path, issues, limit };
    path = [];
    issues = [];
    limit = 1;
    check(sub, value, seen);
    const [first] = issues;
    ({ path, issues, limit } = outer);
    return first && toText(first);
  }

  /** `seen` collects the keys that a keyword has looked at, for the unevaluated… keywords further out. */
  function check(sub: Sub | undefined, value: unknown, seen?: Set<Key>): void {
    if (sub === false) fail("not allowed");
    if (typeof sub !== "object" || issues.length >= limit) return;
    spend(tracks ? 3 * STEP : STEP);
    const before = issues.length;
    const own = tracks && new Set<Key>() || undefined;
    const kind = toKind(value);
    const child = (key: Key, part: Sub | undefined, item: unknown): boolean => {
      if (part === undefined) return false;
      path.push(key);
      check(part, item);
      path.pop();
      own?.add(key);
      return true;
    };

    check(refs.get(sub.$ref), value, own);
    if (draft7 && sub.$ref !== undefined) return;
    check(refs.get(sub.$dynamicRef), value, own);
    // One type or several: no name of a kind is a part of another one.
    if (sub.type && !sub.type.includes(kind) && !(sub.type.includes("integer") && Number.isInteger(value))) {
      return expect(String(sub.type).replaceAll(",", " or "), kind);
    }
    for (const { values, keys, told } of findChoices(sub, choices)) {
      if (!values.has(value) && (typeof value !== "object" || !keys.size || !keys.has(toKey(value)))) {
        expect(told, typeof value === "object" ? kind : show(value));
      }
    }

    let parts: Key[] = [];
    let rest: Sub | undefined;
    if (typeof value === "string") {
      const { minLength, maxLength = Infinity, pattern } = sub;
      let length = 0;
      if (minLength !== undefined || maxLength < Infinity) {
        length = countCharacters(value);
        bound(length, " characters", minLength, maxLength);
      }
      if (pattern !== undefined && length <= maxLength && !matches(pattern, value)) {
        expect(`a match of ${cut(pattern, 200)}`, show(value));
      }
    } else if (typeof value === "number") {
      const { exclusiveMinimum: over = -Infinity, exclusiveMaximum: under = Infinity, multipleOf: unit = 0 } = sub;
      bound(value, "", sub.minimum, sub.maximum);
      if (value <= over) expect(`more than ${over}`, value);
      if (value >= under) expect(`less than ${under}`, value);
      // Binary fractions miss their multiples by a hair: 0.3 / 0.1 is 2.9999999999999996.
      if (unit && value % unit !== 0 && (Number.isInteger(unit) || +(value / unit).toPrecision(15) % 1 !== 0)) {
        expect(`a multiple of ${unit}`, value);
      }
    } else if (Array.isArray(value)) {
      const { items, contains } = sub;
      const [tuple = [], further] = Array.isArray(items) ? [items, sub.additionalItems] : [sub.prefixItems, items];
      spend(value.length / 9);
      if (own) parts = [...value.keys()];
      rest = sub.unevaluatedItems;
      bound(value.length, " items", sub.minItems, sub.maxItems);
      if ((items ?? sub.prefixItems) !== undefined) {
        value.forEach((item, i) => child(i, i < tuple.length ? tuple[i] : further, item));
      }
      if (contains !== undefined) {
        const found = value.filter((item, i) => attempt(contains, item) === undefined && (own?.add(i), true));
        bound(found.length, " matching items", sub.minContains ?? 1, sub.maxContains);
      }
      if (sub.uniqueItems && new Set(value.map(toKey)).size < value.length) fail("two items are equal");
    } else if (isObject(value)) {
      const { properties = {}, patternProperties, propertyNames } = sub;
      const needed = [sub.required ?? []];
      rest = sub.unevaluatedProperties;
      const dependents = [sub.dependentRequired, sub.dependentSchemas, sub.dependencies].filter(Boolean);
      const keys = Object.keys(value);
      spend(NAME * keys.length);
      for (const key of keys) {
        const item = value[key];
        if (item === undefined) continue;
        parts.push(key);
        let known = child(key, lookUp(properties, key), item);
        for (const pattern in patternProperties) {
          if (matches(pattern, key)) known = child(key, patternProperties[pattern], item);
        }
        if (!known) child(key, sub.additionalProperties, item);
        const misfit = propertyNames !== undefined && attempt(propertyNames, key);
        if (misfit) fail(`not allowed as a name: ${misfit}`, key);
        for (const named of dependents) {
          const also = named && lookUp<Sub | string[]>(named, key);
          if (Array.isArray(also)) needed.push(also);
          else check(also, value, own);
        }
      }
      bound(parts.length, " properties", sub.minProperties, sub.maxProperties);
      for (const names of needed) {
        for (const name of names) {
          spend(5);
          if (lookUp(value, name) === undefined) fail("required", name);
          if (issues.length >= limit) return;
        }
      }
    }

    sub.allOf?.forEach((part) => check(part, value, own));
    for (const forms of [sub.anyOf, sub.oneOf]) {
      const misfits = forms?.flatMap((part) => attempt(part, value, own) ?? []) ?? [];
      const fitting = forms ? forms.length - misfits.length : 1;
      if (!fitting) fail(cut([...new Set(misfits)].join(" or "), 300));
      else if (fitting > 1 && forms === sub.oneOf) expect("one form that fits", fitting);
    }
    if (sub.not !== undefined && attempt(sub.not, value) === undefined) fail("not allowed in this form");
    if (sub.if !== undefined) check(attempt(sub.if, value, own) === undefined ? sub.then : sub.else, value, own);

    if (!own) return;
    for (const key of parts) if (!own.has(key)) child(key, rest, Object(value)[key]);
    if (issues.length > before || !seen) return;
    spend(3 * own.size);
    own.forEach((key) => seen.add(key));
  }

  return (value) => {
    path = [];
    issues = [];
    limit = MAX_ISSUES;
    cost = 0;
    try {
      check(refs.get("#"), value);
      return issues;
    } catch (error) {
      if (error instanceof RangeError) return [{ path: "", message: "too large or too deeply nested to be checked" }];
      throw error;
    }
  };
}

/** The JSON type of a value; for what JSON cannot hold its own name, such as `NaN` or `undefined`. */
function toKind(value: unknown): string {
  if (typeof value === "number") return Number.isFinite(value) ? "number" : String(value);
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** An own property; the names in a schema and in a value may be those of inherited ones. */
function lookUp<T>(named: Named<T>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}

/** What `enum` or `const` allows. */
interface Choices {
  /** The values; only those that are no objects are found by identity. */
  readonly values: ReadonlySet<unknown>;
  /** The keys of those that are objects or arrays. */
  readonly keys: ReadonlySet<string>;
  /** The first of them, for errors. */
  readonly told: string;
}

/** What `enum` and `const` of a schema allow; made once. */
function findChoices(sub: Node, known: WeakMap<Node, readonly Choices[]>): readonly Choices[] {
  if (sub.enum === undefined && sub.const === undefined) return NONE;
  let choices = known.get(sub);
  if (!choices) {
    // The author's values cost the client nothing.
    const before = cost;
    cost = -Infinity;
    const lists = [sub.enum, sub.const === undefined ? undefined : [sub.const]];
    known.set(sub, choices = lists.flatMap((list) => list ? toChoices(list) : []));
    cost = before;
  }
  return choices;
}

const NONE: readonly Choices[] = [];

function toChoices(list: readonly unknown[]): Choices {
  return {
    values: new Set(list),
    keys: new Set(list.filter((one) => typeof one === "object").map(toKey)),
    // As many as fill the text, even if they are all of one digit.
    told: cut(list.slice(0, 50).map(show).join(" or "), 200),
  };
}

// What the check that is running has cost so far: no other one runs before it ends.
let cost = 0;

function spend(units: number): void {
  cost += units;
  if (cost > MAX_COST) throw new RangeError();
}

/**
 * One text for all values that are equal in JSON, whatever the order of their properties. Numbers and strings of digits
 * begin with another character than a digit, because engines hash texts of digits, and numbers, without a secret: a
 * client could send a set of them that all collide.
 */
function toKey(value: unknown): string {
  spend(2 * STEP);
  if (Array.isArray(value)) return `[${value.map(toKey)}]`;
  if (!isObject(value)) {
    if (typeof value === "string") spend(value.length);
    return "=" + JSON.stringify(value);
  }
  if (typeof value.toJSON === "function") return toKey(value.toJSON());
  const names = Object.keys(value).sort();
  spend(2 * NAME * names.length);
  let text = "{";
  for (const name of names) {
    if (value[name] !== undefined) text += `${JSON.stringify(name)}${toKey(value[name])},`;
  }
  return text + "}";
}

/** Counts code points: a surrogate pair counts once. */
function countCharacters(text: string): number {
  spend(text.length / 2);
  let count = 0;
  for (const _ of text) count++;
  return count;
}
