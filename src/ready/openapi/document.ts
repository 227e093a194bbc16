/**
 * The parts of a document: values of any type, and references, which are followed one at a time. Nothing is loaded from
 * files or URLs.
 */
import { isObject } from "../../core/kit/json.ts";
import { show } from "../../core/known_options.ts";
import { followRef } from "../../core/schema/walker.ts";

/** An object in a document, with members of any type. */
export type Node = Readonly<Record<string, unknown>>;

/** A document in the form of OpenAPI 3.1 and 3.2. */
export interface ApiDocument {
  readonly root: Node;
  /** The version that the document states, such as `3.0.3`. */
  readonly version: string;
}

/** Maximum number of references that lead to one value. */
const MAX_REFS = 32;

/** The reason why an operation cannot be served as the document describes it. */
export class PartError extends Error {}

/** The member of an operation or path with the reason why a part is missing. Set by the conversion of version 2.0. */
export const PROBLEM = "x-mcp-problem";

/** Returns the value as an object, or an object without members. */
export function toNode(value: unknown): Node {
  return isObject(value) ? value : {};
}

/** Returns the value if it is a list, or an empty list. */
export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the value if it is a text that is not empty. */
export function toText(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() ? value : undefined;
}

/**
 * Follows the references of an object that is not a schema. Members next to a reference, such as `description`, take
 * precedence. Returns an empty object if there is no value. `part` names the object in errors, such as `its body`.
 *
 * @throws {PartError} if the value is not an object, or a reference leads out of the document or nowhere.
 */
export function resolve(document: Pick<ApiDocument, "root">, value: unknown, part: string): Node {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new PartError(`${part} is ${show(value)}, not an object`);
  let found: Node = value;
  for (let refs = 0; typeof found.$ref === "string"; refs++) {
    const { $ref, ...own } = found;
    const target = refs > MAX_REFS ? undefined : followRef(document.root, String($ref));
    if (!isObject(target)) throw new PartError(`${part} refers to ${show($ref)}, which ${toState(String($ref))}`);
    found = { ...target, ...own };
  }
  return found;
}

/** Follows references like {@linkcode resolve}, but returns an empty object if a reference leads nowhere. */
export function resolveLoosely(document: ApiDocument, value: unknown): Node {
  try {
    return resolve(document, value, "");
  } catch (error) {
    if (error instanceof PartError) return {};
    throw error;
  }
}

function toState(ref: string): string {
  return ref.startsWith("#")
    ? "the document does not contain; add it to the document"
    : "is in another file; bundle the files of the document into one, such as with mcp openapi --write";
}

/**
 * Returns a list of parameters.
 *
 * @throws {PartError} if the value is not a list.
 */
export function toParameterList(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new PartError(`its parameters are ${show(value)}, not a list`);
}
