/**
 * Watches files for changes.
 *
 * @module
 */
import { platform } from "./platform.ts";

/** The time between two checks, in milliseconds. */
const POLL_MS = 500;

/**
 * Calls `onChange` when a file was written, replaced, deleted or created. Returns a function that stops this.
 *
 * Polls the file, because the watchers of the system lose a file that an editor replaces.
 */
export function watchFile(path: string, onChange: () => void): () => void {
  const readVersion = () => platform.files.stat(path).then((facts) => facts?.version, () => undefined);
  let before = readVersion();
  let isBusy = false;
  const timer = setInterval(async () => {
    if (isBusy) return;
    isBusy = true;
    const last = await before;
    before = readVersion();
    if (await before !== last) onChange();
    isBusy = false;
  }, POLL_MS);
  return () => clearInterval(timer);
}
