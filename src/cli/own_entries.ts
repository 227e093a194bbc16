/**
 * The entry points of this package, and whether a user's project has installed the package.
 */
import { isBundled } from "./command.ts";
import { findPackageFolder } from "./package_folder.ts";
import { NAME } from "./version.ts";

/** Whether this package is installed in a folder or in one of its parent folders. */
export function isInstalled(folder: string): boolean {
  const { existsSync } = process.getBuiltinModule("fs");
  const exists = (url: URL) => {
    try {
      return existsSync(url);
    } catch {
      // Deno may not read the folder. This copy of the package serves as well as an installed copy.
      return false;
    }
  };
  for (let at = new URL("file://" + encodeURI(folder.replaceAll("\\", "/")) + "/");; at = new URL("..", at)) {
    if (exists(new URL(`node_modules/${NAME}/package.json`, at))) return true;
    if (at.pathname === "/" || at.href === new URL("..", at).href) return false;
  }
}

/** Returns the names of the package's entry points with the URLs of their files. */
export async function listEntries(): Promise<readonly (readonly [name: string, file: string])[]> {
  const manifest = isBundled
    ? new URL("package.json", findPackageFolder())
    : new URL("../../deno.json", import.meta.url);
  const { default: { exports } } = await import(manifest.href, { with: { type: "json" } });
  const entries = Object.entries<string | { readonly default?: string }>(exports);
  return entries.flatMap(([key, entry]) => {
    const file = typeof entry === "string" ? entry : entry.default;
    return file === undefined ? [] : [[NAME + key.slice(1), new URL(file, manifest).href] as const];
  });
}
