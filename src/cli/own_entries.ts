/**
 * The entries of the npm package, and whether the project of a user has installed it.
 *
 * @module
 */
import { NAME } from "./version.ts";

/** Whether a folder, or a folder above it, has installed this package. */
export function isInstalled(folder: string): boolean {
  const { existsSync } = process.getBuiltinModule("fs");
  for (let at = new URL("file://" + encodeURI(folder.replaceAll("\\", "/")) + "/");; at = new URL("..", at)) {
    if (existsSync(new URL(`node_modules/${NAME}/package.json`, at))) return true;
    if (at.pathname === "/" || at.href === new URL("..", at).href) return false;
  }
}

/** Returns the names of the entries with their files. */
export async function listEntries(): Promise<readonly (readonly [name: string, file: string])[]> {
  const { default: { exports } } = await import(new URL("./package.json", import.meta.url).href, {
    with: { type: "json" },
  });
  const entries = Object.entries<{ readonly default?: string }>(exports);
  return entries.flatMap(([key, { default: file }]) =>
    file === undefined ? [] : [[NAME + key.slice(1), new URL(file, import.meta.url).href] as const]
  );
}
