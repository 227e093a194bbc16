/**
 * Finds the tool parameters that clients repeat in HTTP headers.
 */
import { isToken } from "../kit/http_token.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { eachSubschema, type JsonSchema } from "./walker.ts";

/** A tool parameter that clients repeat in an HTTP header. */
export interface HeaderParam {
  /** Name of the header without the prefix `Mcp-Param-`. */
  readonly header: string;
  /** Path from the arguments to the parameter, as property names. */
  readonly path: readonly string[];
  /** JSON type of the parameter. */
  readonly type: "string" | "integer" | "boolean";
}

const TYPES: readonly HeaderParam["type"][] = ["string", "integer", "boolean"];

/**
 * Lists the `x-mcp-header` annotations of an input schema, in the order of the schema. The rules are in
 * `specification/2026-07-28/basic/transports/streamable-http` (Schema Extension).
 *
 * @throws {TypeError} with the property's name if the annotation of the property is invalid. A header name must be a
 * token, and must be unique regardless of case. The property must be a string, an integer or a boolean, and reachable
 * through `properties` alone.
 */
export function findHeaderParams(schema: JsonSchema): readonly HeaderParam[] {
  const found: HeaderParam[] = [];

  // `path` is `undefined` if a keyword other than `properties` leads to the node. Such a node must not have the
  // annotation.
  function visit(node: JsonSchema, name: string, path: readonly string[] | undefined): void {
    const header = node["x-mcp-header"];
    // An annotation with the value `undefined` counts as missing, because JSON omits it.
    if (header !== undefined) {
      const refuse = (state: string) => new TypeError(`Cannot use the x-mcp-header of "${name}": ${state}`);
      const type = TYPES.find((type) => type === node.type);
      if (!path?.length) {
        throw refuse("the property is not reachable through properties alone; use nested objects");
      }
      if (!isToken(header)) {
        throw refuse(`${JSON.stringify(header)} is not a header name; use letters, digits and -`);
      }
      if (!type) {
        throw refuse(`its type is ${JSON.stringify(node.type)}; use string, integer or boolean`);
      }
      if (found.some((other) => other.header.toLowerCase() === header.toLowerCase())) {
        throw refuse(`"${header}" is already used by another property; choose another name`);
      }
      found.push({ header, path, type });
    }
    eachSubschema(node, (sub, keyword, key) => {
      const next = keyword === "properties" && path && key !== undefined ? [...path, key] : undefined;
      if (isObject(sub)) visit(sub, key ?? name, next);
    });
  }

  visit(schema, "the root", []);
  return found;
}

/** Lists the annotations of an input schema, or none if one of them is invalid, because clients then ignore all. */
export function listHeaderParams(schema: JsonSchema): readonly HeaderParam[] {
  try {
    return findHeaderParams(schema);
  } catch {
    return [];
  }
}
