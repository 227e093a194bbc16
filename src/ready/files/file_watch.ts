/**
 * Watches files for changes.
 */
import { startBackgroundTimer } from "../../core/runtime.ts";
import { localFiles } from "./local_files.ts";

/** Milliseconds between two checks of a file. */
const POLL_MS = 500;

/**
 * Calls `onChange` when a file has been written, replaced, deleted or created. Returns a function that stops watching.
 * The watcher does not keep the process alive.
 *
 * Polls the file, because a file watcher of the operating system does not notice changes after an editor has replaced
 * the file.
 */
export function watchFile(path: string, onChange: () => void): () => void {
  const readVersion = () => localFiles.stat(path).then((info) => info?.version, () => undefined);
  let before = readVersion();
  let isStopped = false;
  let stopTimer = startBackgroundTimer(check, POLL_MS);
  async function check(): Promise<void> {
    const last = await before;
    before = readVersion();
    const isChanged = await before !== last;
    if (isStopped) return;
    stopTimer = startBackgroundTimer(check, POLL_MS);
    if (isChanged) onChange();
  }
  return () => {
    isStopped = true;
    stopTimer();
  };
}
