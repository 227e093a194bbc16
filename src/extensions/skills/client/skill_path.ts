/**
 * Reads the paths in the URIs of skills and their files. Programs write these files to disk, so a name must not lead
 * out of the skill's folder, however it is encoded.
 *
 * @see SEP-2640 (Skill Entries)
 */

import { isPortableName } from "../file_names.ts";

export interface SkillPath {
  /** The scheme with its slashes, such as `skill://`, in lower case. */
  readonly scheme: string;
  /** The decoded authority, if there is one, and the decoded names of the folders and of the file. */
  readonly names: readonly string[];
}

/**
 * Parses the URI of a file. Returns `undefined` if a program could understand the path in another way: if it has a
 * query, a fragment, an invalid escape, or a name that does not stand for the same file on all operating systems.
 */
export function readSkillPath(uri: string): SkillPath | undefined {
  const [, scheme, path] = /^([a-z][a-z\d+.-]*:(?:\/\/)?\/?)(.+)$/is.exec(uri) ?? [];
  if (path === undefined || /[?#]/.test(uri)) return;
  try {
    const names = path.split("/").map(decodeURIComponent);
    // Spaces and other characters that a URI must encode are as hard to compare as control characters.
    if (/[\p{Cc} ]/u.test(uri) || !names.every(isPortableName)) return;
    return { scheme: scheme.toLowerCase(), names };
  } catch {
    return;
  }
}

/** Tests whether a file is in the folder of another file, or in one of its subfolders. */
export function isInFolderOf(skill: SkillPath, file: SkillPath): boolean {
  const folder = skill.names.slice(0, -1);
  return file.scheme === skill.scheme && file.names.length > folder.length &&
    folder.every((name, at) => name === file.names[at]);
}
