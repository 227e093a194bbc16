/**
 * The folders in which clients keep their configuration files.
 *
 * @module
 */
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";

/** The user's home folder. */
export function toHome(): string {
  return readFolder(platform.os === "windows" ? "USERPROFILE" : "HOME");
}

/** The folder for application data on Windows. */
export function toAppData(): string {
  return readFolder("APPDATA");
}

/** The folder for settings of desktop applications. */
export function toDesktopSettings(): string {
  if (platform.os === "windows") return toAppData();
  return platform.os === "darwin" ? `${toHome()}/Library/Application Support` : toConfigHome();
}

/** The folder for settings of command-line programs. */
export function toConfigHome(): string {
  return platform.env("XDG_CONFIG_HOME") || `${toHome()}/.config`;
}

function readFolder(variable: string): string {
  const folder = platform.env(variable);
  if (folder) return platform.toPath(folder);
  throw new CliError(
    `Cannot find the file of the client: the environment has no ${variable}; name the file with --file`,
  );
}
