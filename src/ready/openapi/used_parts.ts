/**
 * Copies the parts of a document that its operations use. Converting the other parts would take most of the time.
 */
import { isObject } from "../../core/kit/json.ts";
import { toTokens } from "../../core/schema/walker.ts";
import { copyJson, type JsonPath } from "./json_copy.ts";

export interface UsedOptions {
  /** Whether the schemas of results are used. */
  readonly withResults: boolean;
}

/** The members of a document whose parts are copied only if a reference leads to them. */
const ON_DEMAND = ["components", "definitions"];

/** Returns a copy of the used parts of a document, which must have passed `checkJson`. */
export function copyUsedParts(
  document: Readonly<Record<string, unknown>>,
  { withResults }: UsedOptions,
): Record<string, unknown> {
  const refs = new Set<string>();
  const copy = (value: unknown, path: JsonPath) =>
    copyJson(value, {
      path,
      leaveOut: (path, key) => isUnused(path, key) || !withResults && isResult(path, key),
      onRef: (ref) => refs.add(ref),
    });
  const { components, definitions, ...others } = document;
  const copied: Record<string, unknown> = Object(copy(others, []));
  if (isObject(components)) {
    copied.components = { securitySchemes: copy(components.securitySchemes ?? {}, ["components", "securitySchemes"]) };
  }
  if (isObject(definitions)) copied.definitions = {};
  // The references that the loop finds are visited too.
  for (const ref of refs) {
    const [place, ...tokens] = toTokens(ref);
    if (!ON_DEMAND.includes(place)) continue;
    const path = [place, ...tokens.slice(0, place === "definitions" ? 1 : 2)];
    addPart(document, copied, path, copy);
  }
  return copied;
}

/** Copies the part at a path, such as `components`, `schemas`, `Pet`. */
function addPart(
  document: Readonly<Record<string, unknown>>,
  copied: Record<string, unknown>,
  path: readonly string[],
  copy: (value: unknown, path: JsonPath) => unknown,
): void {
  let [from, to]: [unknown, Record<string, unknown>] = [document, copied];
  for (const [i, key] of path.entries()) {
    if (!isObject(from) || !Object.hasOwn(from, key) || key === "__proto__") return;
    from = from[key];
    const isLast = i === path.length - 1;
    if (Object.hasOwn(to, key) && (isLast || !isObject(to[key]))) return;
    if (isLast) to[key] = copy(from, path);
    else to = Object(to[key] ??= {});
  }
}

/**
 * Whether no code reads a member: an example, a header or a link of a response, or a request that the API sends.
 */
function isUnused(path: JsonPath, key: string): boolean {
  if (!path.length) return /^(x-)?webhooks$/.test(key);
  if (key === "examples" || key === "example") return isMedia(path);
  if (key === "callbacks") return path.length === 3 && path[0] === "paths";
  return (key === "headers" || key === "links") && isResponse(path);
}

/** Whether a member describes the JSON of a result. */
function isResult(path: JsonPath, key: string): boolean {
  return (key === "schema" || key === "itemSchema") && isMedia(path);
}

/** Whether a path is a response: of an operation, or in `components`. */
function isResponse(path: JsonPath): boolean {
  return path.at(-2) === "responses" && (path.length === 5 && path[0] === "paths" || path.length === 3);
}

/** Whether a path is the content of one media type in a response. */
function isMedia(path: JsonPath): boolean {
  return path.at(-2) === "content" && isResponse(path.slice(0, -2));
}
