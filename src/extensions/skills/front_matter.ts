/**
 * Reads the YAML front matter of a skill as JSON.
 */
import { parse } from "yaml";

/** All fields in the front matter of a `SKILL.md`. */
export interface FrontMatter {
  /** Name of the skill, which equals the name of the skill's folder. */
  readonly name: string;
  /** What the skill does, and when agents should use it. */
  readonly description: string;
  /** Any other field of the front matter. */
  readonly [field: string]: unknown;
}

/**
 * Reads the front matter of a `SKILL.md`. `folder` is the name of the folder that contains the file.
 *
 * @throws {SyntaxError} if the front matter is missing or invalid. The message says how to correct the front matter.
 */
export function readFrontMatter(text: string, folder: string): FrontMatter {
  const parsed = parseFrontMatter(text);
  const { name, description } = parsed;
  if (typeof name !== "string" || !NAME.test(name) || name.length > 64) {
    throw new SyntaxError(
      `its name is ${JSON.stringify(name)}; use 1 to 64 lowercase letters, digits and single hyphens`,
    );
  }
  if (name !== folder) {
    throw new SyntaxError(`its name is ${name}; change the name to ${folder}, the name of the skill's folder`);
  }
  if (typeof description !== "string" || !description.trim()) {
    throw new SyntaxError("it has no description; add a description that says what the skill does and when to use it");
  }
  return { ...parsed, name, description };
}

/**
 * Returns all fields in the front matter of a text, as JSON.
 *
 * @throws {SyntaxError} if the text has no front matter, or the front matter is not a map.
 */
export function parseFrontMatter(text: string): { readonly [field: string]: unknown } {
  const found = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)^---[ \t]*\r?$/m.exec(text);
  if (found?.index !== 0) {
    throw new SyntaxError("it does not begin with front matter; add front matter between two lines of ---");
  }
  const [, source] = found;
  if (source.length > MAX_CHARACTERS) {
    throw new SyntaxError(`its front matter has ${source.length} characters; shorten it to at most ${MAX_CHARACTERS}`);
  }
  let parsed: unknown;
  try {
    // With the schema `core`, dates stay text. The conversion to JSON drops all values that JSON cannot represent.
    // `logLevel` suppresses warnings, because warnings quote the file, which may come from an untrusted server.
    parsed = JSON.parse(
      JSON.stringify(parse(source, { schema: "core", maxAliasCount: 100, logLevel: "error" })) ?? "null",
    );
  } catch (error) {
    throw new SyntaxError(`its front matter is not YAML: ${error instanceof Error ? error.message : error}`);
  }
  if (isMap(parsed)) return parsed;
  throw new SyntaxError("its front matter is not a map; add name and description");
}

function isMap(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Matches the names that the Agent Skills specification allows. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/**
 * Maximum number of characters in a front matter. The parser compares each key with all other keys, so its time grows
 * with the square of the size. Four times this maximum would take more than a second.
 */
const MAX_CHARACTERS = 16_384;
