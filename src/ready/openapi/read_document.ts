/**
 * Reads OpenAPI documents of versions 2.0 to 3.2 into one form.
 */
import { upgrade } from "@scalar/openapi-upgrader";
import { isObject } from "../../core/kit/json.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import { show } from "../../core/known_options.ts";
import { toMessage } from "../problem.ts";
import { type ApiDocument, toNode } from "./document.ts";
import { checkJson } from "./json_copy.ts";
import { prepareSwagger } from "./swagger.ts";
import { copyUsedParts, type UsedOptions } from "./used_parts.ts";

/**
 * The document itself stays unchanged.
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
