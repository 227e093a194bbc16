/**
 * Hears of files that change.
 *
 * @module
 */
import { platform } from "./platform.ts";

const POLL_MS = 500;

/**
 * Calls back when a file has been written, replaced, taken away or put back. It is looked at again and again: the
 * system loses sight of a file when an editor puts another one in its place.
 */
export function watchFile(path: string, changed: () => void): () => void {
  const see = () => platform.files.look(path).then((facts) => facts?.version, () => undefined);
  let before = see();
  let isBusy = false;
  const timer = setInterval(async () => {
    if (isBusy) return;
    isBusy = true;
    const last = await before;
    before = see();
    if (await before !== last) changed();
    isBusy = false;
  }, POLL_MS);
  return () => clearInterval(timer);
}
