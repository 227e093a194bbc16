// Tests that need a program or a server that may be missing. Normally, such tests are skipped, and their names are
// printed with the reason. With REQUIRE_ALL=1, as in CI, they fail.
import process from "node:process";

/**
 * Returns the name and the options of a test. `missing` is the reason why the test cannot run; `undefined` if the test
 * can run.
 */
export function needs(
  name: string,
  missing: string | undefined,
): { readonly name: string; readonly ignore: boolean } {
  if (!missing) return { name, ignore: false };
  return { name: `${name} (skipped: ${missing})`, ignore: !process.env.REQUIRE_ALL };
}

/** Throws if a program is missing. Such a test is started only if REQUIRE_ALL is set. */
export function requireAll(missing: string | undefined): void {
  if (missing) throw new Error(`Cannot run this test: ${missing}`);
}
