/** Returns `true` for names of files and folders to skip: names that begin with `.` or `_`, and `node_modules`. */
export function isSkipped(name: string): boolean {
  return /^[._]/.test(name) || name === "node_modules";
}

/** Whether a file is JavaScript or TypeScript, and not a test, benchmark or type declaration. */
export function isHandlerFile(name: string): boolean {
  return !isSkipped(name) && /\.[cm]?[jt]sx?$/i.test(name) && !/[._](test|bench|spec|d)\.[^.]+$/i.test(name);
}
