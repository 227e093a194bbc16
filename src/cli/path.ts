/**
 * Takes absolute paths with forward slashes apart, joins them, and resolves others to such paths.
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

/**
 * Resolves a path to an absolute one with forward slashes. Calls `cwd` only for relative paths, because the working
 * directory may be deleted or not be readable.
 */
export function toAbsolutePath(path: string, cwd: () => string, isWindows: boolean): string {
  const slash = (text: string) => isWindows ? text.replaceAll("\\", "/") : text;
  const slashed = slash(path);
  const segments: string[] = [];
  for (const segment of (isAbsolute(slashed) ? slashed : `${slash(cwd())}/${slashed}`).split("/")) {
    if (segment === "..") segments.pop();
    else if (segment && segment !== ".") segments.push(segment);
  }
  return (isWindows ? "" : "/") + segments.join("/");
}

/** The URL of an absolute path. */
export function toFileHref(path: string): string {
  return new URL(`file://${path.startsWith("/") ? "" : "/"}${path.replace(/[%#?\\]/g, encodeURIComponent)}`).href;
}
