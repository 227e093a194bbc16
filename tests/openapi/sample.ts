// Creates arguments from the input schema of a tool.

type Schema = Readonly<Record<string, unknown>>;

/** Thrown if no value is known that matches a schema, such as for an unusual pattern. */
export class NoSample extends Error {}

const TEXTS = [
  ...[
    "a-b_c",
    "abc",
    "ABC",
    "a",
    "1",
    "12",
    "2020-01-02",
    "2020-01-02T03:04:05Z",
    "a@example.com",
    "https://example.com/x",
  ],
  ...[
    "0123456789abcdef0123456789abcdef01234567",
    "123e4567-e89b-12d3-a456-426614174000",
    "#aabbcc",
    "en",
    "en_US",
    "/a",
  ],
  ...["0123456789abcdef".repeat(4), "10.0.0.1", "1.2.3", "+15551234567", "a/b", "v1"],
];

/** Returns arguments with all properties of the first levels, and only the required properties of the others. */
export function createSample(root: Schema): Record<string, unknown> {
  const value = toSample(root, root, 0, "");
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new NoSample("not an object");
}

function toSample(root: Schema, schema: unknown, depth: number, name: string): unknown {
  if (depth > 12) throw new NoSample(`too deep at ${name}`);
  if (typeof schema !== "object" || schema === null) return `text of ${name}`;
  const { $ref, ...own } = schema as Schema;
  const next = (part: unknown) => toSample(root, part, depth + 1, name);
  if (typeof $ref === "string") {
    const target = ($ref.split("/").slice(1) as string[]).reduce<unknown>((at, key) => Object(at)[key], root);
    return toSample(root, { ...Object(target), ...own }, depth + 1, name);
  }
  const { enum: values, const: only, type, anyOf, allOf } = own;
  if (only !== undefined) return only;
  if (Array.isArray(values)) return values.find((each) => each !== null) ?? null;
  if (Array.isArray(anyOf)) {
    const { anyOf: _anyOf, ...rest } = own;
    for (const part of anyOf.filter((each) => Object(each).type !== "null")) {
      try {
        const chosen = next(merge(root, [rest, part]));
        if (chosen !== undefined) return chosen;
      } catch (error) {
        if (!(error instanceof NoSample)) throw error;
      }
    }
    throw new NoSample(`no alternative of ${name}`);
  }
  if (Array.isArray(allOf)) {
    const { allOf: _allOf, ...rest } = own;
    return next(merge(root, [rest, ...allOf]));
  }
  const kind = [type].flat().find((each) => each !== "null") ??
    (own.properties ? "object" : own.items ? "array" : "string");
  if (kind === "object") return toObject(root, own, depth, name);
  if (kind === "array") {
    const length = Math.max(Number(own.minItems ?? 0), Math.min(2, Number(own.maxItems ?? 2)));
    if (depth > 3 && !own.minItems) return [];
    const items = Array.from(
      { length },
      (_, i) => next(Array.isArray(own.prefixItems) ? own.prefixItems[i] ?? own.items : own.items ?? {}),
    );
    return own.uniqueItems ? [...new Map(items.map((item) => [JSON.stringify(item), item])).values()] : items;
  }
  if (kind === "integer" || kind === "number") return toNumber(own, kind);
  if (kind === "boolean") return true;
  return toText(own, name);
}

/** Merges schemas that all apply. */
function merge(root: Schema, parts: readonly unknown[]): Schema {
  return parts.reduce<Schema>((whole, each) => {
    let part = Object(each) as Schema;
    for (let i = 0; typeof part.$ref === "string" && i < 20; i++) {
      const { $ref, ...own } = part;
      const target = String($ref).split("/").slice(1).reduce<unknown>((at, key) => Object(at)[key], root);
      part = { ...Object(target), ...own };
    }
    return {
      ...whole,
      ...part,
      properties: { ...Object(whole.properties), ...Object(part.properties) },
      required: [...[whole.required ?? []].flat(), ...[part.required ?? []].flat()],
      ...whole.allOf || part.allOf ? { allOf: [...[whole.allOf ?? []].flat(), ...[part.allOf ?? []].flat()] } : {},
      ...whole.type === undefined ? {} : { type: part.type ?? whole.type },
    };
  }, {});
}

function toObject(
  root: Schema,
  { properties, required }: Schema,
  depth: number,
  name: string,
): Record<string, unknown> {
  const needed = new Set<unknown>([required ?? []].flat());
  const entries = Object.entries(Object(properties)).filter(([key]) => depth < 2 || needed.has(key));
  const sample: [string, unknown][] = [];
  for (const [key, part] of entries) {
    try {
      sample.push([key, toSample(root, part, depth + 1, key)]);
    } catch (error) {
      if (needed.has(key) || !(error instanceof NoSample)) throw error;
    }
  }
  for (const key of needed) {
    if (!sample.some(([known]) => known === key)) sample.push([String(key), `text of ${name}`]);
  }
  return Object.fromEntries(sample);
}

function toNumber(
  { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf = 1 }: Schema,
  kind: string,
): number {
  const step = kind === "integer" ? Math.max(1, Number(multipleOf)) : Number(multipleOf);
  const low = Math.max(Number(minimum ?? -Infinity), Number(exclusiveMinimum ?? -Infinity) + 1e-6);
  const high = Math.min(Number(maximum ?? Infinity), Number(exclusiveMaximum ?? Infinity) - 1e-6);
  for (const value of [7 * step, Math.ceil(low / step) * step, Math.floor(high / step) * step, (low + high) / 2]) {
    if (Number.isFinite(value) && value >= low && value <= high) return value;
  }
  throw new NoSample("no number");
}

function toText(
  { pattern, minLength = 0, maxLength = Infinity, contentEncoding, examples }: Schema,
  name: string,
): string {
  if (contentEncoding === "base64") return btoa(`bytes of ${name}`.replace(/[^\x20-\x7e]/g, ""));
  const given = [...[examples ?? []].flat(), `${name} & ü/1?`, ...TEXTS].filter((each) => typeof each === "string");
  const padded = given.map((each) => each.slice(0, Number(maxLength)).padEnd(Number(minLength), "x"));
  const found = padded.find((each) => pattern === undefined || new RegExp(String(pattern), "u").test(each));
  if (found === undefined || !found) throw new NoSample(`no text for ${pattern}`);
  return found;
}
