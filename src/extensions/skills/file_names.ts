/**
 * The names of a skill's files. Programs write these files to disk, so a name must not lead to another file on any
 * operating system.
 */

/**
 * Characters that lead elsewhere, or that file systems ignore or replace: separators, the colon, which separates a drive
 * or a stream on Windows, and control, format, private and unpaired characters.
 */
const MISLEADING = /[/\\:\p{Cc}\p{Cf}\p{Cs}\p{Co}]/u;
/** Windows ignores dots and spaces at the end of a name. */
const IGNORED_END = /[.\s]$/u;
/** The names of devices on Windows, also with an extension, such as `nul.txt`. */
const DEVICE = /^(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:\..*)?$/isu;
/** The form of the short names under which Windows also finds files with long names, such as `REFERE~1.MD`. */
const SHORT = /^[^.]{1,6}~\d{1,6}(?:\.[^.]{1,3})?$/u;

/** Tests whether a name stands for the same file on all operating systems. */
export function isPortableName(name: string): boolean {
  return name !== "" && ![MISLEADING, IGNORED_END, DEVICE, SHORT].some((pattern) => pattern.test(name));
}

/**
 * Returns the same text for all paths that are one file on Windows or macOS, whose file systems ignore the case, the
 * Unicode normalization and some invisible characters. The names in the text are separated by NUL characters.
 */
export function toFileKey(names: readonly string[]): string {
  const path = names.join("\0").normalize("NFD").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  // Some letters, such as the long s, have no lower case of their own, but share their upper case with another letter.
  return path.toUpperCase().toLowerCase().normalize("NFC");
}

/** Tests whether two of the keys are the same file, or whether one of the keys is a folder of another. */
export function haveConflict(keys: readonly string[]): boolean {
  // The paths below a key directly follow the key, because no character sorts before NUL.
  const sorted = keys.toSorted((a, b) => a < b ? -1 : 1);
  return sorted.some((key, at) => at > 0 && `${key}\0`.startsWith(`${sorted[at - 1]}\0`));
}
