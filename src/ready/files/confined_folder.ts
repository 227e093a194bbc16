/**
 * Reads the files of a folder. Files outside of the folder cannot be read.
 */
import { delay } from "../../core/kit/deadline.ts";
import { hasErrorCode } from "../../core/kit/error_code.ts";
import { deno, isWindows } from "../../core/runtime.ts";
import { toMatcher } from "./glob.ts";
import { type FileInfo, localFiles, type OpenFile } from "./local_files.ts";
import { joinPath, toRelativePath } from "./path.ts";

/** Maximum number of listed files. Files that are not listed can still be read. */
export const MAX_LISTED_FILES = 5000;

/** The folder, and the rules that select the readable files. */
export interface FolderOptions {
  /**
   * The path of the folder without symbolic links, or a function that returns this path. The function returns
   * `undefined` if the folder does not exist, and is called until it returns a path.
   */
  readonly root: string | (() => Promise<string | undefined>);
  /** Whether to include names that begin with a dot. Defaults to `false`. */
  readonly hidden?: boolean;
  /**
   * Patterns of names and paths to exclude. A pattern without a slash applies to names. A pattern with a slash applies
   * to paths relative to the folder. Defaults to {@linkcode EXCLUDED}.
   */
  readonly exclude?: readonly string[];
  /** Maximum size of a readable file, in bytes. */
  readonly maxBytes: number;
}

export interface FolderItem {
  /** The requested path relative to the folder, without `.` and repeated slashes. */
  readonly path: string;
  /** The absolute path of the folder, without symbolic links. */
  readonly root: string;
  /** The absolute path of the item, without symbolic links. */
  readonly real: string;
  readonly kind: "file" | "folder";
  /** Size in bytes. */
  readonly size: number;
}

export interface WalkOptions {
  /**
   * Whether to prove that the files are in the folder. If `false`, the walk does not wait for a folder that changes, but
   * the result must not leave the program. Defaults to `true`.
   */
  readonly isProven?: boolean;
}

/** Whether a result is the reason why a file or folder is unavailable. */
export function isUnavailable(value: object): value is Unavailable {
  return "state" in value;
}

/** Patterns of names that are excluded, unless the creator of the {@linkcode Folder} passes other patterns. */
export const EXCLUDED: readonly string[] = ["node_modules"];

const MAX_DEPTH = 64;
const MISSING: Unavailable = { state: "there is no such file or folder", isMissing: true };
const OUTSIDE: Unavailable = { state: "it is outside of the folder", isPrivate: true };

/** A folder. Follows symbolic links only if their targets are in the folder. */
export class Folder {
  readonly #findRoot: () => Promise<string | undefined>;
  #root?: string;
  readonly #hidden: boolean;
  readonly #maxBytes: number;
  readonly #exclusions: readonly { readonly isPath: boolean; readonly matches: (path: string) => boolean }[];

  constructor({ root, hidden = false, exclude = EXCLUDED, maxBytes }: FolderOptions) {
    if (typeof root === "string") this.#root = root;
    this.#findRoot = typeof root === "string" ? () => Promise.resolve(root) : root;
    this.#hidden = hidden;
    this.#maxBytes = maxBytes;
    this.#exclusions = exclude.map((pattern) => ({
      isPath: pattern.includes("/"),
      matches: toMatcher(pattern, { matchDots: true }),
    }));
  }

  /** Finds the path of the folder, without symbolic links. Returns `undefined` if the folder does not exist. */
  async findRoot(): Promise<string | undefined> {
    // Keep the first path, because another program may replace the folder with a symbolic link to another folder.
    return this.#root ??= await this.#findRoot();
  }

  /** Whether a path in the folder is served. `false` if a pattern excludes the path, or if the path is hidden. */
  includes(path: string): boolean {
    const names = path.split("/").filter(Boolean);
    if (!this.#hidden && names.some((name) => name.startsWith("."))) return false;
    return !this.#exclusions.some(({ isPath, matches }) =>
      names.some((name, i) => matches(isPath ? names.slice(0, i + 1).join("/") : name))
    );
  }

  /** Finds the file or subfolder at a path relative to the folder. */
  find(path: string): Promise<FolderItem | Unavailable> {
    return this.#find(path, Date.now() + TIMEOUT_MS);
  }

  async #find(requested: string, until: number, isProven = true): Promise<FolderItem | Unavailable> {
    const names = requested.split("/").filter((name) => name && name !== ".");
    const isOutside = requested.startsWith("/") || names.includes("..") || /\0/.test(requested) || hasDrive(requested);
    if (isOutside) return OUTSIDE;
    const path = names.join("/");
    if (!this.includes(path)) return MISSING;
    const root = await orUnavailable(this.findRoot());
    if (root === undefined) return MISSING;
    if (typeof root === "object") return root;
    const real = await orUnavailable(localFiles.resolve(joinPath(root, path)));
    if (real === undefined) return MISSING;
    if (typeof real === "object") return real;
    const inner = toRelativePath(root, real);
    if (inner === undefined) return OUTSIDE;
    // Check the target too, because a symbolic link must not make an excluded file readable.
    if (!this.includes(inner)) return MISSING;
    const look = () => localFiles.lstat(real);
    const info = await orUnavailable(isProven ? prove({ root, folder: toParent(inner) }, look, { until }) : look());
    if (!info) return MISSING;
    if (isUnavailable(info)) return info;
    if (info.kind !== "file" && info.kind !== "folder") return { state: "it is not a regular file" };
    return { path, root, real, kind: info.kind, size: info.size };
  }

  async read(path: string): Promise<Uint8Array | Unavailable> {
    const item = await this.find(path);
    if (isUnavailable(item)) return item;
    if (item.kind === "folder") return { state: "it is a folder" };
    const tooLarge = { state: `it is larger than ${this.#maxBytes} bytes (maxBytes)` };
    if (item.size > this.#maxBytes) return tooLarge;
    const bytes = await orUnavailable(readConfined(item.root, item.real, this.#maxBytes + 1));
    if (isUnavailable(bytes)) return bytes;
    // Check again, because the file may have grown since its size was read.
    return bytes.length > this.#maxBytes ? tooLarge : bytes;
  }

  /** Lists the items of a folder, sorted by name. */
  async list(path: string): Promise<readonly FolderItem[] | Unavailable> {
    const folder = await this.find(path);
    if (isUnavailable(folder)) return folder;
    if (folder.kind === "file") return { state: "it is a file" };
    const { root, path: above, real } = folder;
    const inner = toRelativePath(root, real) ?? "";
    const found = await orUnavailable(prove({ root, folder: inner }, () => this.#look({ root, folder: inner })));
    if (isUnavailable(found)) return found;
    const items = await Promise.all(found.map((item): FolderItem | Unavailable | Promise<FolderItem | Unavailable> => {
      const path = joinNames(above, toName(item.path));
      if (item.kind === "link") return this.find(path);
      return this.includes(path) ? { ...item, kind: item.kind, path } : MISSING;
    }));
    return items.flatMap((item) => isUnavailable(item) ? [] : item).sort(byPath);
  }

  /**
   * Lists at most `limit` files in the folder and its subfolders, sorted by path. Does not follow symbolic links to
   * folders. Omits the files of a subfolder if the folders above it keep changing.
   */
  async walk(limit: number, { isProven = true }: WalkOptions = {}): Promise<readonly FolderItem[]> {
    const root = await this.findRoot().catch(() => undefined);
    if (root === undefined) return [];
    const files: FolderItem[] = [];
    const folders = [{ folder: "", depth: 0 }];
    const until = Date.now() + TIMEOUT_MS;
    for (const { folder, depth } of folders) {
      const look = () => this.#look({ root, folder }, limit - files.length);
      const found = await (isProven ? prove({ root, folder }, look, { until }) : look()).catch(() => []);
      for (const each of isUnavailable(found) ? [] : found) {
        if (each.kind === "folder") {
          if (depth < MAX_DEPTH) folders.push({ folder: each.path, depth: depth + 1 });
          continue;
        }
        const item = each.kind === "link" ? await this.#find(each.path, until, isProven) : each;
        if (!isUnavailable(item) && item.kind === "file") files.push({ ...item, kind: "file" });
        if (files.length === limit) return files.sort(byPath);
      }
    }
    return files.sort(byPath);
  }

  /** Lists by name, up to the `limit`th file. The result is proven only within {@linkcode prove}. */
  async #look({ root, folder }: Inner, limit = Infinity): Promise<readonly FoundItem[]> {
    const entries = await localFiles.list(joinPath(root, folder));
    const items: FoundItem[] = [];
    let files = 0;
    for (const { name } of [...entries].sort((a, b) => a.name < b.name ? -1 : 1)) {
      if (files === limit) break;
      const path = joinNames(folder, name);
      if (!this.includes(path)) continue;
      const real = joinPath(root, path);
      const info = await localFiles.lstat(real).catch(() => undefined);
      if (!info || info.kind === "other") continue;
      if (info.kind === "file") files++;
      items.push({ path, root, real, kind: info.kind, size: info.size });
    }
    return items;
  }
}

/** A folder below a root, by its path relative to the root, which contains no symbolic links. */
interface Inner {
  readonly root: string;
  readonly folder: string;
}

/** A file, subfolder or symbolic link, by its path relative to the root. */
interface FoundItem extends Omit<FolderItem, "kind"> {
  readonly kind: FolderItem["kind"] | "link";
}

/**
 * Converts system errors to the reasons why a file or folder is unavailable. Throws the error of a missing permission,
 * so that the user learns which permission to grant.
 */
async function orUnavailable<T>(result: Promise<T>): Promise<T | Unavailable> {
  try {
    return await result;
  } catch (error) {
    // The file was removed after it was found.
    if (hasErrorCode(error) && ["ENOENT", "ENOTDIR", "ELOOP"].includes(error.code)) return MISSING;
    if (hasErrorCode(error)) return { state: `reading it failed with ${error.code}`, isPrivate: true };
    throw error;
  }
}

function hasDrive(path: string): boolean {
  return isWindows() && /[\\:]/.test(path);
}

function joinNames(folder: string, name: string): string {
  return folder ? `${folder}/${name}` : name;
}

function toName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function toParent(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function byPath(a: FolderItem, b: FolderItem): number {
  return a.path < b.path ? -1 : 1;
}

/**
 * Resolution of change times in milliseconds. File systems take change times from the system clock, which advances in
 * ticks of at most 10 ms on Linux and 16 ms on Windows. Two changes within one tick have the same time.
 */
const CHANGE_TIME_RESOLUTION_MS = 40;
/** Additional resolution on Deno, in milliseconds, because Deno reports change times in whole seconds. */
const DENO_RESOLUTION_MS = 1000;
/** Maximum milliseconds to wait until a folder stops changing. */
const TIMEOUT_MS = 5000;

/** The reason why a path cannot be read, as text for users and models. */
export interface Unavailable {
  readonly state: string;
  readonly isMissing?: boolean;
  /** Whether the reason would reveal which files exist outside of the folder. */
  readonly isPrivate?: boolean;
}

/** How {@linkcode prove} treats a folder and the result. */
interface ProofOptions<T> {
  /** Time after which the function does not try again, in milliseconds since 1970. Defaults to 5 seconds from now. */
  readonly until?: number;
  /**
   * Whether the entries of the folder itself may not change either, for an action that follows a symbolic link in the
   * folder. Defaults to `false`.
   */
  readonly isFixed?: boolean;
  /** Frees a result that is not proven. */
  readonly drop?: (result: T) => PromiseLike<unknown>;
}

/**
 * Looks at something in a folder, such as its entries. Proves that the path leads to the folder, even if other programs
 * change the folders at the same time. Returns `MISSING` if there is no such folder, or if `look` returns `undefined`.
 *
 * Even after a check, a path may lead to another folder: a program that can write to a folder can replace a part of the
 * path with a symbolic link, and undo this change later. The runtimes cannot open a file relative to an open folder, so
 * this function verifies the path instead. The entries of a folder cannot change without changing the folder's change
 * time, which no program can set. The function reads the identity and change time of each folder on the path before and
 * after the look. If both reads return equal facts for each folder, and each change time is older than the first read,
 * no folder has changed between the two reads, so the path has led to the same folder all the time. The entries of the
 * last folder may change, because they are not part of its path.
 */
async function prove<T>(
  { root, folder }: Inner,
  look: () => Promise<T | undefined>,
  { until = Date.now() + TIMEOUT_MS, isFixed = false, drop }: ProofOptions<T> = {},
): Promise<T | Unavailable> {
  const names = folder.split("/").filter(Boolean);
  const folders = [root, ...names.map((_, i) => joinPath(root, names.slice(0, i + 1).join("/")))];
  const fixed = folders.length - (isFixed ? 0 : 1);
  const settleMs = CHANGE_TIME_RESOLUTION_MS + (deno ? DENO_RESOLUTION_MS : 0);
  for (let isLast = false; !isLast;) {
    const start = Date.now();
    isLast = start >= until;
    const before = await statFolders(folders);
    if (!before) return MISSING;
    const end = Date.now();
    // Do not wait for change times in the future, which come from the clock of another machine. Such times are only
    // compared for equality.
    const changes = before.slice(0, fixed).map(({ changed }) => changed).filter((changed) => changed <= end);
    const waitMs = Math.max(0, ...changes) + settleMs - start;
    if (waitMs > 0) {
      if (!isLast) await delay(waitMs);
      continue;
    }
    const result = await look();
    let isProven = false;
    // Node 22 does not support `await using`.
    try {
      // Read the facts from the innermost folder outwards, because the facts of a folder must be read after the facts
      // of its subfolder.
      const after = await statFolders([...folders].reverse());
      isProven = after !== undefined && after.reverse().every((info, i) => isSameNode(info, before[i], i < fixed));
    } finally {
      if (!isProven && result !== undefined) await drop?.(result);
    }
    if (isProven) return result ?? MISSING;
  }
  return { state: "its folder keeps changing; try again later" };
}

/** Reads up to `maxBytes` bytes of the file at `real`, a path below `root` without symbolic links. */
async function readConfined(root: string, real: string, maxBytes: number): Promise<Uint8Array | Unavailable> {
  const close = (file: OpenFile) => file[Symbol.asyncDispose]();
  const open = async () => {
    const file = await localFiles.open(real);
    const info = await localFiles.lstat(real).catch(() => undefined);
    if (info?.kind === "file" && info.identity === file.info.identity) return file;
    await close(file);
  };
  const folder = toParent(toRelativePath(root, real) ?? "");
  // Opening follows a link that replaces the file, so the entries of the file's folder may not change either.
  const file = await prove({ root, folder }, open, { isFixed: true, drop: close });
  if ("state" in file) return file;
  try {
    return await file.read(maxBytes);
  } finally {
    await close(file);
  }
}

/** Reads in order, because the proof depends on the order. Returns `undefined` if a path is not a folder. */
async function statFolders(paths: readonly string[]): Promise<FileInfo[] | undefined> {
  const all: FileInfo[] = [];
  for (const path of paths) {
    const info = await localFiles.lstat(path);
    if (info?.kind !== "folder") return;
    all.push(info);
  }
  return all;
}

function isSameNode(a: FileInfo, b: FileInfo, isFixed: boolean): boolean {
  return a.identity === b.identity && (!isFixed || a.changed === b.changed);
}
