/**
 * Selects the files of a folder that can export handlers.
 *
 * @module
 */

/** Whether files and folders with this name are skipped: hidden files, shared code and packages. */
export function isSkipped(name: string): boolean {
  return /^[._]/.test(name) || name === "node_modules";
}

/** Whether a file can export handlers: code of Deno or Bun that is not a test, a benchmark or a declaration of types. */
export function isHandlerFile(name: string): boolean {
  return !isSkipped(name) && /\.[cm]?[jt]sx?$/i.test(name) && !/[._](test|bench|spec|d)\.[^.]+$/i.test(name);
}
