/**
 * Checks whether a value is a content block, and whether JSON can represent a value.
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { Content, ResourceContents } from "../../core/protocol/types.ts";

export function toText(text: string): Content {
  return { type: "text", text };
}

export function isContent(value: unknown): value is Content {
  if (!isObject(value)) return false;
  switch (value.type) {
    case "text":
      return typeof value.text === "string";
    case "image":
    case "audio":
      return typeof value.data === "string" && typeof value.mimeType === "string";
    case "resource_link":
      return typeof value.uri === "string" && typeof value.name === "string";
    case "resource":
      return isObject(value.resource) && typeof value.resource.uri === "string";
    default:
      return false;
  }
}

/** Whether a value looks like the contents of a resource. */
export function isContents(value: unknown): value is ResourceContents {
  return isObject(value) && typeof value.uri === "string" &&
    (typeof value.text === "string" || typeof value.blob === "string");
}

/**
 * Whether a value with `content` also has a member that only a full result has. A tool with an output schema can return
 * structured content that has a member `content` itself.
 */
export function hasResultMembers(value: unknown): boolean {
  return isObject(value) && ("structuredContent" in value || value.isError === true);
}

/** Whether a content block has parts, such as annotations, that {@linkcode isContent} does not check. */
export function isDoubtful({ type, annotations, _meta }: Content): boolean {
  return type !== "text" || annotations !== undefined || _meta !== undefined;
}

/** Returns `undefined` if JSON cannot represent the value, or would silently lose a part of it. */
export function toJson(value: unknown): string | undefined {
  try {
    // This code runs for every structured result. Loops and `includes` halve the cost of a small result, compared with
    // callbacks and regular expressions. Arrays need `for…of`, because `Object.values` of an array is ten times slower
    // on one runtime.
    if (isOdd(value)) return;
    if (Array.isArray(value)) { for (const item of value) if (isOdd(item)) return; }
    else if (isObject(value)) { for (const key of Object.keys(value)) if (isOdd(value[key])) return; }
    const text = JSON.stringify(value);
    // In JSON, maps, streams and similar values become `{}`, and bytes become `{"0":…}`.
    return text && !text.includes("{}") && !text.includes('{"0":') ? text : undefined;
  } catch {
    // The value contains a bigint or a cycle, or its own toJSON() throws.
  }
}

// The tag identifies built-in objects. Testing for a toJSON() method would not suffice: toJSON() of a date or URL
// returns its text, but on some runtimes headers and byte arrays also have a toJSON(), whose result is not useful.
function isOdd(value: unknown): boolean {
  if (typeof value !== "object" || !value) {
    return typeof value === "function" || typeof value === "symbol" || typeof value === "bigint";
  }
  const isNamed = Symbol.toStringTag in value || Symbol.asyncIterator in value || value instanceof Error;
  return isNamed && (Symbol.iterator in value || !("toJSON" in value));
}
