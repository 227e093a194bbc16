/**
 * Files and folders on either runtime. Paths are absolute and have forward slashes.
 *
 * @module
 */
import type { DenoFileKinds, DenoGlobal, FsModule } from "../runtime.ts";

/** What stands at a path. */
export interface FileFacts {
  readonly kind: "file" | "folder" | "other";
  /** Bytes. */
  readonly size: number;
  /** A text that is another one when the file has been written or replaced. */
  readonly version: string;
}

/** A name in a folder. Links are not followed. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
}

/** What the command line does with files. What the runtime does not permit is thrown. */
export interface Files {
  /** What stands at a path, behind links; nothing if nothing does. */
  look(path: string): Promise<FileFacts | undefined>;
  /** The path without links; nothing if it leads nowhere. */
  resolve(path: string): Promise<string | undefined>;
  /** What is in a folder, in no order. */
  list(path: string): Promise<readonly FolderEntry[]>;
  /** The first bytes of a file. */
  read(path: string, most: number): Promise<Uint8Array>;
  /** Writes a file whole; with `isNew`, it throws if there is one. */
  write(path: string, content: string | Uint8Array, options?: { readonly isNew?: boolean }): Promise<void>;
  /** Makes a folder, and those around it. */
  makeFolder(path: string): Promise<void>;
  /**
   * Calls back with each path under a folder that is written, comes or goes, until the function it returns is called.
   * `failed` is told if not all of it can be watched any more.
   */
  watch(path: string, listener: (path: string) => void, failed: (error: unknown) => void): () => void;
}

/** Whether an error has a code such as `ENOENT`. */
export function isCoded(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

// A path that leads through a file, or in a circle, leads nowhere as one without a file does.
const NOWHERE = ["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"];

function orNothing(error: unknown): undefined {
  if (isCoded(error) && NOWHERE.includes(error.code)) return;
  throw error;
}

/** Files on Deno. */
export function denoFiles(deno: DenoGlobal): Files {
  const slash = (path: string) => deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
  return {
    look: (path) =>
      deno.stat(path).then((facts) => ({
        kind: facts.isFile ? "file" as const : facts.isDirectory ? "folder" as const : "other" as const,
        size: facts.size,
        version: `${facts.mtime?.getTime()} ${facts.size} ${facts.ino}`,
      }), orNothing),
    resolve: (path) => deno.realPath(path).then(slash, orNothing),
    async list(path) {
      const entries: FolderEntry[] = [];
      for await (const { name, ...kinds } of deno.readDir(path)) entries.push({ name, kind: toKind(kinds) });
      return entries;
    },
    async read(path, most) {
      const file = await deno.open(path);
      try {
        return await fill(most, async (into) => await file.read(into) ?? 0);
      } finally {
        file.close();
      }
    },
    write: (path, content, { isNew = false } = {}) =>
      deno.writeFile(path, typeof content === "string" ? new TextEncoder().encode(content) : content, {
        createNew: isNew,
      }),
    makeFolder: (path) => deno.mkdir(path, { recursive: true }),
    watch(path, listener, failed) {
      const watcher = deno.watchFs(path);
      const hear = async () => {
        for await (const { kind, paths } of watcher) {
          if (kind !== "access") { for (const path of paths) listener(slash(path)); }
        }
      };
      hear().catch(failed);
      return () => {
        try {
          watcher.close();
        } catch {
          // It has ended.
        }
      };
    },
  };
}

/** Files on Bun. */
export function bunFiles({ promises: fs, watch }: FsModule): Files {
  return {
    look: (path) =>
      fs.stat(path).then((facts) => ({
        kind: facts.isFile() ? "file" as const : facts.isDirectory() ? "folder" as const : "other" as const,
        size: facts.size,
        version: `${facts.mtimeMs} ${facts.size} ${facts.ino}`,
      }), orNothing),
    resolve: (path) => fs.realpath(path).catch(orNothing),
    async list(path) {
      const entries = await fs.readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({
        name: entry.name,
        kind: toKind({
          isFile: entry.isFile(),
          isDirectory: entry.isDirectory(),
          isSymlink: entry.isSymbolicLink(),
        }),
      }));
    },
    async read(path, most) {
      const file = await fs.open(path);
      try {
        return await fill(most, async (into) => (await file.read(into, 0, into.length)).bytesRead);
      } finally {
        await file.close();
      }
    },
    write: (path, content, { isNew = false } = {}) => fs.writeFile(path, content, { flag: isNew ? "wx" : "w" }),
    makeFolder: async (path) => void await fs.mkdir(path, { recursive: true }),
    watch(path, listener, failed) {
      const watcher = watch(
        path,
        { recursive: true, persistent: false },
        (_, name) => listener(name === null ? path : `${path}/${name}`),
      );
      // Nobody listening, it would end the process.
      watcher.on("error", failed);
      return () => watcher.close();
    },
  };
}

function toKind({ isFile, isDirectory, isSymlink }: DenoFileKinds): FolderEntry["kind"] {
  return isSymlink ? "link" : isFile ? "file" : isDirectory ? "folder" : "other";
}

// In pieces, because the size that a file tells need not be the one it has when it is read.
async function fill(most: number, read: (into: Uint8Array) => Promise<number>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  while (size < most) {
    const piece = new Uint8Array(Math.min(65_536, most - size));
    const count = await read(piece);
    if (!count) break;
    pieces.push(piece.subarray(0, count));
    size += count;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
