/**
 * The file system on Bun, which is that of `node:fs`. It takes 2 ms to load and its first call as long again, so it loads
 * when it is first needed.
 *
 * @module
 */
import type { BunGlobal, FsFacts, FsFile, FsKinds, FsModule } from "../runtime.ts";
import { type FileHandle, type FileKind, type FileMetadata, type FileSystem, toFileKind } from "./platform_files.ts";

/** The file system on Bun. */
export function createBunFileSystem(bun: BunGlobal, loadFs: () => FsModule): FileSystem {
  const fs = () => loadFs().promises;
  return {
    changeTickMs: 1,
    stat: (path) => bun.file(path).stat().then(toMetadata),
    lstat: (path) => fs().lstat(path).then(toMetadata),
    realPath: (path) => fs().realpath(path),
    async list(path) {
      const entries = await fs().readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({ name: entry.name, kind: toKind(entry) }));
    },
    open: async (path) => toHandle(await fs().open(path)),
    openNew: async (path, mode) => toHandle(await fs().open(path, "wx", mode)),
    writeFile: (path, bytes, isNew) => fs().writeFile(path, bytes, { flag: isNew ? "wx" : "w" }),
    rename: (from, to) => fs().rename(from, to),
    remove: (path) => fs().unlink(path),
    chmod: (path, mode) => fs().chmod(path, mode),
    chown: (path, uid, gid) => fs().chown(path, uid, gid),
    makeFolder: async (path) => void await fs().mkdir(path, { recursive: true }),
    watch(path, listener, failed) {
      const watcher = loadFs().watch(
        path,
        { recursive: true, persistent: false },
        (_, name) => listener(name === null ? path : `${path}/${name}`),
      );
      // An error without a listener would exit the process.
      watcher.on("error", failed);
      return () => watcher.close();
    },
  };
}

function toHandle(file: FsFile): FileHandle {
  return {
    metadata: () => file.stat().then(toMetadata),
    read: async (into) => (await file.read(into, 0, into.length)).bytesRead,
    writeAll: (bytes) => file.writeFile(bytes),
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

function toMetadata(facts: FsFacts): FileMetadata {
  const { size, dev, ino, mode, uid, gid, mtimeMs, ctimeMs } = facts;
  return {
    ...{ kind: toKind(facts), size, device: dev, inode: ino, mode, uid, gid },
    modifiedMs: mtimeMs,
    changedMs: ctimeMs,
  };
}

function toKind(kinds: FsKinds): FileKind {
  return toFileKind({
    isFile: kinds.isFile(),
    isDirectory: kinds.isDirectory(),
    isSymlink: kinds.isSymbolicLink(),
  });
}
