/**
 * Pairs a schema with the JSON Schema that clients receive.
 */
import { isStrayPromise } from "../protocol/promises.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { JsonSchema, StandardSchema } from "./schema.ts";

/**
 * Pairs a schema of any library that implements Standard Schema with a JSON Schema. Clients receive the JSON Schema, and
 * the schema validates the values. Use this function for a library that does not implement Standard JSON Schema, such as
 * zod 3, zod/mini or valibot, and for types that JSON does not have, such as dates. The function does not compare the
 * two schemas.
 *
 * ```ts
 * import { tool, withJsonSchema } from "@x/mcp";
 * import { z } from "zod";
 *
 * const input = z.object({ day: z.coerce.date() });
 * const plan = tool({
 *   name: "plan",
 *   input: withJsonSchema(input, {
 *     type: "object",
 *     properties: { day: { type: "string", format: "date" } },
 *     required: ["day"],
 *   }),
 *   run: ({ day }) => `${day.getUTCFullYear()}`,
 * });
 * ```
 *
 * @throws {TypeError} if `schema` is not a Standard Schema, or `json` is not an object.
 */
export function withJsonSchema<Output, Input>(
  schema: StandardSchema<Output, Input>,
  json: JsonSchema,
): StandardSchema<Output, Input> {
  const refuse = (state: string) => new TypeError(`Cannot pair a schema with a JSON Schema: ${state}`);
  if (typeof Object(Object(schema)["~standard"]).validate !== "function") {
    throw refuse("the first argument is not a Standard Schema; pass a schema of a library, such as z.object({ … })");
  }
  if (isStrayPromise(json) || !isObject(json)) {
    throw refuse("the second argument is not an object; pass a JSON Schema, such as z.toJSONSchema(schema)");
  }
  const { vendor, validate } = schema["~standard"];
  const show = () => json;
  return { "~standard": { version: 1, vendor, validate, jsonSchema: { input: show, output: show } } };
}
