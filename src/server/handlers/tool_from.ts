/**
 * Converts a tool that another server lists to the options of a tool.
 */
import type { Params } from "../../core/protocol/jsonrpc.ts";
import type { ListedTool } from "../../core/protocol/listed.ts";
import type { Meta } from "../../core/protocol/types.ts";
import type { StandardSchema } from "../../core/schema/schema.ts";
import { FOREIGN } from "../../core/schema/schema_compiler.ts";
import { LISTED } from "../../core/internals.ts";

/** `fromListed` has checked the types of the members. The other server validates the arguments and the result. */
export function toToolOptions<R, A extends readonly unknown[]>(
  given: Params & { readonly name: string },
  run: (...given: A) => R | Promise<R>,
) {
  // The cast is safe, because the types have been checked.
  const listed = given as Partial<ListedTool> & { readonly name: string };
  const { name, title, description, icons, annotations, inputSchema, outputSchema, _meta } = listed;
  return {
    name,
    title,
    description,
    icons,
    annotations,
    _meta: _meta as Meta | undefined, // See above.
    input: publish<Params>({ ...inputSchema, type: "object" }),
    output: outputSchema && publish<unknown>(outputSchema),
    run: outputSchema ? async (...given: A) => toForeign(await run(...given)) : run,
    [LISTED]: { foreign: true, members: given },
  };
}

/**
 * Marks a result of another server as a full result. Without structured content, the result of a tool with an output
 * schema could otherwise be taken for structured content that has a member `content`.
 */
function toForeign<R>(result: R): R {
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
