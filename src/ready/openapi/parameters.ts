/**
 * Reads the parameters of operations.
 */
import { isToken } from "../../core/kit/http_token.ts";
import { isObject } from "../../core/kit/json.ts";
import { show } from "../../core/known_options.ts";
import { ToolError } from "../../library.ts";
import { isJsonType } from "../http_body.ts";
import { encodeArgument, toArgumentText } from "../tool_input.ts";
import { type ApiDocument, type Node, PartError, resolve, toNode, toParameterList, toText } from "./document.ts";
import { type Style, toStyledHeader, toStyledPairs, toStyledSegment } from "./styles.ts";
import { LIST_FORMAT } from "./swagger.ts";

export type Place = "path" | "query" | "querystring" | "header" | "cookie";

export interface Parameter {
  readonly name: string;
  readonly place: Place;
  readonly isRequired: boolean;
  readonly description?: string;
  readonly schema: unknown;
  /** Writes a value: pairs of a query, a part of a path, or the text of a header or cookie. */
  readonly write: (value: unknown) => readonly string[];
}

const PLACES: readonly string[] = ["path", "query", "querystring", "header", "cookie"];

/**
 * Headers that operations do not set with arguments. The specification ignores the first three. The other headers
 * belong to the connection, or to the credentials.
 */
const OWN_HEADERS =
  /^(accept|content-type|authorization|host|cookie|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-length|proxy-.*)$/i;

/** The default style of each place. */
const STYLES: Readonly<Record<Place, string>> = {
  path: "simple",
  query: "form",
  querystring: "form",
  header: "simple",
  cookie: "form",
};

/**
 * Reads the parameters of a path and of an operation, which take precedence. Leaves out the headers that operations do
 * not set with arguments.
 *
 * @throws {PartError} if a parameter cannot be read or sent.
 */
export function readParameters(document: ApiDocument, ...lists: readonly unknown[]): readonly Parameter[] {
  const parameters = new Map<string, Parameter>();
  for (const each of lists.flatMap(toParameterList)) {
    const parameter = readParameter(document, resolve(document, each, "its parameter"));
    if (!parameter) continue;
    const { place, name } = parameter;
    parameters.set(`${place} ${place === "header" ? name.toLowerCase() : name}`, parameter);
  }
  return [...parameters.values()];
}

function readParameter(document: ApiDocument, given: Node): Parameter | undefined {
  const { name, in: place } = given;
  if (typeof name !== "string" || !name) throw new PartError(`its parameter has the name ${show(name)}; use a text`);
  const part = `its parameter ${show(name)}`;
  if (!isPlace(place)) {
    throw new PartError(`${part} has the place ${show(place)}; use ${PLACES.slice(0, -1).join(", ")} or cookie`);
  }
  if (place === "header" && OWN_HEADERS.test(name)) return;
  if ((place === "header" || place === "cookie") && !isToken(name)) {
    throw new PartError(`${part} has a name that no ${place} can have`);
  }
  if (given.content !== undefined && !isObject(given.content)) throw new PartError(`${part} has no valid content`);
  const [mediaType, media] = Object.entries(toNode(given.content))[0] ?? [];
  return {
    name,
    place,
    isRequired: place === "path" || given.required === true,
    description: toText(given.description),
    schema: withExample(mediaType === undefined ? given.schema : resolve(document, media, part).schema, given),
    write: toWriter(name, place, { style: readStyle(given, place), mediaType }),
  };
}

function isPlace(value: unknown): value is Place {
  return PLACES.includes(String(value));
}

/** Adds the example of a parameter to its schema. */
function withExample(schema: unknown, { example, examples }: Node): unknown {
  const [first] = Object.values(toNode(examples));
  const value = example ?? toNode(first).value;
  if (value === undefined || typeof schema === "boolean" || toNode(schema).examples !== undefined) return schema;
  return { ...toNode(schema), examples: [value] };
}

/** The list formats of version 2.0: the style of a list in a query, and the separator of a list in a text. */
const LIST_FORMATS: ReadonlyMap<unknown, readonly [style: string, separator: string]> = new Map([
  ["csv", ["form", ","]],
  ["ssv", ["spaceDelimited", " "]],
  ["tsv", ["tabDelimited", "\t"]],
  ["pipes", ["pipeDelimited", "|"]],
]);

/** Returns the separator of a list format. Returns `undefined` if each item is sent by itself. */
export function toListSeparator(format: unknown): string | undefined {
  return LIST_FORMATS.get(format)?.[1];
}

export function readStyle(given: Node, place: Place): Style {
  const [listStyle] = LIST_FORMATS.get(given[LIST_FORMAT]) ?? [];
  if (listStyle !== undefined) return { style: listStyle, isExploded: false };
  const style = toText(given.style) ?? STYLES[place];
  const isExploded = typeof given.explode === "boolean"
    ? given.explode
    : style === "form" || style === "cookie" || style === "deepObject";
  return { style, isExploded, allowsReserved: place === "query" && given.allowReserved === true };
}

interface Writing {
  readonly style: Style;
  /** The media type of a parameter with `content`. */
  readonly mediaType?: string;
}

function toWriter(name: string, place: Place, { style, mediaType }: Writing): Parameter["write"] {
  const isJson = mediaType !== undefined && isJsonType(mediaType);
  const toContent = mediaType === undefined ? undefined : isJson ? toJsonText : toArgumentText;
  if (place === "querystring") return toQueryString(isJson);
  if (place === "query") {
    return toContent
      ? (value) => [`${encodeArgument(name)}=${encodeArgument(toContent(value))}`]
      : (value) => toStyledPairs(name, value, style);
  }
  if (place === "path") {
    return (value) => [toContent ? encodeArgument(toContent(value)) : toStyledSegment(name, value, style)];
  }
  if (place === "header") return (value) => [toHeaderValue(name, toContent?.(value) ?? toStyledHeader(value, style))];
  // The style `cookie` of version 3.2 does not encode values.
  if (style.style === "cookie") return (value) => toPlainCookies(name, value, style);
  if (toContent) return (value) => [`${name}=${encodeArgument(toContent(value))}`];
  return (value) => toStyledPairs(name, value, style);
}

/** Writes the whole query: as JSON, or as the pairs of an object. */
function toQueryString(isJson: boolean): Parameter["write"] {
  if (isJson) return (value) => [encodeArgument(toJsonText(value))];
  return (value) =>
    typeof value === "string"
      ? [encodeArgument(value)]
      : Object.entries(toNode(value)).flatMap(([name, each]) =>
        toStyledPairs(name, each, { style: "form", isExploded: true })
      );
}

/** Converts a value to JSON. A string that is not a JSON text itself becomes a JSON string. */
export function toJsonText(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/** @throws {ToolError} if the text cannot be the value of a header. */
function toHeaderValue(name: string, text: string): string {
  const [odd] = /[^\t\x20-\x7e\x80-\xff]/.exec(text) ?? [];
  if (odd === undefined) return text;
  throw new ToolError(
    `Cannot send the request: the header ${name} would contain ${JSON.stringify(odd)}; remove this character`,
  );
}

function toPlainCookies(name: string, value: unknown, style: Style): readonly string[] {
  const isEmpty = value === null || typeof value === "object" && !Object.keys(value).length;
  if (isEmpty) return [];
  const parts = style.isExploded && typeof value === "object" ? Object.entries(value) : [[name, value] as const];
  return parts.map(([key, each]) => {
    const text = toStyledHeader(each, style);
    if (/^[\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]*$/.test(text) && isToken(key)) {
      return `${Array.isArray(value) ? name : key}=${text}`;
    }
    throw new ToolError(`Cannot send the request: the cookie ${name} would contain a separator; use plain characters`);
  });
}
