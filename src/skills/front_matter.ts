/**
 * The YAML front matter of a skill, as JSON.
 *
 * @module
 */
import { parse } from "yaml";

/** The front matter of a `SKILL.md`, with all its fields. */
export interface FrontMatter {
  /** Name of the skill, which equals the name of its folder. */
  readonly name: string;
  /** What the skill does, and when to use it. */
  readonly description: string;
  /** Any other field of the front matter. */
  readonly [field: string]: unknown;
}

/**
 * Reads the front matter of a `SKILL.md` in a folder with the name `folder`.
 *
 * @throws {SyntaxError} if the front matter is missing or invalid. The message says how to correct it.
 */
export function readFrontMatter(text: string, folder: string): FrontMatter {
  const parsed = parseFrontMatter(text);
  const { name, description } = parsed;
  if (typeof name !== "string" || !NAME.test(name) || name.length > 64) {
    throw new SyntaxError(
      `its name is ${JSON.stringify(name)}; use 1 to 64 lower-case letters, digits and single hyphens`,
    );
  }
  if (name !== folder) throw new SyntaxError(`its name is ${name}; it must equal the name of its folder, ${folder}`);
  if (typeof description !== "string" || !description.trim()) {
    throw new SyntaxError("it has no description; say what the skill does and when to use it");
  }
  return { ...parsed, name, description };
}

/**
 * Returns all fields of the front matter of a text, as JSON.
 *
 * @throws {SyntaxError} if the text has no front matter, or the front matter is not a map.
 */
export function parseFrontMatter(text: string): { readonly [field: string]: unknown } {
  const found = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)^---[ \t]*\r?$/m.exec(text);
  if (found?.index !== 0) {
    throw new SyntaxError("it does not begin with front matter; write it between two lines of ---");
  }
  const [, source] = found;
  if (source.length > MAX_CHARACTERS) {
    throw new SyntaxError(`its front matter has ${source.length} characters; at most ${MAX_CHARACTERS} are read`);
  }
  let parsed: unknown;
  try {
    // The schema `core` leaves dates as text. Values that JSON cannot represent are dropped. `logLevel` suppresses
    // warnings that quote the file, because a client that checks the skills of a server does not trust their text.
    parsed = JSON.parse(
      JSON.stringify(parse(source, { schema: "core", maxAliasCount: 100, logLevel: "error" })) ?? "null",
    );
  } catch (error) {
    throw new SyntaxError(`its front matter is not YAML: ${error instanceof Error ? error.message : error}`);
  }
  if (isMap(parsed)) return parsed;
  throw new SyntaxError("its front matter is not a map; write name and description");
}

function isMap(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The names that the Agent Skills specification allows. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/**
 * Maximum number of characters of a front matter. The parser compares each key with all other keys. With four times as
 * many keys it would take 16 times as long, which is more than a second.
 */
const MAX_CHARACTERS = 16_384;
