/**
 * Records the files that a server file imports. `mcp --watch` watches these files, and reloads changed files.
 */
import { isAbsolute, toFileHref } from "../ready/files/path.ts";
import { bun, type BunGlobal } from "./runtime_globals.ts";

/** Files of this library, which do not change while the library is running. */
const LIBRARY = [new URL("../", import.meta.url).href, new URL("../../mod.", import.meta.url).href];

/** Records all imports that happen after the graph is created. */
export class ImportGraph {
  /**
   * The files that each file imports. An import that was removed from a file stays in the map, because its only effect
   * is an unnecessary reload.
   */
  readonly #imports = new Map<string, Set<string>>();
  readonly #versions = new Map<string, number>();
  #version = 0;

  /** Starts recording the imports of this process. */
  constructor() {
    onImport((file, importer) => {
      if (LIBRARY.some((start) => file.startsWith(start))) return 0;
      const imports = this.#imports.get(importer) ?? new Set();
      this.#imports.set(importer, imports.add(file));
      return this.#versions.get(file) ?? 0;
    });
  }

  /** Returns the URLs of a file and of all files that it imports, directly or indirectly. */
  list(file: string): readonly string[] {
    const found = new Set([file]);
    for (const each of found) for (const next of this.#imports.get(each) ?? []) found.add(next);
    return [...found];
  }

  /**
   * Makes the next import of `entries` reload the changed files and all files that import a changed file, directly or
   * indirectly. All other files keep their state.
   */
  renew(entries: readonly string[], changed: readonly string[]): void {
    this.#version++;
    const files = new Set(entries.flatMap((entry) => this.list(entry)));
    for (const file of files) {
      if (this.list(file).some((each) => changed.includes(each))) this.#versions.set(file, this.#version);
    }
  }
}

/**
 * Returns the version of `file`, which `importer` imports. Version 0 is the file as the runtime first loaded it. Both
 * arguments are URLs without a query.
 */
type ResolveImport = (file: string, importer: string) => number;

/**
 * Calls `resolve` for each later import of a local file, with the URLs of the imported file and of its importer. For
 * each new version above 0, the runtime loads the file again.
 */
function onImport(resolve: ResolveImport): void {
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
  // Whether `resolveSync` is running. `resolveSync` calls this plugin again.
  let isResolving = false;

  // Returns an empty path if an import cannot be resolved. Bun then reports the error.
  function findPath(specifier: string, importer: string): string {
    isResolving = true;
    try {
      return bun.resolveSync(specifier.replace(/\?.*$/, ""), toFolder(importer));
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

/** Returns the folder of a file, with the separator at its end. */
function toFolder(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

/** Returns the URL of a path from Bun. Returns names of packages and built-in modules unchanged. */
function toUrl(path: string): string {
  return isAbsolute(path) ? toFileHref(path.replaceAll("\\", "/")) : path;
}

/** Returns the URL of a local file without its query. Returns `undefined` for other URLs, such as URLs of packages. */
function toFile(url: string): string | undefined {
  return url.startsWith("file:") && !url.includes("/node_modules/") ? url.replace(/[?#].*$/, "") : undefined;
}
