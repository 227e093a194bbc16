/**
 * Adapts arguments to their schema before validation: inserts defaults of raw JSON Schema, parses JSON text, and reads
 * dates and similar types from text. Loaded when a schema or a server first needs it.
 *
 * @module
 */
import { measureJson } from "../protocol/json_size.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { countIndexes } from "../protocol/weight.ts";
import { type Discriminator, findDiscriminator } from "./discriminator.ts";
import type { JsonSchema } from "./json_schema.ts";

/** Changes to make. Defaults to none. */
export interface AdaptOptions {
  /** Whether missing properties get their `default`. */
  readonly defaults?: boolean;
  /** Parses JSON text where the schema expects no string, within these limits. */
  readonly jsonText?: { readonly depth: number; readonly values: number };
  /** Whether to convert values that {@linkcode KIND} marks, such as dates. */
  readonly revive?: boolean;
}

/** The keyword that marks types that JSON cannot represent: `date`, `bigint`, `set`, `map` or `pairs`. */
export const KIND = "x-mcp-kind";

// Maximum nested references and alternatives for a single value. More of them are circular.
const MAX_STEPS = 64;
// Share of the values in JSON text that may be keys that are small numbers. Clients are not charged for their memory.
const INDEXES_PER_VALUE = 1 / 2000;
// Characters above which a JSON text is parsed once for all alternatives.
const LONG_TEXT = 1000;
// Maximum tests of a value against an alternative or a part of one. They take about 100 milliseconds. Without a limit, a
// long list of items with many alternatives would take minutes. Beyond it, values stay as they are.
const MAX_TESTS = 1_000_000;
// Properties of a schema up to which it is cheaper to look for each of them than to list those of the value.
const SHORT_SCHEMA = 16;
// Maximum inserted defaults, because a short input can cause many of them.
const MAX_DEFAULTS = 10_000;
const ISO = /^[+-]?\d{4,6}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/i;

/**
 * Returns a value adapted to a schema. Parts that do not fit stay unchanged, and validation reports them. The value
 * itself is never changed. Defaults do not count within `anyOf`, `oneOf`, `if` and `not`.
 *
 * @throws {RangeError} if more than 10,000 defaults would have to be inserted.
 */
export function adaptInput(given: unknown, root: JsonSchema, { defaults, jsonText, revive }: AdaptOptions): unknown {
  const targets = new Map<unknown, unknown>();
  let left = MAX_DEFAULTS;
  let tests = MAX_TESTS;
  let values = jsonText?.values ?? 0;
  let indexes = Math.ceil(values * INDEXES_PER_VALUE);
  const read = new Map<string, JsonText | undefined>();
  const discriminators = new Map<readonly unknown[], Discriminator | null>();
  const knownOf = new Map<JsonSchema, Known>();
  /** Parsed JSON texts and their parts. They are changed in place, because a copy takes longer than parsing. */
  const own = new WeakSet<object>();

  function follow(ref: unknown): JsonSchema | undefined {
    if (!targets.has(ref)) {
      const tokens = String(ref).startsWith("#") ? decodeURIComponent(String(ref)).split("/").slice(1) : [NaN];
      targets.set(
        ref,
        tokens.reduce((target: unknown, token) => {
          const key = String(token).replaceAll("~1", "/").replaceAll("~0", "~");
          return Object.getOwnPropertyDescriptor(Object(target), key)?.value;
        }, root),
      );
    }
    const target = targets.get(ref);
    return isObject(target) ? target : undefined;
  }

  /** Tests whether a schema may accept a JSON type. */
  function takes(schema: unknown, kind: string, steps = 0): boolean {
    if (schema === false || tests-- <= 0) return false;
    if (!isObject(schema) || steps > MAX_STEPS) return true;
    const { type, enum: all, const: only, anyOf, oneOf, allOf, $ref } = schema;
    if (type !== undefined && ![type].flat().some((one) => one === kind || one === "integer" && kind === "number")) {
      return false;
    }
    const choices = Array.isArray(all) ? all : only === undefined ? undefined : [only];
    if (choices && !choices.some((choice) => toKind(choice) === kind)) return false;
    for (const forms of [anyOf, oneOf]) {
      if (Array.isArray(forms) && !forms.some((form) => takes(form, kind, steps + 1))) return false;
    }
    if (Array.isArray(allOf) && !allOf.every((form) => takes(form, kind, steps + 1))) return false;
    return $ref === undefined || takes(follow($ref), kind, steps + 1);
  }

  /** Tests whether a value roughly matches a schema. With `deep`, it also tests the properties. */
  function fits(schema: unknown, value: unknown, deep = true): boolean {
    if (!isObject(schema)) return schema !== false;
    const target = schema.$ref === undefined ? undefined : follow(schema.$ref);
    if (target && !fits(target, value, deep)) return false;
    if (!takes(schema, toKind(value)) && !(typeof value === "string" && findValue(schema, value))) return false;
    const { enum: all, const: only, required } = schema;
    const choices = Array.isArray(all) ? all : only === undefined ? undefined : [only];
    if (choices && typeof value !== "object" && !choices.includes(value)) return false;
    if (revive && typeof value === "string" && schema[KIND] && toRevived(schema[KIND], value) === value) return false;
    if (!deep || !isObject(value)) return true;
    if (Array.isArray(required) && required.some((name) => !Object.hasOwn(value, name))) return false;
    for (const [name, part] of toKnown(schema).properties) {
      if (Object.hasOwn(value, name) && !fits(part, value[name], false)) return false;
    }
    return true;
  }

  /** Parses JSON text where a schema expects no string. */
  function findValue(schema: JsonSchema, text: string): JsonText | undefined {
    if (!jsonText || takes(schema, "string")) return;
    if (!read.has(text)) {
      const found = readJson(text, { depth: jsonText.depth, values, indexes });
      // A text that is no JSON is remembered, because an error takes longer than anything else here.
      if (found && text.length <= LONG_TEXT) return takes(schema, toKind(found.value)) ? found : undefined;
      read.set(text, found);
    }
    const found = read.get(text);
    return found && found.values <= values && takes(schema, toKind(found.value)) ? found : undefined;
  }

  function adapt(schema: unknown, given: unknown, steps = 0, isSure = true): unknown {
    if (!isObject(schema) || steps > MAX_STEPS) return given;
    const { $ref, allOf, anyOf, oneOf } = schema;
    let value = given;
    const found = typeof value === "string" ? findValue(schema, value) : undefined;
    if (found) {
      // The limits on values and on keys apply to all texts together.
      values -= found.values;
      indexes -= found.indexes;
      read.delete(String(value));
      value = found.value;
      if (typeof value === "object" && value) own.add(value);
    }
    if ($ref !== undefined) value = adapt(follow($ref), value, steps + 1, isSure);
    if (Array.isArray(allOf)) { for (const form of allOf) value = adapt(form, value, steps + 1, isSure); }
    for (const forms of [anyOf, oneOf]) {
      const form = Array.isArray(forms) && findForm(forms, value);
      if (form) value = adapt(form, value, steps + 1, false);
    }
    if (Array.isArray(value)) value = adaptItems(schema, value, isSure);
    else if (isPlain(value)) value = adaptProperties(schema, value, isSure);
    return revive && schema[KIND] ? toRevived(schema[KIND], value) : value;
  }

  /** Finds the first alternative that a value roughly matches. */
  function findForm(forms: readonly unknown[], value: unknown): unknown {
    if (tests <= 0) return;
    let known = discriminators.get(forms);
    if (known === undefined) {
      known = findDiscriminator(forms, (form) => [form, follow(form.$ref)]) ?? null;
      discriminators.set(forms, known);
    }
    const given = known && isObject(value) && Object.hasOwn(value, known.name) ? value[known.name] : undefined;
    if (!known || given === undefined || typeof given === "object" && given) {
      return forms.find((form) => fits(form, value));
    }
    const form = known.forms.get(given);
    return form && fits(form, value) ? form : undefined;
  }

  function adaptItems({ prefixItems, items, additionalItems }: JsonSchema, list: unknown[], isSure: boolean) {
    const [first, rest] = Array.isArray(items) ? [items, additionalItems] : [prefixItems, items];
    const tuple: readonly unknown[] = Array.isArray(first) ? first : [];
    if (!tuple.length && !isObject(rest)) return list;
    let made = list;
    list.forEach((item, i) => {
      const adapted = adapt(i < tuple.length ? tuple[i] : rest, toOwn(list, item), 0, isSure);
      if (adapted === item) return;
      if (made === list && !own.has(list)) made = [...list];
      made[i] = adapted;
    });
    return made;
  }

  function adaptProperties(schema: JsonSchema, value: Record<string, unknown>, isSure: boolean): unknown {
    const { additionalProperties } = schema;
    const { properties, missing } = toKnown(schema);
    let made = value;
    const put = (name: string, part: unknown) => {
      if (made === value && !own.has(value)) made = { ...value };
      // Assigning `__proto__` would not add a property.
      Object.defineProperty(made, name, { value: part, writable: true, enumerable: true, configurable: true });
    };
    // A large value may have very many names that the schema does not know.
    const isShort = properties.size <= SHORT_SCHEMA && !isObject(additionalProperties);
    for (const name of isShort ? properties.keys() : Object.keys(value)) {
      const part = properties.has(name) ? properties.get(name) : additionalProperties;
      const item = isObject(part) && Object.hasOwn(value, name) ? value[name] : undefined;
      // Only texts and what contains them change, and numbers where a schema wants a bigint.
      if (typeof item !== "string" && !(typeof item === "object" && item) && !revive) continue;
      const adapted = adapt(part, toOwn(value, item), 0, isSure);
      if (adapted !== item) put(name, adapted);
    }
    for (const [name, given] of defaults && isSure ? missing : []) {
      if (Object.hasOwn(value, name) && value[name] !== undefined) continue;
      if (!left--) throw new RangeError();
      put(name, structuredClone(given));
    }
    return made;
  }

  /** Marks a part of a parsed JSON text, which may be changed in place like the whole. */
  function toOwn(whole: object, part: unknown): unknown {
    if (typeof part === "object" && part && own.has(whole)) own.add(part);
    return part;
  }

  function toKnown(schema: JsonSchema): Known {
    let known = knownOf.get(schema);
    if (!known) {
      const properties = new Map<string, unknown>(Object.entries(Object(schema.properties)));
      const missing = [...properties].flatMap(([name, part]) => {
        const { default: given }: JsonSchema = Object(part);
        return given === undefined ? [] : [[name, given] as const]; // a pair
      });
      knownOf.set(schema, known = { properties, missing });
    }
    return known;
  }

  return adapt(root, given);
}

/** The properties that a schema knows, and the defaults among them. */
interface Known {
  readonly properties: ReadonlyMap<string, unknown>;
  readonly missing: readonly (readonly [name: string, given: unknown])[];
}

/** A parsed JSON text. */
interface JsonText {
  readonly value: unknown;
  readonly values: number;
  readonly indexes: number;
}

/** Parses a text, if it is JSON within limits. */
function readJson(text: string, max: Omit<JsonText, "value"> & { readonly depth: number }): JsonText | undefined {
  const { values, excess } = measureJson(text, max);
  const indexes = excess ? 0 : countIndexes(text);
  if (excess || indexes > max.indexes) return;
  try {
    const value: unknown = JSON.parse(text);
    // A number that loses digits must not replace its text.
    const isExact = typeof value !== "number" ||
      Number.isFinite(value) && (value % 1 !== 0 || Number.isSafeInteger(value));
    return isExact ? { value, values, indexes } : undefined;
  } catch {
    return;
  }
}

/** Converts a value to its marked type. Returns it unchanged if it does not fit. */
function toRevived(kind: unknown, value: unknown): unknown {
  if (kind === "date" && typeof value === "string" && ISO.test(value)) {
    // A time without a zone is UTC, because its local time would differ between machines.
    const date = new Date(/T\d\d:\d\d(:[\d.]+)?$/i.test(value) ? `${value}Z` : value);
    return Number.isNaN(date.getTime()) ? value : date;
  }
  const isInteger = typeof value === "string" ? /^-?\d{1,1000}$/.test(value) : Number.isSafeInteger(value);
  if (kind === "bigint" && isInteger) return BigInt(value as string | number); // as the line above says
  if (kind === "set" && Array.isArray(value)) return new Set(value);
  if (kind === "map" && isPlain(value)) return new Map(Object.entries(value));
  const isPairs = Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2);
  return kind === "pairs" && isPairs ? new Map(value) : value;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.prototype.toString.call(value) === "[object Object]";
}

function toKind(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
