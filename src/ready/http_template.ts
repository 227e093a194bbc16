/**
 * Builds URLs, headers and bodies that contain arguments. Arguments cannot change the host or the structure of the
 * path.
 *
 * @module
 */
import { ToolError } from "../library.ts";
import { type KeyPath, type ToProblem, withPath } from "./problem.ts";
import { parseTemplate, type ReadEnv, type Template } from "./template.ts";
import { type Arguments, findUnfillable, toArgumentText, type ToolInput } from "./tool_input.ts";

/** Functions that HTTP tools and HTTP resources need. */
export interface HttpOptions {
  /** Reads environment variables. If omitted, `${…}` has no special meaning. */
  readonly readEnv?: ReadEnv;
  readonly toProblem: ToProblem;
}

/**
 * Parses a template, which is at `path` in the definition of the request. `optional` lists the arguments that may be
 * missing.
 */
export type ParseTemplate = (text: string, path: KeyPath, optional?: readonly string[]) => Template;

/** A URL with arguments. */
export interface UrlTemplate {
  readonly template: Template;
  readonly origin: string;
  readonly query: readonly (readonly [key: string, value: Template])[];
}

interface TemplateOptions extends HttpOptions {
  readonly path: KeyPath;
  readonly input: ToolInput;
  /** Names of the arguments that may be missing. */
  readonly optional?: readonly string[];
}

/**
 * Parses a template in a request. @throws the error that `toProblem` returns, if the template is malformed or requires
 * an argument that may be missing.
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

/**
 * Reads the origin of a URL that contains arguments.
 *
 * @throws the error that `toProblem` returns, if an argument is part of the host or the URL is invalid.
 */
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

/**
 * Fills a URL with arguments.
 *
 * @throws {ToolError} if an argument would change the host or the structure of the path.
 */
export function buildUrl({ template, origin, query }: UrlTemplate, args: Arguments): URL {
  const text = template.fill((name) => encodeURIComponent(toArgumentText(args[name])));
  checkSegments(template, text);
  // Reject dot segments, because parsing resolves them: `/users/../admin` would become `/admin`.
  if (/(^|\/)(\.|%2e){1,2}(\/|$)/i.test(text.replace(/[?#].*$/s, "").replace(/^https?:\/\/[^/]*/i, ""))) {
    throw new ToolError("Cannot send the request: an argument would create the path segment . or ..");
  }
  const url = new URL(text);
  if (url.origin !== origin) throw new ToolError("Cannot send the request: an argument would change the host");
  const pairs = query.flatMap(([key, value]) => {
    if (value.names.some((name) => args[name] === undefined)) return [];
    const only = value.onlyArgument === undefined ? undefined : args[value.onlyArgument];
    const values = Array.isArray(only) ? only : [value.fill((name) => toArgumentText(args[name]))];
    return values.map((each) => `${encodeURIComponent(key)}=${encodeURIComponent(toArgumentText(each))}`);
  });
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
