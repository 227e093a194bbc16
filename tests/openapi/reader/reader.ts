// Judges whether a request is what an OpenAPI document says, and lists what a document describes.

import { compareBody, compareForm, findMalformed, isFormOf } from "./body.ts";
import {
  followReference,
  isAtLeast,
  isObject,
  member,
  type ObjectValue,
  readVersion,
  type Version,
} from "./document.ts";
import {
  bodyMembers,
  CONNECTION_HEADERS,
  lostPathItems,
  type Operation,
  type Parameter,
  readOperations,
} from "./operation.ts";
import { comparePairs, type Pair, type PairSource, readPairs, type WrittenPair } from "./pairs.ts";
import {
  collectionPairs,
  contentEntries,
  contentPieces,
  cookiePairs,
  headerSpellings,
  isJsonType,
  isUndefined,
  joinCollection,
  pathSpellings,
  readStyle,
  type Spellings,
  stylePairs,
} from "./styles.ts";
import {
  decodePercent,
  type Decoding,
  delimiter,
  holdsLeaves,
  isJsonOf,
  matchesPieces,
  type Piece,
  scalarTexts,
  showPieces,
} from "./text.ts";

/** A request as it was sent. */
export interface RawRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

export interface ReadOperation {
  /** The parsed document as published (2.0, 3.0, 3.1 or 3.2), unchanged. */
  readonly document: Readonly<Record<string, unknown>>;
  /** Upper-case method, and the path template as in `paths`. */
  readonly method: string;
  readonly path: string;
  /** Path of the base URL, such as `/base`. The document's own servers are never used. */
  readonly basePath: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** An operation as the document describes it, for checks that no part was lost. */
export interface ExpectedOperation {
  /** `*` for a path item whose reference leads nowhere: its operations cannot be known. */
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly place: "path" | "query" | "querystring" | "header" | "cookie";
    readonly isRequired: boolean;
    readonly argument: string;
  }[];
  readonly body?: {
    readonly isRequired: boolean;
    readonly mediaTypes: readonly string[];
    readonly members?: readonly string[];
  };
  readonly missing: readonly string[];
}

/** Lists all operations of a document. */
export function listExpected(document: Readonly<Record<string, unknown>>): readonly ExpectedOperation[] {
  const operations = readOperations(document).flatMap((readings) => readings.slice(0, 1));
  const listed = operations.map((operation): ExpectedOperation => {
    const parameters = operation.parameters.map(({ name, place, isRequired, argument }) => ({
      name,
      place,
      isRequired,
      argument,
    }));
    const { method, path, missing } = operation;
    if (operation.body === undefined) return { method, path, parameters, missing };
    const members = bodyMembers(document, operation.body);
    const body = {
      isRequired: operation.body.isRequired,
      mediaTypes: operation.body.media.map(([type]) => type),
      ...members === undefined ? {} : { members },
    };
    return { method, path, parameters, body, missing };
  });
  const lost = lostPathItems(document).filter(([path]) => !operations.some((operation) => operation.path === path));
  return [...listed, ...lost.map(([path, problem]) => ({ method: "*", path, parameters: [], missing: [problem] }))];
}

/** Returns every difference between the request that was sent and what the document says: one sentence each. */
export function compareRequest(request: RawRequest, operation: ReadOperation): Promise<readonly string[]> {
  const all = readOperations(operation.document).filter((readings) => readings[0]?.path === operation.path);
  const exact = all.find((readings) => readings[0]?.method === operation.method);
  // The case of an additional operation counts when it is sent, but it may be asked for in upper case.
  const found = exact ?? all.find((readings) => readings[0]?.method.toUpperCase() === operation.method.toUpperCase());
  if (found === undefined) {
    return Promise.resolve([`The document has no operation ${operation.method} ${operation.path}.`]);
  }
  // Where the document has several readings, the request must fit one of them.
  const results = found.map((reading) => compareReading(request, operation, reading));
  return Promise.resolve(results.toSorted((left, right) => left.length - right.length)[0] ?? []);
}

interface Context {
  readonly document: ObjectValue;
  readonly version: Version;
  readonly valueOf: (parameter: Parameter) => unknown;
}

function compareReading(request: RawRequest, asked: ReadOperation, operation: Operation): readonly string[] {
  const { document, args } = asked;
  const context: Context = {
    document,
    version: readVersion(document),
    valueOf: (parameter) => member(args, parameter.argument),
  };
  const differences: string[] = [];
  if (request.method !== operation.method) {
    differences.push(`The method must be ${operation.method}, but it is ${request.method}.`);
  }
  const known = operation.parameters.map((parameter) => parameter.argument);
  for (const [name, value] of Object.entries(args)) {
    if (value !== undefined && !known.includes(name) && !(name === "body" && operation.body !== undefined)) {
      differences.push(`The argument ${name} belongs to no parameter of the operation.`);
    }
  }
  const body = operation.body === undefined ? undefined : member(args, "body");
  const written = { contentType: request.headers.get("content-type") ?? undefined, bytes: request.body };
  return [
    ...differences,
    ...compareUrl(request.url, asked, operation, context),
    ...compareHeaders(request.headers, operation, context),
    ...compareCookies(request.headers.get("cookie"), operation, context),
    ...compareBody(document, operation.body, body, written),
  ];
}

function mediaOf(context: Context, value: unknown): ObjectValue {
  return followReference(context.document, value).value ?? {};
}

/** The pieces of a value for each entry of `content`. */
function contentSpellings(context: Context, parameter: Parameter, value: unknown, encoded: string): Spellings {
  return contentEntries(parameter.holder).map(([type, entry]) =>
    contentPieces(
      type.split(";")[0]?.trim().toLowerCase() ?? "",
      value,
      encoded,
      (text) => isObject(value) && isFormOf(context.document, mediaOf(context, entry), value, text),
    )
  );
}

/** "MUST include either a `content` field or a `schema` field, but not both": with both, either is right. */
function usesSchema(parameter: Parameter): boolean {
  return member(parameter.holder, "schema") !== undefined || contentEntries(parameter.holder).length === 0;
}

function compareUrl(url: URL, asked: ReadOperation, operation: Operation, context: Context): readonly string[] {
  const differences: string[] = [...findMalformed("path", url.pathname), ...findMalformed("query", url.search)];
  if (isAtLeast(context.version, "3.0")) {
    // "All API URLs MUST successfully parse and percent-decode using RFC 3986 rules", which has no such characters.
    const illegal = /[[\]|^`{}\\"<>]/.exec(url.search)?.[0];
    if (illegal !== undefined) differences.push(`The query has the character ${illegal}, which must be encoded.`);
  }
  for (const parameter of operation.parameters) {
    if (parameter.place === "path" && context.valueOf(parameter) === undefined) {
      differences.push(`The path parameter ${parameter.name} has no argument, so the request cannot be sent.`);
    }
  }
  // A path is made of `pchar` only, so `?` and `#` are not part of it. Documents that have them mean a literal query or
  // fragment, or a path with these characters.
  const asPath = [
    ...comparePath(url, asked.basePath, asked.path, operation, context),
    ...compareQuery(url, "", operation, context),
    ...url.hash === "" ? [] : ["The URL has a fragment."],
  ];
  if (asPath.length === 0 || !/[?#]/.test(asked.path)) return [...differences, ...asPath];
  const plain = asked.path.split("#")[0] ?? "";
  const [pathname = "", query = ""] = plain.split("?");
  const asQuery = [
    ...comparePath(url, asked.basePath, pathname, operation, context),
    ...compareQuery(url, query, operation, context),
  ];
  return [...differences, ...asQuery];
}

/** The literal text of a template. Slashes keep their form: an encoded one is data. */
function literalPieces(text: string): readonly Piece[] {
  return text.split(/(\/)/).filter((part) => part !== "").map((part) =>
    part === "/" ? delimiter("/", "raw") : { texts: [decodePercent(part)], form: "any", encoded: "/?#" }
  );
}

function comparePath(
  url: URL,
  basePath: string,
  template: string,
  operation: Operation,
  context: Context,
): readonly string[] {
  const base = basePath.replace(/\/+$/, "");
  let spellings: Spellings = [literalPieces(base)];
  for (const part of template.split(/(\{[^{}]+\})/)) {
    const isExpression = /^\{[^{}]+\}$/.test(part);
    const own = isExpression ? pathParameter(part.slice(1, -1), operation, context) : [literalPieces(part)];
    spellings = spellings.flatMap((start) => own.map((end) => [...start, ...end]));
  }
  // The root path may be written without its slash only when there is no base, which a URL never shows.
  if (spellings.some((pieces) => matchesPieces(url.pathname, "percent", pieces))) return [];
  return [`The path must be ${showPieces(spellings[0] ?? [])}, but it is ${url.pathname}.`];
}

function pathParameter(name: string, operation: Operation, context: Context): Spellings {
  const parameter = operation.parameters.find((one) => one.place === "path" && one.name === name);
  const value = parameter === undefined ? undefined : context.valueOf(parameter);
  if (parameter === undefined || value === undefined) {
    return [[{ check: () => true, shown: `{${name}}`, encoded: "/" }]];
  }
  if (context.version === "2.0") return joinCollection(value, parameter.holder, "/?#");
  return [
    ...usesSchema(parameter) ? pathSpellings(name, value, readStyle(parameter.holder, "path", context.version)) : [],
    ...contentSpellings(context, parameter, value, "/?#"),
  ];
}

function compareQuery(url: URL, literal: string, operation: Operation, context: Context): readonly string[] {
  const text = url.search.slice(1);
  const whole = operation.parameters.find((parameter) => parameter.place === "querystring");
  if (whole !== undefined) return compareQueryString(text, whole, context);
  const sources: PairSource[] = readPairs(literal).map((pair) => ({
    label: `The part ${pair.name} of the path`,
    alternatives: [[{
      name: pair.name,
      value: [{ texts: [decodePercent(pair.value, true)], form: "any", encoded: "" }],
      isOptional: false,
    }]],
  }));
  for (const parameter of operation.parameters) {
    const value = context.valueOf(parameter);
    if (parameter.place !== "query" || value === undefined) continue;
    sources.push({ label: `The parameter ${parameter.name}`, alternatives: queryPairs(parameter, value, context) });
  }
  return comparePairs("query", readPairs(text), sources, ["form"]);
}

function queryPairs(parameter: Parameter, value: unknown, context: Context): readonly (readonly Pair[])[] {
  const { name, holder } = parameter;
  if (context.version === "2.0") return collectionPairs(name, value, holder);
  return [
    ...usesSchema(parameter) ? stylePairs(name, value, readStyle(holder, "query", context.version)) : [],
    // `content` could carry null, `[]` and `{}`, but by agreement they are not sent in parameters: both are right.
    ...contentSpellings(context, parameter, value, "").map((pieces) => [
      { name, value: pieces, isOptional: isUndefined(value) },
    ]),
  ];
}

/** 3.2, `in: querystring`: the whole query is one value of a media type. */
function compareQueryString(text: string, parameter: Parameter, context: Context): readonly string[] {
  const value = context.valueOf(parameter);
  if (value === undefined) return text === "" ? [] : [`The query is ${text}, but no argument explains it.`];
  if (isUndefined(value) && text === "") return [];
  const results = contentEntries(parameter.holder).map(([type, entry]): readonly string[] => {
    const essence = type.split(";")[0]?.trim().toLowerCase() ?? "";
    if (essence === "application/x-www-form-urlencoded" && isObject(value)) {
      return compareForm(context.document, mediaOf(context, entry), value, text);
    }
    // Other media types are percent-encoded by the general rules of URIs, where `+` is itself. A text in form encoding
    // is ready for a query and stays as it is.
    const decoded = decodePercent(text);
    const isRight = isJsonType(essence)
      ? isJsonOf(decoded, value)
      : typeof value === "object" && value !== null
      ? isJsonOf(decoded, value) || holdsLeaves(decoded, value)
      : scalarTexts(value).some((one) => one === decoded || (essence.endsWith("form-urlencoded") && one === text));
    return isRight ? [] : [`The query must be ${JSON.stringify(value)} as ${type}, but it is ${text}.`];
  });
  return results.toSorted((left, right) => left.length - right.length)[0] ?? [];
}

/** Headers that are set by whoever sends the request. */
const SENDER_HEADERS: readonly string[] = [
  ...CONNECTION_HEADERS,
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "user-agent",
  "sec-fetch-mode",
];

function compareHeaders(headers: Headers, operation: Operation, context: Context): readonly string[] {
  const differences: string[] = [];
  const explained = new Set<string>();
  for (const parameter of operation.parameters) {
    const value = context.valueOf(parameter);
    if (parameter.place !== "header" || value === undefined) continue;
    const written = headers.get(parameter.name);
    const isByContent = !usesSchema(parameter);
    if (isUndefined(value) && (written === null || !isByContent)) {
      if (written === null || Array.isArray(value) && value.length > 0) explained.add(parameter.name.toLowerCase());
      continue;
    }
    explained.add(parameter.name.toLowerCase());
    const spellings = headerPieces(parameter, value, context);
    if (written !== null && isHeaderText(written, value, spellings, context.version, isByContent)) continue;
    const shown = showPieces(spellings[0] ?? []);
    differences.push(`The header ${parameter.name} must be ${shown}, but it is ${written ?? "not there"}.`);
  }
  for (const [name, value] of headers) {
    if (explained.has(name) || SENDER_HEADERS.includes(name)) continue;
    differences.push(`The header ${name}: ${value} is explained by no argument.`);
  }
  return differences;
}

function headerPieces(parameter: Parameter, value: unknown, context: Context): Spellings {
  if (context.version === "2.0") return joinCollection(value, parameter.holder);
  const style = readStyle(parameter.holder, "header", context.version);
  return [
    ...usesSchema(parameter) ? headerSpellings(value, style.isExploded) : [],
    ...contentSpellings(context, parameter, value, ""),
  ];
}

function isHeaderText(
  written: string,
  value: unknown,
  spellings: Spellings,
  version: Version,
  isByContent: boolean,
): boolean {
  const texts = [written];
  // A header holds bytes. Text outside of ASCII may have been sent as UTF-8, of which each byte shows as a character.
  const codes = [...written].map((char) => char.codePointAt(0) ?? 0);
  if (codes.some((code) => code > 127) && codes.every((code) => code < 256)) {
    texts.push(new TextDecoder().decode(Uint8Array.from(codes)));
  }
  // White space around a value and after a comma has no meaning in HTTP.
  texts.push(...texts.map((text) => text.replace(/,[ \t]+/g, ",")));
  if (typeof value === "string" && texts.includes(value.trim())) return true;
  // Since 3.1 "URI percent-encoding MUST NOT be applied". 3.0 applies RFC 6570, but advises against it (Appendix D).
  const decodings: readonly Decoding[] = version === "3.0" && !isByContent ? ["plain", "percent"] : ["plain"];
  return texts.some((text) =>
    decodings.some((decoding) => spellings.some((pieces) => matchesPieces(text, decoding, pieces)))
  );
}

function compareCookies(header: string | null, operation: Operation, context: Context): readonly string[] {
  const sources: PairSource[] = [];
  for (const parameter of operation.parameters) {
    const value = context.valueOf(parameter);
    if (parameter.place !== "cookie" || value === undefined) continue;
    const style = readStyle(parameter.holder, "cookie", context.version);
    const { name } = parameter;
    const alternatives = [
      ...usesSchema(parameter) ? cookiePairs(name, value, style, context.version) : [],
      ...contentSpellings(context, parameter, value, "").map((pieces) => [
        { name, value: pieces, isOptional: isUndefined(value) },
      ]),
    ];
    sources.push({ label: `The cookie ${name}`, alternatives, decodings: cookieDecodings(parameter, context.version) });
  }
  if (header === null || header === "") return comparePairs("cookies", [], sources, ["percent"]);
  const differences = /;(?! )|; {2}/.test(header) ? ["Cookies must be separated by a semicolon and one space."] : [];
  const written = header.split(/; */).filter((part) => part !== "").map((part): WrittenPair => {
    const end = part.indexOf("=");
    const name = end < 0 ? part : part.slice(0, end);
    return { name: decodePercent(name), value: end < 0 ? "" : part.slice(end + 1) };
  });
  return [...differences, ...comparePairs("cookies", written, sources, ["percent"])];
}

/**
 * `style: cookie` applies no encoding. `form` of 3.2 does, except with `allowReserved`. Before that it is
 * implementation-defined (Appendix D), and so it is for `content`, which says nothing about cookies.
 */
function cookieDecodings(parameter: Parameter, version: Version): readonly Decoding[] {
  if (!usesSchema(parameter)) return ["plain", "percent"];
  const style = readStyle(parameter.holder, "cookie", version);
  if (style.name === "cookie") return ["plain"];
  return isAtLeast(version, "3.2") && !style.isReservedAllowed ? ["percent"] : ["percent", "plain"];
}
