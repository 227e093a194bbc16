/**
 * `--watch`: loads a target again when one of its files changes.
 *
 * @module
 */
import { describeError, toPrintable } from "../protocol/printable.ts";
import type { Loaded } from "./load.ts";
import { Problem } from "./problem.ts";
import { watchFile } from "./file_watcher.ts";

/**
 * Loads a target again whenever one of its files changes. If it cannot be used, the error is printed and the last good
 * state stays.
 *
 * @throws {Problem} if the target has no file that could change.
 */
export function watchTarget(target: string | undefined, { reload, files }: Loaded): void {
  if (!reload) throw new Problem(`Cannot watch ${target ?? "the demonstration"}: it has no file that could change`);
  let stops: readonly (() => void)[] = [];
  const follow = (paths: readonly string[]) => {
    stops.forEach((stop) => stop());
    stops = paths.map((path) => watchFile(path, again));
  };
  // One after the other: what is loaded last is what was written last.
  let last = Promise.resolve();
  const again = () => {
    last = last.then(async () => {
      try {
        follow(await reload());
        console.error(`Loaded ${target} again.`);
      } catch (error) {
        console.error(error instanceof Problem ? toPrintable(error.message) : describeError(error));
        console.error("\nWhat was loaded before is still served.");
      }
    });
  };
  follow(files);
}
