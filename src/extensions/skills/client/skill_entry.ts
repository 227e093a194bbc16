/**
 * Reads and validates the entries with which a server describes its skills.
 *
 * @see SEP-2640 (Skill Entries)
 */
import { toPrintableLine } from "../../../core/kit/printable.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import { toShown } from "../../../client/shown.ts";
import { haveConflict, toFileKey } from "../file_names.ts";
import { isInFolderOf, readSkillPath, type SkillPath } from "./skill_path.ts";

/** A file of a skill. */
export interface SkillFile {
  /** URI of the resource. */
  readonly uri: string;
  /** SHA-256 digest of the file, as `sha256:` and lower-case hexadecimal digits. */
  readonly digest: string;
  /** Size of the file in bytes. */
  readonly size: number;
}

/** A skill, with the fields of its entry. */
export interface Skill {
  /** Key that is unique among the skills of all servers: a JSON array that contains the server's label and the URI. */
  readonly key: string;
  /** Label of the server, as passed to `skillsOf`. */
  readonly server: string;
  /** URI of the skill's `SKILL.md`. */
  readonly uri: string;
  /** Name of the skill. Other skills may have the same name. */
  readonly name: string;
  /** What the skill does, and when agents should use it. */
  readonly description: string;
  /** All fields in the front matter of `SKILL.md`. */
  readonly frontmatter: { readonly [field: string]: unknown };
  /**
   * All files of the skill, or `"dynamic"` if the server generates the files and cannot provide digests. The client
   * cannot verify dynamic files.
   */
  readonly files: readonly SkillFile[] | "dynamic";
}

/** The error for a skill with an invalid entry or file. Do not use such a skill. */
export class SkillError extends Error {
  /** The class name, `SkillError`. */
  override readonly name = "SkillError";
  /** URI of the invalid skill or file. */
  readonly uri: string;

  /** Creates an error whose message contains the URI and `state`, the reason. */
  constructor(uri: string, state: string) {
    super(`Cannot use ${toShown(uri)}: ${toPrintableLine(state)}`);
    this.uri = uri;
  }
}

/** Reads an entry. Throws a {@linkcode SkillError} if the entry violates the specification. */
export function readEntry(entry: unknown, server: string): Skill {
  const { uri, frontmatter, resources } = isObject(entry) ? entry : {};
  if (typeof uri !== "string") throw new SkillError("a skill", "its entry has no uri");
  const refuse = (state: string) => new SkillError(uri, state);
  const path = readSkillPath(uri);
  if (!path || !uri.endsWith(END)) {
    throw refuse("its uri does not end with /SKILL.md, or its path contains spaces, colons or names such as .. or NUL");
  }
  if (!isObject(frontmatter)) throw refuse("its entry has no front matter");
  const { name, description } = frontmatter;
  if (typeof name !== "string" || !NAME.test(name) || name.length > 64) {
    throw refuse(
      `its name is ${toShown(JSON.stringify(name))}; a name has 1 to 64 lowercase letters, digits and single hyphens`,
    );
  }
  if (typeof description !== "string" || !description) throw refuse("it has no description");
  if (path.names.at(-2) !== name) throw refuse(`its name is ${name}, but its folder has another name`);
  const files = resources === "dynamic" ? resources : readFiles(resources, { uri, path }, refuse);
  return { key: JSON.stringify([server, uri]), server, uri, name, description, frontmatter, files };
}

interface Place {
  readonly uri: string;
  readonly path: SkillPath;
}

function readFiles(
  resources: unknown,
  { uri, path: skill }: Place,
  refuse: (state: string) => SkillError,
): readonly SkillFile[] {
  if (!Array.isArray(resources)) throw refuse('resources in its entry is not a list or "dynamic"');
  if (resources.length > MOST_FILES) {
    throw refuse(`it has ${resources.length} files; at most ${MOST_FILES} are accepted`);
  }
  const keys: string[] = [];
  const files = resources.map((resource: unknown): SkillFile => {
    const { uri, digest, size } = isObject(resource) ? resource : {};
    const path = typeof uri === "string" ? readSkillPath(uri) : undefined;
    if (typeof uri !== "string" || !path || !isInFolderOf(skill, path)) {
      throw refuse(
        `its file ${toShown(uri)} is not in its folder, or Windows or macOS understands its name differently`,
      );
    }
    keys.push(toFileKey(path.names));
    if (typeof digest !== "string" || !/^sha256:[\da-f]{64}$/.test(digest)) {
      throw refuse(`its file ${toShown(uri)} has no valid digest`);
    }
    if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
      throw refuse(`its file ${toShown(uri)} has no valid size`);
    }
    return { uri, digest, size };
  });
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (bytes > MOST_BYTES) throw refuse(`it has ${bytes} bytes; at most ${MOST_BYTES} are accepted`);
  if (haveConflict(keys)) {
    throw refuse("one of its files is listed twice, maybe in another spelling, or is a folder too");
  }
  if (!files.some((file) => file.uri === uri)) throw refuse("its entry does not list its SKILL.md");
  return files;
}

const END = "/SKILL.md";
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Maximum number of files per skill. */
const MOST_FILES = 512;
/** Maximum size in bytes of all files of a skill together. */
export const MOST_BYTES = 16_777_216;
