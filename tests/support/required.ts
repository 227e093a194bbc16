// Tests that need a program or a server that may be missing. In a manual run they are skipped by name. With
// REQUIRE_ALL=1, as in continuous integration, they fail.
import process from "node:process";

/**
 * The name and the options of a test. `missing` is the reason why the test cannot run, and `undefined` if it can run.
 */
export function needs(
  name: string,
  missing: string | undefined,
): { readonly name: string; readonly ignore: boolean } {
  if (!missing) return { name, ignore: false };
  return { name: `${name} (skipped: ${missing})`, ignore: !process.env.REQUIRE_ALL };
}

/** Throws if a test that cannot run was started because all tests are required. */
export function requireAll(missing: string | undefined): void {
  if (missing) throw new Error(`Cannot run this test: ${missing}`);
}
