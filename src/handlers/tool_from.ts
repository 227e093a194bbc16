/**
 * Tools of other servers, offered again.
 *
 * @module
 */
import type { Params } from "../protocol/jsonrpc.ts";
import type { ListedTool } from "../protocol/listed.ts";
import type { Meta } from "../protocol/types.ts";
import type { StandardSchema } from "../schema/schema.ts";

/** The options of a tool that is listed like another. The other server validates the arguments and the result. */
export function toListedOptions(listed: ListedTool) {
  const { name, title, description, icons, annotations, inputSchema, outputSchema, _meta } = listed;
  return {
    name,
    title,
    description,
    icons,
    annotations,
    // A list of the client has only objects here.
    _meta: _meta as Meta | undefined,
    input: publish<Params>(inputSchema),
    output: outputSchema && publish<unknown>(outputSchema),
  };
}

/** A schema that accepts every value, and is listed as this JSON Schema. */
function publish<T>(schema: Params): StandardSchema<T, T> {
  return {
    "~standard": {
      version: 1,
      vendor: "x-mcp",
      validate: (value) => ({ value: value as T }), // Arguments are an object; nothing more is promised.
      jsonSchema: { input: () => schema, output: () => schema },
    },
  };
}
