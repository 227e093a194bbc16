/**
 * Converts a tool that another server lists to the options of a tool.
 */
import type { Params } from "../../core/protocol/jsonrpc.ts";
import type { ListedTool } from "../../core/protocol/listed.ts";
import type { Meta } from "../../core/protocol/types.ts";
import type { StandardSchema } from "../../core/schema/schema.ts";
import { FOREIGN } from "../../core/schema/schema_compiler.ts";

/**
 * Returns the options of a tool with the properties that another server lists. The other server validates the arguments
 * and the result.
 */
export function toListedOptions(listed: ListedTool) {
  const { name, title, description, icons, annotations, inputSchema, outputSchema, _meta } = listed;
  return {
    name,
    title,
    description,
    icons,
    annotations,
    // The cast is safe, because the client returns only objects as `_meta`.
    _meta: _meta as Meta | undefined,
    input: publish<Params>(inputSchema),
    output: outputSchema && publish<unknown>(outputSchema),
  };
}

/**
 * Marks a result of another server as a full result. Without structured content, the result of a tool with an output
 * schema could otherwise be taken for structured content that has a member `content`.
 */
export function toForeign<R>(result: R): R {
  // The cast is safe, because a member that is `undefined` counts as absent.
  return Array.isArray(Object(result).content) ? { structuredContent: undefined, ...result } as R : result;
}

/** A schema that accepts every value, and publishes the given JSON Schema. */
function publish<T>(schema: Params): StandardSchema<T, T> {
  return {
    "~standard": {
      version: 1,
      vendor: FOREIGN,
      validate: (value) => ({ value: value as T }), // The cast is safe, because `T` is an object with any properties.
      jsonSchema: { input: () => schema, output: () => schema },
    },
  };
}
