/**
 * Converts a target to a URL, a path, or a name for the server.
 */
import { platform } from "./platform.ts";

/** Returns the URL of a target, which is a path, or a specifier such as `jsr:@scope/server`. */
export function toTargetUrl(target: string): string {
  // Require two letters, because a single letter before a colon is a Windows drive.
  return /^[a-z][a-z\d+.-]+:/i.test(target) ? target : platform.toFileUrl(target);
}

export function toFilePath(url: string): string {
  return decodeURIComponent(new URL(url).pathname);
}

/** Returns the name for a server whose file exports only handlers. */
export function toName(url: string): string {
  const last = url.replace(/[?#].*$/, "").split("/").at(-1) ?? "";
  return decodeURIComponent(last).replace(/\.[cm]?[jt]sx?$/, "") || "server";
}
