/**
 * Finds the folder of the npm package.
 */

/**
 * Returns the URL of the npm package's folder, which ends with a slash. The chunk with this code is in a folder below,
 * whose name depends on the bundler.
 */
export function findPackageFolder(): URL {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL(".", import.meta.url);; at = new URL("..", at)) {
    if (existsSync(new URL("package.json", at)) || at.pathname === "/") return at;
  }
}
