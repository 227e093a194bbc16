/**
 * The environment variables that a server in a child process inherits, as with the official SDKs.
 */
const INHERITED: readonly string[] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
const INHERITED_ON_WINDOWS: readonly string[] = [
  "APPDATA",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATH",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "USERNAME",
  "USERPROFILE",
];

/** Returns the names of the variables. */
export function listInherited(isWindows: boolean): readonly string[] {
  return isWindows ? INHERITED_ON_WINDOWS : INHERITED;
}
