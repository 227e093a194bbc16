/**
 * Parses the `name=value` arguments of a tool or prompt according to their JSON Schema.
 */
import { toState } from "../../core/kit/error_state.ts";
import type { Params } from "../../client/client.ts";
import { isObject, parseJson } from "../../core/kit/json.ts";
import { type Property, resolveRef, typesOf } from "../../core/schema/walker.ts";
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import { suggestName } from "./name_lookup.ts";
import { describeExpected, describeType, listArguments } from "./schema_text.ts";
import { reportLine } from "./terminal_output.ts";
import { toLine } from "./terminal_text.ts";

export interface ArgumentsTarget {
  /** The action in error messages, such as `call add`. */
  readonly action: string;
  /** The JSON Schema of the arguments, which form an object. */
  readonly schema: Params;
}

/**
 * Reads the arguments from words such as `name=value`, or from a single JSON object.
 *
 * @throws {CliError} if an argument cannot be read, is unknown, or is missing.
 */
export async function readArguments(words: readonly string[], target: ArgumentsTarget): Promise<Params> {
  const { action, schema } = target;
  const known = listArguments(schema);
  if (words.length === 1 && words[0].startsWith("{")) {
    const object = readObject(words[0]);
    Object.keys(object).filter((name) => isUnknown(name, known, schema)).forEach(warnOfUnknown);
    return object;
  }
  const values = new Map<string, unknown>();
  for (const word of words) {
    const { name, value } = await readArgument(word, known, target);
    const before = values.get(name);
    if (before !== undefined && !(Array.isArray(before) && Array.isArray(value))) {
      throw new CliError(`Cannot ${action}: ${name} is given twice; write ${name}=… once`);
    }
    values.set(name, Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value);
  }
  const unknown = [...values.keys()].filter((name) => isUnknown(name, known, schema));
  const others = known.map(({ name }) => name).filter((name) => !values.has(name));
  for (const name of unknown) {
    if (findSuggestion(name, others) !== undefined) throw refuseUnknown(name, others, action);
  }
  const missing = known.find(({ name, isRequired }) => isRequired && !values.has(name));
  if (!missing) {
    unknown.forEach(warnOfUnknown);
    return Object.fromEntries(values);
  }
  const name = toLine(missing.name);
  throw new CliError(
    `Cannot ${action}: the argument ${name} (${toLine(describeType(missing.schema, schema))}) is missing; add ` +
      `${name}=…`,
  );
}

async function readArgument(word: string, known: readonly Property[], { action, schema }: ArgumentsTarget) {
  const [, name, isFile, text] = /^([^=]+?)(@?)=(.*)$/s.exec(word) ?? [];
  if (name === undefined) throw new CliError(`Cannot read ${word}: it is not an argument; write name=value`);
  const argument = known.find((each) => each.name === name);
  if (!argument && schema.additionalProperties === false) {
    throw refuseUnknown(name, known.map((each) => each.name), action);
  }
  const property = { name, schema: argument?.schema ?? true, root: schema };
  if (isFile && !text) throw new CliError(`Cannot read ${word}: it names no file; write ${name}@=FILE`);
  return { name, value: readValue(isFile ? await readFile(text) : text, property) };
}

function refuseUnknown(name: string, names: readonly string[], action: string): CliError {
  return new CliError(`Cannot ${action}: there is no argument ${toLine(name)}; ${suggestName(name, names)}`);
}

function warnOfUnknown(name: string): void {
  reportLine(`The schema has no argument ${toLine(name)}, so the server may ignore this argument.`);
}

/** Keywords with which a schema can allow arguments that are not in its `properties`. */
const OPEN_KEYWORDS = [
  "patternProperties",
  "unevaluatedProperties",
  "$ref",
  "$dynamicRef",
  "allOf",
  "anyOf",
  "oneOf",
  "if",
  "dependentSchemas",
];

/**
 * Whether a schema does not allow an argument with this name. Returns `false` for every name if the schema has
 * `additionalProperties` or a keyword of `OPEN_KEYWORDS`.
 */
function isUnknown(name: string, known: readonly Property[], schema: Params): boolean {
  if (known.some((each) => each.name === name)) return false;
  const { additionalProperties = false } = schema;
  return additionalProperties === false && !OPEN_KEYWORDS.some((key) => key in schema);
}

function readObject(text: string): Params {
  const value = parseJson(text);
  if (isObject(value)) return value;
  throw new CliError(`Cannot read ${text}: it is not a JSON object; check the quotation marks`);
}

const MAX_FILE_BYTES = 16 * 1024 * 1024;

async function readFile(path: string): Promise<string> {
  let bytes;
  try {
    bytes = await platform.files.read(platform.toPath(path), MAX_FILE_BYTES + 1);
  } catch (error) {
    throw new CliError(`Cannot read ${path}: ${toState(error)}; check the path`);
  }
  if (bytes.length <= MAX_FILE_BYTES) return new TextDecoder().decode(bytes);
  throw new CliError(`Cannot read ${path}: it has more than 16 MiB; send a smaller file`);
}

interface Target extends Omit<Property, "isRequired"> {
  /** The schema that contains the definitions to which `schema` refers. */
  readonly root: Params;
}

function readValue(text: string, { name, schema, root }: Target): unknown {
  const resolved = resolveRef(schema, root);
  const json = parseJson(text);
  const choices = isObject(resolved) && Array.isArray(resolved.enum) ? resolved.enum : undefined;
  const chosen = choices?.find((each) => each === text) ?? choices?.find((each) => each === json);
  if (chosen !== undefined) return chosen;
  const types = listTypes(resolved, root);
  if (!types.size) return json === undefined ? text : json;
  if (json !== undefined && typeof json !== "string" && typesOf(json).some((type) => types.has(type))) return json;
  if (types.has("string") && !choices) return text;
  if (types.has("array") && isObject(resolved)) {
    return [readValue(text, { name, schema: resolved.items ?? true, root })];
  }
  throw new CliError(
    `Cannot use ${name}=${toLine(text, 100)}: expected ${toLine(describeExpected(resolved, root))}`,
  );
}

const MAX_DEPTH = 4;

/** Returns the types that a schema allows, or an empty set if the schema allows all types. */
function listTypes(unresolved: unknown, root: Params, depth = 0): ReadonlySet<unknown> {
  const schema = resolveRef(unresolved, root);
  if (!isObject(schema) || depth > MAX_DEPTH) return new Set();
  const { type, anyOf, oneOf, allOf } = schema;
  if (type !== undefined) return new Set([type].flat());
  if ("const" in schema) return new Set(typesOf(schema.const));
  if (Array.isArray(schema.enum)) return new Set(schema.enum.flatMap(typesOf));
  const alternatives = [anyOf, oneOf, allOf].find(Array.isArray) ?? [];
  return new Set(alternatives.flatMap((each: unknown) => [...listTypes(each, root, depth + 1)]));
}
