/**
 * Follows the imports of local files, and loads changed files again.
 *
 * @module
 */
import { isAbsolute, toFileHref } from "./path.ts";
import { bun, type BunGlobal } from "./runtime_globals.ts";

/** Returns the version of a file that another file imports. Both are URLs without a query. */
export type ResolveImport = (file: string, importer: string) => number;

/**
 * Calls `resolve` for each import of a local file from here on, with the URLs of both files. A version above 0 makes the
 * runtime load the file once more for that version.
 */
export function onImport(resolve: ResolveImport): void {
  if (bun) return onBunImport(bun, resolve);
  const { registerHooks } = process.getBuiltinModule("module");
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      const file = toFile(found.url);
      if (!file || !context.parentURL) return found;
      const version = resolve(file, toFile(context.parentURL) ?? context.parentURL);
      return version ? { ...found, url: `${file}?${version}` } : found;
    },
  });
}

function onBunImport(bun: BunGlobal, resolve: ResolveImport): void {
  // `resolveSync` calls the plugin again.
  let isResolving = false;

  // Bun reports an import that it cannot resolve in its own words.
  function findPath(specifier: string, importer: string): string {
    isResolving = true;
    try {
      return bun.resolveSync(specifier.replace(/\?.*$/, ""), importer.replace(/[^/\\]*$/, ""));
    } catch {
      return "";
    } finally {
      isResolving = false;
    }
  }

  bun.plugin({
    name: "mcp-watch",
    setup(build) {
      build.onResolve({ filter: /^(\.|\/|[a-z]:|file:)/i }, ({ path, importer }) => {
        if (isResolving) return;
        const from = importer.replace(/\?.*$/, "");
        const file = toFile(toUrl(findPath(path, from)));
        const version = file ? resolve(file, toUrl(from)) : 0;
        return file && version ? { path: `${decodeURIComponent(new URL(file).pathname)}?${version}` } : undefined;
      });
    },
  });
}

/** The URL of a path that Bun reports. Packages and builtin modules have other names. */
function toUrl(path: string): string {
  return isAbsolute(path) ? toFileHref(path.replaceAll("\\", "/")) : path;
}

/** The URL of a local file without its query. Packages are not local files. */
function toFile(url: string): string | undefined {
  return url.startsWith("file:") && !url.includes("/node_modules/") ? url.replace(/[?#].*$/, "") : undefined;
}
