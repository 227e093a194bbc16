/**
 * Reads and validates a config file, including the config files that it includes.
 */
import type { z } from "zod";
import { type KeyPath, toMessage } from "../../ready/problem.ts";
import { platform } from "../platform.ts";
import { CliError } from "../cli_error.ts";
import { isAbsolute, joinPath, toBaseName, toFolder, toRelativePath } from "../../ready/files/path.ts";
import {
  findAnyProperty,
  findOffset,
  formatKeyPath,
  formatPosition,
  type Jsonc,
  readJsonc,
  toPropertyName,
} from "./jsonc.ts";
import { type ConfigFile, configSchema, includedSchema, toJsonSchema } from "./schema.ts";
import { explainIssues, type ValidationError } from "./validation_errors.ts";

export interface Source<C = ConfigFile> {
  /** The file as the user wrote it. */
  readonly file: string;
  /** The absolute path of the file, without symbolic links. */
  readonly path: string;
  /** The folder to which paths in the file are relative, without symbolic links. */
  readonly folder: string;
  readonly config: C;
  /** Creates an error about a value in the file. The message contains the position of the value. */
  toProblem(key: KeyPath, state: string): CliError;
  /**
   * Resolves a path in the config file to an absolute path.
   *
   * @throws {CliError} if a relative path leads out of the file's folder.
   */
  resolvePath(key: KeyPath, path: string): string;
}

const MAX_BYTES = 1024 * 1024;
const MAX_FILES = 100;

/**
 * Reads a config file and the config files that it includes. The first source is the config file itself.
 *
 * @throws {CliError} with file, line, column and key if a file cannot be used.
 */
export async function readSources(file: string, path: string): Promise<readonly [Source, ...Source[]]> {
  const main: Source = await readSource(file, path, configSchema);
  const sources: [Source, ...Source[]] = [main];
  await readIncluded(main, [main], sources);
  return sources;
}

async function readIncluded(source: Source, chain: readonly Source[], all: Source[]): Promise<void> {
  for (const [i, name] of (source.config.include ?? []).entries()) {
    const key = ["include", i];
    const real = await findFile(source, key, source.resolvePath(key, name));
    if (chain.some((each) => each.path === real)) {
      throw source.toProblem(key, `${name} includes this file, directly or indirectly; remove ${name} from include`);
    }
    // Skip a file that has already been included.
    if (all.some((each) => each.path === real)) continue;
    if (all.length === MAX_FILES) {
      throw source.toProblem(key, `more than ${MAX_FILES} files are included; include fewer files`);
    }
    const included: Source = await readSource(real, real, includedSchema);
    all.push(included);
    await readIncluded(included, [...chain, included], all);
  }
}

/**
 * Finds a file or folder that a config file uses. Returns its path without symbolic links.
 *
 * @throws {CliError} if the path does not exist, or is a symbolic link that leads out of the config file's folder.
 */
export async function findFile(source: Source, key: KeyPath, path: string, kind = "file"): Promise<string> {
  const real = await platform.files.resolve(path).catch((error) => {
    throw source.toProblem(key, toMessage(error));
  });
  const info = real === undefined ? undefined : await platform.files.stat(real);
  if (real === undefined || !info) throw source.toProblem(key, `there is no ${kind} ${path}; check the path`);
  if (info.kind !== kind) {
    throw source.toProblem(key, `${path} is not a ${kind === "file" ? "regular file" : kind}; check the path`);
  }
  if (toRelativePath(source.folder, path) !== undefined && toRelativePath(source.folder, real) === undefined) {
    throw source.toProblem(
      key,
      `${path} is a symbolic link that leads out of ${source.folder}; write the absolute path of the link's target`,
    );
  }
  return real;
}

/** @throws {CliError} with file, line, column and key if the file does not match the schema. */
export async function readSource<C>(file: string, path: string, schema: z.ZodType<C>): Promise<Source<C>> {
  const { real, bytes } = await readBytes(file, path);
  if (bytes.length > MAX_BYTES) {
    throw new CliError(`Cannot use ${file}: it has more than ${MAX_BYTES} bytes; split the file with include`);
  }
  const jsonc = readJsonc(decode(file, bytes), file);
  // Reject `__proto__`, because in an object literal it sets the prototype instead of a property.
  const unusable = findAnyProperty(jsonc.root, (property) => toPropertyName(property) === "__proto__");
  if (unusable) {
    const position = formatPosition(file, jsonc.text, unusable.offset);
    throw new CliError(`Cannot use ${position}: __proto__ is a reserved name; choose another name`);
  }
  const checked = schema.safeParse(jsonc.value);
  if (!checked.success) {
    throw combineErrors(file, jsonc, explainIssues(checked.error.issues, jsonc.value, toJsonSchema(schema)));
  }
  const folder = toFolder(real);
  const toProblem = (key: KeyPath, state: string) => {
    const position = formatPosition(file, jsonc.text, findOffset(jsonc.root, key));
    return new CliError(`Cannot use ${position}: ${formatKeyPath(key)}: ${state}`);
  };
  return { file, path: real, folder, config: checked.data, toProblem, resolvePath: resolveIn(folder, toProblem) };
}

async function readBytes(file: string, path: string): Promise<{ real: string; bytes: Uint8Array }> {
  try {
    const real = await platform.files.resolve(path);
    const info = real === undefined ? undefined : await platform.files.stat(real);
    if (real !== undefined && info?.kind === "file") {
      return { real, bytes: await platform.files.read(real, MAX_BYTES + 1) };
    }
    throw new CliError(`Cannot use ${file}: there is no file ${path}; check the path`);
  } catch (error) {
    throw error instanceof CliError ? error : new CliError(`Cannot use ${file}: ${toMessage(error)}`);
  }
}

function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(`Cannot use ${file}: it is not UTF-8 text; save the file as UTF-8`);
  }
}

function resolveIn(folder: string, toProblem: Source["toProblem"]): Source["resolvePath"] {
  return (key, path) => {
    if (path.includes("\0")) throw toProblem(key, "it contains a NUL character; remove the character");
    if (isAbsolute(path)) return platform.toPath(path);
    if (path.startsWith("~")) throw toProblem(key, "~ is not expanded; write the absolute path");
    const absolute = platform.toPath(joinPath(folder, path));
    if (toRelativePath(folder, absolute) !== undefined) return absolute;
    throw toProblem(key, `it leads out of ${folder}; if that is intended, write the absolute path: ${absolute}`);
  };
}

function combineErrors(file: string, { text, root }: Jsonc, errors: readonly ValidationError[]): CliError {
  const located = errors.map((error) => ({ ...error, offset: findOffset(root, error.path) }));
  const lines = located.sort((a, b) => a.offset - b.offset).map(({ path, state, offset }) =>
    [formatPosition(file, text, offset), ...path.length ? [formatKeyPath(path)] : [], state].join(": ")
  );
  const [first] = lines;
  return new CliError(lines.length === 1 ? `Cannot use ${first}` : `Cannot use ${file}:\n  ${lines.join("\n  ")}`);
}

export function toDefaultName({ folder }: Source): string {
  return toBaseName(folder) || "server";
}
