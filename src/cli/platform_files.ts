/**
 * Files and folders on either runtime. Paths are absolute and have forward slashes.
 *
 * @module
 */
import type { DenoFileInfo, DenoFileKinds, DenoGlobal, FsFacts, FsModule } from "../runtime.ts";
import { toBaseName, toFolder } from "./path.ts";

/** What stands at a path. */
export interface FileFacts {
  readonly kind: "file" | "folder" | "other";
  /** Bytes. */
  readonly size: number;
  /** A text that is another one when the file has been written or replaced. */
  readonly version: string;
  /** Its permission bits; absent where the system has none. */
  readonly mode?: number;
}

/** What stands at a path itself, without following a link, or what an open file is. */
export interface NodeFacts {
  readonly kind: "file" | "folder" | "link" | "other";
  /** In bytes. */
  readonly size: number;
  /** The device and the inode: equal for the same file or folder only. */
  readonly identity: string;
  /** When its content, facts or entries last changed, in milliseconds since 1970. Nobody can set it. */
  readonly changed: number;
}

/** A file that is open for reading. */
export interface OpenFile extends AsyncDisposable {
  readonly facts: NodeFacts;
  /** Its first bytes. */
  read(most: number): Promise<Uint8Array>;
}

/** A name in a folder. Links are not followed. */
export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
}

/** What the command line does with files. What the runtime does not permit is thrown. */
export interface Files {
  /** Two changes of a file or folder within so many milliseconds may have the same change time. */
  readonly changeTickMs: number;
  /** What stands at a path, behind links; nothing if nothing does. */
  look(path: string): Promise<FileFacts | undefined>;
  /** The path without links; nothing if it leads nowhere. */
  resolve(path: string): Promise<string | undefined>;
  /** What is in a folder, in no order. */
  list(path: string): Promise<readonly FolderEntry[]>;
  /** What stands at a path, links not followed; nothing if nothing does. */
  lookAt(path: string): Promise<NodeFacts | undefined>;
  /** Opens a file for reading. Links are followed. */
  open(path: string): Promise<OpenFile>;
  /** The first bytes of a file. */
  read(path: string, most: number): Promise<Uint8Array>;
  /** Writes a file whole; with `isNew`, it throws if there is one. */
  write(path: string, content: string | Uint8Array, options?: { readonly isNew?: boolean }): Promise<void>;
  /** Writes a file that is not there yet, with these permission bits. Throws if there is one. */
  create(path: string, content: string, mode?: number): Promise<void>;
  /**
   * Replaces a file in one step: readers see all of the old content or all of the new. Mode and owner stay as they are;
   * a file that was not there is for its owner only. A link stays, and the file that it leads to is replaced.
   */
  replace(path: string, content: string): Promise<void>;
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
  const isWindows = deno.build.os === "windows";
  const slash = (path: string) => isWindows ? path.replaceAll("\\", "/") : path;
  const resolve = (path: string) => deno.realPath(path).then(slash, orNothing);

  async function open(path: string): Promise<OpenFile> {
    const file = await deno.open(path);
    return {
      facts: toDenoFacts(await file.stat()),
      read: (most) => fill(most, async (into) => await file.read(into) ?? 0),
      [Symbol.asyncDispose]: () => Promise.resolve(file.close()),
    };
  }

  async function create(path: string, content: string, mode = PRIVATE): Promise<void> {
    const file = await deno.open(path, { write: true, createNew: true, mode: PRIVATE });
    try {
      for (let rest = new TextEncoder().encode(content); rest.length;) rest = rest.subarray(await file.write(rest));
      await file.sync();
    } finally {
      file.close();
    }
    // Not when it is made: the umask would take bits away, and others could read it before it is whole.
    if (mode !== PRIVATE && !isWindows) await deno.chmod(path, mode);
  }

  const steps: ReplaceSteps = {
    resolve,
    create,
    lookAt: (path) => deno.lstat(path),
    rename: (from, to) => deno.rename(from, to),
    remove: (path) => deno.remove(path),
    chown: (path, uid, gid) => deno.chown(path, uid, gid),
  };

  return {
    // Deno tells change times in whole seconds.
    changeTickMs: 1000,
    look: (path) =>
      deno.stat(path).then((facts) => ({
        kind: facts.isFile ? "file" as const : facts.isDirectory ? "folder" as const : "other" as const,
        size: facts.size,
        version: `${facts.mtime?.getTime()} ${facts.size} ${facts.ino}`,
        mode: facts.mode === null ? undefined : facts.mode & MODE,
      }), orNothing),
    lookAt: (path) => deno.lstat(path).then(toDenoFacts, orNothing),
    resolve,
    async list(path) {
      const entries: FolderEntry[] = [];
      for await (const { name, ...kinds } of deno.readDir(path)) entries.push({ name, kind: toKind(kinds) });
      return entries;
    },
    open,
    read: (path, most) => readWhole(open, path, most),
    create,
    replace: (path, content) => replaceFile(steps, path, content),
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
  const resolve = (path: string) => fs.realpath(path).catch(orNothing);

  async function open(path: string): Promise<OpenFile> {
    const file = await fs.open(path);
    return {
      facts: toFsFacts(await file.stat()),
      read: (most) => fill(most, async (into) => (await file.read(into, 0, into.length)).bytesRead),
      [Symbol.asyncDispose]: () => file.close(),
    };
  }

  async function create(path: string, content: string, mode = PRIVATE): Promise<void> {
    const file = await fs.open(path, "wx", PRIVATE);
    try {
      await file.writeFile(new TextEncoder().encode(content));
      await file.sync();
    } finally {
      await file.close();
    }
    // As on Deno.
    if (mode !== PRIVATE) await fs.chmod(path, mode);
  }

  const steps: ReplaceSteps = {
    resolve,
    create,
    lookAt: (path) => fs.lstat(path),
    rename: (from, to) => fs.rename(from, to),
    remove: (path) => fs.unlink(path),
    chown: (path, uid, gid) => fs.chown(path, uid, gid),
  };

  return {
    changeTickMs: 1,
    look: (path) =>
      fs.stat(path).then((facts) => ({
        kind: facts.isFile() ? "file" as const : facts.isDirectory() ? "folder" as const : "other" as const,
        size: facts.size,
        version: `${facts.mtimeMs} ${facts.size} ${facts.ino}`,
        mode: facts.mode & MODE,
      }), orNothing),
    lookAt: (path) => fs.lstat(path).then(toFsFacts, orNothing),
    resolve,
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
    open,
    read: (path, most) => readWhole(open, path, most),
    create,
    replace: (path, content) => replaceFile(steps, path, content),
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

/** The bits of a mode that are permissions. */
const MODE = 0o7777;
/** For the owner only. */
const PRIVATE = 0o600;

function toDenoFacts(facts: DenoFileInfo): NodeFacts {
  const { size, dev, ino, ctime, mtime } = facts;
  return { kind: toKind(facts), size, identity: `${dev} ${ino}`, changed: (ctime ?? mtime)?.getTime() ?? 0 };
}

function toFsFacts(facts: FsFacts): NodeFacts {
  const kind = toKind({
    isFile: facts.isFile(),
    isDirectory: facts.isDirectory(),
    isSymlink: facts.isSymbolicLink(),
  });
  return { kind, size: facts.size, identity: `${facts.dev} ${facts.ino}`, changed: facts.ctimeMs };
}

async function readWhole(open: Files["open"], path: string, most: number): Promise<Uint8Array> {
  await using file = await open(path);
  return await file.read(most);
}

interface Owned {
  readonly mode: number | null;
  readonly uid: number | null;
  readonly gid: number | null;
}

/** What replacing a file takes, on either runtime. */
interface ReplaceSteps extends Pick<Files, "resolve" | "create"> {
  lookAt(path: string): Promise<Owned>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  chown(path: string, uid: number, gid: number): Promise<void>;
}

async function replaceFile(steps: ReplaceSteps, path: string, content: string): Promise<void> {
  const target = await steps.resolve(path) ?? path;
  const before = await steps.lookAt(target).catch(orNothing);
  // In the same folder, because a file is only renamed in one step within its file system.
  const temporary = `${toFolder(target)}/.${toBaseName(target)}.${crypto.randomUUID()}.tmp`;
  try {
    await steps.create(temporary, content, before?.mode ? before.mode & MODE : PRIVATE);
    const made = await steps.lookAt(temporary);
    if (before && before.uid !== null && before.gid !== null && (before.uid !== made.uid || before.gid !== made.gid)) {
      // Only root may give a file away; anybody else keeps it.
      await steps.chown(temporary, before.uid, before.gid).catch(() => {});
    }
    await steps.rename(temporary, target);
  } catch (error) {
    await steps.remove(temporary).catch(() => {});
    throw error;
  }
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
