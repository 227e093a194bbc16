// Reads references and schemas of an OpenAPI document.

export type ObjectValue = Readonly<Record<string, unknown>>;
export type Version = "2.0" | "3.0" | "3.1" | "3.2";

export function isObject(value: unknown): value is ObjectValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member of the object itself, never of its prototype: documents may have names such as `constructor`. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function textMember(value: unknown, name: string): string | undefined {
  const found = member(value, name);
  return typeof found === "string" ? found : undefined;
}

export function listMember(value: unknown, name: string): readonly unknown[] {
  const found = member(value, name);
  return Array.isArray(found) ? found : [];
}

export function readVersion(document: ObjectValue): Version {
  if (member(document, "swagger") !== undefined) return "2.0";
  const version = String(member(document, "openapi"));
  if (version.startsWith("3.0")) return "3.0";
  if (version.startsWith("3.1")) return "3.1";
  return "3.2";
}

export function isAtLeast(version: Version, other: Version): boolean {
  return Number(version) >= Number(other);
}

/** The value a JSON Pointer leads to. The pointer is a URI fragment, so it may be percent-encoded. */
function walkPointer(document: ObjectValue, fragment: string): unknown {
  let pointer = fragment;
  try {
    pointer = decodeURIComponent(fragment);
  } catch {
    // A fragment with a stray `%` is read as it is.
  }
  let current: unknown = document;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(current)) current = /^(0|[1-9]\d*)$/.test(name) ? current[Number(name)] : undefined;
    else current = member(current, name);
    if (current === undefined) return undefined;
  }
  return current;
}

/** Finds the schema that has the anchor or the identifier. Only 3.1 and later have them. */
function findIdentified(root: unknown, keys: readonly string[], id: string): unknown {
  const open: unknown[] = [root];
  const seen = new Set<unknown>();
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (keys.some((key) => member(value, key) === id)) return value;
    open.push(...Object.values(value));
  }
  return undefined;
}

export function resolveReference(document: ObjectValue, reference: string): unknown {
  let rest = reference;
  const self = textMember(document, "$self");
  // 3.2, "Establishing the Base URI": the document may be named by its own `$self`.
  if (self !== undefined && rest.split("#")[0] === self.split("#")[0]) rest = `#${rest.split("#")[1] ?? ""}`;
  if (rest === "#") return document;
  if (rest.startsWith("#/")) return walkPointer(document, rest.slice(1));
  if (!isAtLeast(readVersion(document), "3.1")) return undefined;
  if (rest.startsWith("#")) return findIdentified(document, ["$anchor", "$dynamicAnchor"], rest.slice(1));
  const [id = "", fragment] = rest.split("#");
  const target = findIdentified(document, ["$id"], id);
  if (!isObject(target) || fragment === undefined || fragment === "") return target;
  return walkPointer(target, fragment);
}

export interface Followed {
  readonly value?: ObjectValue;
  readonly problem?: string;
}

/** Follows Reference Objects. Their siblings never count: "any properties added SHALL be ignored" (Reference Object). */
export function followReference(document: ObjectValue, value: unknown): Followed {
  let current = value;
  const seen = new Set<string>();
  while (isObject(current) && typeof member(current, "$ref") === "string") {
    const reference = String(current["$ref"]);
    if (seen.has(reference)) return { problem: `The reference ${reference} leads back to itself.` };
    seen.add(reference);
    // Identifiers of schemas are not for other objects, so only pointers into this document count here.
    const target = reference.includes("#/") ? resolveReference(document, reference) : undefined;
    if (target === undefined) return { problem: `The reference ${reference} leads nowhere in this document.` };
    current = target;
  }
  return isObject(current) ? { value: current } : { problem: "A part that must be an object is something else." };
}

export interface SchemaParts {
  /** Schemas that surely apply: the schema, what it references, and all of `allOf`. */
  readonly certain: readonly ObjectValue[];
  /** Branches of which one or more may apply. Branches that only allow null are left out. */
  readonly branches: readonly unknown[];
  /** False when a reference leads nowhere. */
  readonly isComplete: boolean;
}

/**
 * 3.2, "Non-JSON Data": an implementation must follow `$ref` and `allOf`, and may look into other keywords.
 * In 2.0 and 3.0 the siblings of a `$ref` are ignored, since 3.1 they apply (Schema Object).
 */
export function readParts(document: ObjectValue, schema: unknown): SchemaParts {
  const certain: ObjectValue[] = [];
  const branches: unknown[] = [];
  const seen = new Set<unknown>();
  const version = readVersion(document);
  let isComplete = true;
  const visit = (value: unknown): void => {
    if (!isObject(value) || seen.has(value)) return;
    seen.add(value);
    for (const key of isAtLeast(version, "3.1") ? ["$ref", "$dynamicRef"] : ["$ref"]) {
      const reference = textMember(value, key);
      if (reference === undefined) continue;
      const target = resolveReference(document, reference);
      if (target === undefined) isComplete = false;
      visit(target);
    }
    if (textMember(value, "$ref") !== undefined && !isAtLeast(version, "3.1")) return;
    certain.push(value);
    for (const part of listMember(value, "allOf")) visit(part);
    for (const key of ["anyOf", "oneOf"]) {
      branches.push(...listMember(value, key).filter((branch) => !isNullOnly(document, branch)));
    }
  };
  visit(schema);
  return { certain, branches, isComplete };
}

function isNullOnly(document: ObjectValue, schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const target = textMember(schema, "$ref") === undefined ? schema : followReference(document, schema).value;
  const type = member(target, "type");
  return type === "null" || (Array.isArray(type) && type.length === 1 && type[0] === "null") ||
    member(target, "const") === null;
}

/** Branches that were not looked at yet: schemas may contain themselves, and many times over. */
function unseen(branches: readonly unknown[], seen: Set<unknown>): readonly unknown[] {
  const fresh = branches.filter((branch) => !seen.has(branchKey(branch)));
  for (const branch of fresh) seen.add(branchKey(branch));
  return fresh;
}

/** Two references to one schema are one branch. */
function branchKey(branch: unknown): unknown {
  const isReference = isObject(branch) && Object.keys(branch).length === 1;
  return isReference ? textMember(branch, "$ref") ?? branch : branch;
}

/** Types without null, or undefined when the schema names none. */
export function readTypes(
  document: ObjectValue,
  schema: unknown,
  seen: Set<unknown> = new Set(),
): ReadonlySet<string> | undefined {
  const parts = readParts(document, schema);
  let types: Set<string> | undefined;
  for (const part of parts.certain) {
    const type = member(part, "type");
    const named = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === "string" && one !== "null");
    if (named.length === 0) continue;
    types = types === undefined ? new Set(named) : new Set(named.filter((one) => types?.has(one)));
  }
  if (types !== undefined || parts.branches.length === 0) return types;
  const all = new Set<string>();
  for (const branch of unseen(parts.branches, seen)) {
    const branchTypes = readTypes(document, branch, seen);
    if (branchTypes === undefined) return undefined;
    for (const type of branchTypes) all.add(type);
  }
  return all;
}

/** The schema of the items of a list. */
export function readItems(document: ObjectValue, schema: unknown, seen: Set<unknown> = new Set()): unknown {
  const { certain, branches } = readParts(document, schema);
  const found = certain.map((part) => member(part, "items")).filter((items) => items !== undefined);
  if (found.length > 0) return found.length === 1 ? found[0] : { allOf: found };
  for (const branch of unseen(branches, seen)) {
    const items = readItems(document, branch, seen);
    if (items !== undefined) return items;
  }
  return undefined;
}

/** The schema of a property, or undefined when none is given. Several schemas of one name all apply. */
export function readProperty(
  document: ObjectValue,
  schema: unknown,
  name: string,
  seen: Set<unknown> = new Set(),
): unknown {
  const { certain, branches } = readParts(document, schema);
  const found = certain.map((part) => member(member(part, "properties"), name)).filter((one) => one !== undefined);
  if (found.length > 0) return found.length === 1 ? found[0] : { allOf: found };
  const choices = unseen(branches, seen).map((branch) => readProperty(document, branch, name, seen));
  const known = choices.filter((one) => one !== undefined);
  if (known.length > 0) return known.length === 1 ? known[0] : { anyOf: known };
  for (const part of certain) {
    for (const [pattern, value] of Object.entries(member(part, "patternProperties") ?? {})) {
      if (matchesPattern(pattern, name)) return value;
    }
    const other = member(part, "additionalProperties");
    if (isObject(other)) return other;
  }
  return undefined;
}

function matchesPattern(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern, "u").test(name);
  } catch {
    return false;
  }
}

/** Property names through references and `allOf`. Undefined when the schema has none or some cannot be known. */
export function readPropertyNames(document: ObjectValue, schema: unknown): readonly string[] | undefined {
  const { certain, isComplete } = readParts(document, schema);
  const types = readTypes(document, schema);
  if (!isComplete || (types !== undefined && !types.has("object"))) return undefined;
  const names = new Set<string>();
  for (const part of certain) {
    const properties = member(part, "properties");
    if (!isObject(properties)) continue;
    for (const [name, property] of Object.entries(properties)) {
      // Read-only members are for responses, so a tool need not offer them (Schema Object, `readOnly`).
      if (!readParts(document, property).certain.some((one) => member(one, "readOnly") === true)) names.add(name);
    }
  }
  return names.size > 0 ? [...names] : undefined;
}

/** A copy without members that are read-only: a request SHOULD NOT (2.0: MUST NOT) have them. */
export function removeReadOnly(document: ObjectValue, schema: unknown, value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = readItems(document, schema);
    return value.map((item) => removeReadOnly(document, items, item));
  }
  if (!isObject(value)) return value;
  const kept: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const property = readProperty(document, schema, name);
    if (readParts(document, property).certain.some((part) => member(part, "readOnly") === true)) continue;
    kept.push([name, removeReadOnly(document, property, item)]);
  }
  return Object.fromEntries(kept);
}

/**
 * How bytes of a schema travel where raw bytes are possible (whole body or multipart):
 * `file` raw bytes, `encoded` base64 text that stays as it is, `text` no bytes at all, `open` either of file and text.
 */
export type Binary = "file" | "encoded" | "text" | "open";

const TEXT_TYPES = /^text\/|[/+.-](json|xml|yaml|javascript|ecmascript|csv|graphql|sql|toml|ndjson|jsonl|jsonpath)$/;

export function isBinaryMediaType(mediaType: string): boolean {
  return !TEXT_TYPES.test(mediaType) && mediaType !== "application/x-www-form-urlencoded" &&
    !mediaType.startsWith("message/");
}

export function readBinary(document: ObjectValue, schema: unknown, seen: Set<unknown> = new Set()): Binary {
  const version = readVersion(document);
  // A member that the schema does not name may be anything.
  if (schema === undefined) return "open";
  const { certain, branches } = readParts(document, schema);
  const first = (key: string): string | undefined =>
    certain.map((part) => textMember(part, key)).find((text) => text !== undefined);
  const formats = certain.map((part) => textMember(part, "format"));
  const types = readTypes(document, schema);
  if (types?.has("file")) return version === "2.0" ? "file" : "open";
  const isStringPossible = types === undefined || types.has("string");
  if (!isStringPossible) return "text";
  const inBranches = (): Binary | undefined => {
    const kinds = new Set(unseen(branches, seen).map((branch) => readBinary(document, branch, seen)));
    if (kinds.size === 0) return undefined;
    // Branches that are no text at all, such as objects, do not forbid a file.
    return kinds.size === 1 ? [...kinds][0] : "open";
  };

  if (version === "2.0" || version === "3.0") {
    // 3.0, "Working with Binary Data": `binary` is raw, `byte` is base64 inside of text.
    if (formats.includes("byte")) return "encoded";
    // 2.0 has `binary` ("any sequence of octets"), but says that only `type: file` can send files.
    if (formats.includes("binary")) return version === "3.0" ? "file" : "open";
    return inBranches() ?? (types === undefined ? "open" : "text");
  }

  // 3.1 and later, "Working with Binary Data": raw bytes have no type, encoded bytes are strings with an encoding.
  const encoding = first("contentEncoding")?.toLowerCase();
  const contentType = first("contentMediaType")?.toLowerCase();
  if (encoding !== undefined) {
    // These values of RFC 2045 mean "not encoded", which the table of the section does not have.
    return ["binary", "8bit", "7bit", "identity"].includes(encoding) ? "open" : "encoded";
  }
  const isTyped = certain.some((part) => member(part, "type") !== undefined);
  if (isTyped) {
    // "Any binary media type is sufficient to indicate binary content", but the table omits the type for raw bytes and
    // the Encoding Object makes a string `text/plain` and then ignores `contentMediaType`: both readings stand.
    if (contentType !== undefined && isBinaryMediaType(contentType)) return "open";
    // `format` "has no effect", but `binary` is still in the format registry, whose support is optional.
    return formats.includes("binary") ? "open" : "text";
  }
  if (contentType !== undefined) return isBinaryMediaType(contentType) ? "file" : "open";
  if (formats.includes("binary") || formats.includes("byte")) return "open";
  const branchKind = inBranches();
  if (branchKind !== undefined) return branchKind;
  const notes = [
    "title",
    "description",
    "deprecated",
    "example",
    "examples",
    "$comment",
    "$ref",
    "default",
    "nullable",
  ];
  const isEmpty = certain.every((part) =>
    Object.keys(part).every((key) => notes.includes(key) || key === "allOf" || key.startsWith("x-"))
  );
  // No type at all is `application/octet-stream`. Other keywords, such as `enum`, make a plain text likely.
  return isEmpty ? "file" : "open";
}

/** The `contentMediaType` of a schema, which may name the type of a part. */
export function readContentMediaType(document: ObjectValue, schema: unknown): string | undefined {
  const { certain, branches } = readParts(document, schema);
  return [...certain, ...branches].map((part) => textMember(part, "contentMediaType")).find((one) => one !== undefined);
}
