/**
 * Converts results and errors to what clients of older revisions understand.
 *
 * @see specification/2025-06-18/changelog
 * @module
 */
import { INVALID_PARAMS, INVALID_REQUEST, McpError, MISSING_CAPABILITY } from "../../protocol/errors.ts";
import { isObject, type Result } from "../../protocol/jsonrpc.ts";
import type { Version } from "./versions.ts";

/** Error code "Resource not found" of the revisions up to 2025-11-25. */
const RESOURCE_NOT_FOUND = -32002;

/** Converts the result of a method for a client of this revision. */
export function downgradeResult(method: string, result: Result, version: Version): Result {
  switch (method) {
    case "tools/list":
      return { ...result, tools: mapObjects(result.tools, (tool) => downgradeTool(tool, version)) };
    case "tools/call":
      return downgradeToolResult(result, version);
    case "prompts/get":
      return {
        ...result,
        messages: mapObjects(
          result.messages,
          ({ content, ...rest }) => ({
            ...rest,
            content: isObject(content) ? downgradeContent(content, version) : content,
          }),
        ),
      };
    default:
      return result;
  }
}

/** Converts an error to the codes of older revisions. */
export function downgradeError(method: string, error: McpError): McpError {
  const isMissing = method === "resources/read" && error.code === INVALID_PARAMS &&
    isObject(error.data) &&
    "uri" in error.data;
  if (isMissing) return new McpError(RESOURCE_NOT_FOUND, error.message, error.data);
  if (error.code === MISSING_CAPABILITY) return new McpError(INVALID_REQUEST, error.message, error.data);
  return error;
}

// Up to 2025-11-25, structured content and the root of its schema are objects. Before 2025-06-18, neither exists.
function downgradeTool(tool: Result, version: Version): Result {
  const { outputSchema: schema, ...rest } = tool;
  return version >= "2025-06-18" && isObject(schema) && schema.type === "object" ? tool : rest;
}

function downgradeToolResult(result: Result, version: Version): Result {
  const isNew = version >= "2025-06-18";
  if (isNew && isObject(result.structuredContent)) return result;
  const { structuredContent: _, ...rest } = result;
  return isNew ? rest : { ...rest, content: mapObjects(rest.content, (block) => downgradeContent(block, version)) };
}

function downgradeContent(block: Result, version: Version): Result {
  if (block.type === "resource_link" && version < "2025-06-18") {
    return { type: "text", text: `${block.title ?? block.name}: ${block.uri}` };
  }
  return block;
}

function mapObjects(list: unknown, change: (item: Result) => Result): unknown {
  return Array.isArray(list) ? list.map((item) => isObject(item) ? change(item) : item) : list;
}
