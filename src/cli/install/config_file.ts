/**
 * Adds an entry to the configuration file of a client, and keeps a backup.
 */
import { toState } from "../../core/kit/error_state.ts";
import { hasErrorCode } from "../../core/kit/error_code.ts";
import { isObject } from "../../core/kit/json.ts";
import { importModule } from "../lazy_modules.ts";
import { toFolder } from "../../ready/files/path.ts";
import { platform } from "../platform.ts";
import { isCreated } from "../platform_files.ts";
import type { FileInfo } from "../../ready/files/local_files.ts";
import { CliError } from "../cli_error.ts";
import type { InstallClient } from "./clients.ts";
import { type EditOptions, isEqual } from "./edit_options.ts";
import type { Destination } from "./plan.ts";

const MAX_BYTES = 16 * 1024 * 1024;

export interface ConfigChange {
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly isReplacement: boolean;
  /** Information about the file before it was read. `undefined` if the file did not exist. */
  readonly info: FileInfo | undefined;
}

export interface NewEntry {
  readonly name: string;
  readonly entry: object;
  /** Whether this entry may replace an existing entry with the same name. */
  readonly mayReplace: boolean;
}

/**
 * Reads the configuration file and adds an entry to the text. Does not write the file.
 *
 * @throws {CliError} if the file cannot be read or edited, or if it contains an entry with this name that must not be
 * replaced.
 */
export async function prepareChange(
  { client, file }: Destination,
  { name, entry, mayReplace }: NewEntry,
): Promise<ConfigChange> {
  const { parseFile, setEntry } = await importEditor(client.format);
  const { info, bytes } = await readExisting(file);
  const before = bytes ? decode(file, bytes) : "";
  const { serversKey, isList, required } = client;
  const options: EditOptions = { file, path: [serversKey, name], isList, required };
  const { [serversKey]: servers } = Object(parseFile(before, file));
  const entries = toEntries(servers, isList);
  const isThere = Object.hasOwn(entries, name);
  if (isThere && isEqual(entries[name], entry)) {
    return { file, before, after: before, isReplacement: false, info };
  }
  // Ignore case when comparing names, because clients may treat names that differ only in case as the same name.
  const other = Object.keys(entries).find((each) => each.toLowerCase() === name.toLowerCase());
  if (other !== undefined && !mayReplace) {
    throw new CliError(
      `Cannot add ${name} to ${file}: the file already contains a different entry ${other}; set another name with ` +
        `--name, or add --name ${other} --force to replace the entry`,
    );
  }
  return { file, before, after: setEntry(before, entry, options), isReplacement: isThere, info };
}

/** Returns the entries by name. Returns no entries if the value is not an object, or for `isList`, not a list. */
function toEntries(servers: unknown, isList = false): Readonly<Record<string, unknown>> {
  if (!isList) return isObject(servers) ? servers : {};
  const list: readonly unknown[] = Array.isArray(servers) ? servers : [];
  return Object.fromEntries(
    list.flatMap((entry) => isObject(entry) && typeof entry.name === "string" ? [[entry.name, entry]] : []),
  );
}

async function readExisting(file: string): Promise<{ readonly info?: FileInfo; readonly bytes?: Uint8Array }> {
  try {
    const info = await platform.files.stat(file);
    if (!info) return {};
    if (info.kind === "file") return { info, bytes: await platform.files.read(file, MAX_BYTES + 1) };
  } catch (error) {
    if (!hasErrorCode(error)) throw error;
    throw new CliError(
      `Cannot read ${file}: ${toState(error)}; check the file's permissions, or name another file with --file`,
    );
  }
  throw new CliError(`Cannot change ${file}: it is not a regular file; name another file with --file`);
}

/**
 * Makes a backup of the file, and writes the file. Returns the path of the backup, or `undefined` if the file did not
 * exist.
 *
 * @throws {CliError} if the file cannot be written, or has changed since it was read.
 */
export async function writeChange(change: ConfigChange): Promise<string | undefined> {
  const { file, after, info } = change;
  try {
    if (!info) await prepareFolder(file);
    return await withLock(file, () => info ? replaceFile(change, info) : createFile(file, after));
  } catch (error) {
    if (error instanceof CliError || !hasErrorCode(error)) throw error;
    throw new CliError(
      `Cannot write ${file}: ${toState(error)}; check the file's permissions, or name another file with --file`,
    );
  }
}

async function prepareFolder(file: string): Promise<void> {
  if ((await platform.files.lstat(file))?.kind === "link") {
    throw new CliError(
      `Cannot change ${file}: it is a broken symbolic link; remove the link, or name another file with --file`,
    );
  }
  await platform.files.makeFolder(toFolder(file));
}

/** No other installation can write the file between the last read and the rename. */
async function withLock<T>(file: string, write: () => Promise<T>): Promise<T> {
  const lock = `${await platform.files.resolve(file) ?? file}.lock`;
  if (!await isCreated(platform.files.create(lock, ""))) {
    throw new CliError(
      `Cannot change ${file}: another program is writing the file; run the command again, or remove ${lock} if no ` +
        "program is writing",
    );
  }
  try {
    return await write();
  } finally {
    await platform.files.remove(lock).catch(() => {});
  }
}

async function createFile(file: string, text: string): Promise<undefined> {
  await checkVersion(file, undefined);
  await platform.files.replace(file, text);
}

async function replaceFile({ file, before, after }: ConfigChange, info: FileInfo): Promise<string> {
  // Check the permission bits, because a rename replaces the file, and succeeds even if the file is read-only.
  if (!(info.mode & 0o200)) {
    throw new CliError(`Cannot change ${file}: it is read-only; make the file writable for its owner`);
  }
  const backup = await writeBackup(file, before, info.mode);
  try {
    await checkVersion(file, info.version);
    await platform.files.replace(file, after);
    return backup;
  } catch (error) {
    // Remove the backup, because the file was not changed.
    await platform.files.remove(backup).catch(() => {});
    throw error;
  }
}

async function checkVersion(file: string, version: string | undefined): Promise<void> {
  if ((await platform.files.stat(file))?.version === version) return;
  throw new CliError(`Cannot change ${file}: another program has just written the file; run the command again`);
}

/** Writes the previous content to a new file in the same folder, with the permission bits of the original. */
async function writeBackup(file: string, text: string, mode: number): Promise<string> {
  for (let i = 1;; i++) {
    const path = `${file}.${i === 1 ? "" : `${i}.`}bak`;
    if (await isCreated(platform.files.create(path, text, mode))) return path;
  }
}

function importEditor(format: InstallClient["format"]) {
  if (format === "toml") return importModule<typeof import("./toml_edit.ts")>("./install/toml_edit.ts");
  return format === "yaml"
    ? importModule<typeof import("./yaml_edit.ts")>("./install/yaml_edit.ts")
    : importModule<typeof import("./jsonc_edit.ts")>("./install/jsonc_edit.ts");
}

function decode(file: string, bytes: Uint8Array): string {
  if (bytes.length > MAX_BYTES) {
    throw new CliError(`Cannot change ${file}: it has more than ${MAX_BYTES} bytes; name another file with --file`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(`Cannot change ${file}: it is not UTF-8 text; fix the file by hand`);
  }
}
