/** Tests whether a value is an error with a code, such as `ENOENT`. */
export function hasErrorCode(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
