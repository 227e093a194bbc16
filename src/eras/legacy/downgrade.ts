/**
 * What clients of older revisions must not see, turned into what they know.
 *
 * @see specification/2025-06-18/changelog
 * @module
 */
import { INVALID_PARAMS, INVALID_REQUEST, McpError, MISSING_CAPABILITY } from "../../protocol/errors.ts";
import { isObject, type Result } from "../../protocol/jsonrpc.ts";
import type { Version } from "./versions.ts";

/** "Resource not found", up to 2025-11-25. */
const RESOURCE_NOT_FOUND = -32002;

/** A method's result as a client of this revision may see it. */
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

/** An error with the codes of older revisions. */
export function downgradeError(method: string, error: McpError): McpError {
  const isMissing = method === "resources/read" && error.code === INVALID_PARAMS &&
    isObject(error.data) &&
    "uri" in error.data;
  if (isMissing) return new McpError(RESOURCE_NOT_FOUND, error.message, error.data);
  if (error.code === MISSING_CAPABILITY) return new McpError(INVALID_REQUEST, error.message, error.data);
  return error;
}

// Up to 2025-11-25 structured content is an object, and so is the root of its schema; before 2025-06-18 there is none.
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
