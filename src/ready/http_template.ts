/**
 * Builds URLs and headers that contain arguments. Arguments cannot change the host, or the structure of the path or of a
 * header.
 */
import { hasDotSegment } from "../core/kit/dot_segment.ts";
import { ToolError } from "../library.ts";
import { isPlain, type KnownOptions } from "../core/known_options.ts";
import { POSITIVE } from "./http_request.ts";
import { type KeyPath, type ToProblem, withPath } from "./problem.ts";
import { parseTemplate, type ReadEnv, type Template } from "./template.ts";
import {
  type Arguments,
  encodeArgument,
  findUnfillable,
  toArgumentText,
  type ToolInput,
  toPairs,
} from "./tool_input.ts";

/** Functions that HTTP tools and HTTP resources need. */
export interface HttpOptions {
  /** Reads environment variables. If omitted, `${…}` has no special meaning. */
  readonly readEnv?: ReadEnv;
  readonly toProblem: ToProblem;
}

/** `path` is the template's place in the definition, and `optional` lists the arguments that may be missing. */
export type ParseTemplate = (text: string, path: KeyPath, optional?: readonly string[]) => Template;

export interface UrlTemplate {
  readonly template: Template;
  readonly origin: string;
  readonly query: readonly (readonly [key: string, value: Template])[];
}

/** The name of a header in lower case, and its value with arguments. */
export type HeaderTemplate = readonly [name: string, value: Template];

interface TemplateOptions extends HttpOptions {
  readonly path: KeyPath;
  readonly input: ToolInput;
  readonly optional?: readonly string[];
}

/**
 * @throws the error that `toProblem` returns, if the template is malformed or requires an argument that may be missing.
 */
export function parseHttpTemplate(
  text: string,
  { path, readEnv, toProblem, input, optional }: TemplateOptions,
): Template {
  const template = withPath(() => parseTemplate(text, readEnv), toProblem, path);
  const state = findUnfillable(template, input, optional);
  if (state) throw toProblem(path, state);
  return template;
}

/** @throws the error that `toProblem` returns, if an argument is part of the host or the URL is invalid. */
export function readOrigin(
  text: string,
  { readEnv, toProblem, path }: HttpOptions & { readonly path: KeyPath },
): string {
  const url = parseTemplate(text, readEnv).fill(() => "\0");
  const [start] = url.split("\0");
  if (!/^https?:\/\//i.test(start)) {
    throw toProblem(path, "it does not begin with http:// or https://; write the complete URL");
  }
  if (url.includes("\0") && !/^https?:\/\/[^/?#]+[/?#]/i.test(start)) {
    throw toProblem(
      path,
      "an argument is part of the host, but calls must not choose the host; use arguments only after the host",
    );
  }
  const sample = url.replaceAll("\0", "x");
  if (!URL.canParse(sample)) throw toProblem(path, "it is not a valid URL; write a URL such as https://host/path");
  const { username, password, origin } = new URL(sample);
  if (username || password) {
    throw toProblem(path, "it contains credentials; send them in the Authorization header instead");
  }
  return origin;
}

/** @throws {ToolError} if an argument would change the host or the structure of the path. */
export function buildUrl({ template, origin, query }: UrlTemplate, args: Arguments): URL {
  const text = template.fill((name) => encodeArgument(args[name]));
  checkSegments(template, text);
  // Servers and proxies resolve dot segments: `/users/../admin` would become `/admin`.
  if (hasDotSegment(text.replace(/[?#].*$/s, "").replace(/^https?:\/\/[^/]*/i, ""))) {
    throw new ToolError("Cannot send the request: an argument would create the path segment . or ..");
  }
  const url = new URL(text);
  if (url.origin !== origin) throw new ToolError("Cannot send the request: an argument would change the host");
  const pairs = toPairs(query, args);
  // Append the parameters as text. With `searchParams`, the existing query would be encoded again.
  if (pairs.length) url.search = [url.search.slice(1), ...pairs].filter(Boolean).join("&");
  return url;
}

/** Rejects an argument that would leave a segment of the path empty, because `DELETE /notes/` may delete all notes. */
function checkSegments(template: Template, text: string): void {
  const toSegments = (url: string) => url.split(/[?#]/, 1)[0].split("/");
  const filled = toSegments(text);
  // Compare the segments by index. The arguments do not change the number of segments, because encoded values contain
  // no slash.
  const isEmpty = toSegments(template.fill(() => "\0")).some((segment, i) => segment.includes("\0") && !filled[i]);
  if (isEmpty) {
    throw new ToolError("Cannot send the request: an argument is empty, but a path segment must not be empty");
  }
}

/** @throws the error that `toProblem` returns, if a header is invalid, or a call could choose the content type. */
export function parseHeaders(
  headers: Readonly<Record<string, string>>,
  { parse, toProblem }: { readonly parse: (text: string, key: string) => Template; readonly toProblem: ToProblem },
): readonly HeaderTemplate[] {
  const parsed = new Map<string, Template>();
  for (const [key, text] of Object.entries(headers)) {
    const refuse = (state: string) => toProblem(["headers", key], state);
    const value = parse(text, key);
    const name = key.toLowerCase();
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw refuse("it is not the name of a header; use letters, digits and -");
    if (parsed.has(name)) throw refuse("another header has this name in other letters; remove one of the two");
    if (NOT_IN_HEADERS.test(value.fill(() => ""))) {
      throw refuse("the value contains a line break, or another character that a header must not contain; remove it");
    }
    if (name === "content-type" && value.names.length) {
      throw refuse(
        "a call must not choose the content type, which decides how arguments are encoded; write a fixed type",
      );
    }
    parsed.set(name, value);
  }
  return [...parsed];
}

/** Control characters, and characters that cannot be sent as one byte. */
const NOT_IN_HEADERS = /[^\t\x20-\x7e\x80-\xff]/;
/** Characters that separate the parts of a header, or end a quoted part. */
const SEPARATORS = /[,;"\\]/;

/**
 * Fills headers with arguments. Omits a header if one of its arguments is missing.
 *
 * @throws {ToolError} if an argument cannot be sent in its header, or would change the structure of the header.
 */
export function fillHeaders(headers: readonly HeaderTemplate[], args: Arguments): Readonly<Record<string, string>> {
  const present = headers.filter(([, value]) => value.names.every((name) => args[name] !== undefined));
  return Object.fromEntries(present.map(([name, value]) => {
    const isWhole = value.onlyArgument !== undefined;
    const encode = (argument: string) => {
      const text = toArgumentText(args[argument]);
      // Servers decode the values of cookies, so that values can contain separators.
      if (name === "cookie" && !isWhole) return encodeArgument(text);
      const [odd] = NOT_IN_HEADERS.exec(text) ?? (isWhole ? null : SEPARATORS.exec(text)) ?? [];
      if (odd === undefined) return text;
      throw new ToolError(
        `Cannot send the request: the argument ${argument} contains ${JSON.stringify(odd)}, which the header ${name} ` +
          "must not contain",
      );
    };
    return [name, value.fill(encode)];
  }));
}

const TEXTS = {
  test: (value: unknown) =>
    typeof value === "object" && value !== null && isPlain(value) &&
    Object.values(value).every((text) => typeof text === "string"),
  remedy: "it must be a plain object whose values are strings",
};

/** The types of the options of a request that {@linkcode HttpToolRequest} and {@linkcode HttpResourceOptions} share. */
export const REQUEST_RULES = {
  url: { test: (value) => typeof value === "string", remedy: "it must be a string" },
  headers: TEXTS,
  timeoutMs: POSITIVE,
  maxBytes: POSITIVE,
  allowPrivate: "texts",
  query: TEXTS,
  form: TEXTS,
} as const satisfies KnownOptions["names"];
