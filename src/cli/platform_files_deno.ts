/**
 * The file system on Deno.
 *
 * @module
 */
import type { DenoFile, DenoFileInfo, DenoGlobal } from "../runtime.ts";
import { type FileHandle, type FileMetadata, type FileSystem, type FolderEntry, toFileKind } from "./platform_files.ts";

/** The file system on Deno. */
export function createDenoFileSystem(deno: DenoGlobal): FileSystem {
  const isWindows = deno.build.os === "windows";
  const toSlashes = (path: string) => isWindows ? path.replaceAll("\\", "/") : path;
  return {
    // Deno reports change times in whole seconds.
    changeTickMs: 1000,
    stat: (path) => deno.stat(path).then(toMetadata),
    lstat: (path) => deno.lstat(path).then(toMetadata),
    realPath: (path) => deno.realPath(path).then(toSlashes),
    async list(path) {
      const entries: FolderEntry[] = [];
      for await (const { name, ...kinds } of deno.readDir(path)) entries.push({ name, kind: toFileKind(kinds) });
      return entries;
    },
    open: async (path) => toHandle(await deno.open(path)),
    openNew: async (path, mode) => toHandle(await deno.open(path, { write: true, createNew: true, mode })),
    writeFile: (path, bytes, isNew) => deno.writeFile(path, bytes, { createNew: isNew }),
    rename: (from, to) => deno.rename(from, to),
    remove: (path) => deno.remove(path),
    chmod: async (path, mode) => isWindows ? undefined : await deno.chmod(path, mode),
    chown: (path, uid, gid) => deno.chown(path, uid, gid),
    makeFolder: (path) => deno.mkdir(path, { recursive: true }),
    watch(path, listener, failed) {
      const watcher = deno.watchFs(path);
      const listen = async () => {
        for await (const { kind, paths } of watcher) {
          if (kind !== "access") { for (const path of paths) listener(toSlashes(path)); }
        }
      };
      listen().catch(failed);
      return () => {
        try {
          watcher.close();
        } catch {
          // It is closed already.
        }
      };
    },
  };
}

function toHandle(file: DenoFile): FileHandle {
  return {
    metadata: () => file.stat().then(toMetadata),
    read: async (into) => await file.read(into) ?? 0,
    async writeAll(bytes) {
      for (let rest = bytes; rest.length;) rest = rest.subarray(await file.write(rest));
    },
    sync: () => file.sync(),
    close: () => Promise.resolve(file.close()),
  };
}

function toMetadata(info: DenoFileInfo): FileMetadata {
  const { size, dev, ino, mode, uid, gid, ctime, mtime } = info;
  return {
    ...{ kind: toFileKind(info), size, device: dev, inode: ino, mode, uid, gid },
    modifiedMs: mtime?.getTime(),
    changedMs: (ctime ?? mtime)?.getTime() ?? 0,
  };
}
