/**
 * The file operations of the command line. Paths are absolute and contain forward slashes. The operations throw the
 * runtime's errors, for example if a permission is missing.
 *
 * The first operation loads `node:fs`, because loading it at startup would delay a served file by 21 ms on Deno and 3
 * ms on Bun.
 */
import { hasErrorCode } from "../core/kit/error_code.ts";
import { ignoreNotFound, localFiles, PERMISSION_BITS } from "../ready/files/local_files.ts";
import { toBaseName, toFolder } from "../ready/files/path.ts";

/** The permission bits of a file that only its owner can read and write. */
const PRIVATE_MODE = 0o600;

const load = () => import("node:fs/promises");

export const files = {
  ...localFiles,

  /** Writes a whole file. With `isNew`, throws if the file exists. */
  async write(path: string, content: string | Uint8Array, { isNew = false } = {}): Promise<void> {
    await (await load()).writeFile(path, content, { flag: isNew ? "wx" : "w" });
  },

  /** Creates a file, by default readable and writable for the owner. Throws if the file exists. */
  async create(path: string, content: string, mode: number = PRIVATE_MODE): Promise<void> {
    const { open, chmod } = await load();
    const file = await open(path, "wx", PRIVATE_MODE);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    // Set the mode last. With `open`, the umask would remove permission bits, and other users could read an incomplete
    // file.
    if (mode !== PRIVATE_MODE) await chmod(path, mode);
  },

  /**
   * Replaces a file atomically, so that readers see either the old or the new content. Keeps the mode and owner of the
   * file. A new file is readable only by its owner. Follows a symbolic link and keeps the link.
   */
  async replace(path: string, content: string): Promise<void> {
    const { lstat, chown, rename, unlink } = await load();
    const target = await files.resolve(path) ?? path;
    const before = await lstat(target).catch(ignoreNotFound);
    // Create the temporary file in the file's own folder, because a rename is atomic only within a file system.
    const temporary = `${toFolder(target)}/.${toBaseName(target)}.${crypto.randomUUID()}.tmp`;
    try {
      await files.create(temporary, content, before ? before.mode & PERMISSION_BITS : PRIVATE_MODE);
      const made = await lstat(temporary);
      // Change the owner only if necessary, because only root may change the owner.
      if (before && (before.uid !== made.uid || before.gid !== made.gid)) {
        await chown(temporary, before.uid, before.gid).catch(() => {});
      }
      await rename(temporary, target);
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw error;
    }
  },

  async remove(path: string): Promise<void> {
    await (await load()).unlink(path);
  },

  /** Creates a folder and its missing parents, with the permission bits `mode`. */
  async makeFolder(path: string, mode?: number): Promise<void> {
    await (await load()).mkdir(path, { recursive: true, mode });
  },

  async touch(path: string): Promise<void> {
    const now = new Date();
    await (await load()).utimes(path, now, now);
  },
};

/** Waits for a new file. Returns `false` if a file with this name exists. */
export async function isCreated(writing: Promise<void>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    if (hasErrorCode(error) && error.code === "EEXIST") return false;
    throw error;
  }
}
