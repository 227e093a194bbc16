/**
 * Reads the bodies of operations, and writes bodies from arguments.
 */
import { isObject } from "../../core/kit/json.ts";
import { show } from "../../core/known_options.ts";
import { type JsonSchema, ToolError } from "../../library.ts";
import { isJsonType } from "../http_body.ts";
import { toArgumentText } from "../tool_input.ts";
import { type ApiDocument, type Node, PartError, resolve, toNode, toText } from "./document.ts";
import { FILE_HINT, type Part, readFile, writeMultipart } from "./multipart.ts";
import { readStyle, toJsonText, toListSeparator } from "./parameters.ts";
import type { ToExact } from "./exact_numbers.ts";
import type { Schemas } from "./schemas.ts";
import { isFile, readShape, type Shape } from "./shape.ts";
import { toStyledPairs } from "./styles.ts";
import { LIST_FORMAT } from "./swagger.ts";
import { BroughtNames, listNames, TakenNames } from "./taken_names.ts";

export interface WrittenBody {
  readonly body: string | Blob;
  readonly contentType: string;
}

export interface Body {
  readonly isRequired: boolean;
  readonly description?: string;
  /** The schema of the argument. References lead to `$defs`, which are not included. */
  readonly schema: JsonSchema;
  /** The fields of the body, if each of them can be an argument. */
  readonly fields?: { readonly properties: Node; readonly required: readonly unknown[] };
  /** Writes a value. `toExact` converts a value at a path of the body, before it becomes JSON. */
  readonly write: (value: unknown, toExact: ToExact) => WrittenBody;
}

const FORM = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";
const TEXT_JSON = "text/json";
const BYTES = "application/octet-stream";

/** The kinds of media types in the order in which they are preferred. */
const KINDS = [
  (type: string) => isJsonType(type),
  (type: string) => type === TEXT_JSON,
  (type: string) => type === MULTIPART,
  (type: string) => type === FORM,
  (type: string) => type === "*/*",
  (type: string) => type.startsWith("text/"),
  (type: string) => /xml$/.test(type),
];

/** Media types whose bodies are bytes, even if the document does not say so. */
const BINARY =
  /^((image(?!\/svg\+xml)|audio|video|font)\/|application\/(octet-stream|pdf|zip|gzip|x-.*(zip|tar|compressed)|wasm))/;

/**
 * Reads the body of an operation. Returns `undefined` if there is none.
 *
 * @throws {PartError} if the body cannot be read or sent.
 */
export function readBody(document: ApiDocument, given: unknown, schemas: Schemas): Body | undefined {
  const body = resolve(document, given, "its body");
  if (body.content !== undefined && !isObject(body.content)) throw new PartError("its body has no valid content");
  const described = Object.entries(toNode(body.content));
  // A header can contain only these characters.
  const content = described.filter(([type]) => /^[\t\x20-\x7e]+$/.test(type));
  const ranked = content.map(([mediaType, media]) => {
    const [type] = mediaType.toLowerCase().split(";");
    const rank = KINDS.findIndex((isOf) => isOf(type.trim()));
    return {
      mediaType,
      type: type.trim(),
      rank: rank < 0 ? KINDS.length : rank,
      media: resolve(document, media, "its body"),
    };
  }).sort((a, b) => a.rank - b.rank);
  const [chosen] = ranked;
  if (!chosen) {
    if (!described.length && body.required !== true) return;
    throw new PartError("the document does not describe its body with a valid media type");
  }
  const { schema, write, fields } = toForm(document, chosen, schemas);
  const description = toText(body.description);
  return { isRequired: body.required === true, description, schema, write, fields };
}

interface Chosen {
  readonly mediaType: string;
  /** The media type in lower case, without parameters. */
  readonly type: string;
  readonly media: Node;
}

type Form = Pick<Body, "schema" | "write" | "fields">;

function toForm(document: ApiDocument, { mediaType, type, media }: Chosen, schemas: Schemas): Form {
  if (type === MULTIPART || type === FORM) return toFields(document, { type, media }, schemas);
  const { schema } = media;
  const shape = readShape(document, schema);
  const { keywords, properties, required, isComposed } = shape;
  const isText = type !== TEXT_JSON && /^text\/|xml$|yaml$|x-ndjson$|jsonl$|graphql$|csv$/.test(type);
  const isJson = isJsonType(type) || type === TEXT_JSON || type === "*/*";
  // The conversion from older versions leaves nothing of a schema for bytes.
  const isBytes = isObject(schema) && !Object.keys(schema).length && !isText && !isJson;
  if (isBytes || BINARY.test(type) || isFile(shape)) {
    const fixed = type.includes("*") || type === BYTES ? undefined : mediaType;
    return {
      schema: toFileSchema(shape),
      write: (value) => {
        const file = readFile(value, "body");
        return { body: new Blob([file.bytes]), contentType: fixed ?? file.type ?? BYTES };
      },
    };
  }
  const names = Object.keys(properties);
  const isStructured = keywords.type === undefined ? names.length > 0 : /object|array/.test(String(keywords.type));
  if (isJson || isStructured && !isText) {
    const contentType = type.includes("*") ? "application/json" : mediaType;
    const { additionalProperties } = keywords;
    const isPlain = names.length > 0 && !isObject(additionalProperties) && additionalProperties !== true && !isComposed;
    return {
      schema: schemas.convert(schema ?? true),
      fields: isPlain ? { properties, required } : undefined,
      write: (value, toExact) => ({ body: toJsonText(toExact(value, [])), contentType }),
    };
  }
  const contentType = type.includes("*") ? "text/plain" : mediaType;
  const { description, examples } = toNode(schemas.convert(schema ?? true));
  return {
    schema: { type: "string", description: join(toText(description), `Text of the type ${contentType}`), examples },
    write: (value) => ({ body: toArgumentText(value), contentType }),
  };
}

/** Returns the schema of the argument for a file, or for a field with a file. */
function toFileSchema({ keywords, isNullable }: Shape): JsonSchema {
  const description = join(toText(keywords.description), FILE_HINT);
  return { type: isNullable ? ["string", "null"] : "string", contentEncoding: "base64", description };
}

/** A form: URL-encoded, or with several parts. */
function toFields(document: ApiDocument, { type, media }: Omit<Chosen, "mediaType">, schemas: Schemas): Form {
  const { schema } = media;
  const { keywords, properties: described, required, isComposed } = readShape(document, schema);
  const isObjectType = keywords.type === undefined || [keywords.type].flat().includes("object");
  if (type === MULTIPART && !isObjectType) throw new PartError("its form is not an object with fields");
  const files = new Map<string, string | undefined>();
  const untyped = new Set<string>();
  const encoded = new Set<string>();
  const properties: Record<string, unknown> = { ...described };
  for (const [name, field] of Object.entries(properties)) {
    const shape = readShape(document, field);
    const isList = [shape.keywords.type].flat().includes("array");
    const file = isList ? readShape(document, shape.keywords.items) : shape;
    if (file.keywords.contentEncoding !== undefined) encoded.add(name);
    if (type === MULTIPART && isAny(file)) {
      untyped.add(name);
      properties[name] = { description: join(toText(shape.keywords.description), ANY_HINT) };
      continue;
    }
    if (!isFile(file)) continue;
    files.set(name, toText(file.keywords.contentMediaType));
    const { description, minItems, maxItems } = shape.keywords;
    properties[name] = isList
      ? { type: "array", description, minItems, maxItems, items: toFileSchema({ ...file, isNullable: false }) }
      : toFileSchema(file);
  }
  const { description, additionalProperties } = keywords;
  // The definition of a schema with other keywords does not mark files.
  const changed = files.size || untyped.size
    ? { type: "object", description, properties, required, additionalProperties }
    : schema ?? { type: "object" };
  const isPlain = Object.keys(properties).length > 0 && !isComposed;
  const taken = new TakenNames("form", Object.keys(properties));
  const hasStyles = /^3\.[1-9]/.test(document.version);
  const fields: Fields = { encoding: toNode(media.encoding), properties, files, untyped, encoded, taken, hasStyles };
  return {
    schema: schemas.convert(changed),
    fields: isPlain ? { properties, required } : undefined,
    write(value, toExact) {
      if (type === MULTIPART) return toParts(toFieldValues(value), fields, toExact);
      // A form whose schema is a text is written by the client.
      if (!isObjectType && typeof value === "string") return { body: value, contentType: FORM };
      return toPairs(toFieldValues(value), fields, toExact);
    },
  };
}

/** @throws {ToolError} if a value is not an object. */
function toFieldValues(value: unknown): Node {
  if (isObject(value)) return value;
  throw new ToolError(
    `Cannot send the request: the body is ${show(value)}, not an object; send an object with the fields`,
  );
}

/** Whether a schema says nothing about its values, so that a field may be a text or a file. */
function isAny({ keywords, properties, isComposed }: Shape): boolean {
  return !isComposed && !Object.keys(properties).length &&
    Object.keys(keywords).every((key) => /^(title|description|example|examples|default|deprecated|x-.*)$/.test(key));
}

const ANY_HINT = "A text, or a file as a data URL such as data:image/png;name=a.png;base64,…";

interface Fields {
  readonly encoding: Node;
  readonly properties: Node;
  /** The fields with files, each with the media type in the document. */
  readonly files: ReadonlyMap<string, string | undefined>;
  /** Names of the fields that may be texts or files. */
  readonly untyped: ReadonlySet<string>;
  /** Names of the fields with encoded bytes. */
  readonly encoded: ReadonlySet<string>;
  readonly taken: TakenNames;
  /** Whether the parts of a form have styles, as in version 3.1 and later. */
  readonly hasStyles: boolean;
}

/** Returns a function that refuses names which a field brings, if they belong to another field. */
function createNameCheck({ taken, properties }: Fields): (field: string, names: readonly string[]) => void {
  const brought = new BroughtNames();
  return (field, names) => {
    // Only a field of the document may use its own name.
    const user = { argument: field, own: Object.hasOwn(properties, field) ? field : undefined };
    taken.check(names, user);
    brought.add(names, user);
  };
}

function toPairs(value: Node, fields: Fields, toExact: ToExact): WrittenBody {
  const { encoding, properties } = fields;
  const checkNames = createNameCheck(fields);
  const pairs = Object.entries(value).flatMap(([name, field]) => {
    const given: Node = { [LIST_FORMAT]: toNode(properties[name])[LIST_FORMAT], ...toNode(encoding[name]) };
    // Without a style, an object is a JSON text.
    const isJson = !hasStyle(given) && field !== null && (isObject(field) || isJsonField(given));
    const pairs = toStyledPairs(name, isJson ? toJsonText(toExact(field, [name])) : field, readStyle(given, "query"));
    checkNames(name, listNames(pairs));
    return pairs;
  });
  return { body: pairs.join("&"), contentType: FORM };
}

function toParts(value: Node, fields: Fields, toExact: ToExact): WrittenBody {
  const { encoding, properties, files, untyped, encoded, hasStyles } = fields;
  const checkNames = createNameCheck(fields);
  const parts = Object.entries(value).flatMap(([name, field]): readonly Part[] => {
    const given = toNode(encoding[name]);
    if (hasStyles && hasStyle(given)) {
      const pairs = toStyledPairs(name, field, readStyle(given, "query"));
      checkNames(name, listNames(pairs));
      return pairs.map((pair) => {
        const [name, ...value] = pair.split("=").map(decodeURIComponent);
        return { name, content: value.join("=") };
      });
    }
    checkNames(name, [name]);
    const { contentType } = given;
    // A list of types, such as `image/png, image/jpeg`, limits the type of a file, but does not choose it.
    const types = typeof contentType === "string" ? contentType.split(",").map((each) => each.trim()) : [];
    const type = types.length === 1 && !types[0].includes("*") ? types[0] : undefined;
    const [first] = types.filter((each) => !each.includes("*"));
    const separator = toListSeparator(toNode(properties[name])[LIST_FORMAT]);
    if (separator !== undefined && Array.isArray(field)) {
      return field.length ? [{ name, type, content: field.map(toArgumentText).join(separator) }] : [];
    }
    const isList = Array.isArray(field);
    const toPart = (each: unknown, i: number): Part => {
      if (files.has(name)) {
        const file = readFile(each, name);
        return { name, type, content: { ...file, type: file.type ?? first ?? files.get(name) } };
      }
      if (untyped.has(name) && typeof each === "string" && /^data:/i.test(each)) {
        return { name, type, content: readFile(each, name) };
      }
      const isStructured = isObject(each) || Array.isArray(each);
      const own = isStructured ? "application/json" : encoded.has(name) ? BYTES : undefined;
      const isJson = isStructured || isJsonField(given);
      const content = isJson ? toJsonText(toExact(each, isList ? [name, i] : [name])) : toArgumentText(each);
      return { name, type: type ?? own, content };
    };
    return (isList ? field : [field]).flatMap((each, i) => each === null ? [] : toPart(each, i));
  });
  return writeMultipart(parts);
}

/** Whether the encoding of a field says how the field is written, instead of its type. */
function hasStyle({ style, explode }: Node): boolean {
  return typeof style === "string" || typeof explode === "boolean";
}

/** Whether the encoding of a field says that its text is JSON. */
function isJsonField({ contentType }: Node): boolean {
  return typeof contentType === "string" && isJsonType(contentType.split(";")[0].trim().toLowerCase());
}

function join(description: string | undefined, hint: string): string {
  return description ? `${description.trim()} ${hint}` : hint;
}
