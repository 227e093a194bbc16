/**
 * Reads a file and proves that it is in a folder, whatever other programs do to the folder in the meantime.
 *
 * A path that was checked may lead elsewhere when it is opened, because a program that can write to the folder can swap
 * a part of the path for a symbolic link and back. Neither runtime opens files relative to an open folder, so this
 * module proves the path instead. The entries of a folder cannot change without changing the folder's change time, which
 * no program can set. If each folder on the path has the same identity and an older change time before and after the
 * file is opened, none of them has changed in between, and the open file is the one in the folder.
 *
 * @module
 */
import { platform } from "../platform.ts";
import type { FileFacts } from "../platform_files.ts";
import { joinPath, toRelativePath } from "../path.ts";

/**
 * Resolution of change times in milliseconds. File systems record them with the tick of the system clock, at most 10 ms
 * on Linux and 16 ms on Windows, so that two changes within one tick look the same.
 */
const CHANGE_TIME_RESOLUTION_MS = 40;
/** Deno reports change times in whole seconds. */
const DENO_RESOLUTION_MS = 1000;
/** How long to wait for a folder that keeps changing, in milliseconds. */
const TIMEOUT_MS = 5000;

/** Why a path cannot be read, in words for people and models. */
export interface Unavailable {
  readonly state: string;
  readonly isMissing?: boolean;
  /** Whether the reason would reveal something about files outside the folder. */
  readonly isPrivate?: boolean;
}

const MISSING: Unavailable = { state: "there is no such file", isMissing: true };

/** Reads up to `maxBytes` bytes of the file at `real`, a path below `root` without symbolic links. */
export async function readConfined(root: string, real: string, maxBytes: number): Promise<Uint8Array | Unavailable> {
  const names = toRelativePath(root, real)?.split("/") ?? [];
  const folders = [root, ...names.slice(0, -1).map((_, i) => joinPath(root, names.slice(0, i + 1).join("/")))];
  const settleMs = CHANGE_TIME_RESOLUTION_MS + (platform.runtime === "deno" ? DENO_RESOLUTION_MS : 0);
  const begin = Date.now();
  for (let start = begin; start - begin < TIMEOUT_MS; start = Date.now()) {
    const before = await statFolders(folders);
    if (!before) return MISSING;
    const end = Date.now();
    // Change times in the future come from the clock of another machine. They are only compared for equality.
    const changes = before.map(({ changed }) => changed).filter((changed) => changed <= end);
    const waitMs = Math.max(0, ...changes) + settleMs - start;
    if (waitMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      continue;
    }
    await using file = await platform.files.open(real);
    const facts = await platform.files.lstat(real);
    // Innermost folder first: each folder is compared while the folders around it are still to be compared.
    const after = await statFolders([...folders].reverse());
    const isUnchanged = after?.reverse().every((facts, i) => isSameNode(facts, before[i]));
    if (!isUnchanged) continue;
    if (facts?.kind !== "file" || facts.identity !== file.facts.identity) return MISSING;
    return await file.read(maxBytes);
  }
  return { state: "its folder keeps changing; try again later" };
}

/** Looks at folders in the given order, which the proof depends on. Returns `undefined` if one is not a folder. */
async function statFolders(paths: readonly string[]): Promise<FileFacts[] | undefined> {
  const all: FileFacts[] = [];
  for (const path of paths) {
    const facts = await platform.files.lstat(path);
    if (facts?.kind !== "folder") return;
    all.push(facts);
  }
  return all;
}

function isSameNode(a: FileFacts, b: FileFacts): boolean {
  return a.identity === b.identity && a.changed === b.changed;
}
