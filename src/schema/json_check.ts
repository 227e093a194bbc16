/**
 * Validates values against a raw JSON Schema.
 *
 * `format` and `content…` are annotations without effect. A `pattern` runs unchanged, and only on strings within
 * `maxLength`. The author must avoid patterns with catastrophic backtracking.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import {
  cut,
  type Inspected,
  inspectJsonSchema,
  type InspectOptions,
  type Issue,
  type JsonSchema,
  show,
  toPath,
  toText,
} from "./json_schema.ts";

import { adaptInput } from "./adapt_input.ts";
import { type Discriminator, findDiscriminator } from "./discriminator.ts";
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

// The first issues are enough for a model to fix its call. Thousands would only fill its context.
const MAX_ISSUES = 20;
// Maximum cost of one validation, in units of about 10 nanoseconds. Without it, a schema that branches at every level
// takes exponential time, and a schema with a thousand alternatives takes a thousand times as long.
const MAX_COST = 12_000_000;
// Cost of a step into a subschema.
const STEP = 10;
const FAILURE = 60;
// Cost of a property, measured on objects with very many of them.
const NAME = 12;

/** Inspects a schema and creates its validator. See {@linkcode inspectJsonSchema} and {@linkcode createCheck}. */
export function compileJsonSchema(schema: JsonSchema, options?: InspectOptions): (value: unknown) => Issue[] {
  return createCheck(inspectJsonSchema(schema, options));
}

/** Creates a function that inserts defaults into a value and validates it. `toProblem` formats the issues. */
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
 * Creates a validator, which returns at most 20 issues, and none for a valid value.
 *
 * Only own properties count. A property with the value `undefined` counts as absent, as in JSON.
 */
function createCheck(inspected: Inspected): (value: unknown) => Issue[] {
  const validator = new Validator(inspected);
  return (value) => validator.validate(value);
}

/** Validates one value after the other against a schema. Its fields are those of the value that it validates. */
class Validator {
  readonly #inspected: Inspected;
  readonly #refs: ReadonlyMap<unknown, Sub>;
  readonly #choices = new WeakMap<Node, readonly Choices[]>();
  readonly #discriminators = new WeakMap<readonly Sub[], ShownDiscriminator | null>();
  #path: Key[] = [];
  #issues: Issue[] = [];
  /** The number of issues after which nothing more is checked. */
  #limit = MAX_ISSUES;
  /** Whether only the number of issues counts. */
  #isSilent = false;

  constructor(inspected: Inspected) {
    this.#inspected = inspected;
    this.#refs = inspected.refs as ReadonlyMap<unknown, Sub>; // inspectJsonSchema() has checked that they are schemas.
  }

  validate(value: unknown): Issue[] {
    this.#path = [];
    this.#issues = [];
    this.#limit = MAX_ISSUES;
    this.#isSilent = false;
    cost = 0;
    try {
      this.#check(this.#refs.get("#"), value);
      return this.#issues;
    } catch (error) {
      if (error instanceof RangeError) return [{ path: "", message: "too large or too deeply nested to be checked" }];
      throw error;
    }
  }

  /** Checks a value. `seen` collects the keys that a keyword has evaluated, for the outer unevaluated… keywords. */
  #check(sub: Sub | undefined, value: unknown, seen?: Set<Key>): void {
    if (sub === false) this.#fail("not allowed");
    if (typeof sub !== "object" || this.#isDone()) return;
    const { tracks, draft7, isPartial } = this.#inspected;
    const before = this.#issues.length;
    const own = tracks && (seen || isTracking(sub)) && hasParts(value) ? new Set<Key>() : undefined;
    spend(own ? 3 * STEP : STEP);
    if (sub.$ref !== undefined) {
      this.#check(this.#refs.get(sub.$ref), value, own);
      if (draft7) return;
    }
    if (sub.$dynamicRef !== undefined) this.#check(this.#refs.get(sub.$dynamicRef), value, own);
    const kind = toKind(value);
    if (!isOfType(sub, value, kind)) return this.#expect(String(sub.type).replaceAll(",", " or "), kind);
    this.#checkChoices(sub, value, kind);
    if (typeof value === "string") this.#checkText(sub, value);
    else if (typeof value === "number") this.#checkNumber(sub, value);
    else if (Array.isArray(value)) this.#checkItems(sub, value, own);
    else if (isObject(value)) this.#checkProperties(sub, value, own);
    if (this.#isDone()) return;
    this.#checkForms(sub, value, own);
    // A value may fit a schema only because its patterns are ignored, so keywords that forbid a fit prove nothing.
    if (isPartial) return;
    this.#checkConditions(sub, value, own);
    if (!own) return;
    this.#checkUnevaluated(sub, value, own);
    if (this.#issues.length > before || !seen) return;
    spend(3 * own.size);
    own.forEach((key) => seen.add(key));
  }

  /** Checks a part of a value. Returns whether there is a schema for it. */
  #checkPart(key: Key, sub: Sub | undefined, item: unknown, own: Set<Key> | undefined): boolean {
    if (sub === undefined) return false;
    this.#path.push(key);
    this.#check(sub, item);
    this.#path.pop();
    own?.add(key);
    return true;
  }

  /** Checks `enum` and `const`. */
  #checkChoices(sub: Node, value: unknown, kind: string): void {
    for (const { values, keys, shown } of findChoices(sub, this.#choices)) {
      if (!values.has(value) && (typeof value !== "object" || !keys.size || !keys.has(toKey(value)))) {
        this.#expect(shown, typeof value === "object" ? kind : show(value));
      }
    }
  }

  #checkText({ minLength, maxLength = Infinity, pattern }: Node, text: string): void {
    let length = 0;
    if (minLength !== undefined || maxLength < Infinity) {
      length = countCharacters(text);
      this.#bound(length, " characters", minLength, maxLength);
    }
    if (pattern !== undefined && length <= maxLength && !this.#matches(pattern, text)) {
      this.#expect(`a match of ${cut(pattern, 200)}`, show(text));
    }
  }

  #checkNumber(sub: Node, value: number): void {
    const { exclusiveMinimum: over = -Infinity, exclusiveMaximum: under = Infinity, multipleOf: unit = 0 } = sub;
    this.#bound(value, "", sub.minimum, sub.maximum);
    if (value <= over) this.#expect(`more than ${over}`, value);
    if (value >= under) this.#expect(`less than ${under}`, value);
    // Floating-point division is inexact: 0.3 / 0.1 is 2.9999999999999996.
    if (unit && value % unit !== 0 && (Number.isInteger(unit) || +(value / unit).toPrecision(15) % 1 !== 0)) {
      this.#expect(`a multiple of ${unit}`, value);
    }
  }

  #checkItems(sub: Node, list: readonly unknown[], own: Set<Key> | undefined): void {
    const { items, contains } = sub;
    const [tuple = [], further] = Array.isArray(items) ? [items, sub.additionalItems] : [sub.prefixItems, items];
    spend(list.length / 9);
    this.#bound(list.length, " items", sub.minItems, sub.maxItems);
    if ((items ?? sub.prefixItems) !== undefined) {
      list.forEach((item, i) => this.#checkPart(i, i < tuple.length ? tuple[i] : further, item, own));
    }
    if (contains !== undefined) {
      const found = list.filter((item, i) => this.#isMatch(contains, item) && (own?.add(i), true));
      const max = this.#inspected.isPartial ? undefined : sub.maxContains;
      this.#bound(found.length, " matching items", sub.minContains ?? 1, max);
    }
    if (sub.uniqueItems && new Set(list.map(toKey)).size < list.length) this.#fail("two items are equal");
  }

  #checkProperties(sub: Node, value: Named<unknown>, own: Set<Key> | undefined): void {
    const keys = Object.keys(value);
    const required = sub.required ? [sub.required] : [];
    // A message can contain very many empty objects.
    const count = keys.length && this.#checkEach(keys, { sub, value, required, own });
    this.#bound(count, " properties", sub.minProperties, sub.maxProperties);
    this.#checkRequired(required, value);
  }

  /** Checks each property, and adds the names that they require to `required`. Returns how many there are. */
  #checkEach(keys: readonly string[], { sub, value, required, own }: Properties): number {
    const { properties, propertyNames } = sub;
    // Any name may match a pattern that does not run, and then none of its schemas is known to apply.
    const patternProperties = this.#inspected.isPartial ? undefined : sub.patternProperties;
    const isOpen = patternProperties !== sub.patternProperties;
    const dependents = [sub.dependentRequired, sub.dependentSchemas, sub.dependencies].filter(Boolean);
    let count = 0;
    spend(NAME * keys.length);
    for (const key of keys) {
      const item = value[key];
      if (item === undefined) continue;
      count++;
      let isKnown = this.#checkPart(key, properties && lookUp(properties, key), item, own);
      for (const pattern in patternProperties) {
        if (this.#matches(pattern, key)) isKnown = this.#checkPart(key, patternProperties[pattern], item, own);
      }
      if (!isKnown && !isOpen) this.#checkPart(key, sub.additionalProperties, item, own);
      const misfit = propertyNames !== undefined && this.#attempt(propertyNames, key);
      if (misfit) this.#fail(`not allowed as a name: ${misfit}`, key);
      for (const named of dependents) {
        const also = named && lookUp<Sub | string[]>(named, key);
        if (Array.isArray(also)) required.push(also);
        else this.#check(also, value, own);
      }
    }
    return count;
  }

  #checkRequired(required: readonly (readonly string[])[], value: Named<unknown>): void {
    for (const names of required) {
      for (const name of names) {
        spend(5);
        if (lookUp(value, name) === undefined) this.#fail("required", name);
        if (this.#isDone()) return;
      }
    }
  }

  /** Checks `allOf`, `anyOf` and `oneOf`. */
  #checkForms(sub: Node, value: unknown, own: Set<Key> | undefined): void {
    sub.allOf?.forEach((part) => this.#check(part, value, own));
    if (sub.anyOf) this.#countFitting(sub.anyOf, value, own);
    const fitting = sub.oneOf ? this.#countFitting(sub.oneOf, value, own) : 1;
    if (fitting > 1 && !this.#inspected.isPartial) this.#expect("one form that fits", fitting);
  }

  /** Checks that a value matches at least one of several alternatives. Returns how many it matches. */
  #countFitting(forms: readonly Sub[], value: unknown, own: Set<Key> | undefined): number {
    if (isObject(value) && this.#checkDiscriminated(forms, value, own)) return 1;
    const misfits = forms.flatMap((part) => this.#attempt(part, value, own) ?? []);
    const fitting = forms.length - misfits.length;
    if (!fitting) this.#fail(cut([...new Set(misfits)].join(" or "), 300));
    return fitting;
  }

  /** Checks an object against the only alternative that it can match. Returns `false` if it may match several. */
  #checkDiscriminated(forms: readonly Sub[], value: Named<unknown>, seen?: Set<Key>): boolean {
    const known = this.#findDiscriminator(forms);
    const given = known && lookUp(value, known.name);
    if (given === undefined || !known) return false;
    spend(STEP);
    const form = known.forms.get(given);
    if (form) this.#check(form, value, seen);
    else {this.#fail(
        `expected ${known.shown}, got ${typeof given === "object" ? toKind(given) : show(given)}`,
        known.name,
      );}
    return true;
  }

  #findDiscriminator(forms: readonly Sub[]): ShownDiscriminator | undefined {
    let known = this.#discriminators.get(forms);
    if (known === undefined) {
      const toParts = (form: JsonSchema) => {
        const target = this.#refs.get(form.$ref);
        return this.#inspected.draft7 && target !== undefined ? [target] : [form, target];
      };
      const found = findDiscriminator(forms, toParts);
      known = found ? { ...found, shown: showChoices([...found.forms.keys()]) } : null;
      this.#discriminators.set(forms, known);
    }
    return known ?? undefined;
  }

  /** Checks `not` and `if`. */
  #checkConditions(sub: Node, value: unknown, own: Set<Key> | undefined): void {
    if (sub.not !== undefined && this.#isMatch(sub.not, value)) this.#fail("not allowed in this form");
    if (sub.if === undefined) return;
    this.#check(this.#isMatch(sub.if, value, own) ? sub.then : sub.else, value, own);
  }

  /** Checks the items or properties that no keyword has evaluated. */
  #checkUnevaluated(sub: Node, value: unknown, own: Set<Key>): void {
    if (!isTracking(sub)) return;
    if (Array.isArray(value)) {
      value.forEach((item, i) => own.has(i) || this.#checkPart(i, sub.unevaluatedItems, item, own));
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        const item = value[key];
        if (item !== undefined && !own.has(key)) this.#checkPart(key, sub.unevaluatedProperties, item, own);
      }
    }
  }

  /** Returns the first issue of a value under a subschema that it need not match, or `undefined` if it matches. */
  #attempt(sub: Sub, value: unknown, seen?: Set<Key>): string | undefined {
    const path = this.#path;
    const issues = this.#issues;
    const limit = this.#limit;
    this.#path = [];
    this.#issues = [];
    this.#limit = 1;
    this.#check(sub, value, seen);
    const first = this.#issues[0];
    this.#path = path;
    this.#issues = issues;
    this.#limit = limit;
    return first && toText(first);
  }

  /** Tests whether a value matches a subschema that it need not match. */
  #isMatch(sub: Sub, value: unknown, seen?: Set<Key>): boolean {
    const wasSilent = this.#isSilent;
    this.#isSilent = true;
    const issue = this.#attempt(sub, value, seen);
    this.#isSilent = wasSilent;
    return issue === undefined;
  }

  #matches(pattern: string, text: string): boolean {
    if (this.#inspected.isPartial) return true;
    spend(4 + text.length / 4);
    return !!this.#inspected.patterns.get(pattern)?.test(text);
  }

  #bound(count: number, unit: string, min = -Infinity, max = Infinity): void {
    if (count < min) this.#expect(`at least ${min}${unit}`, count);
    if (count > max) this.#expect(`at most ${max}${unit}`, count);
  }

  #expect(what: string, got: unknown): void {
    this.#fail(`expected ${what}, got ${got}`);
  }

  #fail(message: string, key?: Key): void {
    if (this.#isDone()) return;
    if (this.#isSilent) return void this.#issues.push(SILENT);
    spend(FAILURE + 10 * this.#path.length);
    this.#issues.push({ path: toPath(key === undefined ? this.#path : [...this.#path, key]), message });
  }

  #isDone(): boolean {
    return this.#issues.length >= this.#limit;
  }
}

/** An issue of which nobody reads the message. */
const SILENT: Issue = { path: "", message: "no match" };

/** The properties of an object, and their schema. */
interface Properties {
  readonly sub: Node;
  readonly value: Named<unknown>;
  readonly required: (readonly string[])[];
  readonly own?: Set<Key>;
}

/** Tests whether a schema has a keyword that must know which parts of a value the other keywords have evaluated. */
function isTracking(sub: Node): boolean {
  return sub.unevaluatedProperties !== undefined || sub.unevaluatedItems !== undefined;
}

/** Tests for an object or an array that is not empty. */
function hasParts(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** Whether a value has a type that a schema lists. */
function isOfType({ type }: Node, value: unknown, kind: string): boolean {
  // A substring test works for one type or several, because no type name contains another one.
  return !type || type.includes(kind) || type.includes("integer") && Number.isInteger(value);
}

/** Returns the JSON type of a value. A value outside of JSON gets its own name, such as `NaN` or `undefined`. */
function toKind(value: unknown): string {
  if (typeof value === "number") return Number.isFinite(value) ? "number" : String(value);
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** Returns an own property. Names in schemas and values may collide with inherited ones. */
function lookUp<T>(named: Named<T>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}

/** The values that `enum` or `const` allows. */
interface Choices {
  /** Primitive values, which are compared by identity. */
  readonly values: ReadonlySet<unknown>;
  /** Keys of objects and arrays. */
  readonly keys: ReadonlySet<string>;
  /** The first few values, for error messages. */
  readonly shown: string;
}

/** Returns the values that `enum` and `const` allow. They are computed once per schema. */
function findChoices(sub: Node, known: WeakMap<Node, readonly Choices[]>): readonly Choices[] {
  if (sub.enum === undefined && sub.const === undefined) return NONE;
  let choices = known.get(sub);
  if (!choices) {
    // The schema's own values do not count towards the cost of a validation.
    const before = cost;
    cost = -Infinity;
    const lists = [sub.enum, sub.const === undefined ? undefined : [sub.const]];
    known.set(sub, choices = lists.flatMap((list) => list ? toChoices(list) : []));
    cost = before;
  }
  return choices;
}

const NONE: readonly Choices[] = [];

/** A discriminator with the first few of its values, for error messages. */
interface ShownDiscriminator extends Discriminator {
  readonly shown: string;
}

function toChoices(list: readonly unknown[]): Choices {
  return {
    values: new Set(list),
    keys: new Set(list.filter((one) => typeof one === "object").map(toKey)),
    shown: showChoices(list),
  };
}

// Enough values to fill the text, even if each has a single digit.
function showChoices(list: readonly unknown[]): string {
  return cut(list.slice(0, 50).map(show).join(" or "), 200);
}

// Cost of the current validation. Validations are synchronous, so they never overlap.
let cost = 0;

function spend(units: number): void {
  cost += units;
  if (cost > MAX_COST) throw new RangeError();
}

/**
 * Returns the same text for all values that are equal in JSON, regardless of the order of properties.
 *
 * The text of a number or of a string of digits begins with another character. Engines hash such texts without a
 * secret, so a client could send a set of values that all collide.
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

/** Counts code points, so that a surrogate pair counts once. */
function countCharacters(text: string): number {
  spend(text.length / 2);
  let count = 0;
  for (const _ of text) count++;
  return count;
}
