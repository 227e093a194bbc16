/**
 * Watches a folder. Distinguishes written files from added and removed files.
 */
import { formatError } from "../../core/kit/error_log.ts";
import { toPrintableLine } from "../../core/kit/printable.ts";
import { type Folder, MAX_LISTED_FILES } from "./confined_folder.ts";
import { localFiles } from "./local_files.ts";
import { toRelativePath } from "./path.ts";

/** Milliseconds from the first event until the lists are compared, because saving a file causes several events. */
const SETTLE_MS = 50;

export interface FolderListener {
  /** Called with the path of a file that was written. */
  readonly onWritten: (path: string) => void;
  /** Called after files were added or removed. */
  readonly onListChanged: () => unknown;
}

/**
 * Watches a folder. Returns a function that stops watching, and resolves when the last comparison of the lists has
 * ended. The watcher does not keep the process alive.
 */
export function watchFolder(folder: Folder, listener: FolderListener): () => Promise<void> {
  const watcher = new FolderWatcher(folder, listener);
  return () => watcher.stop();
}

/**
 * Compares the current list of files with the previous list, to determine which files were written, added or removed.
 * The operating system reports only the paths of changed files.
 */
class FolderWatcher {
  readonly #folder: Folder;
  readonly #listener: FolderListener;
  // Bound: one per file that has changed since the last comparison.
  readonly #touched = new Set<string>();
  readonly #ready: Promise<void>;
  #stopWatching = () => {};
  #isStopped = false;
  #files: Set<string> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #comparing: Promise<void> | undefined;

  constructor(folder: Folder, listener: FolderListener) {
    this.#folder = folder;
    this.#listener = listener;
    this.#ready = this.#start().catch((error) => console.error(formatError(error)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#stopWatching();
    await this.#ready;
    await this.#comparing;
  }

  async #listFiles(): Promise<Set<string>> {
    // The paths are only compared. A proof could wait for a second, and omit the files of a folder that keeps changing.
    return new Set((await this.#folder.walk(MAX_LISTED_FILES, { isProven: false })).map(({ path }) => path));
  }

  async #start(): Promise<void> {
    const root = await this.#folder.findRoot();
    if (root === undefined || this.#isStopped) return;
    // Start watching before reading the list. Otherwise a change between reading and watching would be missed.
    this.#stopWatching = startWatching(root, (path) => this.#onEvent(root, path));
    this.#files = await this.#listFiles();
    if (this.#files.size < MAX_LISTED_FILES) return;
    this.#stopWatching();
    console.error(
      `Cannot watch ${root}: it has at least ${MAX_LISTED_FILES} files, so clients are not notified of changes; exclude some files`,
    );
  }

  #onEvent(root: string, path: string): void {
    const inner = toRelativePath(root, path);
    // A closed watcher can still report events that occurred before.
    if (this.#isStopped || !inner || !this.#folder.includes(inner)) return;
    this.#touched.add(inner);
    this.#schedule();
  }

  // Further events do not restart the timer, because a program that writes continuously would delay the comparison
  // forever.
  #schedule(): void {
    this.#timer ??= setTimeout(async () => {
      this.#comparing = this.#compareLists().catch((error) => console.error(formatError(error)));
      await this.#comparing;
      this.#timer = undefined;
      if (this.#touched.size && !this.#isStopped) this.#schedule();
    }, SETTLE_MS);
  }

  async #compareLists(): Promise<void> {
    await this.#ready;
    const touched = [...this.#touched];
    this.#touched.clear();
    const files = await this.#listFiles();
    if (this.#isStopped) return;
    const before = this.#files ?? files;
    this.#files = files;
    for (const path of touched) if (files.has(path) && before.has(path)) this.#listener.onWritten(path);
    if (files.size !== before.size || [...files].some((path) => !before.has(path))) {
      await this.#listener.onListChanged();
    }
  }
}

function startWatching(path: string, onEvent: (path: string) => void): () => void {
  const report = (error: unknown) =>
    console.error(
      `Cannot watch all of ${path}: ${
        toPrintableLine(error instanceof Error ? error.message : error)
      }; clients are not notified of all changes in it`,
    );
  try {
    return localFiles.watch(path, onEvent, report);
  } catch (error) {
    report(error);
    return () => {};
  }
}
