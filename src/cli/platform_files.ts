/**
 * The file operations of the command line, on top of the file system of a runtime. Paths are absolute and have forward
 * slashes.
 *
 * @module
 */
import { toBaseName, toFolder } from "./path.ts";

/** The kind of a path. */
export type FileKind = "file" | "folder" | "link" | "other";

/** A file or a folder behind all links. */
export interface FileFacts {
  readonly kind: Exclude<FileKind, "link">;
  /** In bytes. */
  readonly size: number;
  /** Changes when the file is written or replaced. */
  readonly version: string;
  /** The permission bits. `undefined` if the system has none. */
  readonly mode?: number;
}

/** A path without following a link, or an open file. */
export interface NodeFacts {
  readonly kind: FileKind;
  /** In bytes. */
  readonly size: number;
  /** The device and the inode. Equal only for the same file or folder. */
  readonly identity: string;
  /** The last change of content, metadata or entries, in milliseconds since 1970. Programs cannot set it. */
  readonly changed: number;
}

/** A file that is open for reading. */
export interface OpenFile extends AsyncDisposable {
  readonly facts: NodeFacts;
  /** Reads at most `maxBytes` from the start. */
  read(maxBytes: number): Promise<Uint8Array>;
}

/** An entry of a folder. Links are not followed. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: FileKind;
}

/** The file operations. They throw what the runtime throws, such as a missing permission. */
export interface Files {
  /** The resolution of change times, in milliseconds. Two changes within this time may have the same change time. */
  readonly changeTickMs: number;
  /** Examines a path and follows links. Returns `undefined` if there is nothing. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** Resolves the links in a path. Returns `undefined` if it leads nowhere. */
  resolve(path: string): Promise<string | undefined>;
  /** Lists a folder, in no particular order. */
  list(path: string): Promise<readonly FolderEntry[]>;
  /** Examines a path without following links. Returns `undefined` if there is nothing. */
  lstat(path: string): Promise<NodeFacts | undefined>;
  /** Opens a file for reading. Follows links. */
  open(path: string): Promise<OpenFile>;
  /** Reads at most `maxBytes` of a file. */
  read(path: string, maxBytes: number): Promise<Uint8Array>;
  /** Writes a whole file. Throws with `isNew` if the file exists. */
  write(path: string, content: string | Uint8Array, options?: { readonly isNew?: boolean }): Promise<void>;
  /** Creates a file with these permission bits. Defaults to read and write for the owner. Throws if the file exists. */
  create(path: string, content: string, mode?: number): Promise<void>;
  /**
   * Replaces a file atomically: readers see the old content or the new. Keeps its mode and owner. A new file is readable
   * by its owner only. Follows links, and keeps them.
   */
  replace(path: string, content: string): Promise<void>;
  /** Deletes a file. */
  remove(path: string): Promise<void>;
  /** Creates a folder and its parents. */
  makeFolder(path: string): Promise<void>;
  /**
   * Calls `listener` with each path under a folder that is written, created or deleted. Calls `failed` if the folder can
   * no longer be watched. Returns a function that stops this.
   */
  watch(path: string, listener: (path: string) => void, failed: (error: unknown) => void): () => void;
}

/** The metadata that both runtimes provide. A field is `null` if the operating system does not provide it. */
export interface FileMetadata {
  readonly kind: FileKind;
  readonly size: number;
  readonly device: number;
  readonly inode: number | null;
  readonly mode: number | null;
  readonly uid: number | null;
  readonly gid: number | null;
  readonly modifiedMs: number | undefined;
  readonly changedMs: number;
}

/** An open file of a runtime. */
export interface FileHandle {
  metadata(): Promise<FileMetadata>;
  /** Returns the number of bytes read; 0 at the end. */
  read(into: Uint8Array): Promise<number>;
  writeAll(bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The file system of a runtime. */
export interface FileSystem extends Pick<Files, "changeTickMs" | "list" | "makeFolder" | "watch"> {
  stat(path: string): Promise<FileMetadata>;
  lstat(path: string): Promise<FileMetadata>;
  realPath(path: string): Promise<string>;
  open(path: string): Promise<FileHandle>;
  /** Creates a file for writing. Throws if it exists. */
  openNew(path: string, mode: number): Promise<FileHandle>;
  writeFile(path: string, bytes: Uint8Array, isNew: boolean): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Does nothing on systems without permission bits. */
  chmod(path: string, mode: number): Promise<void>;
  chown(path: string, uid: number, gid: number): Promise<void>;
}

/** Whether an error has a code such as `ENOENT`. */
export function hasErrorCode(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** The kind of a path, from the tests that a runtime offers. */
export function toFileKind(
  { isFile, isDirectory, isSymlink }: Record<"isFile" | "isDirectory" | "isSymlink", boolean>,
): FileKind {
  return isSymlink ? "link" : isFile ? "file" : isDirectory ? "folder" : "other";
}

/** The codes for a path with nothing behind it, including one through a file or a circle of links. */
const NOT_FOUND_CODES = ["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"];
/** The permission bits of a mode. */
const PERMISSION_BITS = 0o7777;
/** Read and write for the owner. */
const PRIVATE_MODE = 0o600;
const CHUNK_BYTES = 65_536;

/** Creates the file operations of a runtime. */
export function createFiles(system: FileSystem): Files {
  const open = (path: string) => openFile(system, path);
  return {
    changeTickMs: system.changeTickMs,
    stat: (path) => system.stat(path).then(toFileFacts, ignoreNotFound),
    lstat: (path) => system.lstat(path).then(toNodeFacts, ignoreNotFound),
    resolve: (path) => system.realPath(path).catch(ignoreNotFound),
    list: (path) => system.list(path),
    open,
    async read(path, maxBytes) {
      await using file = await open(path);
      return await file.read(maxBytes);
    },
    write: (path, content, { isNew = false } = {}) =>
      system.writeFile(path, typeof content === "string" ? new TextEncoder().encode(content) : content, isNew),
    create: (path, content, mode) => createFile(system, path, content, mode),
    replace: (path, content) => replaceFile(system, path, content),
    remove: (path) => system.remove(path),
    makeFolder: (path) => system.makeFolder(path),
    watch: (path, listener, failed) => system.watch(path, listener, failed),
  };
}

function ignoreNotFound(error: unknown): undefined {
  if (hasErrorCode(error) && NOT_FOUND_CODES.includes(error.code)) return;
  throw error;
}

function toFileFacts({ kind, size, modifiedMs, inode, mode }: FileMetadata): FileFacts {
  return {
    kind: kind === "link" ? "other" : kind,
    size,
    version: `${modifiedMs} ${size} ${inode}`,
    mode: mode === null ? undefined : mode & PERMISSION_BITS,
  };
}

function toNodeFacts({ kind, size, device, inode, changedMs }: FileMetadata): NodeFacts {
  return { kind, size, identity: `${device} ${inode}`, changed: changedMs };
}

async function openFile(system: FileSystem, path: string): Promise<OpenFile> {
  const file = await system.open(path);
  return {
    facts: toNodeFacts(await file.metadata()),
    read: (maxBytes) => readBytes(file, maxBytes),
    [Symbol.asyncDispose]: () => file.close(),
  };
}

/** Reads chunk by chunk, because the file may grow or shrink after its size was read. */
async function readBytes(file: FileHandle, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size < maxBytes) {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, maxBytes - size));
    const count = await file.read(chunk);
    if (!count) break;
    chunks.push(chunk.subarray(0, count));
    size += count;
  }
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

async function createFile(system: FileSystem, path: string, content: string, mode = PRIVATE_MODE): Promise<void> {
  const file = await system.openNew(path, PRIVATE_MODE);
  try {
    await file.writeAll(new TextEncoder().encode(content));
    await file.sync();
  } finally {
    await file.close();
  }
  // Set the mode last: the umask would remove bits earlier, and others could read a part of the content.
  if (mode !== PRIVATE_MODE) await system.chmod(path, mode);
}

async function replaceFile(system: FileSystem, path: string, content: string): Promise<void> {
  const target = await system.realPath(path).catch(ignoreNotFound) ?? path;
  const before = await system.lstat(target).catch(ignoreNotFound);
  // In the same folder, because a rename is atomic only within a file system.
  const temporary = `${toFolder(target)}/.${toBaseName(target)}.${crypto.randomUUID()}.tmp`;
  try {
    await createFile(system, temporary, content, before?.mode ? before.mode & PERMISSION_BITS : PRIVATE_MODE);
    if (before) await copyOwner(system, before, temporary);
    await system.rename(temporary, target);
  } catch (error) {
    await system.remove(temporary).catch(() => {});
    throw error;
  }
}

async function copyOwner(system: FileSystem, { uid, gid }: FileMetadata, path: string): Promise<void> {
  const made = await system.lstat(path);
  if (uid === null || gid === null || (uid === made.uid && gid === made.gid)) return;
  // Only root may change the owner. Other users keep the file.
  await system.chown(path, uid, gid).catch(() => {});
}
