/**
 * Watches files for changes.
 */
import { startBackgroundTimer } from "../../core/runtime.ts";
import { localFiles } from "./local_files.ts";

/** Milliseconds between two checks of a file. */
const POLL_MS = 500;

/**
 * Calls `onChange` when a file has been written, replaced, deleted or created after `since`, the time in milliseconds
 * at which the caller began to read the file. Returns a function that stops watching, and resolves when the last check
 * has ended. The watcher does not keep the process alive.
 *
 * Polls the file, because a file watcher of the operating system does not notice changes after an editor has replaced
 * the file.
 */
export function watchFile(path: string, since: number, onChange: () => void): () => Promise<void> {
  const stat = () => localFiles.stat(path).catch(() => undefined);
  const readVersion = async () => (await stat())?.version;
  // The version of a file that has already changed equals no other version, so that the first check finds the change.
  let before = stat().then((info) => info && info.modified > since ? "changed" : info?.version);
  let isStopped = false;
  let stopTimer = startBackgroundTimer(check, POLL_MS);
  async function check(): Promise<void> {
    const last = await before;
    if (isStopped) return;
    before = readVersion();
    const isChanged = await before !== last;
    if (isStopped) return;
    stopTimer = startBackgroundTimer(check, POLL_MS);
    if (isChanged) onChange();
  }
  return async () => {
    isStopped = true;
    stopTimer();
    await before;
  };
}
