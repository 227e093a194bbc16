/**
 * What a Standard Schema returns.
 *
 * @see https://standardschema.dev
 * @module
 */

/** The validated, possibly transformed value, or the issues. */
export type StandardResult<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** An issue of validation. */
export interface StandardIssue {
  /** Description for people. */
  readonly message: string;
  /** Path to the invalid value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * Checks what a schema returned. A result without a value, such as that of another kind of function, would pass any
 * input as `undefined`.
 *
 * @throws {TypeError} if it has neither a value nor issues.
 */
export function checkResult(result: StandardResult): void {
  if (typeof result === "object" && result !== null && (result.issues || "value" in result)) return;
  throw new TypeError("Cannot validate a value: validate() of a schema returned neither { value } nor { issues }");
}
