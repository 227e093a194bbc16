/**
 * A folder of which everything can be read, and nothing outside of it.
 *
 * @module
 */
import { platform } from "../platform.ts";
import { readInside } from "./read_inside.ts";
import { isCoded } from "../platform_files.ts";
import { toBelow, toInner } from "../path.ts";
import { toMatcher } from "./glob.ts";

/** What of a folder can be read. */
export interface FolderOptions {
  /** Its path without links. */
  readonly root: string;
  /** Whether names that begin with a dot are there. */
  readonly hidden?: boolean;
  /** Patterns of what is not there: of a name, or with a slash of a path in the folder. */
  readonly exclude?: readonly string[];
  /** Bytes of the largest file that is read. */
  readonly maxBytes: number;
}

/** Something in a folder. */
export interface Found {
  /** The path in the folder, as it was asked for but without `.` and double slashes. */
  readonly path: string;
  /** The path without links. */
  readonly real: string;
  readonly kind: "file" | "folder";
  /** Bytes. */
  readonly size: number;
}

/** Why there is nothing, in words for people and models. */
export interface Refusal {
  readonly state: string;
  /** Whether there is nothing. */
  readonly isMissing?: boolean;
  /** Whether to tell it would tell what is outside. */
  readonly isPrivate?: boolean;
}

/** A folder that can be read. */
export interface Folder {
  readonly root: string;
  /** What stands at a path in the folder. */
  find(path: string): Promise<Found | Refusal>;
  /** The bytes of a file. */
  read(path: string): Promise<Uint8Array | Refusal>;
  /** What is in one folder, by name. */
  list(path: string): Promise<readonly Found[] | Refusal>;
  /** The files in the folder and below, by path; at most `most`. Links to folders are not followed. */
  walk(most: number): Promise<readonly Found[]>;
  /** Whether a path in the folder is none that is left out. */
  has(path: string): boolean;
}

/** Whether nothing was found. */
export function isRefusal(value: object): value is Refusal {
  return "state" in value;
}

const DEEPEST = 64;

/** A folder, confined to itself: what a link leads to must lie in it too. */
export function openFolder({ root, hidden = false, exclude = ["node_modules"], maxBytes }: FolderOptions): Folder {
  const left = exclude.map((pattern) => ({ isPath: pattern.includes("/"), fits: toMatcher(pattern, { dots: true }) }));

  function has(path: string): boolean {
    const names = path.split("/").filter(Boolean);
    if (!hidden && names.some((name) => name.startsWith("."))) return false;
    return !left.some(({ isPath, fits }) =>
      names.some((name, i) => fits(isPath ? names.slice(0, i + 1).join("/") : name))
    );
  }

  async function find(given: string): Promise<Found | Refusal> {
    const names = given.split("/").filter((name) => name && name !== ".");
    if (given.startsWith("/") || names.includes("..") || /\0/.test(given) || isDrive(given)) return OUTSIDE;
    const path = names.join("/");
    if (!has(path)) return NOTHING;
    const real = await orRefuse(platform.files.resolve(toBelow(root, path)));
    if (real === undefined) return NOTHING;
    if (typeof real === "object") return real;
    const inner = toInner(root, real);
    if (inner === undefined) return OUTSIDE;
    // A link must not give another name to what is left out.
    if (!has(inner)) return NOTHING;
    const facts = await orRefuse(platform.files.look(real));
    if (!facts) return NOTHING;
    if (isRefusal(facts)) return facts;
    if (facts.kind === "other") return { state: "it is not a regular file" };
    return { path, real, kind: facts.kind, size: facts.size };
  }

  async function read(path: string): Promise<Uint8Array | Refusal> {
    const found = await find(path);
    if (isRefusal(found)) return found;
    if (found.kind === "folder") return { state: "it is a folder" };
    const tooLarge = { state: `it has more than the ${maxBytes} bytes that are read (maxBytes)` };
    if (found.size > maxBytes) return tooLarge;
    const bytes = await orRefuse(readInside(root, found.real, maxBytes + 1));
    if (isRefusal(bytes)) return bytes;
    // It may have grown since it was looked at.
    return bytes.length > maxBytes ? tooLarge : bytes;
  }

  async function list(path: string): Promise<readonly Found[] | Refusal> {
    const found = await find(path);
    if (isRefusal(found)) return found;
    if (found.kind === "file") return { state: "it is a file" };
    const entries = await orRefuse(platform.files.list(found.real));
    if (isRefusal(entries)) return entries;
    const below = await Promise.all(entries.map(({ name }) => find(found.path ? `${found.path}/${name}` : name)));
    return below.flatMap((each) => isRefusal(each) ? [] : each).sort(byPath);
  }

  /** What stands at a path that has no links. */
  async function look(path: string): Promise<Found | undefined> {
    const real = toBelow(root, path);
    const facts = await platform.files.lookAt(real).catch(() => undefined);
    return facts?.kind === "file" ? { path, real, kind: "file", size: facts.size } : undefined;
  }

  async function walk(most: number): Promise<readonly Found[]> {
    const files: Found[] = [];
    const folders = [{ path: "", depth: 0 }];
    for (const { path, depth } of folders) {
      const entries = await platform.files.list(toBelow(root, path)).catch(() => []);
      for (const { name, kind } of [...entries].sort((a, b) => a.name < b.name ? -1 : 1)) {
        const below = path ? `${path}/${name}` : name;
        if (kind === "folder" && depth < DEEPEST && has(below)) folders.push({ path: below, depth: depth + 1 });
        if (kind === "folder" || kind === "other" || !has(below)) continue;
        const found = await (kind === "link" ? find(below) : look(below));
        if (found && !isRefusal(found) && found.kind === "file") files.push(found);
        if (files.length === most) return files.sort(byPath);
      }
    }
    return files.sort(byPath);
  }

  return { root, find, read, list, walk, has };
}

// What the system does not let this user read. What the runtime does not permit is a mistake of whoever started it.
async function orRefuse<T>(looking: Promise<T>): Promise<T | Refusal> {
  try {
    return await looking;
  } catch (error) {
    // It has gone since it was looked at.
    if (isCoded(error) && ["ENOENT", "ENOTDIR", "ELOOP"].includes(error.code)) return NOTHING;
    if (isCoded(error)) return { state: "it may not be read", isPrivate: true };
    throw error;
  }
}

const NOTHING: Refusal = { state: "there is no such file", isMissing: true };
const OUTSIDE: Refusal = { state: "it is outside of the folder", isPrivate: true };

function isDrive(path: string): boolean {
  return platform.os === "windows" && /[\\:]/.test(path);
}

function byPath(a: Found, b: Found): number {
  return a.path < b.path ? -1 : 1;
}
