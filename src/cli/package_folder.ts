/**
 * Finds the folder of the npm package.
 */

/**
 * Returns the URL of the npm package's folder, which ends with a slash. The chunk with this code is in a folder below,
 * whose name depends on the bundler.
 */
export function findPackageFolder(): URL {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL(".", import.meta.url);;) {
    const parent = new URL("..", at);
    // On Windows, the root is a path such as `/C:/`.
    if (existsSync(new URL("package.json", at)) || parent.href === at.href) return at;
    at = parent;
  }
}
