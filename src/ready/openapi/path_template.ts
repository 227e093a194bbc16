/**
 * Builds the paths of requests, so that an argument can never change a path.
 */
import { hasDotSegment } from "../../core/kit/dot_segment.ts";
import { ToolError } from "../../library.ts";
import { PartError } from "./document.ts";

/** Texts, and names of parameters. */
type Pieces = readonly (string | { readonly name: string })[];

export interface PathTemplate {
  readonly pieces: Pieces;
  /** Names of the parameters in the path and its query. */
  readonly names: readonly string[];
  /** The query that the path contains, if any. */
  readonly query: Pieces;
}

/**
 * Parses a path such as `/pets/{id}`. Some documents distinguish operations by a query or a fragment in the path. The
 * fragment is never sent. `sent` are the names of the parameters that are sent in the query. A path such as
 * `/pets?id={id}` only repeats them.
 *
 * @throws {PartError} if the fragment or a name in the query contains a parameter, or the path contains the segment `.`
 * or `..`.
 */
export function parsePath(path: string, sent: readonly string[]): PathTemplate {
  const [beforeFragment, ...fragments] = path.split("#");
  const [lost] = /\{[^{}]+\}/.exec(fragments.join("#")) ?? [];
  if (lost) throw new PartError(`its path contains ${lost} after #, which is never sent`);
  const [plain, ...query] = beforeFragment.split("?");
  const pieces = parsePieces(plain);
  const pairs = query.join("%3F").split("&").filter((pair) => {
    const [, name] = /^([^=]*)=\{[^{}]+\}$/.exec(pair) ?? [];
    return name === undefined || !sent.includes(name);
  });
  const [chosen] = /\{[^{}]+\}/.exec(pairs.map((pair) => pair.split("=", 1)[0]).join("&")) ?? [];
  if (chosen) throw new PartError(`its path contains ${chosen} as a name of its query, which no argument can choose`);
  const written = parsePieces(pairs.join("&"));
  const sample = pieces.map((piece) => typeof piece === "string" ? piece : "x").join("");
  if (hasDotSegment(sample)) throw new PartError("its path contains the segment . or ..");
  return {
    pieces,
    names: [...new Set([...pieces, ...written].flatMap((piece) => typeof piece === "string" ? [] : piece.name))],
    query: written,
  };
}

function parsePieces(text: string): Pieces {
  return text.split(/(\{[^{}/]+\})/).filter(Boolean).map((piece) =>
    /^\{.+\}$/.test(piece) ? { name: piece.slice(1, -1) } : encodeText(piece)
  );
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
 * Fills a path and its query. `write` returns the encoded text of a parameter.
 *
 * @throws {ToolError} if an argument is empty, or would create the segment `.` or `..`.
 */
export function fillPath(
  template: PathTemplate,
  write: (name: string) => string,
): { readonly path: string; readonly query: string } {
  const fill = (pieces: Pieces, write: (name: string) => string) =>
    pieces.map((piece) => {
      if (typeof piece === "string") return piece;
      const text = write(piece.name);
      if (text) return text;
      throw new ToolError(`Cannot send the request: ${piece.name} is empty, but it is part of the path; send a value`);
    }).join("");
  const path = fill(template.pieces, write);
  // Servers and proxies resolve dot segments, also in encoded form: `/users/../admin` would become `/admin`.
  if (MAYBE_DOT.test(path) && hasDotSegment(path)) {
    throw new ToolError(
      "Cannot send the request: an argument would create the path segment . or ..; send another value",
    );
  }
  // Some servers separate the parameters of a query at `;`, which the style `matrix` writes.
  return { path, query: fill(template.query, (name) => write(name).replaceAll(";", "%3B")) };
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
