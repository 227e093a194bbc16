/**
 * Validates values against a raw JSON Schema.
 *
 * `format` and `content…` are only annotations, and are not validated. A `pattern` is run as the author wrote it, but
 * only on strings that are not longer than `maxLength`. The author must avoid patterns with catastrophic backtracking.
 */
import { shorten } from "../kit/shorten.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import {
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
import { hasEqual, toKey } from "./json_equal.ts";
import { type Choices, type Node, Nodes, type Sub, Types } from "./json_node.ts";
import type { Checked, FormatIssues } from "./schema.ts";
import { areMany, countSteps, endSteps, startSteps, TOO_MANY_STEPS, TooManySteps, uncounted } from "./steps.ts";

type Key = string | number;
type Value = Readonly<Record<string, unknown>>;

// Maximum number of reported issues. The first issues suffice for a model to correct its call, and thousands of issues
// would only fill its context.
const MAX_ISSUES = 20;
// Steps for checking a value against a subschema.
const STEP = 10;
// Steps for reporting an issue.
const FAILURE = 60;
// Steps for each property of an object with very many properties.
const NAME = 12;
// Steps for remembering that an item or a property was evaluated.
const TRACKED = 8;
// Maximum length, in characters, of a message that explains why a value matches no alternative.
const MAX_MISFIT = 300;
// Maximum number of outcomes to remember. Limits the memory of one validation.
const MAX_REMEMBERED = 100_000;
// Number of keys from which remembering the keys of an object is faster than listing the keys again.
const MANY_KEYS = 64;

export function compileJsonSchema(schema: JsonSchema, options?: InspectOptions): (value: unknown) => Issue[] {
  return createCheck(inspectJsonSchema(schema, options));
}

/** Creates a function that inserts defaults into a value and validates the result. `format` describes the issues. */
export function createReader(inspected: Inspected): (value: unknown, format: FormatIssues) => Checked {
  const check = createCheck(inspected);
  const root: JsonSchema = Object(inspected.refs.get("#"));
  const hasDefaults = JSON.stringify(root).includes('"default":');
  return (given, format) => {
    const adapted = hasDefaults ? adaptInput(given, root, { defaults: true }) : { value: given };
    if (adapted.problem !== undefined) return adapted;
    const issues = check(adapted.value);
    return issues.length ? { problem: format(issues) } : adapted;
  };
}

/**
 * Creates a validator, which returns at most 20 issues, and an empty list for a valid value.
 *
 * The validator ignores inherited properties. A property with the value `undefined` counts as absent, as in JSON.
 */
function createCheck(inspected: Inspected): (value: unknown) => Issue[] {
  const validator = new Validator(inspected);
  return (value) => validator.validate(value);
}

/** Validates one value at a time, because the fields contain the state of the current validation. */
class Validator {
  readonly #refs: ReadonlyMap<unknown, Sub>;
  readonly #patterns: ReadonlyMap<unknown, RegExp>;
  readonly #tracks: boolean;
  readonly #draft7: boolean;
  readonly #isPartial: boolean;
  readonly #nodes = new Nodes();
  readonly #schema: unknown;
  readonly #discriminators = new WeakMap<readonly Sub[], ShownDiscriminator | null>();
  #path: Key[] = [];
  #issues: Issue[] = [];
  /** Number of issues found so far, including issues without a message. */
  #found = 0;
  /** Number of issues at which the validation stops. */
  #limit = MAX_ISSUES;
  /** Whether only the number of issues is needed, not their messages. */
  #isSilent = false;
  /** The large object whose keys were listed last. */
  #listed?: object;
  #keys: readonly string[] = [];
  /** Outcomes for values that another reference or alternative may reach again, keyed by schema, then by value. */
  #known = new Map<Node, Map<object, Outcome>>();
  #firsts = new Map<Node, Map<object, string>>();
  #remembered = 0;

  constructor({ refs, patterns, tracks, draft7, isPartial }: Inspected) {
    this.#patterns = patterns;
    this.#tracks = tracks;
    this.#draft7 = draft7;
    this.#isPartial = isPartial;
    this.#schema = refs.get("#");
    this.#refs = new Map([...refs].map(([ref, schema]) => [ref, this.#nodes.findShared(schema)]));
  }

  validate(value: unknown): Issue[] {
    this.#path = [];
    this.#issues = [];
    this.#found = 0;
    this.#limit = MAX_ISSUES;
    this.#isSilent = false;
    startSteps(this.#schema, value);
    try {
      this.#check(this.#refs.get("#"), value);
      return this.#issues;
    } catch (error) {
      if (error instanceof TooManySteps) return [{ path: "", message: TOO_MANY_STEPS }];
      if (error instanceof RangeError) return [TOO_DEEP];
      throw error;
    } finally {
      latestSteps = endSteps();
      this.#listed = undefined;
      this.#keys = [];
      if (this.#remembered) {
        this.#known = new Map();
        this.#firsts = new Map();
        this.#remembered = 0;
      }
    }
  }

  /** `seen` collects the evaluated keys, for `unevaluatedItems` and `unevaluatedProperties` of an outer schema. */
  #check(sub: Sub | undefined, value: unknown, seen?: Set<Key>, isOnce = false): void {
    if (sub === false) this.#fail("not allowed");
    if (typeof sub !== "object" || this.#isDone()) return;
    // Look for a known outcome only at references, and only after many steps, because most values are reached once.
    if (sub.isShared && !isOnce && areMany() && typeof value === "object" && value) {
      return this.#checkOnce(sub, value, seen);
    }
    const before = this.#found;
    const own = this.#tracks && (seen || sub.isTracking) && this.#hasParts(value) ? new Set<Key>() : undefined;
    countSteps(own ? 3 * STEP : STEP);
    if (sub.$ref !== undefined && this.#draft7) return this.#check(this.#refs.get(sub.$ref), value, own);
    if (sub.types !== undefined && !(sub.types & toTypes(value, this.#isPartial))) {
      return this.#expect(toTypeNames(sub.schema.type), isUnsafe(value) ? UNSAFE : toKind(value));
    }
    if (sub.hasChoices) this.#checkChoices(sub, value);
    if (sub.$ref !== undefined) this.#check(this.#refs.get(sub.$ref), value, own);
    if (sub.$dynamicRef !== undefined) this.#check(this.#refs.get(sub.$dynamicRef), value, own);
    if (typeof value === "string") this.#checkText(sub, value);
    else if (typeof value === "number") this.#checkNumber(sub, value);
    else if (Array.isArray(value)) { if (sub.hasItems) this.#checkItems(sub, value, own); }
    else if (isObject(value)) this.#checkProperties(sub, value, own);
    if (!sub.hasForms && !own || this.#isDone()) return;
    this.#checkForms(sub, value, own);
    // If patterns are ignored, do not check `not` and `if`. A valid value may match the schema of `not` or `if` only
    // because its pattern was ignored, and would then be rejected.
    if (this.#isPartial) return;
    this.#checkConditions(sub, value, own);
    if (!own) return;
    this.#checkUnevaluated(sub, value, own);
    if (this.#found > before || !seen) return;
    countSteps(TRACKED * own.size);
    own.forEach((key) => seen.add(key));
  }

  /** Checks a value, or uses the known outcome if the same value has already been checked against the same schema. */
  #checkOnce(sub: Node, value: object, seen?: Set<Key>): void {
    countSteps(STEP);
    const known = this.#known.get(sub)?.get(value);
    const keys = typeof known === "object" ? known : undefined;
    if (keys || known && !seen) {
      countSteps(TRACKED * (keys?.size ?? 0));
      return keys?.forEach((key) => seen?.add(key));
    }
    // Use a known failure only if its message is not needed. Otherwise check the value again.
    if (known === false && this.#isSilent) return this.#fail("");
    const before = this.#found;
    const own = seen && new Set<Key>();
    this.#check(sub, value, own, true);
    const isMatch = this.#found === before;
    if (isMatch) own?.forEach((key) => seen?.add(key));
    this.#remember(this.#known, sub, value, isMatch && (own ?? true));
  }

  #remember<T>(known: Map<Node, Map<object, T>>, sub: Node, value: object, outcome: T): void {
    if (this.#remembered++ >= MAX_REMEMBERED) return;
    countSteps(STEP);
    const ofNode = known.get(sub);
    if (ofNode) ofNode.set(value, outcome);
    else known.set(sub, new Map([[value, outcome]]));
  }

  /** Returns `false` if no schema applies to the item or property. */
  #checkPart(key: Key, sub: Sub | undefined, item: unknown, own: Set<Key> | undefined): boolean {
    if (sub === undefined) return false;
    this.#path.push(key);
    this.#check(sub, item);
    this.#path.pop();
    own?.add(key);
    return true;
  }

  /** Checks a property that the schema does not name. */
  #checkOther(key: string, sub: Sub | undefined, item: unknown, own: Set<Key> | undefined): void {
    if (sub === false) this.#fail("unknown property; remove it", key);
    else this.#checkPart(key, sub, item, own);
  }

  /** Keeps the keys of a large object for the next keyword, because listing many keys takes milliseconds. */
  #listKeys(value: object): readonly string[] {
    if (value === this.#listed) return this.#keys;
    const keys = Object.keys(value);
    countSteps(4 * keys.length);
    if (keys.length < MANY_KEYS) return keys;
    this.#listed = value;
    return this.#keys = keys;
  }

  /** Whether a value is a non-empty object or array. */
  #hasParts(value: unknown): boolean {
    if (Array.isArray(value)) return value.length > 0;
    return typeof value === "object" && value !== null && this.#listKeys(value).length > 0;
  }

  #checkChoices(sub: Node, value: unknown): void {
    for (const { values, keys, shown } of findChoices(sub)) {
      if (!values.has(value) && (typeof value !== "object" || !keys.size || !keys.has(toKey(value)))) {
        this.#expect(shown, typeof value === "object" ? toKind(value) : show(value));
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
      this.#expect(`a match of ${shorten(pattern, 200)}`, show(text));
    }
  }

  #checkNumber(sub: Node, value: number): void {
    const { exclusiveMinimum: over = -Infinity, exclusiveMaximum: under = Infinity, multipleOf: unit = 0 } = sub;
    this.#bound(value, "", sub.minimum, sub.maximum);
    if (value <= over) this.#expect(`more than ${over}`, value);
    if (value >= under) this.#expect(`less than ${under}`, value);
    // Round the quotient of fractions, because `%` and the quotient are inexact (0.3 / 0.1 is 2.9999999999999996).
    if (unit && value % unit !== 0 && (Number.isInteger(unit) || +(value / unit).toPrecision(15) % 1 !== 0)) {
      this.#expect(`a multiple of ${unit}`, value);
    }
  }

  #checkItems(sub: Node, list: readonly unknown[], own: Set<Key> | undefined): void {
    const { tuple = [], items, contains } = sub;
    countSteps((own ? TRACKED : 2) * list.length);
    this.#bound(list.length, " items", sub.minItems, sub.maxItems);
    if (items !== undefined || tuple.length) {
      list.some((item, i) => {
        this.#checkPart(i, i < tuple.length ? tuple[i] : items, item, own);
        return this.#isDone();
      });
    }
    if (contains !== undefined && !this.#isDone()) {
      let count = 0;
      list.forEach((item, i) => {
        if (!this.#isMatch(contains, item)) return;
        count++;
        own?.add(i);
      });
      const max = this.#isPartial ? undefined : sub.maxContains;
      this.#bound(count, " matching items", sub.minContains ?? 1, max);
    }
    if (sub.uniqueItems && !this.#isDone() && hasEqual(list)) this.#fail("two items are equal");
  }

  #checkProperties(sub: Node, value: Value, own: Set<Key> | undefined): void {
    // If a single issue decides the outcome, start with the checks that take few steps, because the values of
    // properties may be large.
    const isQuick = this.#limit === 1;
    if (isQuick) {
      if (sub.required) this.#checkRequired(sub.required, value);
      if (sub.constants) this.#checkConstants(sub.constants, value);
      if (this.#isDone()) return;
    }
    // Allocate the list only if the schema has dependents, because a message can contain very many small objects.
    const required: (readonly string[])[] | undefined = sub.dependents.length ? [] : undefined;
    if (sub.hasNames) {
      const keys = this.#listKeys(value);
      const count = keys.length && this.#checkEach(keys, { sub, value, required, own });
      this.#bound(count, " properties", sub.minProperties, sub.maxProperties);
    } else if (sub.properties) this.#checkKnown(sub.properties, value, own);
    if (sub.required && !isQuick) this.#checkRequired(sub.required, value);
    required?.forEach((names) => this.#checkRequired(names, value));
  }

  /** Checked first, because alternatives often differ in these properties. */
  #checkConstants(constants: readonly (readonly [string, Node])[], value: Value): void {
    countSteps(2 * constants.length);
    for (const [key, sub] of constants) {
      const item = lookUp(value, key);
      if (item !== undefined && !allows(sub, item)) this.#checkPart(key, sub, item, undefined);
      if (this.#isDone()) return;
    }
  }

  // Look up each property of the schema. Do not list the properties of the value, because the value may have very many
  // properties that the schema does not define.
  #checkKnown(properties: ReadonlyMap<string, Sub>, value: Value, own: Set<Key> | undefined): void {
    countSteps(2 * properties.size);
    for (const [key, sub] of properties) {
      const item = lookUp(value, key);
      if (item !== undefined) this.#checkPart(key, sub, item, own);
      if (this.#isDone()) return;
    }
  }

  /** Checks each property, and adds the names that it requires to `required`. Returns the number of properties. */
  #checkEach(keys: readonly string[], { sub, value, required, own }: Properties): number {
    const { properties, propertyNames, additionalProperties, dependents } = sub;
    // If patterns are ignored, any name may match a pattern, so it is unknown which schemas of `patternProperties`
    // apply.
    const patternProperties = this.#isPartial ? undefined : sub.patternProperties;
    const isOpen = patternProperties !== sub.patternProperties;
    let count = 0;
    countSteps(NAME * keys.length);
    for (const key of keys) {
      const item = value[key];
      if (item === undefined) continue;
      if (this.#isDone()) break;
      count++;
      let isKnown = !!properties && this.#checkPart(key, properties.get(key), item, own);
      if (patternProperties) {
        for (const [pattern, part] of patternProperties) {
          if (this.#matches(pattern, key)) isKnown = this.#checkPart(key, part, item, own);
        }
      }
      if (!isKnown && !isOpen) this.#checkOther(key, additionalProperties, item, own);
      const misfit = propertyNames !== undefined && this.#attempt(propertyNames, key);
      if (misfit) this.#fail(`not allowed as a name: ${misfit}`, key);
      for (const named of dependents) {
        const also = named.get(key);
        if (typeof also === "object" && isList(also)) required?.push(also);
        else this.#check(also, value, own);
      }
    }
    return count;
  }

  #checkRequired(names: readonly string[], value: Value): void {
    for (const name of names) {
      countSteps(8);
      if (lookUp(value, name) === undefined) this.#fail("required", name);
      if (this.#isDone()) return;
    }
  }

  #checkForms({ allOf, anyOf, oneOf, schema }: Node, value: unknown, own: Set<Key> | undefined): void {
    if (allOf) { for (const part of allOf) this.#check(part, value, own); }
    if (anyOf) this.#countFitting(anyOf, { given: schema.anyOf, value, own, isEnough: !own });
    const fitting = oneOf ? this.#countFitting(oneOf, { given: schema.oneOf, value, own }) : 1;
    if (fitting > 1 && !this.#isPartial) this.#expect("exactly one matching schema of oneOf", fitting);
  }

  /** Reports an issue if the value matches no alternative. */
  #countFitting(forms: readonly Sub[], { given, value, own, isEnough }: Alternatives): number {
    if (isObject(value) && this.#checkDiscriminated(forms, given, value, own)) return 1;
    let fitting = 0;
    for (const part of forms) {
      if (this.#isMatch(part, value, own)) fitting++;
      if (fitting && isEnough) break;
    }
    if (fitting) return fitting;
    this.#fail(this.#isSilent ? "" : this.#explainMisfit(forms, value));
    return 0;
  }

  /** Explains why a value does not match any alternative, in about {@linkcode MAX_MISFIT} characters. */
  #explainMisfit(forms: readonly Sub[], value: unknown): string {
    const misfits = new Set<string>();
    let length = 0;
    for (const part of forms) {
      const misfit = this.#attempt(part, value);
      if (misfit === undefined || misfits.has(misfit)) continue;
      misfits.add(misfit);
      length += misfit.length;
      if (length > MAX_MISFIT) break;
    }
    return shorten([...misfits].join(" or "), MAX_MISFIT);
  }

  /** Returns `false` without a check if the object may match several alternatives. */
  #checkDiscriminated(forms: readonly Sub[], all: unknown, value: Value, seen?: Set<Key>): boolean {
    const known = this.#findDiscriminator(forms, all);
    const given = known && lookUp(value, known.name);
    if (given === undefined || !known) return false;
    countSteps(STEP);
    const form = known.forms.get(given);
    if (form) this.#check(this.#nodes.find(form), value, seen);
    else if (this.#isSilent) this.#fail("");
    else {
      const kind = typeof given === "object" ? toKind(given) : show(given);
      this.#fail(`expected ${known.shown}, got ${kind}`, known.name);
    }
    return true;
  }

  #findDiscriminator(forms: readonly Sub[], all: unknown): ShownDiscriminator | undefined {
    let known = this.#discriminators.get(forms);
    if (known === undefined) {
      const toTarget = (ref: unknown) => {
        const target = this.#refs.get(ref);
        return typeof target === "object" ? target.schema : target;
      };
      const toParts = (form: JsonSchema) => {
        const target = toTarget(form.$ref);
        return this.#draft7 && target !== undefined ? [target] : [form, target];
      };
      const found = Array.isArray(all) ? findDiscriminator(all, toParts) : undefined;
      known = found ? { ...found, shown: showChoices([...found.forms.keys()]) } : null;
      this.#discriminators.set(forms, known);
    }
    return known ?? undefined;
  }

  #checkConditions(sub: Node, value: unknown, own: Set<Key> | undefined): void {
    if (sub.not !== undefined && this.#isMatch(sub.not, value)) {
      this.#fail("not allowed, because it matches the schema of the keyword not");
    }
    if (sub.if === undefined) return;
    this.#check(this.#isMatch(sub.if, value, own) ? sub.then : sub.else, value, own);
  }

  /** Checks the items or properties that no other keyword has evaluated. */
  #checkUnevaluated(sub: Node, value: unknown, own: Set<Key>): void {
    if (!sub.isTracking) return;
    if (Array.isArray(value)) {
      countSteps(TRACKED * value.length);
      value.forEach((item, i) => own.has(i) || this.#checkPart(i, sub.unevaluatedItems, item, own));
    } else if (isObject(value)) {
      const keys = this.#listKeys(value);
      countSteps(TRACKED * keys.length);
      for (const key of keys) {
        const item = value[key];
        if (item !== undefined && !own.has(key)) this.#checkOther(key, sub.unevaluatedProperties, item, own);
      }
    }
  }

  /** Returns the first issue of a value, without reporting it, or `undefined` if the value matches. */
  #attempt(sub: Sub, value: unknown): string | undefined {
    const isKept = typeof sub === "object" && typeof value === "object" && value && areMany();
    if (!isKept) return this.#findFirst(sub, value);
    const known = this.#firsts.get(sub)?.get(value);
    if (known !== undefined) return known;
    const first = this.#findFirst(sub, value);
    if (first !== undefined) this.#remember(this.#firsts, sub, value, first);
    return first;
  }

  #findFirst(sub: Sub, value: unknown): string | undefined {
    const path = this.#path;
    const issues = this.#issues;
    const found = this.#found;
    const limit = this.#limit;
    this.#path = [];
    this.#issues = [];
    this.#found = 0;
    this.#limit = 1;
    this.#check(sub, value);
    const isMatch = !this.#found;
    const [first = SILENT] = this.#issues;
    this.#path = path;
    this.#issues = issues;
    this.#found = found;
    this.#limit = limit;
    return isMatch ? undefined : toText(first);
  }

  /** Whether a value matches a subschema. Issues are not reported. */
  #isMatch(sub: Sub, value: unknown, seen?: Set<Key>): boolean {
    // In draft-07, keywords beside a reference have no effect.
    if (typeof sub === "object" && sub.hasChoices && !(this.#draft7 && sub.$ref !== undefined) && !allows(sub, value)) {
      countSteps(2);
      return false;
    }
    const wasSilent = this.#isSilent;
    const found = this.#found;
    const limit = this.#limit;
    this.#isSilent = true;
    this.#found = 0;
    this.#limit = 1;
    this.#check(sub, value, seen);
    const isMatch = !this.#found;
    this.#isSilent = wasSilent;
    this.#found = found;
    this.#limit = limit;
    return isMatch;
  }

  #matches(pattern: string, text: string): boolean {
    if (this.#isPartial) return true;
    countSteps(4 + (text.length >> 2));
    return !!this.#patterns.get(pattern)?.test(text);
  }

  #bound(count: number, unit: string, min = -Infinity, max = Infinity): void {
    if (count < min) this.#expect(`at least ${min}${unit}`, count);
    if (count > max) this.#expect(`at most ${max}${unit}`, count);
  }

  #expect(what: string, got: unknown): void {
    this.#fail(this.#isSilent ? "" : `expected ${what}, got ${got}`);
  }

  #fail(message: string, key?: Key): void {
    if (this.#isDone()) return;
    this.#found++;
    if (this.#isSilent) return;
    countSteps(FAILURE + 10 * this.#path.length);
    this.#issues.push({ path: toPath(key === undefined ? this.#path : [...this.#path, key]), message });
  }

  #isDone(): boolean {
    return this.#found >= this.#limit;
  }
}

/** The outcome for a value: `false` if the value does not match, otherwise `true` or the evaluated keys. */
type Outcome = boolean | ReadonlySet<Key>;

const TOO_DEEP: Issue = {
  path: "",
  message: "the value is nested too deeply to check; send a value with fewer levels",
};

let latestSteps = 0;

/** Returns the number of steps of the latest validation. Only tests use this function. */
export function countLatestSteps(): number {
  return latestSteps;
}

const SILENT: Issue = { path: "", message: "no match" };

interface Properties {
  readonly sub: Node;
  readonly value: Value;
  readonly required?: (readonly string[])[];
  readonly own?: Set<Key>;
}

interface Alternatives {
  readonly given: unknown;
  readonly value: unknown;
  readonly own?: Set<Key>;
  /** Whether a single matching alternative suffices. Counting then stops at the first match. */
  readonly isEnough?: boolean;
}

/**
 * Returns the bits of {@linkcode Types} that stand for the type of a value. Returns 0 for a value that JSON cannot
 * represent. An integer beyond the safe range counts as an integer only if `isLoose` is `true`, because it has lost
 * digits, so that a handler would use another number than the client has sent.
 */
function toTypes(value: unknown, isLoose: boolean): number {
  if (typeof value === "number") {
    const isInteger = isLoose ? Number.isInteger(value) : Number.isSafeInteger(value);
    return isInteger ? Types.number | Types.integer : Number.isFinite(value) ? Types.number : 0;
  }
  if (typeof value === "object") return value === null ? Types.null : Array.isArray(value) ? Types.array : Types.object;
  return typeof value === "string" ? Types.string : typeof value === "boolean" ? Types.boolean : 0;
}

/** Whether a value is an integer that may have lost digits. */
function isUnsafe(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

const UNSAFE = "a number beyond the safe range, which is up to 9007199254740991";

function toTypeNames(type: unknown): string {
  return [type].flat().join(" or ") || NOTHING;
}

/** Describes the values that an empty `type`, `enum` or `oneOf` allows. */
const NOTHING = "nothing, because the schema allows no value";

function isList(also: object): also is readonly string[] {
  return Array.isArray(also);
}

/** Returns the JSON type of a value. For any other value, returns a name such as `NaN` or `undefined`. */
function toKind(value: unknown): string {
  if (typeof value === "number") return Number.isFinite(value) ? "number" : String(value);
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** Returns an own property, because names in schemas and values may equal the names of inherited properties. */
function lookUp<T>(named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}

/** The values are computed once per schema. */
function findChoices(sub: Node): readonly Choices[] {
  return sub.choices ??= uncounted(() => {
    const { enum: all, const: only } = sub.schema;
    const lists = [all, only === undefined ? undefined : [only]];
    return lists.flatMap((list) => Array.isArray(list) ? toChoices(list) : []);
  });
}

/** Returns `true` for every object and array, because it may equal a choice without being identical. */
function allows(sub: Node, value: unknown): boolean {
  return typeof value === "object" && value !== null || findChoices(sub).every(({ values }) => values.has(value));
}

/** A discriminator. `shown` contains the first values of the property, for error messages. */
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

// Formats the first values of a list, in at most 200 characters. Fifty values fill these characters even if each value
// is a single digit.
function showChoices(list: readonly unknown[]): string {
  return shorten(list.slice(0, 50).map(show).join(" or "), 200) || NOTHING;
}

/** Counts code points, so that a surrogate pair counts once. */
function countCharacters(text: string): number {
  countSteps(text.length >> 2);
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  }
  return count;
}
