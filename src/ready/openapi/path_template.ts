/**
 * Builds the paths of requests, so that an argument can never change a path.
 */
import { hasDotSegment } from "../../core/kit/dot_segment.ts";
import { ToolError } from "../../library.ts";
import { PartError } from "./document.ts";

/** The path of an operation: texts, and names of parameters. */
export interface PathTemplate {
  readonly pieces: readonly (string | { readonly name: string })[];
  /** Names of the parameters. */
  readonly names: readonly string[];
  /** The query that the path contains, if any. */
  readonly query: string;
}

/**
 * Parses a path such as `/pets/{id}`. Some documents distinguish operations by a query or a fragment in the path. The
 * fragment is never sent.
 *
 * @throws {PartError} if the fragment contains a parameter, or the path contains the segment `.` or `..`.
 */
export function parsePath(path: string): PathTemplate {
  const [beforeFragment, ...fragments] = path.split("#");
  const [lost] = /\{[^{}]+\}/.exec(fragments.join("#")) ?? [];
  if (lost) throw new PartError(`its path contains ${lost} after #, which is never sent`);
  const [plain, ...query] = beforeFragment.split("?");
  const pieces = plain.split(/(\{[^{}/]+\})/).filter(Boolean).map((piece) =>
    /^\{.+\}$/.test(piece) ? { name: piece.slice(1, -1) } : encodeText(piece)
  );
  const sample = pieces.map((piece) => typeof piece === "string" ? piece : "x").join("");
  if (hasDotSegment(sample)) throw new PartError("its path contains the segment . or ..");
  return {
    pieces,
    names: [...new Set(pieces.flatMap((piece) => typeof piece === "string" ? [] : piece.name))],
    query: query.map((part) => encodeText(part)).join("%3F"),
  };
}

/** Encodes the characters of a text that a path or query cannot contain. Encoded characters stay as they are. */
function encodeText(text: string): string {
  return text.toWellFormed().replace(
    /%(?![\da-fA-F]{2})|[^\w\-.~!$&'()*+,;=:@/%]/gu,
    (character) => encodeURIComponent(character),
  ).replaceAll("'", "%27");
}

/** Matches a dot, an encoded dot, and encoded characters outside of ASCII, some of which servers convert to dots. */
const MAYBE_DOT = /\.|%2e|%[89a-f]/i;

/**
 * Fills a path. `write` returns the encoded text of a parameter.
 *
 * @throws {ToolError} if an argument is empty, or would create the segment `.` or `..`.
 */
export function fillPath({ pieces }: PathTemplate, write: (name: string) => string): string {
  const path = pieces.map((piece) => {
    if (typeof piece === "string") return piece;
    const text = write(piece.name);
    if (text) return text;
    throw new ToolError(`Cannot send the request: ${piece.name} is empty, but it is part of the path; send a value`);
  }).join("");
  // Servers and proxies resolve dot segments, also in encoded form: `/users/../admin` would become `/admin`.
  if (MAYBE_DOT.test(path) && hasDotSegment(path)) {
    throw new ToolError(
      "Cannot send the request: an argument would create the path segment . or ..; send another value",
    );
  }
  return path;
}

/**
 * Returns the URL of a path below a base URL.
 *
 * @throws {ToolError} if the URL would have another path.
 */
export function toUrl(base: URL, path: string, query: readonly string[]): URL {
  const wanted = `${base.pathname.replace(/\/$/, "")}${path}`;
  const search = query.filter(Boolean).join("&");
  const url = new URL(`${base.origin}${wanted}${search && `?${search}`}`);
  if (url.origin === base.origin && url.pathname === (wanted || "/")) return url;
  throw new ToolError("Cannot send the request: an argument would change the path; send another value");
}
