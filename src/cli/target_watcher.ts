/**
 * `mcp serve --watch`: reloads the target when one of its files changes.
 */
import { formatError } from "../core/kit/error_log.ts";
import { toPrintable } from "../core/kit/printable.ts";
import type { Loaded } from "./loaded.ts";
import { CliError } from "./cli_error.ts";
import { watchFile } from "../ready/files/file_watch.ts";

/**
 * Reloads a target whenever one of its files changes after `since`, the time in milliseconds at which loading began. If
 * reloading fails, prints the error and keeps the previous handlers. Returns a function that stops watching.
 *
 * @throws {CliError} if the target has no file.
 */
export function watchTarget(target: string | undefined, { reload, files }: Loaded, since: number): () => void {
  if (!reload) throw new CliError(`Cannot watch ${target ?? "the demonstration"}: it has no file; name a file`);
  const stops = new Map<string, () => void>();
  // Keep changed files until a reload succeeds, because a file with an error must be loaded again with the next change.
  const changed = new Set<string>();
  // Keep existing watchers, because a new watcher would not notice that a file was deleted during the reload.
  const watchAll = (paths: readonly string[], start: number) => {
    for (const path of paths) if (!stops.has(path)) stops.set(path, watchFile(path, start, () => reloadNext(path)));
    for (const [path, stop] of stops) {
      if (paths.includes(path)) continue;
      stop();
      stops.delete(path);
    }
  };
  // Run reloads one after the other, so that the last reload reads the last change.
  let last = Promise.resolve();
  const reloadNext = (path: string) => {
    changed.add(path);
    last = last.then(async () => {
      // Skip this reload if an earlier reload has already included the change.
      if (!changed.size) return;
      const taken = [...changed];
      // Clear the set before the reload, because a file that changes during the reload must be loaded again.
      changed.clear();
      const start = Date.now();
      try {
        watchAll(await reload(taken), start);
        console.error(`Reloaded ${target}.`);
      } catch (error) {
        taken.forEach((path) => changed.add(path));
        console.error(error instanceof CliError ? toPrintable(error.message) : formatError(error));
        console.error("\nThe previous version is still served.");
      }
    });
  };
  watchAll(files, since);
  return () => stops.forEach((stop) => stop());
}
