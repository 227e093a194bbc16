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
  const watchAll = (paths: readonly string[]) => {
    stops.forEach((stop) => stop());
    stops = paths.map((path) => watchFile(path, reloadNext));
  };
  // Reloads run one after the other, so that the last one reads the last change.
  let last = Promise.resolve();
  const reloadNext = () => {
    last = last.then(async () => {
      try {
        watchAll(await reload());
        console.error(`Reloaded ${target}.`);
      } catch (error) {
        console.error(error instanceof CliError ? toPrintable(error.message) : formatError(error));
        console.error("\nThe previous version is still served.");
      }
    });
  };
  watchAll(files);
}
