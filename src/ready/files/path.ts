/**
 * Splits, joins and resolves paths. Absolute paths have forward slashes.
 */

/** Returns the path of the parent folder. */
export function toFolder(path: string): string {
  return path.replace(/\/[^/]*$/, "") || "/";
}

export function toBaseName(path: string): string {
  return path.split("/").findLast((segment) => segment) ?? "";
}

export function joinPath(folder: string, path: string): string {
  return folder === "/" ? `/${path}` : path ? `${folder}/${path}` : folder;
}

/** Returns an empty string for the folder itself, and `undefined` if the path is outside of the folder. */
export function toRelativePath(folder: string, path: string): string | undefined {
  if (path === folder) return "";
  const start = folder === "/" ? "/" : `${folder}/`;
  return path.startsWith(start) ? path.slice(start.length) : undefined;
}

/** Whether a path is absolute on any operating system. */
export function isAbsolute(path: string): boolean {
  return /^([a-z]:)?[\\/]/i.test(path);
}

/** Returns forward slashes. Calls `cwd` only for relative paths, because that folder may be deleted or unreadable. */
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

export function toFileHref(path: string): string {
  return new URL(`file://${path.startsWith("/") ? "" : "/"}${path.replace(/[%#?\\]/g, encodeURIComponent)}`).href;
}

/**
 * Returns the path of a folder or file. `given` is a path, or a URL such as `new URL("./notes", import.meta.url)`.
 *
 * @throws {TypeError} if the value is neither a path nor a `file:` URL on this machine.
 */
export function readLocation(given: unknown, isWindows: () => boolean): string {
  const isUrl = given instanceof URL || typeof given === "string" && /^[a-z][a-z\d+.-]+:/i.test(given);
  if (isUrl) return readFileUrl(new URL(given));
  if (typeof given !== "string" || !given) {
    throw new TypeError(
      'path is not a non-empty string or a URL; write "./notes", or new URL("./notes", import.meta.url)',
    );
  }
  if (given.includes("\0")) throw new TypeError("path contains a NUL character; remove it");
  if (/^~(\/|$)/.test(given)) throw new TypeError("path begins with ~, which is not expanded; write the absolute path");
  return given.includes("\\") && isWindows() ? given.replaceAll("\\", "/") : given;
}

function readFileUrl({ protocol, host, pathname, href }: URL): string {
  const hasSlash = /%(2f|5c|00)/i.test(pathname);
  if (protocol !== "file:" || host || hasSlash) {
    throw new TypeError(
      `path is ${href}, which is not on this machine; use a file: URL without a host or encoded slashes`,
    );
  }
  // Remove the first slash of a Windows path, because the path begins with the drive.
  return decodeURIComponent(pathname).replace(/^\/(?=[a-z]:)/i, "");
}
