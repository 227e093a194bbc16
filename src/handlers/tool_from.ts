/**
 * Tools of other servers, offered again.
 *
 * @module
 */
import type { Params } from "../protocol/jsonrpc.ts";
import type { ListedTool } from "../protocol/listed.ts";
import type { StandardSchema } from "../schema/schema.ts";
import type { ToolOptions } from "./tool.ts";

/** Runs a tool of another server, with the arguments as the client sent them. */
export type RunListed = ToolOptions<StandardSchema<Params, Params>, StandardSchema>["run"];

/** The options of a tool that is listed like another. The other server validates the arguments and the result. */
export function toListedOptions(
  { name, title, description, icons, annotations, inputSchema, outputSchema, _meta }: ListedTool,
  run: RunListed,
): ToolOptions<StandardSchema<Params, Params>, StandardSchema> {
  return {
    name,
    title,
    description,
    icons,
    annotations,
    // A list of the client has only objects here.
    _meta: _meta as ToolOptions<StandardSchema, StandardSchema>["_meta"],
    input: publish<Params>(inputSchema),
    output: outputSchema && publish<unknown>(outputSchema),
    run,
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
