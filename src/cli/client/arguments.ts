/**
 * Words of the command line to the arguments of a tool or a prompt, as its schema wants them.
 *
 * @module
 */
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { platform } from "../platform.ts";
import { Problem } from "../problem.ts";
import { toLine } from "./terminal_text.ts";
import { describeType, follow, listArguments } from "./schema_text.ts";
import { suggest } from "./name_lookup.ts";

/** What the usage of a command says of arguments. */
export const ARGUMENTS_USAGE =
  `An argument is name=value, and what the value is the server says: for a text 2 is a text, for a number a number. A list
is JSON, or its name is there once for each item; an object is JSON; name@=FILE takes the value from a file. All
arguments may also be one JSON object, which is sent as it is.`;

/** What the arguments are for. */
export interface Wanted {
  /** Such as `call add`. */
  readonly what: string;
  /** A JSON Schema of an object. */
  readonly schema: Params;
}

/**
 * Reads `name=value …`, or one JSON object.
 *
 * @throws {Problem} for what cannot be read, is not known, or is missing.
 */
export async function readArguments(words: readonly string[], wanted: Wanted): Promise<Params> {
  if (words.length === 1 && words[0].startsWith("{")) return readWhole(words[0]);
  const { what, schema } = wanted;
  const args = listArguments(schema);
  const given = new Map<string, unknown>();
  for (const word of words) {
    const [, name, isFile, text] = /^([^=]+?)(@?)=(.*)$/s.exec(word) ?? [];
    if (name === undefined) throw new Problem(`Cannot read ${word}: write an argument as name=value`);
    const known = args.find((each) => each.name === name);
    if (!known && schema.additionalProperties === false) {
      const names = args.map((each) => each.name);
      throw new Problem(`Cannot ${what}: it takes no argument ${name}; ${suggest(name, names)}`);
    }
    const value = readValue(isFile ? await readFile(text) : text, {
      name,
      schema: known?.schema ?? true,
      root: schema,
    });
    const before = given.get(name);
    if (before !== undefined && !(Array.isArray(before) && Array.isArray(value))) {
      throw new Problem(`Cannot ${what}: ${name} is there twice; write it once`);
    }
    given.set(name, Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value);
  }
  const missing = args.find(({ name, isRequired }) => isRequired && !given.has(name));
  if (!missing) return Object.fromEntries(given);
  const type = describeType(missing.schema, schema);
  throw new Problem(
    `Cannot ${what}: it needs ${toLine(missing.name)} (${toLine(type)}); add ${toLine(missing.name)}=…`,
  );
}

function readWhole(text: string): Params {
  const value = parse(text);
  if (isObject(value)) return value;
  throw new Problem(`Cannot read ${text}: it is not a JSON object; check its quotes`);
}

const MOST_BYTES = 16 * 1024 * 1024;

async function readFile(path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await platform.files.read(platform.toPath(path), MOST_BYTES));
  } catch (error) {
    throw new Problem(`Cannot read ${path}: ${error instanceof Error ? error.message : error}; check the path`);
  }
}

interface Place {
  readonly name: string;
  readonly schema: unknown;
  readonly root: Params;
}

function readValue(text: string, { name, schema, root }: Place): unknown {
  const known = follow(schema, root);
  const json = parse(text);
  const choices = isObject(known) && Array.isArray(known.enum) ? known.enum : undefined;
  const chosen = choices?.find((each) => each === text) ?? choices?.find((each) => each === json);
  if (chosen !== undefined) return chosen;
  const types = toTypes(known, root);
  if (!types.size) return json === undefined ? text : json;
  if (json !== undefined && typeof json !== "string" && kindsOf(json).some((kind) => types.has(kind))) return json;
  if (types.has("string") && !choices) return text;
  if (types.has("array") && isObject(known)) return [readValue(text, { name, schema: known.items ?? true, root })];
  throw new Problem(`Cannot take ${name}=${toLine(text, 100)}: it is to be ${toLine(describeType(known, root))}`);
}

function kindsOf(value: unknown): readonly string[] {
  if (value === null) return ["null"];
  if (Array.isArray(value)) return ["array"];
  return Number.isInteger(value) ? ["integer", "number"] : [typeof value];
}

const DEEPEST = 4;

/** The types that a schema allows; none if it does not say. */
function toTypes(given: unknown, root: Params, depth = 0): ReadonlySet<unknown> {
  const schema = follow(given, root);
  if (!isObject(schema) || depth > DEEPEST) return new Set();
  const { type, anyOf, oneOf, allOf } = schema;
  if (type !== undefined) return new Set([type].flat());
  if ("const" in schema) return new Set(kindsOf(schema.const));
  if (Array.isArray(schema.enum)) return new Set(schema.enum.flatMap(kindsOf));
  const forms = [anyOf, oneOf, allOf].find(Array.isArray) ?? [];
  return new Set(forms.flatMap((form: unknown) => [...toTypes(form, root, depth + 1)]));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
