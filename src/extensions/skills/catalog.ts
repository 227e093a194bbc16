/**
 * Finds the skills in a folder, and creates their entries.
 *
 * @see SEP-2640 (Skill Entries)
 */
import { toDigest, toText } from "./bytes.ts";
import { type FrontMatter, readFrontMatter } from "./front_matter.ts";
import type { FolderFile, SkillFolder } from "./skill_folder.ts";

export interface SkillResource {
  readonly uri: string;
  /** SHA-256 digest of the file, as `sha256:` and lower-case hexadecimal digits. */
  readonly digest: string;
  readonly size: number;
}

/** A skill in the results of `skills/list` and `skills/get`. */
export interface SkillEntry {
  readonly uri: string;
  readonly frontmatter: FrontMatter;
  /** All files of the skill, including files of nested skills. */
  readonly resources: readonly SkillResource[];
}

/** A skill without the digests of its files. Digests are computed only when a client requests the skill's entry. */
export interface Skill {
  readonly uri: string;
  readonly frontmatter: FrontMatter;
  readonly files: readonly ServedFile[];
}

export interface ServedFile extends FolderFile {
  readonly uri: string;
}

/** A file or subdirectory of a directory. */
export interface Child {
  readonly uri: string;
  readonly name: string;
  /** `undefined` for a directory. */
  readonly file?: ServedFile;
}

/** The skills that one scan of the folder has found. */
export interface Snapshot {
  /** The skills by the URI of their `SKILL.md`, sorted by URI. */
  readonly skills: ReadonlyMap<string, Skill>;
  readonly files: ReadonlyMap<string, ServedFile>;
  /** The children of each directory, by the URI of the directory. */
  readonly folders: ReadonlyMap<string, readonly Child[]>;
}

/** Scans a folder for skills, and caches the digests and front matters of files. */
// Bound: `MAX_FILES` and `MAX_WARNINGS`.
export class Catalog {
  readonly #folder: SkillFolder;
  readonly #warn: (text: string) => void;
  /** Digests by path and stamp, so that the digest of each version of a file is computed only once. */
  readonly #digests = new Map<string, Promise<string | undefined>>();
  readonly #frontMatters = new Map<string, Promise<FrontMatter | string | undefined>>();
  readonly #warned = new Set<string>();
  /** Returns a monotonic time in milliseconds. Replaced by the clock of the server when the extension starts. */
  now: () => number = () => performance.now();
  #snapshot?: Snapshot;
  /** Time until which {@linkcode read} returns the snapshot. */
  #freshUntil = -Infinity;
  #scanning?: Promise<Snapshot>;

  /** `warn` is called once for each problem, such as a skill that is omitted. */
  constructor(folder: SkillFolder, warn: (text: string) => void) {
    this.#folder = folder;
    this.#warn = warn;
  }

  /** Returns a snapshot that is at most one second old, or twice as old as the duration of its scan. */
  async read(): Promise<Snapshot> {
    if (this.#snapshot && this.now() < this.#freshUntil) return this.#snapshot;
    return await this.scan();
  }

  /** Scans the folder and returns a new snapshot. Concurrent calls share a scan. */
  async scan(): Promise<Snapshot> {
    return await (this.#scanning ??= this.#scan().finally(() => this.#scanning = undefined));
  }

  /** Reads a file. Returns `undefined` if the file no longer exists, cannot be read, or is too large. */
  async readFile(file: ServedFile): Promise<Uint8Array | undefined> {
    return await this.#folder.read(file.path, MAX_BYTES);
  }

  /** Returns the entry of a skill. Returns `undefined` if a file has changed since the scan. */
  async toEntry({ uri, frontmatter, files }: Skill): Promise<SkillEntry | undefined> {
    const resources: SkillResource[] = [];
    for (const file of files) {
      const digest = await this.#toDigest(file);
      if (digest === undefined) return;
      resources.push({ uri: file.uri, digest, size: file.size });
    }
    return { uri, frontmatter, resources };
  }

  async #scan(): Promise<Snapshot> {
    const at = this.now();
    const all = await this.#folder.list(MAX_FILES);
    if (all.length > MAX_FILES) {
      this.#warnOnce(
        `Cannot serve all files of ${this.#folder.name}: the folder has over ${MAX_FILES} files; move some of them out of the folder`,
      );
    }
    const base = all.some(({ path }) => path === SKILL) ? [this.#folder.name] : [];
    const toServed = (file: FolderFile): ServedFile => ({ ...file, uri: toUri([...base, ...file.path.split("/")]) });
    const served = all.slice(0, MAX_FILES).map(toServed);
    const skills = new Map<string, Skill>();
    for (const file of served) {
      if (file.path !== SKILL && !file.path.endsWith(`/${SKILL}`)) continue;
      const below = file.path.slice(0, -SKILL.length);
      const skill = await this.#toSkill(file, served.filter(({ path }) => path.startsWith(below)));
      if (skill) skills.set(skill.uri, skill);
    }
    const files = new Map([...skills.values()].flatMap(({ files }) => files.map((file) => [file.uri, file] as const)));
    this.#forget(served);
    const now = this.now();
    // Otherwise each read would repeat a scan that takes longer than a second.
    this.#freshUntil = Math.max(at + FRESH_MS, now + (now - at));
    return this.#snapshot = { skills, files, folders: toFolders([...files.values()]) };
  }

  async #toSkill(file: ServedFile, files: readonly ServedFile[]): Promise<Skill | undefined> {
    const place = `skill ${file.uri}`;
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    if (files.length > MOST_FILES || bytes > MOST_BYTES) {
      const state = files.length > MOST_FILES ? `${files.length} files` : `${bytes} bytes`;
      return this.#warnOnce(
        `Cannot serve ${place}: the skill has ${state}; reduce the skill to at most 512 files and 16 MiB, which all clients accept`,
      );
    }
    const key = `${file.path}\n${file.stamp}`;
    const reading = this.#frontMatters.get(key) ?? this.#readFrontMatter(file);
    this.#frontMatters.set(key, reading);
    const frontmatter = await reading;
    if (frontmatter === undefined) {
      // Let the next scan read the file again, because the cause may have been temporary, such as too many open files.
      this.#frontMatters.delete(key);
      return this.#warnOnce(`Cannot serve ${place}: its SKILL.md cannot be read, or is not UTF-8`);
    }
    if (typeof frontmatter === "string") return this.#warnOnce(`Cannot serve ${place}: ${frontmatter}`);
    return { uri: file.uri, frontmatter, files };
  }

  /** Returns `undefined` if the file cannot be read, and a problem if the file has no valid front matter. */
  async #readFrontMatter(file: ServedFile): Promise<FrontMatter | string | undefined> {
    const folder = decodeURIComponent(file.uri.split("/").at(-2) ?? "");
    const bytes = await this.#folder.read(file.path, MAX_BYTES);
    const text = bytes && toText(bytes);
    if (text === undefined) return;
    try {
      return readFrontMatter(text, folder);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async #toDigest(file: ServedFile): Promise<string | undefined> {
    const key = `${file.path}\n${file.stamp}`;
    const known = this.#digests.get(key) ?? this.#computeDigest(file);
    this.#digests.set(key, known);
    const digest = await known;
    if (digest === undefined) this.#digests.delete(key);
    return digest;
  }

  async #computeDigest(file: ServedFile): Promise<string | undefined> {
    const bytes = await this.#folder.read(file.path, MAX_BYTES);
    // A different length shows that the file has changed since the scan.
    return bytes?.length === file.size ? await toDigest(bytes) : undefined;
  }

  // Removes earlier versions of files from the caches. Otherwise, the caches would grow with each change.
  #forget(files: readonly FolderFile[]): void {
    const present = new Set(files.map(({ path, stamp }) => `${path}\n${stamp}`));
    for (const known of [this.#digests, this.#frontMatters]) {
      for (const key of known.keys()) if (!present.has(key)) known.delete(key);
    }
  }

  #warnOnce(text: string): undefined {
    if (this.#warned.has(text) || this.#warned.size >= MAX_WARNINGS) return;
    this.#warned.add(text);
    this.#warn(text);
  }
}

function toUri(segments: readonly string[]): string {
  return `skill://${segments.map(encodeURIComponent).join("/")}`;
}

/** Returns the children of each directory, by the directory's URI. */
function toFolders(files: readonly ServedFile[]): ReadonlyMap<string, readonly Child[]> {
  const folders = new Map<string, Map<string, Child>>();
  for (const file of files) {
    let child: Child = { uri: file.uri, name: toName(file.uri), file };
    while (true) {
      const parent = child.uri.slice(0, child.uri.lastIndexOf("/"));
      if (parent.length <= "skill://".length) break;
      const children = folders.get(parent) ?? new Map<string, Child>();
      folders.set(parent, children.set(child.uri, child));
      child = { uri: parent, name: toName(parent) };
    }
  }
  return new Map([...folders].map(([uri, children]) => [uri, [...children.values()]]));
}

function toName(uri: string): string {
  return decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1));
}

const SKILL = "SKILL.md";

/** Maximum number of files per skill. The specification requires clients to accept this number. */
const MOST_FILES = 512;
/** Maximum size in bytes of all files of a skill together. The specification requires clients to accept this size. */
const MOST_BYTES = 16_777_216;

/** Maximum size in bytes of a file that is read. A skill may consist of a single file. */
const MAX_BYTES = MOST_BYTES;

/** Maximum number of files that a scan considers. */
const MAX_FILES = 20_000;

/** Milliseconds for which a snapshot is used before the folder is scanned again. */
const FRESH_MS = 1000;

/**
 * Maximum number of warnings. Further warnings are not printed, because the catalog would have to remember each warning
 * to print it only once.
 */
const MAX_WARNINGS = 1000;
