/**
 * The YAML front matter of a skill, as JSON.
 *
 * @module
 */
import { parse } from "yaml";

/** The front matter of a `SKILL.md`, with every field that its author wrote. */
export interface FrontMatter {
  /** Name of the skill, which is the name of its folder. */
  readonly name: string;
  /** What the skill does, and when to use it. */
  readonly description: string;
  /** Any other field. */
  readonly [field: string]: unknown;
}

/**
 * Reads the front matter of a `SKILL.md` in a folder of this name.
 *
 * @throws {SyntaxError} if it is missing or wrong. The message says what to write.
 */
export function readFrontMatter(text: string, folder: string): FrontMatter {
  const parsed = parseFrontMatter(text);
  const { name, description } = parsed;
  if (typeof name !== "string" || !NAME.test(name) || name.length > 64) {
    throw new SyntaxError(
      `its name is ${JSON.stringify(name)}; use 1 to 64 lower-case letters, digits and single hyphens`,
    );
  }
  if (name !== folder) throw new SyntaxError(`its name is ${name}; it must be that of its folder, ${folder}`);
  if (typeof description !== "string" || !description.trim()) {
    throw new SyntaxError("it has no description; say what the skill does and when to use it");
  }
  return { ...parsed, name, description };
}

/**
 * Returns all fields of the front matter of a text, as JSON.
 *
 * @throws {SyntaxError} if there is none, or it is no map.
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
    // A date stays the text that its author wrote, and what JSON cannot hold is no value. The parser would print warnings
    // with text of the file, which a client has from a server.
    parsed = JSON.parse(
      JSON.stringify(parse(source, { schema: "core", maxAliasCount: 100, logLevel: "error" })) ?? "null",
    );
  } catch (error) {
    throw new SyntaxError(`its front matter is no YAML: ${error instanceof Error ? error.message : error}`);
  }
  if (isMap(parsed)) return parsed;
  throw new SyntaxError("its front matter is no map; write name and description");
}

function isMap(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The names that the Agent Skills specification allows. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/**
 * Characters of a front matter. Clients keep it in the context of a model. The parser compares each key with all others,
 * so four times as many characters of keys take 16 times as long: over a second.
 */
const MAX_CHARACTERS = 16_384;
