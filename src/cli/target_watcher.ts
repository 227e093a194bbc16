/**
 * `mcp serve --watch`: reloads the target when one of its files changes.
 *
 * @module
 */
import { formatError, toPrintable } from "../protocol/printable.ts";
import type { Loaded } from "./load.ts";
import { CliError } from "./cli_error.ts";
import { watchFile } from "./file_watcher.ts";

/**
 * Reloads a target whenever one of its files changes. If that fails, prints the error and keeps the previous handlers.
 *
 * @throws {CliError} if the target has no file.
 */
export function watchTarget(target: string | undefined, { reload, files }: Loaded): void {
  if (!reload) throw new CliError(`Cannot watch ${target ?? "the demonstration"}: it has no file; name one`);
  let stops: readonly (() => void)[] = [];
  // Kept until a reload succeeds, because a file with an error must be loaded again too.
  const changed = new Set<string>();
  const watchAll = (paths: readonly string[]) => {
    stops.forEach((stop) => stop());
    stops = paths.map((path) => watchFile(path, () => reloadNext(path)));
  };
  // Reloads run one after the other, so that the last one reads the last change.
  let last = Promise.resolve();
  const reloadNext = (path: string) => {
    changed.add(path);
    last = last.then(async () => {
      // An earlier reload may have included this change.
      if (!changed.size) return;
      try {
        const taken = [...changed];
        watchAll(await reload(taken));
        taken.forEach((path) => changed.delete(path));
        console.error(`Reloaded ${target}.`);
      } catch (error) {
        console.error(error instanceof CliError ? toPrintable(error.message) : formatError(error));
        console.error("\nThe previous version is still served.");
      }
    });
  };
  watchAll(files);
}
