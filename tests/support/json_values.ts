// Makes random values for a JSON Schema, and makes mistakes in them. A validator must decide whether a value matches the
// schema, because keywords of a schema can contradict each other, and because some mistakes are allowed.
import type { Random } from "./random.ts";

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

type Schema = Readonly<Record<string, unknown>>;

/** The mistakes that {@linkcode JsonValues.spoil} makes. */
export const MISTAKES = ["missing", "extra", "type", "null", "range", "choice"] as const;

export type Mistake = typeof MISTAKES[number];

/** Depth below which only required properties and the fewest items are made, because schemas may be recursive. */
const MAX_DEPTH = 4;
const MAX_TEXT = 5000;
const SCALARS: readonly Json[] = [null, true, false, 0, -1, 1.5, 1e6, "", "a", "1", "true", "💩"];
const OTHERS: readonly Json[] = [...SCALARS, [], {}, ["a"], { a: 1 }];
const NAMES = ["a", "extra", "constructor", "__proto__", "1"];
/** Texts that match the patterns of usual schemas. */
const TEXTS = [
  "a",
  "abc",
  "ab-c_1",
  "24h",
  "a.example",
  "https://a.example/b",
  "2026-07-28",
  "123e4567-e89b-42d3-a456-426614174000",
  "💩 Grüße",
];

/** Random values for one schema. */
export class JsonValues {
  readonly #root: Schema;
  readonly #random: Random;
  /** Numbers next to the limits of the schema. */
  readonly #numbers: number[] = [];
  /** Values that some part of the schema allows. */
  readonly #choices: string[] = [...TEXTS];
  /** Names of properties in some part of the schema. */
  readonly #names: string[] = [...NAMES];

  constructor(root: Schema, random: Random) {
    this.#root = root;
    this.#random = random;
    this.#collect(root);
  }

  /** Makes a value that matches the schema, unless its keywords contradict each other. */
  make(): Json {
    return this.#make(this.#root, 0);
  }

  /** Returns a copy of an object with a mistake in a random place. The copy is still an object. */
  spoil(whole: Json, mistake: Mistake): Json {
    const copy = { whole: structuredClone(whole) };
    const isInside = mistake !== "missing" && mistake !== "extra";
    const places = listPlaces(copy).slice(isInside ? 1 : 0).flatMap(({ holder, name }) => {
      const changed = this.#change(holder[name], mistake);
      return changed === undefined ? [] : [{ holder, name, changed }];
    });
    if (places.length) {
      const { holder, name, changed } = this.#random.pick(places);
      setMember(holder, name, changed);
    }
    return copy.whole;
  }

  #collect(part: unknown): void {
    for (const [key, value] of Object.entries(Object(part))) {
      if (typeof value === "number") this.#numbers.push(...[value - 1, value, value + 1].filter(isSafe));
      if (typeof value === "string" && key === "const") this.#choices.push(value);
      if (Array.isArray(value) && key === "enum") this.#choices.push(...value.filter((one) => typeof one === "string"));
      if (key === "properties") this.#names.push(...Object.keys(Object(value)));
      if (typeof value === "object") this.#collect(value);
    }
  }

  #make(schema: unknown, depth: number): Json {
    const random = this.#random;
    const { $ref, allOf, anyOf, oneOf, ...own }: Schema = Object(schema);
    if (typeof $ref === "string") return this.#make(merge(own, this.#follow($ref)), depth);
    if (Array.isArray(allOf)) return this.#make(allOf.reduce(merge, { ...own, anyOf, oneOf }), depth);
    const forms = anyOf ?? oneOf;
    if (Array.isArray(forms)) return this.#make(merge(own, random.pick(selectForms(forms, depth))), depth);
    if (own.const !== undefined) return own.const as Json; // The cast is safe, because schemas are JSON.
    if (Array.isArray(own.enum)) return random.pick(own.enum);
    switch (random.pick([own.type ?? (own.properties ? "object" : undefined)].flat())) {
      case "object":
        return this.#makeObject(own, depth);
      case "array":
        return this.#makeList(own, depth);
      case "string":
        return this.#makeText(own);
      case "number":
        return this.#makeNumber(own, random.pick([0, 0.5]));
      case "integer":
        return this.#makeNumber(own, 0);
      case "boolean":
        return random.pick([true, false]);
      case "null":
        return null;
      default:
        return random.pick(OTHERS);
    }
  }

  #follow(ref: string): unknown {
    return ref.split("/").slice(1).reduce((target, key) => Object(target)[decodeURIComponent(key)], this.#root);
  }

  #makeObject(schema: Schema, depth: number): Json {
    const random = this.#random;
    const properties: Schema = Object(schema.properties);
    const required: readonly string[] = Array.isArray(schema.required) ? schema.required : [];
    const made: Record<string, Json> = {};
    for (const [name, part] of Object.entries(properties)) {
      if (required.includes(name) || depth < MAX_DEPTH && random.below(2)) made[name] = this.#make(part, depth + 1);
    }
    for (const name of required) made[name] ??= random.pick(OTHERS);
    if (schema.additionalProperties === false || depth >= MAX_DEPTH || random.below(3)) return made;
    const name = schema.propertyNames ? this.#make(schema.propertyNames, depth) : "extra";
    return { [String(name)]: this.#make(schema.additionalProperties, depth + 1), ...made };
  }

  #makeList({ items, minItems, maxItems }: Schema, depth: number): Json {
    const least = Number(minItems ?? 0);
    const most = depth < MAX_DEPTH ? Math.min(Number(maxItems ?? Infinity), least + 3) : least;
    return Array.from({ length: least + this.#random.below(most - least + 1) }, () => this.#make(items, depth + 1));
  }

  #makeText({ pattern, minLength, maxLength }: Schema): Json {
    const [least, most] = [Number(minLength ?? 0), Number(maxLength ?? MAX_TEXT)];
    const isFit = (text: string) => pattern === undefined || RegExp(String(pattern), "u").test(text);
    const lengths = [least, least + 1, most];
    return this.#random.pick([
      ...TEXTS.filter((text) => isFit(text) && [...text].length >= least && [...text].length <= most),
      ...lengths.map((length) => "💩".repeat(length)).filter(isFit),
    ]) ?? "";
  }

  #makeNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema, fraction: number): Json {
    const least = Number(minimum ?? (exclusiveMinimum === undefined ? -1000 : Number(exclusiveMinimum) + 1));
    const most = Number(maximum ?? (exclusiveMaximum === undefined ? least + 2000 : Number(exclusiveMaximum) - 1));
    const some = least + this.#random.below(Math.min(most - least, 2000)) + fraction;
    return this.#random.pick([least, most, some, some]);
  }

  /** Returns a part with a mistake. Returns `undefined` if a part of this type cannot have the mistake. */
  #change(part: Json, mistake: Mistake): Json | undefined {
    const random = this.#random;
    switch (mistake) {
      case "missing": {
        if (toType(part) !== "object" || !Object.keys(Object(part)).length) return;
        const { [random.pick(Object.keys(Object(part)))]: _, ...rest } = Object(part);
        return rest;
      }
      case "extra":
        return toType(part) === "object"
          ? setMember({ ...Object(part) }, random.pick(this.#names), random.pick(OTHERS))
          : undefined;
      case "type":
        return random.pick([...OTHERS, [part], String(part)].filter((other) => toType(other) !== toType(part)));
      case "null":
        return null;
      case "range":
        if (typeof part === "number") {
          return random.pick([part + 0.5, -part, part + 1e6, part - 1e6, ...this.#numbers].filter(isSafe));
        }
        if (typeof part === "string") {
          return random.pick(["", part.slice(1), part + "💩".repeat(300), "a".repeat(9999)]);
        }
        return Array.isArray(part)
          ? random.pick([[], part.slice(1), [...part, ...part], Array(200).fill(part[0] ?? "a")])
          : undefined;
      case "choice":
        return typeof part === "string" ? random.pick([`${part}x`, part.toUpperCase(), ...this.#choices]) : undefined;
    }
  }
}

/** A member of an object, or an item of an array. */
interface Place {
  readonly holder: Record<string, Json>;
  readonly name: string;
}

/** Lists all members and items within a value, from the outermost inwards. */
function listPlaces(holder: Record<string, Json>): Place[] {
  return Object.keys(holder).flatMap((name) => {
    const part = holder[name];
    // The cast is safe, because the names are own keys of the object or array.
    const inner = typeof part === "object" && part ? listPlaces(part as Record<string, Json>) : [];
    return [{ holder, name }, ...inner];
  });
}

/** Sets a member. Assigning to `__proto__` would not add a member. */
function setMember(holder: Record<string, Json>, name: string, value: Json): Record<string, Json> {
  return Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Combines the keywords of two schemas that apply to the same value. */
function merge(one: Schema, other: unknown): Schema {
  const added: Schema = Object(other);
  const required = [one.required ?? [], added.required ?? []].flat();
  return { ...one, ...added, properties: { ...Object(one.properties), ...Object(added.properties) }, required };
}

/** In a deep value, selects the forms without nested values. */
function selectForms(forms: readonly unknown[], depth: number): readonly unknown[] {
  const flat = forms.filter((form) => !/"(object|array|\$ref)"/.test(JSON.stringify(form)));
  return depth >= MAX_DEPTH && flat.length ? flat : forms;
}

/** Whether a number has not lost digits. */
function isSafe(value: number): boolean {
  return !Number.isInteger(value) || Number.isSafeInteger(value);
}

function toType(value: Json): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}
