/**
 * Reads OpenAPI documents of versions 2.0 to 3.2 into one form, and follows their references one at a time. Nothing is
 * loaded from files or URLs.
 */
import { upgrade } from "@scalar/openapi-upgrader";
import { isObject } from "../../core/kit/json.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import { show } from "../../core/known_options.ts";
import { toMessage } from "../problem.ts";
import { checkJson } from "./json_copy.ts";
import { toTokens } from "./pointer.ts";
import { prepareSwagger } from "./swagger.ts";
import { copyUsedParts, type UsedOptions } from "./used_parts.ts";

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

/**
 * Reads the used parts of a document. The document itself stays unchanged.
 *
 * @throws {TypeError} if the value is not an OpenAPI document of a known version, has more than 200 levels, contains
 * itself, or is larger than 50 MB.
 */
export function readDocument(value: unknown, used: UsedOptions): ApiDocument {
  try {
    const version = readVersion(value);
    checkJson(value);
    const copy = copyUsedParts(toNode(value), used);
    if (version.startsWith("2")) prepareSwagger(copy);
    else copy.openapi = version;
    return { root: toNode(upgrade(copy, "3.1")), version };
  } catch (error) {
    throw new TypeError(`Cannot read the OpenAPI document: ${toMessage(error)}`, { cause: error });
  }
}

function readVersion(value: unknown): string {
  if (!isObject(value)) {
    const remedy = typeof value === "string" ? "parse its JSON or YAML first" : "pass the parsed document";
    throw new TypeError(`it is ${show(value)}, not an object; ${remedy}`);
  }
  if (isPromiseLike(value)) throw new TypeError("it is a promise; await it");
  // YAML parsers read the version 2.0 as the number 2.
  const { swagger, openapi } = value;
  const text = String(swagger ?? openapi ?? "");
  if (swagger !== undefined ? /^2(\.0)?$/.test(text) : /^3(\.[012]([.-]|$)|$)/.test(text)) {
    return text === "2" || text === "3" ? `${text}.0` : text;
  }
  const state = text ? `its version is ${show(swagger ?? openapi)}` : "it has neither openapi nor swagger";
  throw new TypeError(`${state}; use a document of version 2.0, 3.0, 3.1 or 3.2`);
}

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
 * Returns the value to which a reference such as `#/components/schemas/Pet` leads. Returns `undefined` if it leads to no
 * value, or out of the document.
 */
export function followPointer({ root }: ApiDocument, ref: string): unknown {
  if (ref === "#") return root;
  const tokens = toTokens(ref);
  if (!tokens.length) return;
  return tokens.reduce<unknown>(
    (at, key) => at !== null && typeof at === "object" && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined,
    root,
  );
}

/**
 * Follows the references of an object that is not a schema. Members next to a reference, such as `description`, take
 * precedence. Returns an empty object if a reference leads nowhere.
 */
export function resolve(document: ApiDocument, value: unknown): Node {
  let found = toNode(value);
  for (let refs = 0; typeof found.$ref === "string"; refs++) {
    if (refs > MAX_REFS) return {};
    const { $ref, ...own } = found;
    found = { ...toNode(followPointer(document, String($ref))), ...own };
  }
  return found;
}
