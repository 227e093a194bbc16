/**
 * Reads the bodies of operations, and writes bodies from arguments.
 */
import { isObject } from "../../core/kit/json.ts";
import type { JsonSchema } from "../../library.ts";
import { isJsonType } from "../http_body.ts";
import { toArgumentText } from "../tool_input.ts";
import { type ApiDocument, type Node, resolve, toList, toNode, toText } from "./document.ts";
import { FILE_HINT, type Part, readFile, writeMultipart } from "./multipart.ts";
import { readStyle, toJsonText } from "./parameters.ts";
import type { Schemas } from "./schemas.ts";
import { toStyledPairs } from "./styles.ts";
import { TABS } from "./swagger.ts";
import { listNames, TakenNames } from "./taken_names.ts";

/** A body to send. */
export interface WrittenBody {
  readonly body: string | Blob;
  readonly contentType: string;
}

/** The body of an operation. */
export interface Body {
  readonly isRequired: boolean;
  readonly description?: string;
  /** The schema of the argument. References lead to `$defs`, which are not included. */
  readonly schema: JsonSchema;
  /** The fields of the body, if each of them can be an argument. */
  readonly fields?: { readonly properties: Node; readonly required: readonly unknown[] };
  readonly write: (value: unknown) => WrittenBody;
}

const FORM = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";
const BYTES = "application/octet-stream";

/** The kinds of media types in the order in which they are preferred. */
const KINDS = [
  (type: string) => isJsonType(type) || type === "*/*",
  (type: string) => type === MULTIPART,
  (type: string) => type === FORM,
  (type: string) => type.startsWith("text/"),
  (type: string) => /xml$/.test(type),
];

/** Media types whose bodies are bytes, even if the document does not say so. */
const BINARY = /^((image|audio|video|font)\/|application\/(octet-stream|pdf|zip|gzip|x-.*(zip|tar|compressed)|wasm))/;

/** Reads the body of an operation. Returns `undefined` if there is none. */
export function readBody(document: ApiDocument, given: unknown, schemas: Schemas): Body | undefined {
  if (!isObject(given)) return;
  const body = resolve(document, given);
  // A header can contain only these characters.
  const content = Object.entries(toNode(body.content)).filter(([type]) => /^[\t\x20-\x7e]+$/.test(type));
  const ranked = content.map(([mediaType, media]) => {
    const [type] = mediaType.toLowerCase().split(";");
    const rank = KINDS.findIndex((isOf) => isOf(type.trim()));
    return { mediaType, type: type.trim(), rank: rank < 0 ? KINDS.length : rank, media: resolve(document, media) };
  }).sort((a, b) => a.rank - b.rank);
  const [chosen] = ranked;
  if (!chosen) return;
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
  const { schema } = media;
  const target = toTarget(document, schema);
  if (type === MULTIPART || type === FORM) return toFields(document, { type, media }, schemas);
  const isText = /^text\/|xml$|yaml$|x-ndjson$|jsonl$|graphql$|csv$/.test(type);
  const isJson = isJsonType(type) || type === "*/*";
  // The conversion from older versions leaves nothing of a schema for bytes.
  const isBytes = isObject(schema) && !Object.keys(schema).length && !isText && !isJson;
  if (isBytes || BINARY.test(type) || isFileSchema(document, schema)) {
    const fixed = type.includes("*") || type === BYTES ? undefined : mediaType;
    return {
      schema: { type: "string", contentEncoding: "base64", description: join(toText(target.description), FILE_HINT) },
      write: (value) => {
        const file = readFile(value, "body");
        return { body: new Blob([file.bytes]), contentType: fixed ?? file.type ?? BYTES };
      },
    };
  }
  const isStructured = isObject(target.properties) || /object|array/.test(String(target.type));
  if (isJson || isStructured && !isText) {
    const contentType = type.includes("*") ? "application/json" : mediaType;
    const { properties, additionalProperties } = target;
    const isPlain = isObject(properties) && !isObject(additionalProperties) && additionalProperties !== true &&
      !["allOf", "anyOf", "oneOf"].some((key) => key in target);
    return {
      schema: schemas.convert(schema ?? true),
      fields: isPlain ? { properties: toNode(properties), required: toList(target.required) } : undefined,
      write: (value) => ({ body: toJsonText(value), contentType }),
    };
  }
  const contentType = type.includes("*") ? "text/plain" : mediaType;
  const { description, examples } = toNode(schemas.convert(schema ?? true));
  return {
    schema: { type: "string", description: join(toText(description), `Text of the type ${contentType}`), examples },
    write: (value) => ({ body: toArgumentText(value), contentType }),
  };
}

/** A form: URL-encoded, or with several parts. */
function toFields(document: ApiDocument, { type, media }: Omit<Chosen, "mediaType">, schemas: Schemas): Form {
  const { schema } = media;
  const target = toTarget(document, schema);
  const encoding = toNode(media.encoding);
  const files = new Set<string>();
  const properties = { ...toNode(target.properties) };
  for (const [name, field] of Object.entries(properties)) {
    const isList = toTarget(document, field).type === "array";
    const file = isList ? toTarget(document, field).items : field;
    if (!isFileSchema(document, file)) continue;
    files.add(name);
    const { description } = toTarget(document, file);
    const one = { type: "string", contentEncoding: "base64", description: join(toText(description), FILE_HINT) };
    properties[name] = isList ? { ...toTarget(document, field), items: one } : one;
  }
  const write = type === FORM ? toPairs : toParts;
  // A schema with other keywords is described by its own definition, in which files are not marked.
  const changed = files.size ? { ...target, properties } : schema ?? { type: "object" };
  const isPlain = isObject(target.properties) && !["allOf", "anyOf", "oneOf"].some((key) => key in target);
  const taken = new TakenNames("form", Object.keys(properties));
  return {
    schema: schemas.convert(changed),
    fields: isPlain ? { properties, required: toList(target.required) } : undefined,
    write: (value) => write(toNode(value), { encoding, properties, files, taken }),
  };
}

interface Fields {
  readonly encoding: Node;
  readonly properties: Node;
  /** Names of the fields with files. */
  readonly files: ReadonlySet<string>;
  /** The names of the fields in the document. */
  readonly taken: TakenNames;
}

function toPairs(value: Node, { encoding, properties, taken }: Fields): WrittenBody {
  const pairs = Object.entries(value).flatMap(([name, field]) => {
    const given: Node = { [TABS]: toNode(properties[name])[TABS], ...toNode(encoding[name]) };
    const style = readStyle(given, "query");
    const hasStyle = typeof given.style === "string" || typeof given.explode === "boolean";
    // Without a style, an object is a JSON text.
    const pairs = toStyledPairs(name, isObject(field) && !hasStyle ? toJsonText(field) : field, style);
    taken.check(listNames(pairs), toUser(name, properties));
    return pairs;
  });
  return { body: pairs.join("&"), contentType: FORM };
}

function toParts(value: Node, { encoding, properties, files, taken }: Fields): WrittenBody {
  const parts = Object.entries(value).flatMap(([name, field]): readonly Part[] => {
    taken.check([name], toUser(name, properties));
    const { contentType } = toNode(encoding[name]);
    // A list of types, such as `image/png, image/jpeg`, limits the type of the file, but does not choose it.
    const type = typeof contentType === "string" && !/[,*]/.test(contentType) ? contentType : undefined;
    return [field].flat().filter((each) => each !== null).map((each) => {
      if (files.has(name)) return { name, type, content: readFile(each, name) };
      return { name, type: type ?? (isObject(each) ? "application/json" : undefined), content: toArgumentText(each) };
    });
  });
  return writeMultipart(parts);
}

/** Returns a field for {@linkcode TakenNames}. Only a field of the document may use its own name. */
function toUser(name: string, properties: Node): { readonly argument: string; readonly own?: string } {
  return { argument: name, own: Object.hasOwn(properties, name) ? name : undefined };
}

/** Follows the references of a schema. */
function toTarget(document: ApiDocument, schema: unknown): Node {
  return resolve(document, schema);
}

/** Whether a schema describes the bytes of a file: a string that is not encoded. */
function isFileSchema(document: ApiDocument, schema: unknown): boolean {
  const { type, format, contentMediaType, contentEncoding } = toTarget(document, schema);
  if (contentEncoding !== undefined) return false;
  return type === "file" || format === "binary" || type === undefined && typeof contentMediaType === "string";
}

function join(description: string | undefined, hint: string): string {
  return description ? `${description.trim()} ${hint}` : hint;
}
