/**
 * Takes absolute paths with forward slashes apart, and joins them.
 *
 * @module
 */

/** The folder of a path. */
export function toFolder(path: string): string {
  return path.replace(/\/[^/]*$/, "") || "/";
}

/** The last segment of a path. */
export function toBaseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) ?? "";
}

/** Joins a folder and a relative path. */
export function joinPath(folder: string, path: string): string {
  return folder === "/" ? `/${path}` : path ? `${folder}/${path}` : folder;
}

/** The path relative to a folder; empty for the folder itself. Returns `undefined` if the path is outside. */
export function toRelativePath(folder: string, path: string): string | undefined {
  if (path === folder) return "";
  const start = folder === "/" ? "/" : `${folder}/`;
  return path.startsWith(start) ? path.slice(start.length) : undefined;
}

/** Whether a path is absolute, also on Windows. */
export function isAbsolute(path: string): boolean {
  return /^([a-z]:)?[\\/]/i.test(path);
}
