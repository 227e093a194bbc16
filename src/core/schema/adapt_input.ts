/**
 * Adapts arguments to their schema before validation: inserts defaults of raw JSON Schema, and parses JSON text. Loaded
 * when the first schema or option requires an adaptation.
 */
import { measureJson } from "../protocol/json_size.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { countIndexes } from "../protocol/weight.ts";
import { type Discriminator, findDiscriminator } from "./discriminator.ts";
import type { Checked } from "./schema.ts";
import { areMany, countSteps, endSteps, startSteps, TOO_MANY_STEPS, TooManySteps, weigh } from "./steps.ts";
import { followRef, type JsonSchema } from "./walker.ts";

/** The adaptations to make. By default, the value stays unchanged. */
export interface AdaptOptions {
  readonly defaults?: boolean;
  /** Limits for parsing JSON text. If set, JSON text is parsed where the schema does not accept a string. */
  readonly jsonText?: { readonly depth: number; readonly values: number };
  /** Whether to remove an optional property whose value is `null` if its schema does not accept `null`. */
  readonly dropsNull?: boolean;
}

// Maximum number of nested references and alternatives that are followed for a single value. Longer chains count as
// circular.
const MAX_STEPS = 64;
// Maximum number of keys that are small integers, as a fraction of the number of values that JSON text may contain.
// Engines allocate much memory for such keys, and this memory does not count against the limits of clients.
const INDEXES_PER_VALUE = 1 / 2000;
// Length in characters above which the parsed value of a JSON text is kept, so that the text is parsed only once for
// all alternatives.
const LONG_TEXT = 1000;
// Number of tests that every validation may make to find the alternatives that values match. When the tests are used
// up, the rest of the value stays unchanged.
const MIN_TESTS = 10_000;
// Additional tests for each unit of the value's weight, as returned by `weigh`.
const TESTS_PER_WEIGHT = 10;
// Maximum number of tests for any value. This number of tests takes about 100 milliseconds. Without this limit, the
// tests would take minutes for a long list of items with many alternatives, or for a value of a few bytes if the schema
// nests many alternatives.
const MAX_TESTS = 1_000_000;
// Number of name look-ups that take as long as one test, as an exponent of two.
const NAMES_PER_TEST = 3;
// Number of comparisons with a value of `enum` that take as long as one test, as an exponent of two.
const CHOICES_PER_TEST = 5;
// Steps for adapting one value to one schema.
const STEP = 10;
// Maximum number of adapted values to remember. Limits the memory of one validation.
const MAX_REMEMBERED = 100_000;
// If a schema has at most this number of properties, each property is looked up in the value. Otherwise it is cheaper
// to list the properties of the value.
const SHORT_SCHEMA = 16;
// Maximum number of defaults that are inserted into one value. Without this limit, a short input could cause very many
// insertions.
const MAX_DEFAULTS = 10_000;
// Steps for copying a default, for each unit of its weight.
const COPY = 5;
// The weight at which weighing a default stops. A heavier default counts as having this weight.
const MAX_DEFAULT = 1_000_000;

/**
 * Adapts a value to a schema, and returns the adapted copy. Parts that do not match the schema stay unchanged, and
 * validation reports them. `given` is never changed. Defaults within `anyOf`, `oneOf`, `if` and `not` are not inserted.
 *
 * Returns a problem if more than 10,000 defaults would have to be inserted, or if adapting takes too many steps.
 */
export function adaptInput(given: unknown, root: JsonSchema, options: AdaptOptions): Checked {
  startSteps(root, given);
  try {
    return { value: new InputAdapter(root, options, given).adapt(root, given) };
  } catch (error) {
    if (error instanceof TooManySteps) return { problem: TOO_MANY_STEPS };
    if (error instanceof RangeError) {
      return { problem: `more than ${MAX_DEFAULTS} values with a default are missing; send these values` };
    }
    throw error;
  } finally {
    endSteps();
  }
}

class InputAdapter {
  readonly #root: JsonSchema;
  readonly #options: AdaptOptions;
  #defaultsLeft = MAX_DEFAULTS;
  readonly #whole: unknown;
  #testsLeft = MIN_TESTS;
  #mayTestMore = true;
  #valuesLeft: number;
  #indexesLeft: number;
  // The maps are created on first use, because the arguments of most calls need none of them.
  /** The schemas to which `$ref` values refer, keyed by `$ref`. */
  #targets?: Map<unknown, unknown>;
  #texts?: Map<string, JsonText | undefined>;
  #discriminators?: Map<readonly unknown[], Discriminator | null>;
  /** Objects and arrays from JSON texts. They are changed in place, because copying takes longer than parsing. */
  #own?: WeakSet<object>;
  /**
   * The first map is for values within alternatives, the second map for all other values. The same value may be reached
   * again through another reference.
   */
  readonly #adapted: Map<JsonSchema, Set<object>>[] = [];
  #mayRemember = MAX_REMEMBERED;

  constructor(root: JsonSchema, options: AdaptOptions, whole: unknown) {
    this.#whole = whole;
    this.#root = root;
    this.#options = options;
    this.#valuesLeft = options.jsonText?.values ?? 0;
    this.#indexesLeft = Math.ceil(this.#valuesLeft * INDEXES_PER_VALUE);
  }

  /** `isSure` is `false` within alternatives, where defaults are not inserted. */
  adapt(schema: unknown, given: unknown, steps = 0, isSure = true): unknown {
    if (!isObject(schema) || steps > MAX_STEPS) return given;
    countSteps(STEP);
    // Remember values only after many steps, because most values are reached once, and remembering every value would
    // cost more time than it saves.
    if (typeof given !== "object" || !given || !areMany()) return this.#adaptOnce(schema, given, steps, isSure);
    const known = this.#adapted[isSure ? 1 : 0] ??= new Map();
    if (known.get(schema)?.has(given)) return given;
    const value = this.#adaptOnce(schema, given, steps, isSure);
    if (typeof value !== "object" || !value || this.#mayRemember <= 0) return value;
    this.#mayRemember--;
    const ofSchema = known.get(schema);
    if (ofSchema) ofSchema.add(value);
    else known.set(schema, new Set([value]));
    return value;
  }

  #adaptOnce(schema: JsonSchema, given: unknown, steps: number, isSure: boolean): unknown {
    const { $ref, allOf, anyOf, oneOf } = schema;
    let value = typeof given === "string" ? this.#parseValue(schema, given) : given;
    if ($ref !== undefined) value = this.adapt(this.#follow($ref), value, steps + 1, isSure);
    if (Array.isArray(allOf)) { for (const form of allOf) value = this.adapt(form, value, steps + 1, isSure); }
    for (const forms of [anyOf, oneOf]) {
      const form = Array.isArray(forms) && this.#findForm(forms, value);
      if (form) value = this.adapt(form, value, steps + 1, false);
    }
    if (Array.isArray(value)) value = this.#adaptItems(schema, value, isSure);
    else if (isPlain(value)) value = this.#adaptProperties(schema, value, isSure);
    return value;
  }

  #adaptItems({ prefixItems, items, additionalItems }: JsonSchema, list: unknown[], isSure: boolean): unknown[] {
    const [first, rest] = Array.isArray(items) ? [items, additionalItems] : [prefixItems, items];
    const tuple: readonly unknown[] = Array.isArray(first) ? first : [];
    if (!tuple.length && !isObject(rest)) return list;
    let made = list;
    list.forEach((item, i) => {
      const adapted = this.adapt(i < tuple.length ? tuple[i] : rest, this.#toOwn(list, item), 0, isSure);
      if (adapted === item) return;
      if (made === list && !this.#own?.has(list)) made = [...list];
      made[i] = adapted;
    });
    return made;
  }

  #adaptProperties(schema: JsonSchema, value: Record<string, unknown>, isSure: boolean): unknown {
    const { additionalProperties } = schema;
    const { defaults, dropsNull } = this.#options;
    const { properties, missing, required } = toKnown(schema);
    let made = value;
    const copy = () => {
      if (made === value && !this.#own?.has(value)) made = { ...value };
    };
    const put = (name: string, part: unknown) => {
      copy();
      // Define the property, because assigning to `__proto__` would not add a property.
      Object.defineProperty(made, name, { value: part, writable: true, enumerable: true, configurable: true });
    };
    // For a schema with few properties, do not list the properties of the value, because the value may have very many
    // properties that the schema does not define.
    const isShort = properties.size <= SHORT_SCHEMA && !isObject(additionalProperties);
    if (!isShort) countSteps(properties.size);
    for (const name of isShort ? properties.keys() : Object.keys(value)) {
      const part = properties.has(name) ? properties.get(name) : additionalProperties;
      const item = isObject(part) && Object.hasOwn(value, name) ? value[name] : undefined;
      if (dropsNull && item === null && properties.has(name) && !required.has(name) && !this.#accepts(part, "null")) {
        copy();
        delete made[name];
        continue;
      }
      // Skip values that cannot change. Only texts, and values that contain texts, can change.
      if (typeof item !== "string" && !(typeof item === "object" && item)) continue;
      const adapted = this.adapt(part, this.#toOwn(value, item), 0, isSure);
      if (adapted !== item) put(name, adapted);
    }
    for (const [name, given, weight] of defaults && isSure ? missing : []) {
      if (Object.hasOwn(value, name) && value[name] !== undefined) continue;
      if (!this.#defaultsLeft--) throw new RangeError();
      countSteps(COPY * weight);
      put(name, weight ? structuredClone(given) : given);
    }
    return made;
  }

  /** Returns the parsed value, or the text if it was not parsed. */
  #parseValue(schema: JsonSchema, text: string): unknown {
    const found = this.#findValue(schema, text);
    if (!found) return text;
    // Subtract the values and keys of this text, because their limits apply to all texts together.
    this.#valuesLeft -= found.values;
    this.#indexesLeft -= found.indexes;
    this.#texts?.delete(text);
    const { value } = found;
    if (typeof value === "object" && value) (this.#own ??= new WeakSet()).add(value);
    return value;
  }

  /** Returns `undefined` if the text is not JSON, exceeds a limit, or has a type that the schema does not accept. */
  #findValue(schema: JsonSchema, text: string): JsonText | undefined {
    const { jsonText } = this.#options;
    if (!jsonText || this.#accepts(schema, "string")) return;
    const texts = this.#texts ??= new Map();
    if (!texts.has(text)) {
      const max = { depth: jsonText.depth, values: this.#valuesLeft, indexes: this.#indexesLeft };
      const found = readJson(text, max);
      // Remember the outcome for long texts, and for texts that are not JSON, because throwing a parse error takes
      // longer than parsing a short text.
      if (found && text.length <= LONG_TEXT) return this.#accepts(schema, toKind(found.value)) ? found : undefined;
      texts.set(text, found);
    }
    const found = texts.get(text);
    return found && found.values <= this.#valuesLeft && this.#accepts(schema, toKind(found.value)) ? found : undefined;
  }

  /** Finds the first alternative that a value roughly matches. */
  #findForm(forms: readonly unknown[], value: unknown): unknown {
    if (!this.#mayTest()) return;
    const discriminators = this.#discriminators ??= new Map();
    let known = discriminators.get(forms);
    if (known === undefined) {
      known = findDiscriminator(forms, (form) => [form, this.#follow(form.$ref)]) ?? null;
      discriminators.set(forms, known);
    }
    const given = known && isObject(value) && Object.hasOwn(value, known.name) ? value[known.name] : undefined;
    if (!known || given === undefined || typeof given === "object" && given) {
      return forms.find((form) => this.#fits(form, value));
    }
    const form = known.forms.get(given);
    return form && this.#fits(form, value) ? form : undefined;
  }

  /** Whether a value roughly matches a schema. If `deep` is `true`, the properties are tested too. */
  #fits(schema: unknown, value: unknown, deep = true): boolean {
    if (!isObject(schema)) return schema !== false;
    const target = schema.$ref === undefined ? undefined : this.#follow(schema.$ref);
    if (target && !this.#fits(target, value, deep)) return false;
    const choices = toChoices(schema);
    if (choices && typeof value !== "object" && !choices.includes(value)) return false;
    const isJsonText = () => typeof value === "string" && this.#findValue(schema, value);
    if (!this.#accepts(schema, toKind(value)) && !isJsonText()) return false;
    const { required } = schema;
    if (!deep || !isObject(value)) return true;
    const { properties } = toKnown(schema);
    this.#testsLeft -= properties.size + (Array.isArray(required) ? required.length : 0) >> NAMES_PER_TEST;
    if (Array.isArray(required) && required.some((name) => !Object.hasOwn(value, name))) return false;
    for (const [name, part] of properties) {
      if (Object.hasOwn(value, name) && !this.#fits(part, value[name], false)) return false;
    }
    return true;
  }

  /** Whether a schema may accept values of a JSON type. */
  #accepts(schema: unknown, kind: string, steps = 0): boolean {
    if (schema === false || !this.#mayTest()) return false;
    this.#testsLeft--;
    if (!isObject(schema) || steps > MAX_STEPS) return true;
    const { type, anyOf, oneOf, allOf, $ref } = schema;
    if (type !== undefined && ![type].flat().some((one) => one === kind || one === "integer" && kind === "number")) {
      return false;
    }
    const choices = toChoices(schema);
    if (choices) this.#testsLeft -= choices.length >> CHOICES_PER_TEST;
    if (choices && !choices.some((choice) => toKind(choice) === kind)) return false;
    for (const forms of [anyOf, oneOf]) {
      if (Array.isArray(forms) && !forms.some((form) => this.#accepts(form, kind, steps + 1))) return false;
    }
    if (Array.isArray(allOf) && !allOf.every((form) => this.#accepts(form, kind, steps + 1))) return false;
    return $ref === undefined || this.#accepts(this.#follow($ref), kind, steps + 1);
  }

  #mayTest(): boolean {
    if (this.#testsLeft <= 0 && this.#mayTestMore) {
      this.#mayTestMore = false;
      const more = TESTS_PER_WEIGHT * weigh(this.#whole, MAX_TESTS / TESTS_PER_WEIGHT, true);
      this.#testsLeft = Math.min(more, MAX_TESTS) - MIN_TESTS;
    }
    return this.#testsLeft > 0;
  }

  #follow(ref: unknown): JsonSchema | undefined {
    const targets = this.#targets ??= new Map();
    if (!targets.has(ref)) targets.set(ref, followRef(this.#root, String(ref)));
    const target = targets.get(ref);
    return isObject(target) ? target : undefined;
  }

  /** If `whole` was parsed from a JSON text, marks `part` as parsed too, so that the part is changed in place. */
  #toOwn(whole: object, part: unknown): unknown {
    if (typeof part === "object" && part && this.#own?.has(whole)) this.#own.add(part);
    return part;
  }
}

/** What is known about the properties of each schema. */
const properties = new WeakMap<JsonSchema, Known>();

function toKnown(schema: JsonSchema): Known {
  let known = properties.get(schema);
  if (!known) {
    const all = new Map<string, unknown>(Object.entries(Object(schema.properties)));
    const missing = [...all].flatMap(([name, part]) => {
      const { default: given }: JsonSchema = Object(part);
      const weight = typeof given === "object" && given ? weigh(given, MAX_DEFAULT, true) : 0;
      return given === undefined ? [] : [[name, given, weight] as const];
    });
    const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
    properties.set(schema, known = { properties: all, missing, required });
  }
  return known;
}

/** The properties that a schema defines, and the defaults among them. */
interface Known {
  readonly properties: ReadonlyMap<string, unknown>;
  /**
   * The properties with a default. The weight is 0 for a primitive default. An object or array is copied for each
   * insertion, because a handler may change its arguments.
   */
  readonly missing: readonly (readonly [name: string, given: unknown, weight: number])[];
  readonly required: ReadonlySet<unknown>;
}

interface JsonText {
  readonly value: unknown;
  readonly values: number;
  readonly indexes: number;
}

function toChoices({ enum: all, const: only }: JsonSchema): readonly unknown[] | undefined {
  return Array.isArray(all) ? all : only === undefined ? undefined : [only];
}

/** Returns `undefined` if the text is not JSON, or exceeds a limit. */
function readJson(text: string, max: Omit<JsonText, "value"> & { readonly depth: number }): JsonText | undefined {
  const { values, excess } = measureJson(text, max);
  const indexes = excess ? 0 : countIndexes(text);
  if (excess || indexes > max.indexes) return;
  try {
    const value: unknown = JSON.parse(text);
    // Keep the text of a number that would lose digits.
    const isExact = typeof value !== "number" ||
      Number.isFinite(value) && (value % 1 !== 0 || Number.isSafeInteger(value));
    return isExact ? { value, values, indexes } : undefined;
  } catch {
    return;
  }
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.prototype.toString.call(value) === "[object Object]";
}

function toKind(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
