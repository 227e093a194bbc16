/**
 * The entry points of the npm package, and whether a user's project has installed the package.
 */
import { NAME } from "./version.ts";

/** Whether this package is installed in a folder or in one of its parent folders. */
export function isInstalled(folder: string): boolean {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL("file://" + encodeURI(folder.replaceAll("\\", "/")) + "/");; at = new URL("..", at)) {
    if (existsSync(new URL(`node_modules/${NAME}/package.json`, at))) return true;
    if (at.pathname === "/" || at.href === new URL("..", at).href) return false;
  }
}

/** Returns the names of the package's entry points with their files. */
export async function listEntries(): Promise<readonly (readonly [name: string, file: string])[]> {
  const manifest = findManifest();
  const { default: { exports } } = await import(manifest.href, { with: { type: "json" } });
  const entries = Object.entries<{ readonly default?: string }>(exports);
  return entries.flatMap(([key, { default: file }]) =>
    file === undefined ? [] : [[NAME + key.slice(1), new URL(file, manifest).href] as const]
  );
}

/** Returns the URL of this package's `package.json`, which is in a parent folder of the chunk with this code. */
function findManifest(): URL {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL(".", import.meta.url);; at = new URL("..", at)) {
    const manifest = new URL("package.json", at);
    if (existsSync(manifest) || at.pathname === "/") return manifest;
  }
}
