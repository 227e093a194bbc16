/**
 * Reads the files of this machine. Paths are absolute and have forward slashes. The functions throw the errors of the
 * runtime, such as for a missing permission.
 *
 * The file system module is loaded when it is first used, because loading it takes 21 ms on Deno and 3 ms on Bun.
 * Servers that do not read files start faster.
 */
import { hasErrorCode } from "../../core/kit/error_code.ts";
import { findProcess, type FsEntry, type FsFile, type FsStats } from "../../core/runtime.ts";

export type FileKind = "file" | "folder" | "link" | "other";

export interface FileInfo {
  readonly kind: FileKind;
  /** Size in bytes. */
  readonly size: number;
  /** Only the permission bits. */
  readonly mode: number;
  /** The id of the user who owns the file. 0 on Windows. */
  readonly owner: number;
  /** A text that changes when the file is written or replaced. */
  readonly version: string;
  /** The numbers of the device and the inode, which identify a file or folder. */
  readonly identity: string;
  /**
   * Time of the last change of content, metadata or entries, in milliseconds since 1970. Programs cannot set this time.
   */
  readonly changed: number;
  /** Time of the last change of content, in whole milliseconds since 1970. Programs can set this time. */
  readonly modified: number;
}

export interface OpenFile extends AsyncDisposable {
  readonly info: FileInfo;
  /** Reads at most `maxBytes` bytes from the start of the file. */
  read(maxBytes: number): Promise<Uint8Array>;
}

/** An entry of a folder. The entry of a symbolic link describes the link, not its target. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** Also for a path that uses a file as a folder, a cycle of symbolic links, and a name that is too long. */
const NOT_FOUND_CODES = ["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"];
export const PERMISSION_BITS = 0o7777;
const CHUNK_BYTES = 65_536;

const fs = () => findProcess().getBuiltinModule("fs");

export const localFiles = {
  /** Returns the facts of a path after following symbolic links. Returns `undefined` if the path does not exist. */
  async stat(path: string): Promise<FileInfo | undefined> {
    return await fs().promises.stat(path).then(toFileInfo, ignoreNotFound);
  },

  /** Returns the facts of a path without following symbolic links. Returns `undefined` if the path does not exist. */
  async lstat(path: string): Promise<FileInfo | undefined> {
    return await fs().promises.lstat(path).then(toFileInfo, ignoreNotFound);
  },

  /** Returns the path after resolving all symbolic links in it. Returns `undefined` if the path does not exist. */
  async resolve(path: string): Promise<string | undefined> {
    return await fs().promises.realpath(path).then(toSlashes, ignoreNotFound);
  },

  /** Lists a folder in no particular order. */
  async list(path: string): Promise<readonly FolderEntry[]> {
    const entries = await fs().promises.readdir(path, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, kind: toKind(entry) }));
  },

  /** Opens a file for reading. Follows symbolic links. */
  async open(path: string): Promise<OpenFile> {
    const file = await fs().promises.open(path, "r");
    return {
      info: toFileInfo(await file.stat()),
      read: (maxBytes) => readBytes(file, maxBytes),
      [Symbol.asyncDispose]: () => file.close(),
    };
  },

  /** Reads from the start of the file. */
  async read(path: string, maxBytes: number): Promise<Uint8Array> {
    const file = await localFiles.open(path);
    // Node 22 does not support `await using`.
    try {
      return await file.read(maxBytes);
    } finally {
      await file[Symbol.asyncDispose]();
    }
  },

  /**
   * Watches a folder with its subfolders. Calls `listener` with each path that is written, created or deleted. Calls
   * `failed` if the folder can no longer be watched. Returns a function that stops watching. The watcher does not keep
   * the process alive.
   */
  watch(path: string, listener: (path: string) => void, failed: (error: unknown) => void): () => void {
    const watcher = fs().watch(
      path,
      { recursive: true, persistent: false },
      (_, name) => listener(name === null ? path : toSlashes(`${path}/${name}`)),
    );
    // Listen for errors, because an `error` event without a listener would end the process.
    watcher.on("error", failed);
    // Also call `unref`, because Deno ignores `persistent`.
    watcher.unref();
    return () => watcher.close();
  },
};

/** Returns `undefined` for an error about a path that does not lead to a file. Throws other errors. */
export function ignoreNotFound(error: unknown): undefined {
  if (hasErrorCode(error) && NOT_FOUND_CODES.includes(error.code)) return;
  throw error;
}

function toFileInfo(stats: FsStats): FileInfo {
  const { size, mode, uid, mtimeMs, ino, dev, ctimeMs } = stats;
  return {
    kind: toKind(stats),
    size,
    mode: mode & PERMISSION_BITS,
    owner: uid,
    version: `${mtimeMs} ${size} ${ino}`,
    identity: `${dev} ${ino}`,
    changed: ctimeMs,
    modified: mtimeMs,
  };
}

export function toKind(entry: Pick<FsEntry, "isSymbolicLink" | "isFile" | "isDirectory">): FileKind {
  return entry.isSymbolicLink() ? "link" : entry.isFile() ? "file" : entry.isDirectory() ? "folder" : "other";
}

/** Converts the backslashes of a Windows path to forward slashes. Returns any other path unchanged. */
function toSlashes(path: string): string {
  return /^[a-z]:[\\/]/i.test(path) ? path.replaceAll("\\", "/") : path;
}

/**
 * Reads chunks until the end of the file or `maxBytes`, because the file may grow or shrink after its size was read.
 */
async function readBytes(file: FsFile, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; size < maxBytes;) {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, maxBytes - size));
    const { bytesRead } = await file.read(chunk, 0, chunk.length);
    if (!bytesRead) break;
    chunks.push(chunk.subarray(0, bytesRead));
    size += bytesRead;
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
