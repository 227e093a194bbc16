// Compares a request body with the argument that it was made from.

import {
  isAtLeast,
  isBinaryMediaType,
  isObject,
  listMember,
  member,
  type ObjectValue,
  readBinary,
  readContentMediaType,
  readItems,
  readProperty,
  readTypes,
  readVersion,
  removeReadOnly,
  textMember,
} from "./document.ts";
import { decodeFile, isSameBytes, type Part, readMultipart } from "./multipart.ts";
import { type Body, isFileField, mediaRank } from "./operation.ts";
import { comparePairs, type Pair, type PairSource, readPairs, type WrittenPair } from "./pairs.ts";
import { collectionPairs, hasAny, isJsonType, readStyle, stylePairs } from "./styles.ts";
import { dataPiece, delimiter, holdsLeaves, isJsonOf, jsonPiece, scalarTexts } from "./text.ts";

const STYLE_FIELDS: readonly string[] = ["style", "explode", "allowReserved"];

export interface WrittenBody {
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export function readEssence(contentType: string): string {
  return contentType.split(";")[0]?.trim().toLowerCase() ?? "";
}

function decodeUtf8(bytes: Uint8Array<ArrayBuffer>): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** Whether a media type is in a range such as `image/*`. Parameters of the range must be there too. */
export function isInRange(actual: string, range: string): boolean {
  const [wanted = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const pattern = wanted.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^/;]*");
  if (!new RegExp(`^${pattern === "[^/;]*" ? "[^/;]*/[^/;]*" : pattern}$`).test(readEssence(actual))) return false;
  // A range names no media type, so it cannot be sent as one.
  if (readEssence(actual).includes("*")) return false;
  const given = actual.split(";").slice(1).map((part) => part.trim().toLowerCase().replaceAll('"', ""));
  // The sender chooses the boundary, and text is sent as UTF-8 whether that is named or not.
  return parameters.map((one) => one.replaceAll('"', "").replace(/\s*=\s*/, "=")).every((one) =>
    one === "" || one.startsWith("boundary=") || one === "charset=utf-8" || given.includes(one)
  );
}

export function compareBody(
  document: ObjectValue,
  body: Body | undefined,
  value: unknown,
  written: WrittenBody,
): readonly string[] {
  if (body === undefined || value === undefined) {
    if (written.bytes.length > 0) return ["The request has a body, but no argument explains it."];
    return written.contentType === undefined ? [] : ["The request has a content type without a body."];
  }
  if (written.contentType === undefined) return ["The request has a body argument but no content type."];
  const actual = written.contentType;

  // Without a media type the specification says nothing about the body.
  if (body.media.length === 0) return [];
  const best = Math.min(...body.media.map(([type]) => mediaRank(type)));
  let preferred: Body["media"] = body.media.filter(([type]) => mediaRank(type) === best);
  // 2.0 names no default for `consumes`: both form types are right.
  if (!body.isTypeKnown) preferred = body.media;
  if (body.fields?.some(isFileField) && mediaRank("multipart/form-data") !== best) {
    // A form with a file may be multipart even if only the other form type is named: only multipart has file parts.
    preferred = [...preferred, ["multipart/form-data", {}]];
  }
  const fitting = preferred.filter(([type]) => isInRange(actual, type));
  const first = fitting[0];
  if (first === undefined) {
    const names = preferred.map(([type]) => type).join(" or ");
    return [`The content type of the body must be ${names}, but it is ${actual}.`];
  }
  if (body.fields !== undefined) return compareFields(document, body.fields, value, actual, written.bytes);

  // "only the most specific key is applicable" (Request Body Object, `content`).
  const stars = (type: string): number => type.split("*").length;
  const chosen = fitting.toSorted((left, right) => stars(left[0]) - stars(right[0]))[0] ?? first;
  return compareContent(document, chosen[1], value, actual, written.bytes);
}

export function compareContent(
  document: ObjectValue,
  media: ObjectValue,
  value: unknown,
  contentType: string,
  bytes: Uint8Array<ArrayBuffer>,
): readonly string[] {
  const essence = readEssence(contentType);
  const schema = member(media, "schema");
  if (essence.startsWith("multipart/")) return compareMultipart(document, media, value, contentType, bytes);
  const text = decodeUtf8(bytes);
  if (isJsonType(essence)) {
    if (isJsonOf(text, value) || isJsonOf(text, removeReadOnly(document, schema, value))) return [];
    if (isFileBody(document, schema, essence, value, bytes)) return [];
    return [`The JSON body must be ${JSON.stringify(value)}, but it is ${text}.`];
  }
  if (essence === "application/x-www-form-urlencoded" && isObject(value)) {
    return compareForm(document, media, value, text);
  }
  if (typeof value === "object" && value !== null) {
    if (Array.isArray(value) && /json/.test(essence)) {
      // Sequential media types hold one JSON value per line (3.2, "Sequential Media Types").
      const lines = text.split("\n").map((line) => line.replace("\u001e", "")).filter((line) => line.trim() !== "");
      if (lines.length === value.length && lines.every((line, index) => isJsonOf(line, value[index]))) return [];
    }
    // The specification has no rule that writes a structure in other media types (XML Object aside).
    return isJsonOf(text, value) || holdsLeaves(text, value)
      ? []
      : [`The ${essence} body lost a part of ${JSON.stringify(value)}.`];
  }
  const kind = bodyKind(document, schema, essence);
  if (kind !== "text" && isFileBody(document, schema, essence, value, bytes)) return [];
  if (kind !== "file" && scalarTexts(value).some((one) => one === text)) return [];
  return [
    kind === "file"
      ? `The ${essence} body must be the decoded bytes of the file.`
      : `The ${essence} body must be ${JSON.stringify(value)}, but it is ${JSON.stringify(text)}.`,
  ];
}

/** Whether a whole body is bytes or text. */
function bodyKind(document: ObjectValue, schema: unknown, essence: string): "file" | "text" | "open" {
  const isBinary = isBinaryMediaType(essence);
  const version = readVersion(document);
  const kind = readBinary(document, schema);
  // 3.1: "Content transferred in binary MAY omit schema". 3.0 says nothing, but such a media type holds only bytes.
  if (schema === undefined) {
    return isBinary ? essence.startsWith("application/") ? binaryApplication(essence) : "file" : "text";
  }
  // What base64 text means as a whole body of a binary media type is not said: "there is no standardized HTTP header
  // for indicating base64 or similar encoding of an entire message body" (Working with Binary Data).
  if (kind === "encoded") return isBinary ? "open" : "text";
  if (kind === "file") return isBinary || version === "3.0" || version === "2.0" ? "file" : "open";
  return isBinary ? "open" : kind;
}

/** Private application types may be text, so only the ones that surely hold bytes are files without a schema. */
function binaryApplication(essence: string): "file" | "open" {
  return /^application\/(octet-stream|pdf|zip|gzip|x-tar|wasm|x-gzip)$/.test(essence) ? "file" : "open";
}

function isFileBody(
  document: ObjectValue,
  schema: unknown,
  essence: string,
  value: unknown,
  bytes: Uint8Array<ArrayBuffer>,
): boolean {
  if (typeof value !== "string") return false;
  if (isJsonType(essence) && readBinary(document, schema) !== "file") return false;
  const file = decodeFile(value);
  return file !== undefined && isSameBytes(file.bytes, bytes);
}

/** A form-encoded body, or a whole query that is one. */
export function compareForm(
  document: ObjectValue,
  media: ObjectValue,
  value: ObjectValue,
  text: string,
): readonly string[] {
  const sources = Object.entries(value).map(([name, item]): PairSource => ({
    label: `The member ${name}`,
    alternatives: formPairs(document, media, name, item),
  }));
  return [...findMalformed("form", text), ...comparePairs("form", readPairs(text), sources, ["form"])];
}

/** Percent signs that start no triple cannot be decoded by the rules of RFC 3986. */
export function findMalformed(where: string, text: string): readonly string[] {
  return /%(?![0-9A-Fa-f]{2})/.test(text)
    ? [`The ${where} has a percent sign that starts no percent-encoded byte.`]
    : [];
}

function encodingOf(media: ObjectValue, name: string): ObjectValue {
  const encoding = member(member(media, "encoding"), name);
  return isObject(encoding) ? encoding : {};
}

function formPairs(
  document: ObjectValue,
  media: ObjectValue,
  name: string,
  value: unknown,
): readonly (readonly Pair[])[] {
  if (value === undefined) return [[]];
  const version = readVersion(document);
  const encoding = encodingOf(media, name);
  const style = readStyle(encoding, "query", version);
  if (hasAny(encoding, STYLE_FIELDS)) return stylePairs(name, value, style);

  const schema = readProperty(document, media["schema"], name);
  const contentType = textMember(encoding, "contentType");
  const contents = contentPairs(document, name, value, schema, contentType);
  // 3.0.3 and 2.0 know only the style, 3.0.4 has the media type as a recommendation (Encoding Object).
  const isStyleOpen = !isAtLeast(version, "3.1") && contentType === undefined;
  return isStyleOpen ? [...contents, ...stylePairs(name, value, style)] : contents;
}

/** Pairs without `style`: "the equivalent of using `content`" (Encoding Object). */
function contentPairs(
  document: ObjectValue,
  name: string,
  value: unknown,
  schema: unknown,
  contentType: string | undefined,
): readonly (readonly Pair[])[] {
  const one = (item: unknown, itemSchema: unknown): Pair => ({
    name,
    value: [formPiece(document, item, itemSchema, contentType)],
    // "Determining how to handle null depends on how null values are being serialized."
    isOptional: item === null,
  });
  if (!Array.isArray(value)) return [[one(value, schema)]];
  // Each item gets a pair of its own (Encoding By Name). Before 3.2 that is said for multipart only, so a list of
  // objects, or one with a JSON content type, may also be one JSON text.
  const items = readItems(document, schema);
  const each = value.filter((item) => item !== undefined).map((item) => one(item, items));
  const hasStructure = value.some((item) => typeof item === "object" && item !== null);
  const isWholeOpen = !isAtLeast(readVersion(document), "3.2") &&
    (contentType === undefined ? hasStructure : contentType.split(",").some(isJsonType));
  return isWholeOpen ? [each, [{ name, value: [jsonPiece(value, "")], isOptional: false }]] : [each];
}

function formPiece(document: ObjectValue, value: unknown, schema: unknown, contentType: string | undefined) {
  const rules = { encoded: "", isReservedAllowed: false };
  const types = contentType?.split(",").map(readEssence);
  const kind = readBinary(document, schema);
  if (typeof value === "string" && kind !== "text" && !types?.some(isJsonType)) {
    // The form is a text format, so bytes stay base64 in it ("URL Encoded Form with Binary Values").
    const base64 = value.startsWith("data:") ? decodeFile(value)?.base64 : undefined;
    const swapped = base64?.replaceAll("-", "+").replaceAll("_", "/");
    const urlSafe = swapped?.replaceAll("+", "-").replaceAll("/", "_");
    const texts = [value, base64, swapped, urlSafe].filter((text) => text !== undefined);
    return {
      texts: base64 === undefined || kind === "open" ? texts : texts.slice(1),
      form: "any" as const,
      encoded: "",
    };
  }
  if (types?.some(isJsonType) && types.length === 1) return jsonPiece(value, "");
  if (types === undefined && typeof value === "object" && value !== null) return jsonPiece(value, "");
  if (value === null && types?.some(isJsonType)) return delimiter("null", "any");
  return dataPiece(value, rules);
}

/** The form of 2.0, made of `in: formData` parameters. */
function compareFields(
  document: ObjectValue,
  fields: readonly ObjectValue[],
  value: unknown,
  contentType: string,
  bytes: Uint8Array<ArrayBuffer>,
): readonly string[] {
  if (!isObject(value)) return ["The form argument must be an object."];
  const fieldOf = (name: string): ObjectValue => fields.find((field) => member(field, "name") === name) ?? {};
  if (readEssence(contentType) === "application/x-www-form-urlencoded") {
    const sources = Object.entries(value).map(([name, item]): PairSource => {
      const field = fieldOf(name);
      const file = isFileField(field) && typeof item === "string" ? decodeFile(item)?.base64 : undefined;
      return { label: `The field ${name}`, alternatives: collectionPairs(name, file ?? item, field) };
    });
    const text = decodeUtf8(bytes);
    return [...findMalformed("form", text), ...comparePairs("form", readPairs(text), sources, ["form"])];
  }
  const parts = readMultipart(bytes, contentType);
  if (typeof parts === "string") return [parts];
  const differences: string[] = [...findNameless(parts)];
  const sources: PairSource[] = [];
  const rest = new Set(parts.filter((part) => part.name !== undefined));
  for (const [name, item] of Object.entries(value)) {
    const field = fieldOf(name);
    const kind = isFileField(field) ? "file" : readBinary(document, field);
    const items = Array.isArray(item) ? item : [item];
    const isFile = kind === "file" || (kind === "open" && [...rest].some((part) => isFilePart(part, name)));
    if (!isFile || items.some((one) => typeof one !== "string")) {
      sources.push({ label: `The field ${name}`, alternatives: collectionPairs(name, unifyLines(item), field) });
      continue;
    }
    const own = [...rest].filter((part) => part.name === name);
    for (const part of own) rest.delete(part);
    if (own.length !== items.length) {
      differences.push(`The field ${name} must have ${items.length} file parts, but it has ${own.length}.`);
    }
    // 2.0 does not say which content type a file part has.
    own.forEach((part, index) => differences.push(...compareFile(part, String(items[index] ?? ""), name, undefined)));
  }
  for (const part of rest) {
    if (part.type !== "text/plain") differences.push(`The part ${part.name} must be text, but it is ${part.type}.`);
    if (part.fileName !== undefined) differences.push(`The part ${part.name} is no file, but it has a file name.`);
  }
  return [...differences, ...comparePairs("multipart form", [...rest].map(asPair), sources, ["plain"])];
}

function isFilePart(part: Part, name: string): boolean {
  return part.name === name && part.fileName !== undefined;
}

function asPair(part: Part): WrittenPair {
  return { name: part.name ?? "", value: unifyText(decodeUtf8(part.body)) };
}

/** Text parts end their lines with CRLF in MIME, whatever the value has, so line ends are compared in one form. */
function unifyLines(value: unknown): unknown {
  if (typeof value === "string") return unifyText(value);
  if (Array.isArray(value)) return value.map(unifyLines);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unifyLines(item)]));
}

function unifyText(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

function isSameText(text: string, value: unknown): boolean {
  return scalarTexts(value).some((one) => unifyText(one) === unifyText(text));
}

function findNameless(parts: readonly Part[]): readonly string[] {
  return parts.filter((part) =>
    part.name === undefined || !/^form-data\s*;/i.test(part.headers.get("content-disposition") ?? "")
  ).map(() => "A part of the form has no `Content-Disposition: form-data` with a name.");
}

function compareFile(part: Part, value: string, name: string, types: readonly string[] | undefined): readonly string[] {
  const file = decodeFile(value);
  const differences: string[] = [];
  if (part.fileName === undefined || part.fileName === "") {
    differences.push(`The file part ${name} has no file name.`);
  } else if (file?.name !== undefined && file.name !== part.fileName) {
    differences.push(`The file part ${name} must have the file name ${file.name}, but it has ${part.fileName}.`);
  }
  if (file === undefined) {
    if (decodeUtf8(part.body) !== value) differences.push(`The file part ${name} is not the bytes of its argument.`);
  } else if (!isSameBytes(file.bytes, part.body)) {
    const isText = decodeUtf8(part.body) === value;
    differences.push(`The file part ${name} must be decoded bytes${isText ? ", but it is the base64 text" : ""}.`);
  }
  if (types !== undefined && !types.some((type) => isInRange(part.type, type))) {
    differences.push(`The file part ${name} must be ${types.join(" or ")}, but it is ${part.type}.`);
  }
  return differences;
}

/** Headers that every part may have. Others must be named by the Encoding Object. */
const PART_HEADERS: readonly string[] = ["content-disposition", "content-type", "content-transfer-encoding"];

function comparePartHeaders(part: Part, encoding: ObjectValue, name: string): readonly string[] {
  const named = Object.keys(member(encoding, "headers") ?? {}).map((header) => header.toLowerCase());
  return [...part.headers.keys()].filter((header) => !PART_HEADERS.includes(header) && !named.includes(header))
    .map((header) => `The part ${name} has the header ${header}, which the document does not describe.`);
}

export function compareMultipart(
  document: ObjectValue,
  media: ObjectValue,
  value: unknown,
  contentType: string,
  bytes: Uint8Array<ArrayBuffer>,
): readonly string[] {
  const parts = readMultipart(bytes, contentType);
  if (typeof parts === "string") return [parts];
  if (Array.isArray(value)) return comparePositions(document, media, value, parts);
  if (!isObject(value)) return ["The argument of a multipart body must be an object or a list."];
  const version = readVersion(document);
  const isForm = readEssence(contentType) === "multipart/form-data";
  // Other multipart types need no names: "care must be taken", and parts may also be in the order of the members.
  if (!isForm && parts.every((part) => part.name === undefined)) {
    const items = Object.entries(value).flatMap(([name, item]) =>
      (Array.isArray(item) ? item : [item]).map((one) => [name, one, Array.isArray(item)] as const)
    ).filter(([, item]) => item !== undefined);
    if (items.length !== parts.length) return [`The body must have ${items.length} parts, but it has ${parts.length}.`];
    return items.flatMap(([name, item, isItem], index) => {
      const schema = readProperty(document, media["schema"], name);
      const part = parts[index];
      const own = isItem ? readItems(document, schema) : schema;
      return part === undefined ? [] : comparePart(document, part, item, own, encodingOf(media, name), name, false);
    });
  }
  const differences: string[] = isForm ? [...findNameless(parts)] : [];
  const rest = new Set(parts);
  const sources: PairSource[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue;
    const encoding = encodingOf(media, name);
    // 3.0: the style fields "SHALL be ignored" in multipart. Since 3.1 they apply to multipart/form-data.
    if (isForm && isAtLeast(version, "3.1") && hasAny(encoding, STYLE_FIELDS)) {
      const alternatives = stylePairs(name, unifyLines(item), readStyle(encoding, "query", version));
      sources.push({ label: `The member ${name}`, alternatives });
      continue;
    }
    const schema = readProperty(document, media["schema"], name);
    const own = [...rest].filter((part) => part.name === name);
    for (const part of own) rest.delete(part);
    if (item === null && own.length === 0) continue;
    // One part per item, all with the same name.
    const items = Array.isArray(item) ? item.filter((one) => one !== undefined) : [item];
    const present = own.length === items.length ? items : items.filter((one) => one !== null);
    if (own.length !== present.length) {
      differences.push(`The member ${name} must have ${items.length} parts, but it has ${own.length}.`);
    }
    const itemSchema = Array.isArray(item) ? readItems(document, schema) : schema;
    own.slice(0, present.length).forEach((part, index) => {
      differences.push(...comparePart(document, part, present[index], itemSchema, encoding, name, isForm));
    });
  }
  const written = [...rest].map(asPair);
  return [...differences, ...comparePairs("multipart form", written, sources, ["plain"])];
}

/** Parts by position: 3.2, "Encoding By Position". */
function comparePositions(
  document: ObjectValue,
  media: ObjectValue,
  value: readonly unknown[],
  parts: readonly Part[],
): readonly string[] {
  if (value.length !== parts.length) return [`The body must have ${value.length} parts, but it has ${parts.length}.`];
  const schema = member(media, "schema") ?? {};
  return parts.flatMap((part, index) => {
    const named = listMember(media, "prefixEncoding")[index] ?? member(media, "itemEncoding");
    const encoding = isObject(named) ? named : {};
    const items = member(media, "itemSchema") ?? readItems(document, schema);
    const itemSchema = listMember(schema, "prefixItems")[index] ?? items;
    return comparePart(document, part, value[index], itemSchema, encoding, String(index), false);
  });
}

function comparePart(
  document: ObjectValue,
  part: Part,
  value: unknown,
  schema: unknown,
  encoding: ObjectValue,
  name: string,
  isForm: boolean,
): readonly string[] {
  const explicit = textMember(encoding, "contentType")?.split(",").map((type) => type.trim()).filter((type) =>
    type !== ""
  );
  const isUntyped = readTypes(document, schema) === undefined;
  const isTextType = explicit?.every((type) => !isBinaryMediaType(readEssence(type))) ?? false;
  const found = readBinary(document, schema);
  // A schema without type is bytes only as long as the Encoding Object does not say that it is text.
  const kind = found === "file" && isUntyped && isTextType ? "open" : found;
  const described = readContentMediaType(document, schema);
  const extra = comparePartHeaders(part, encoding, name);
  const transfer = part.headers.get("content-transfer-encoding")?.toLowerCase();
  const givenType = part.headers.get("content-type") ?? "text/plain";
  const isTypeFit = (types: readonly string[]): boolean => types.some((type) => isInRange(givenType, type));
  const wrongType = (types: readonly string[]): readonly string[] =>
    isTypeFit(types) ? [] : [`The part ${name} must be ${types.join(" or ")}, but it is ${givenType}.`];

  // A structure in a nested multipart (3.2, "Nested Encoding").
  if (part.type.startsWith("multipart/") && explicit !== undefined && typeof value === "object" && value !== null) {
    const media = { ...encoding, schema };
    return [...extra, ...wrongType(explicit), ...compareMultipart(document, media, value, givenType, part.body)];
  }
  const isBinaryType = (explicit ?? [givenType]).every((type) => isBinaryMediaType(readEssence(type)));
  // A string with a binary content type is not said to be raw or text, so either is right.
  const isFile = typeof value === "string" && transfer !== "base64" &&
    (kind === "file" || (kind === "open" && part.fileName !== undefined) ||
      (kind === "text" && explicit !== undefined && isBinaryType && part.fileName !== undefined));
  if (isFile) {
    const file = decodeFile(value);
    const types = explicit ?? ["application/octet-stream", described, file?.type].filter((type) => type !== undefined);
    const fileDifferences = compareFile(part, value, name, undefined);
    // Parts of other multipart types need no file name.
    const kept = isForm ? fileDifferences : fileDifferences.filter((one) => !one.includes("has no file name"));
    return [...extra, ...wrongType(types), ...kept];
  }

  const text = decodeUtf8(part.body);
  const isStructure = typeof value === "object" && value !== null;
  const types = explicit ?? defaultTypes(document, value, kind, isUntyped, described);
  const differences = [...extra, ...wrongType(types)];
  if (explicit === undefined && !isStructure && part.fileName !== undefined && kind === "text") {
    differences.push(`The part ${name} is no file, but it has a file name.`);
  }
  // `format: byte` and `contentEncoding` are the same as a `Content-Transfer-Encoding` header, so the text stays.
  if (transfer === "base64" && kind === "text") differences.push(`The part ${name} must not have a transfer encoding.`);
  if (isJsonType(part.type)) {
    if (isJsonOf(text, value) || isJsonOf(text, removeReadOnly(document, schema, value))) return differences;
    return [...differences, `The part ${name} must be the JSON ${JSON.stringify(value)}, but it is ${text}.`];
  }
  if (isStructure) {
    return holdsLeaves(text, value)
      ? differences
      : [...differences, `The part ${name} lost a part of ${JSON.stringify(value)}.`];
  }
  if (isSameText(text, value)) return differences;
  if (
    typeof value === "string" && value.startsWith("data:") && kind === "encoded" && decodeFile(value)?.base64 === text
  ) {
    return differences;
  }
  return [...differences, `The part ${name} must be ${JSON.stringify(value)}, but it is ${JSON.stringify(text)}.`];
}

/** The default of `contentType` (Encoding Object). The value decides where the schema has no type. */
function defaultTypes(
  document: ObjectValue,
  value: unknown,
  kind: ReturnType<typeof readBinary>,
  isUntyped: boolean,
  described: string | undefined,
): readonly string[] {
  const bytes = "application/octet-stream";
  const also = described === undefined ? [] : [described];
  if (typeof value === "object" && value !== null) {
    return isUntyped && isAtLeast(readVersion(document), "3.1") ? ["application/json", bytes] : ["application/json"];
  }
  if (kind === "encoded") return [bytes, ...also];
  if (kind === "open" || isUntyped) return ["text/plain", bytes, ...also];
  return ["text/plain", ...also];
}

/** Whether a text is the form that a value must have, for `content` inside of a parameter. */
export function isFormOf(document: ObjectValue, media: ObjectValue, value: ObjectValue, text: string): boolean {
  return compareForm(document, media, value, text).length === 0;
}
