/**
 * Searches the text files of a folder, with limits on time, bytes and matches. Searches of the same client run one
 * after the other.
 */
import { FairQueue } from "../server/capacity/fair_queue.ts";
import { type Context, ToolError } from "../library.ts";
import { type Folder, isUnavailable } from "./files/confined_folder.ts";
import { decodeText } from "./media_type.ts";

/** More matches would only fill the context of the model, which can search for a longer phrase. */
const MAX_MATCHES = 100;
const MAX_FILES = 20_000;
const MAX_BYTES = 256 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
const MAX_LINE_CHARACTERS = 300;
/** Number of files that are searched between two progress notifications. */
const PROGRESS_INTERVAL = 100;

export interface SearchQuery {
  /** The phrase. Upper and lower case are treated as equal. */
  readonly phrase: string;
  /** Whether to search the file at this path. */
  readonly matches: (path: string) => boolean;
}

/** Returns the matching lines, or a sentence that says that no line matches. */
export async function searchFiles(
  folder: Folder,
  { phrase, matches }: SearchQuery,
  ctx: Pick<Context, "signal" | "progress">,
): Promise<string> {
  const needle = phrase.toLowerCase();
  const files = (await folder.walk(MAX_FILES)).filter(({ path }) => matches(path));
  const lines: string[] = [];
  let bytesLeft = MAX_BYTES;
  const end = performance.now() + TIMEOUT_MS;
  let isLate = false;
  for (const [i, { path, size }] of files.entries()) {
    isLate = performance.now() > end;
    if (isLate || ctx.signal.aborted || lines.length >= MAX_MATCHES || (bytesLeft -= size) < 0) break;
    if (i % PROGRESS_INTERVAL === 0) await ctx.progress(i, { total: files.length });
    const bytes = await folder.read(path);
    const text = isUnavailable(bytes) ? undefined : decodeText(bytes);
    if (text?.toLowerCase().includes(needle)) {
      lines.push(...findLines(text, needle).map((line) => `${path}:${line}`));
    }
  }
  if (!lines.length) {
    return bytesLeft < 0 || isLate
      ? "The search stopped early without a match; search fewer files."
      : "No file contains the phrase.";
  }
  const isCut = lines.length > MAX_MATCHES || isLate;
  return [
    ...lines.slice(0, MAX_MATCHES),
    ...isCut ? ["… and more; search fewer files, or search for a longer phrase"] : [],
  ]
    .join("\n");
}

/** Returns the lines that contain a phrase, with their line numbers. `phrase` must be in lower case. */
function findLines(text: string, phrase: string): string[] {
  return text.split("\n").flatMap((line, i) => {
    const at = line.toLowerCase().indexOf(phrase);
    if (at < 0) return [];
    const start = Math.max(0, at - MAX_LINE_CHARACTERS / 2);
    return `${i + 1}: ${start ? "…" : ""}${line.slice(start, start + MAX_LINE_CHARACTERS).trim()}`;
  });
}

/** Maximum number of searches per client that can wait while another search of the client is running. */
const MAX_WAITING = 8;
/** Maximum number of searches of all clients that run at the same time, because a search reads many files. */
const MAX_RUNNING = 8;

interface WaitingSearch {
  readonly client: unknown;
  readonly start: () => void;
}

/** Runs the searches of each client one after the other, and gives each client its turn. */
// Bound: `MAX_WAITING` per client, and `calls.running`.
export class SearchQueue {
  readonly #waiting = new FairQueue<WaitingSearch>();
  readonly #running = new Set<unknown>();
  /**
   * Runs a search after the earlier searches of the same client.
   *
   * @throws {ToolError} if too many searches of the client are waiting.
   */
  async run<T>(client: unknown, search: () => Promise<T>): Promise<T> {
    const own = this.#waiting.count(client) + Number(this.#running.has(client));
    if (own > MAX_WAITING) {
      throw new ToolError("Cannot search: too many searches are waiting; try again later");
    }
    await new Promise<void>((start) => {
      this.#waiting.add(client, { client, start });
      this.#startNext();
    });
    try {
      return await search();
    } finally {
      this.#running.delete(client);
      this.#startNext();
    }
  }

  #startNext(): void {
    while (this.#running.size < MAX_RUNNING) {
      const next = this.#waiting.dequeue(({ client }) => !this.#running.has(client));
      if (!next) return;
      this.#running.add(next.client);
      next.start();
    }
  }
}
