/**
 * The result of a validation by a Standard Schema.
 *
 * @see https://standardschema.dev
 */
import type { StandardSchema } from "./schema.ts";

/**
 * Checks the result of a schema's `validate`. Without this check, a `validate` function that returns nothing would turn
 * every input into `undefined`.
 *
 * @throws {TypeError} if the result has neither a value nor issues.
 */
export function checkResult(result: StandardSchema.Result): void {
  if (typeof result === "object" && result !== null && (result.issues || "value" in result)) return;
  throw new TypeError(
    "Cannot validate a value: the schema's validate() returned neither { value } nor { issues }",
  );
}
