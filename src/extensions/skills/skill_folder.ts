/**
 * Reads the files in a folder. Symbolic links are skipped, so that no file outside of the folder is read.
 */
import { findProcess } from "../../core/runtime.ts";
import { isPortableName } from "./file_names.ts";

export interface FolderFile {
  /** Path relative to the folder, with `/` as separator. */
  readonly path: string;
  readonly size: number;
  /** Text that changes when the file changes. */
  readonly stamp: string;
}

export class SkillFolder {
  readonly #given: string;
  #root?: string;

  constructor(path: string) {
    this.#given = path;
  }

  /** If the given path is `.`, call {@linkcode findRoot} first, because only the resolved path contains the name. */
  get name(): string {
    const name = toLastPart(this.#given);
    return /^\.{0,2}$/.test(name) && this.#root ? toLastPart(this.#root) : name;
  }

  /** Returns the path of the folder without symbolic links. Rejects if the folder does not exist. */
  async findRoot(): Promise<string> {
    return this.#root ??= await fs().realpath(this.#given);
  }

  /**
   * Returns all files, sorted by path, without `node_modules`, names that begin with a dot, and names that clients
   * refuse. If the folder contains more than `limit` files, returns only the first `limit` + 1 files found, unsorted.
   */
  async list(limit: number): Promise<readonly FolderFile[]> {
    const root = await this.findRoot();
    const files: FolderFile[] = [];
    const folders = [""];
    for (const folder of folders) {
      const entries = await fs().readdir(`${root}/${folder}`, { withFileTypes: true }).catch(() => []);
      for (const { name } of entries) {
        if (/^\.|^node_modules$/.test(name) || !isPortableName(name)) continue;
        const path = folder ? `${folder}/${name}` : name;
        const info = await fs().lstat(`${root}/${path}`).catch(() => undefined);
        if (info?.isDirectory() && path.split("/").length < MAX_DEPTH) folders.push(path);
        if (!info?.isFile()) continue;
        files.push({ path, size: info.size, stamp: toStamp(info) });
        if (files.length > limit) return files;
      }
    }
    return files.sort((a, b) => a.path < b.path ? -1 : 1);
  }

  /**
   * Reads a listed file. Returns `undefined` if the file cannot be read, is larger than `maxBytes`, or is not a regular
   * file. Also returns `undefined` if a part of the path is now a symbolic link, or if another process replaced the
   * file while the file was being opened.
   */
  async read(path: string, maxBytes: number): Promise<Uint8Array | undefined> {
    const full = `${await this.findRoot()}/${path}`;
    const before = await fs().lstat(full).catch(() => undefined);
    // Open only regular files, because opening a named pipe blocks until another process writes to the pipe.
    if (!before?.isFile() || before.size > maxBytes) return;
    const file = await fs().open(full, "r").catch(() => undefined);
    if (!file) return;
    try {
      const [info, real, now] = [await file.stat(), await fs().realpath(full), await fs().lstat(full)];
      const isSame = real === full && now.isFile() && now.ino === info.ino && now.dev === info.dev;
      if (!info.isFile() || info.size > maxBytes || !isSame) return;
      const bytes = new Uint8Array(await file.readFile());
      return bytes.length <= maxBytes ? bytes : undefined;
    } catch {
      return;
    } finally {
      await file.close();
    }
  }

  /** Returns a function that stops watching, or `undefined` if the folder cannot be watched. */
  async watch(onChange: () => void): Promise<(() => void) | undefined> {
    try {
      const root = await this.findRoot();
      const watcher = findProcess().getBuiltinModule("fs").watch(
        root,
        { recursive: true, persistent: false },
        onChange,
      );
      watcher.on("error", () => watcher.close());
      // Also call `unref`, because Deno ignores `persistent`.
      watcher.unref();
      return () => watcher.close();
    } catch {
      return;
    }
  }
}

function toLastPart(path: string): string {
  return path.split(/[\\/]/).filter((part) => part !== "").at(-1) ?? "";
}

function fs() {
  return findProcess().getBuiltinModule("fs").promises;
}

function toStamp({ dev, ino, size, mtimeMs, ctimeMs }: {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join();
}

/** Maximum number of segments in a file's path. */
const MAX_DEPTH = 32;
