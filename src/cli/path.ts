/**
 * Absolute paths with forward slashes.
 *
 * @module
 */

/** The folder that a path lies in. */
export function toFolder(path: string): string {
  return path.replace(/\/[^/]*$/, "") || "/";
}

/** The last part of a path. */
export function toBaseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) ?? "";
}

/** A path below a folder. */
export function toBelow(folder: string, path: string): string {
  return folder === "/" ? `/${path}` : path ? `${folder}/${path}` : folder;
}

/** What leads from a folder to a path in it, empty for the folder itself; nothing if the path is outside. */
export function toInner(folder: string, path: string): string | undefined {
  if (path === folder) return "";
  const start = folder === "/" ? "/" : `${folder}/`;
  return path.startsWith(start) ? path.slice(start.length) : undefined;
}

/** Whether a path says by itself where it begins. */
export function isAbsolute(path: string): boolean {
  return /^([a-z]:)?[\\/]/i.test(path);
}
