/**
 * Config files: read, checked, with all that they include.
 *
 * @module
 */
import { platform } from "../platform.ts";
import { Problem } from "../problem.ts";
import { isAbsolute, toBaseName, toBelow, toFolder, toInner } from "../path.ts";
import { findNode, findOffset, type Jsonc, type Path, readJsonc, toKey, toPlace, toPropertyName } from "./jsonc.ts";
import { type Mistake, toMistakes } from "./mistakes.ts";
import { type ConfigFile, configSchema, includedSchema, toJsonSchema } from "./schema.ts";

/** A config file. */
export interface Source {
  /** As the user knows it. */
  readonly file: string;
  readonly path: string;
  /** The folder that its paths are seen from, without links. */
  readonly folder: string;
  readonly config: ConfigFile;
  /** An error about a part of the file. */
  refuse(path: Path, state: string): Problem;
  /**
   * The absolute path that a path in the file means.
   *
   * @throws {Problem} if it leads out of the folder of the file and is not written in full.
   */
  locate(path: Path, given: string): string;
}

const MOST_BYTES = 1024 * 1024;
const MOST_FILES = 100;

/**
 * Reads a config file and those it includes, itself first.
 *
 * @throws {Problem} with file, line, column and key for what cannot be used.
 */
export async function readSources(file: string, path: string): Promise<readonly [Source, ...Source[]]> {
  const main = await readSource(file, path, configSchema);
  const sources: [Source, ...Source[]] = [main];
  await include(main, [main], sources);
  return sources;
}

async function include(source: Source, chain: readonly Source[], all: Source[]): Promise<void> {
  for (const [i, given] of (source.config.include ?? []).entries()) {
    const place = ["include", i];
    const path = source.locate(place, given);
    const real = await resolveFile(source, place, path);
    if (chain.some((each) => each.path === real)) {
      throw source.refuse(place, `it leads back to ${given}, which is being read; take it out`);
    }
    // Included twice, a file counts once.
    if (all.some((each) => each.path === real)) continue;
    if (all.length === MOST_FILES) throw source.refuse(place, `there are more than ${MOST_FILES} files`);
    const included = await readSource(real, real, includedSchema);
    all.push(included);
    await include(included, [...chain, included], all);
  }
}

/**
 * Looks for a file that a config file names.
 *
 * @throws {Problem} if there is none, or a link leads to one outside of the folder.
 */
export async function resolveFile(source: Source, place: Path, path: string, kind = "file"): Promise<string> {
  const real = await platform.files.resolve(path).catch((error) => {
    throw source.refuse(place, tell(error));
  });
  const facts = real === undefined ? undefined : await platform.files.look(real);
  if (real === undefined || !facts) throw source.refuse(place, `there is no ${kind} ${path}; check the path`);
  if (facts.kind !== kind) throw source.refuse(place, `${path} is no ${kind === "file" ? "regular file" : kind}`);
  if (toInner(source.folder, path) !== undefined && toInner(source.folder, real) === undefined) {
    throw source.refuse(
      place,
      `${path} is a link that leads out of ${source.folder}; write the path it leads to in full`,
    );
  }
  return real;
}

async function readSource(
  file: string,
  path: string,
  schema: typeof configSchema | typeof includedSchema,
): Promise<Source> {
  const { real, bytes } = await readPath(file, path);
  if (bytes.length > MOST_BYTES) throw new Problem(`Cannot use ${file}: it has more than ${MOST_BYTES} bytes`);
  const jsonc = readJsonc(decode(file, bytes), file);
  // No object would have it as a key of its own.
  const unusable = findNode(jsonc.root, (property) => toPropertyName(property) === "__proto__");
  if (unusable) {
    const place = toPlace(file, jsonc.text, unusable.offset);
    throw new Problem(`Cannot use ${place}: __proto__ is the name of something else here; choose another`);
  }
  const checked = schema.safeParse(jsonc.value);
  if (!checked.success) {
    throw toProblem(file, jsonc, toMistakes(checked.error.issues, jsonc.value, toJsonSchema(schema)));
  }
  const folder = toFolder(real);
  const refuse = (at: Path, state: string) =>
    new Problem(`Cannot use ${toPlace(file, jsonc.text, findOffset(jsonc.root, at))}: ${toKey(at)}: ${state}`);
  return { file, path: real, folder, config: checked.data, refuse, locate: locateIn(folder, refuse) };
}

async function readPath(file: string, path: string): Promise<{ real: string; bytes: Uint8Array }> {
  try {
    const real = await platform.files.resolve(path);
    const facts = real === undefined ? undefined : await platform.files.look(real);
    if (real !== undefined && facts?.kind === "file") {
      return { real, bytes: await platform.files.read(real, MOST_BYTES + 1) };
    }
    throw new Problem(`Cannot use ${file}: there is no file ${path}; check the path`);
  } catch (error) {
    throw error instanceof Problem ? error : new Problem(`Cannot use ${file}: ${tell(error)}`);
  }
}

function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Problem(`Cannot use ${file}: it is not a text in UTF-8`);
  }
}

function locateIn(folder: string, refuse: Source["refuse"]): Source["locate"] {
  return (place, given) => {
    if (given.includes("\0")) throw refuse(place, "it has a NUL character");
    if (isAbsolute(given)) return platform.toPath(given);
    if (given.startsWith("~")) throw refuse(place, "~ is not known here; write the path in full");
    const path = platform.toPath(toBelow(folder, given));
    if (toInner(folder, path) !== undefined) return path;
    throw refuse(place, `it leads out of ${folder}; write the path in full if that is meant: ${path}`);
  };
}

function toProblem(file: string, { text, root }: Jsonc, mistakes: readonly Mistake[]): Problem {
  const found = mistakes.map((mistake) => ({ ...mistake, at: findOffset(root, mistake.path) }));
  const lines = found.sort((a, b) => a.at - b.at).map(({ path, state, at }) =>
    [toPlace(file, text, at), ...path.length ? [toKey(path)] : [], state].join(": ")
  );
  const [first] = lines;
  return new Problem(lines.length === 1 ? `Cannot use ${first}` : `Cannot use ${file}:\n  ${lines.join("\n  ")}`);
}

/** What the runtime says of something it does not do. */
export function tell(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The name that a config file gives to a server that has none: that of its folder. */
export function toServerName({ folder }: Source): string {
  return toBaseName(folder) || "server";
}
