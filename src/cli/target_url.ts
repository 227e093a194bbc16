/**
 * The URL of a target, its path, and the name of a server that has no other.
 *
 * @module
 */
import { platform } from "./platform.ts";

/** The URL of a target: a path, or a specifier such as `jsr:@scope/server`. */
export function toTargetUrl(target: string): string {
  // A single letter before the colon is a drive.
  return /^[a-z][a-z\d+.-]+:/i.test(target) ? target : platform.toFileUrl(target);
}

/** The path of a file URL. */
export function toFilePath(url: string): string {
  return decodeURIComponent(new URL(url).pathname);
}

/** The name of a server whose file exports handlers only. */
export function toName(url: string): string {
  const last = url.replace(/[?#].*$/, "").split("/").at(-1) ?? "";
  return decodeURIComponent(last).replace(/\.[cm]?[jt]sx?$/, "") || "server";
}
