/**
 * The result of a validation by a Standard Schema.
 *
 * @see https://standardschema.dev
 */

/** The validated, possibly transformed value, or the issues. */
export type StandardResult<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** A validation error. */
export interface StandardIssue {
  /** Description of the issue for people. */
  readonly message: string;
  /** Path to the invalid value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * Checks the result of a schema's `validate`. Without this check, a `validate` function that returns nothing would turn
 * every input into `undefined`.
 *
 * @throws {TypeError} if the result has neither a value nor issues.
 */
export function checkResult(result: StandardResult): void {
  if (typeof result === "object" && result !== null && (result.issues || "value" in result)) return;
  throw new TypeError(
    "Cannot validate a value: the schema's validate() returned neither { value } nor { issues }",
  );
}
